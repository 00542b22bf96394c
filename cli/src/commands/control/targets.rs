//! Which instances are meant: ids, ids from standard input, or a filter.

use std::{collections::HashSet, io::BufRead};

use anyhow::Context;
use indicatif::ProgressBar;
use tenure::{Client, InstanceId, Status, client::Filter, ids::RunId, store::Summary};

use super::verb::Verb;
use crate::{
    exit::Usage,
    filter::{Select, WHICH},
};

/// How often a listing of live instances is gone through at most, until nothing new is found.
const PASSES: usize = 5;

/// What commands that steer take.
#[derive(Debug, clap::Args)]
pub(crate) struct Targets {
    /// Ids of instances; - reads them from standard input, one a line
    #[arg(value_name = "ID")]
    pub(super) ids: Vec<String>,
    /// All instances to which it can be done
    #[arg(long, help_heading = WHICH)]
    pub(super) all: bool,
    #[command(flatten)]
    pub(super) select: Select,
    #[command(flatten)]
    pub(super) consent: Consent,
}

/// Whether many are meant in earnest.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Consent {
    /// Do not ask before it is done to those that a filter names
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
    /// Only show which they are
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// One instance that is meant.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// Whatever run the id has.
    Named(String),
    /// A run that a filter found.
    Found { id: InstanceId, run: RunId },
}

impl Target {
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Named(id) => id,
            Self::Found { id, .. } => id.as_str(),
        }
    }
}

impl From<&Summary> for Target {
    fn from(summary: &Summary) -> Self {
        Self::Found {
            id: summary.id.clone(),
            run: summary.run,
        }
    }
}

impl Targets {
    /// Whether a filter says which.
    pub(super) fn is_filter(&self) -> bool {
        self.ids.is_empty()
    }

    /// Refuses what contradicts itself, and to do something to all without the word.
    pub(super) fn check(&self, verb: &Verb) -> Result<(), Usage> {
        let word = verb.word();
        let (ids, filter) = (!self.ids.is_empty(), !self.select.is_empty());
        match (ids, filter, self.all) {
            (false, false, false) => Err(Usage::new(format!(
                "{word} what? Give ids, - for ids from standard input, filters such as --workflow NAME, or --all"
            ))),
            (true, true, _) | (true, _, true) => Err(Usage::new(format!(
                "{word} what? Give ids, or say which by filters or --all, not both"
            ))),
            _ => fit(verb, &self.select.status),
        }
    }

    /// The ids that were typed, with those from standard input for `-`.
    pub(super) fn named(&self) -> anyhow::Result<Vec<Target>> {
        let mut ids = Vec::new();
        for id in &self.ids {
            if id != "-" {
                ids.push(id.clone());
                continue;
            }
            for line in std::io::stdin().lock().lines() {
                let line = line.context("standard input cannot be read")?;
                let line = line.trim_end_matches('\r');
                if !line.is_empty() {
                    ids.push(line.to_owned());
                }
            }
        }
        Ok(ids.into_iter().map(Target::Named).collect())
    }
}

/// Refuses a filter for statuses of instances to which it cannot be done.
fn fit(verb: &Verb, statuses: &[Status]) -> Result<(), Usage> {
    let unfit = statuses.iter().find(|status| !verb.is_for(**status));
    let Some(unfit) = unfit else { return Ok(()) };
    let fit: Vec<&str> = Status::ALL
        .into_iter()
        .filter(|status| verb.is_for(*status))
        .map(Status::as_str)
        .collect();
    Err(Usage::new(format!(
        "{} is not for instances that are {unfit}; --status can be {}",
        verb.word(),
        fit.join(", ")
    )))
}

/// All instances that a filter names and the verb is for. Live ones may move while they are listed: they are listed
/// again until nothing new is found.
pub(crate) async fn find(
    client: &Client,
    verb: &Verb,
    select: &Select,
    keep: impl Fn(&Summary) -> bool,
) -> anyhow::Result<Vec<Target>> {
    let mut filter = select.filter(client).await?.limit(1_000);
    let fit = Status::ALL
        .into_iter()
        .filter(|status| verb.is_for(*status));
    if select.status.is_empty() {
        filter = fit.clone().fold(filter, Filter::status);
    }
    let passes = match fit.clone().any(|status| !status.is_terminal()) {
        true => PASSES,
        false => 1,
    };
    let spinner = ProgressBar::new_spinner().with_message("instances found");
    let mut found = Finding {
        keep,
        seen: HashSet::new(),
        targets: Vec::new(),
        spinner,
    };
    for _ in 0..passes {
        let before = found.targets.len();
        found.pass(client, &filter).await?;
        if found.targets.len() == before {
            break;
        }
    }
    found.spinner.finish_and_clear();
    Ok(found.targets)
}

struct Finding<F> {
    keep: F,
    seen: HashSet<(InstanceId, RunId)>,
    targets: Vec<Target>,
    spinner: ProgressBar,
}

impl<F: Fn(&Summary) -> bool> Finding<F> {
    /// Once through the listing.
    async fn pass(&mut self, client: &Client, filter: &Filter) -> anyhow::Result<()> {
        let mut filter = filter.clone();
        loop {
            let page = client.list(&filter).await?;
            for summary in &page.instances {
                if (self.keep)(summary) && self.seen.insert((summary.id.clone(), summary.run)) {
                    self.targets.push(summary.into());
                }
            }
            self.spinner
                .set_message(format!("{} instances found", self.targets.len()));
            self.spinner.tick();
            match page.next {
                Some(next) => filter = filter.after(next),
                None => return Ok(()),
            }
        }
    }
}
