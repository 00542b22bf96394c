//! The question before something is done to many.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use super::{
    targets::{Consent, Target},
    verb::Verb,
};
use crate::{
    answer::{self, Answer},
    exit::{Exit, Usage},
};

/// How many ids are shown before the question.
const SHOWN: usize = 5;

/// What to do with what was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Consented {
    /// Go on.
    Yes,
    /// Nothing is to be done, and the command ends so.
    No(Exit),
}

/// What `--dry-run` answers in JSON.
#[derive(Serialize)]
struct Plan<'a> {
    would: &'static str,
    count: usize,
    ids: Vec<&'a str>,
}

/// Says how many there are and which, and asks; what may answer is a terminal or `--yes`.
pub(crate) fn consent(
    verb: &Verb,
    targets: &[Target],
    consent: Consent,
    answer: Answer,
) -> anyhow::Result<Consented> {
    if consent.dry_run {
        plan(verb, targets, answer)?;
        return Ok(Consented::No(Exit::Done));
    }
    if targets.is_empty() || consent.yes {
        return Ok(Consented::Yes);
    }
    let told = told(verb, targets);
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(Usage::new(format!(
            "{told}; nothing was done: there is no terminal to ask on, so say --yes, or --dry-run to see them all"
        ))
        .into());
    }
    eprint!("{told}. Go on? [y/N] ");
    io::stderr().flush()?;
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    if matches!(line.trim().to_lowercase().as_str(), "y" | "yes") {
        return Ok(Consented::Yes);
    }
    eprintln!("nothing was done");
    Ok(Consented::No(Exit::Failed))
}

/// The ids go to standard output alone, so that they can be given to another command.
fn plan(verb: &Verb, targets: &[Target], answer: Answer) -> anyhow::Result<()> {
    let ids: Vec<&str> = targets.iter().map(Target::id).collect();
    let plan = Plan {
        would: verb.word(),
        count: ids.len(),
        ids,
    };
    if answer.json {
        return answer.write(&plan, |_| String::new());
    }
    let colon = if targets.is_empty() { "" } else { ":" };
    eprintln!("{}{colon}", would(verb, targets.len()));
    plan.ids.iter().try_for_each(|id| answer::line(id))
}

fn would(verb: &Verb, count: usize) -> String {
    let many = match count {
        0 => "no instance".to_owned(),
        1 => "1 instance".to_owned(),
        _ => format!("{count} instances"),
    };
    format!("{many} would be {}", verb.done())
}

fn told(verb: &Verb, targets: &[Target]) -> String {
    let first: Vec<&str> = targets.iter().take(SHOWN).map(Target::id).collect();
    let rest = match targets.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}: {}{rest}", would(verb, targets.len()), first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_names_the_count_and_the_first_ids() {
        let targets = |count: usize| -> Vec<Target> {
            let named = (1..=count).map(|n| Target::Named(format!("order-{n}")));
            named.collect()
        };
        assert_eq!(
            told(&Verb::Cancel, &targets(1)),
            "1 instance would be cancelled: order-1"
        );
        assert_eq!(
            told(&Verb::Delete, &targets(1207)),
            "1207 instances would be deleted: order-1, order-2, order-3, order-4, order-5 and 1202 more"
        );
    }
}
