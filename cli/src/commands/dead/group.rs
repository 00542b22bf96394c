//! Which deaths are of one kind: the same task of the same workflow, and the same message but for numbers and ids.

use std::collections::HashMap;

use tenure::{store::Summary, time::Timestamp};

/// How much of a message is looked at, in characters.
const LOOKED_AT: usize = 300;
/// A word of hexadecimal digits is an id if it is at least so long.
const ID: usize = 8;

/// What deaths of one kind have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    pub(super) workflow: String,
    pub(super) task: String,
    /// The message, with `#` for what differs.
    pub(super) error: String,
}

impl Kind {
    /// That of a dead instance.
    pub(super) fn of(summary: &Summary) -> Self {
        let (task, message) = match &summary.error {
            Some(error) => (error.task.as_str(), error.message.as_str()),
            None => ("", "(no error is stored)"),
        };
        // `charge#2` is `charge` in the second round of its loop.
        let task = task.split('#').next().unwrap_or_default();
        Self {
            workflow: summary.workflow.to_string(),
            task: task.to_owned(),
            error: fold(message, summary.id.as_str()),
        }
    }

    /// A short name that is the same in every look: FNV-1a over all of it.
    pub(super) fn name(&self) -> String {
        let parts = [&self.workflow, &self.task, &self.error];
        let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{:08x}", hash >> 32)
    }
}

/// A message with `#` for numbers and ids, and for the id of its instance.
fn fold(message: &str, id: &str) -> String {
    let message: String = message.chars().take(LOOKED_AT).collect();
    let message = match id.is_empty() {
        true => message,
        false => without(&message, id),
    };
    let is_inner = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let mut folded = String::new();
    let mut rest = message.as_str();
    while let Some(first) = rest.chars().next() {
        let end = |inside: bool| rest.find(|c| is_inner(c) != inside).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end(is_inner(first)));
        match is_inner(first) {
            true => folded.push_str(&word(piece)),
            false => folded.push_str(piece),
        }
        rest = after;
    }
    folded
}

/// Replaces the id where it stands by itself.
fn without(message: &str, id: &str) -> String {
    let mut folded = String::new();
    let mut last = 0;
    for (at, _) in message.match_indices(id) {
        let before = message[..at].chars().next_back();
        let after = message[at + id.len()..].chars().next();
        if [before, after]
            .iter()
            .flatten()
            .any(|c| c.is_alphanumeric())
        {
            continue;
        }
        folded.push_str(&message[last..at]);
        folded.push('#');
        last = at + id.len();
    }
    folded.push_str(&message[last..]);
    folded
}

/// `#` for a UUID, a hash, or an id such as `8fKs93Ls`; else with `#` for each number in it.
fn word(text: &str) -> String {
    let has_digit = text.contains(|c: char| c.is_ascii_digit());
    if !has_digit {
        return text.to_owned();
    }
    let is_hex = text.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    if is_hex && text.len() >= ID {
        return "#".to_owned();
    }
    let parts = text.split_inclusive(['-', '_']).map(part);
    parts.collect()
}

fn part(text: &str) -> String {
    let body = text.trim_end_matches(['-', '_']);
    let numbers = body.split(|c: char| !c.is_ascii_digit());
    let numbers = numbers.filter(|number| !number.is_empty()).count();
    if numbers > 1 {
        return format!("#{}", &text[body.len()..]);
    }
    let mut folded = String::new();
    for c in text.chars() {
        match c.is_ascii_digit() {
            true if folded.ends_with('#') => {}
            true => folded.push('#'),
            false => folded.push(c),
        }
    }
    folded
}

/// Deaths of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) kind: Kind,
    pub(super) count: usize,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
    /// The one that died last, and its whole message.
    pub(super) example: String,
    pub(super) message: String,
}

/// Groups, in the making.
#[derive(Debug, Default)]
pub(super) struct Groups(HashMap<Kind, Group>);

impl Groups {
    pub(super) fn add(&mut self, summary: &Summary) {
        let kind = Kind::of(summary);
        let at = summary.finished_at.unwrap_or_default();
        let error = summary.error.as_ref();
        let message = error.map(|error| error.message.clone());
        let alone = Group {
            kind: kind.clone(),
            count: 0,
            first: at,
            last: at,
            example: summary.id.to_string(),
            message: message.unwrap_or_default(),
        };
        let group = self.0.entry(kind).or_insert_with(|| alone.clone());
        group.count += 1;
        group.first = group.first.min(at);
        if at > group.last {
            (group.last, group.example, group.message) = (at, alone.example, alone.message);
        }
    }

    /// The largest first.
    pub(super) fn into_sorted(self) -> Vec<Group> {
        let mut groups: Vec<Group> = self.0.into_values().collect();
        groups.sort_by(|a, b| {
            let order = b.count.cmp(&a.count).then(b.last.cmp(&a.last));
            order.then_with(|| a.kind.name().cmp(&b.kind.name()))
        });
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ids_make_no_difference() {
        let folded = |message| fold(message, "order-7");
        assert_eq!(folded("declined: code 4711"), "declined: code #");
        assert_eq!(folded("HTTP503 after 12ms"), "HTTP# after #ms");
        assert_eq!(folded("no user cus_8fKs93Ls"), "no user cus_#");
        assert_eq!(folded("order-7 is gone"), "# is gone");
        assert_eq!(folded("order-71 is gone"), "order-# is gone");
        assert_eq!(folded("an order-8 too"), "an order-# too");
        assert_eq!(
            folded("lock 550e8400-e29b-41d4-a716-446655440000 held"),
            "lock # held"
        );
        assert_eq!(folded("at 10.0.0.1:6379"), "at #.#.#.#:#");
        assert_eq!(folded("grüße für 3 Gäste"), "grüße für # Gäste");
        assert_eq!(folded("connection refused"), "connection refused");
    }

    #[test]
    fn a_kind_has_the_same_name_in_every_look() {
        let kind = |task: &str| Kind {
            workflow: "order".into(),
            task: task.into(),
            error: "declined: code #".into(),
        };
        assert_eq!(kind("charge").name(), kind("charge").name());
        assert_ne!(kind("charge").name(), kind("ship").name());
        assert_eq!(kind("charge").name().len(), 8);
    }
}
