//! Values that expire, and members in the order of their scores.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    hash::Hash,
};

use crate::time::Timestamp;

/// A value that is gone some time after it was written.
#[derive(Debug, Clone)]
pub(super) struct Expiring<T> {
    value: T,
    until: Timestamp,
}

impl<T> Expiring<T> {
    pub(super) fn new(value: T, until: Timestamp) -> Self {
        Self { value, until }
    }

    pub(super) fn get(&self, now: Timestamp) -> Option<&T> {
        (now <= self.until).then_some(&self.value)
    }

    /// How many milliseconds are left; none when it is gone.
    pub(super) fn left(&self, now: Timestamp) -> Option<i64> {
        (now <= self.until).then(|| self.until.as_millis() - now.as_millis())
    }

    pub(super) fn hold_until(&mut self, until: Timestamp) {
        self.until = until;
    }
}

/// When to look at a claim next; of two at the same time the one whose worker is in doubt comes later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Look {
    pub(super) at: Timestamp,
    /// The claim had expired at the last look although its worker lived; its heartbeat may set the key again.
    pub(super) in_doubt: bool,
}

impl Look {
    pub(super) fn at(at: Timestamp) -> Self {
        Self {
            at,
            in_doubt: false,
        }
    }
}

/// A sorted set: members by score, then by their text.
#[derive(Debug)]
pub(super) struct Scored<S, M> {
    scores: HashMap<M, S>,
    order: BTreeMap<(S, String), M>,
}

impl<S, M> Default for Scored<S, M> {
    fn default() -> Self {
        Self {
            scores: HashMap::new(),
            order: BTreeMap::new(),
        }
    }
}

impl<S: Ord + Copy, M: Eq + Hash + Clone + fmt::Display> Scored<S, M> {
    pub(super) fn insert(&mut self, member: &M, score: S) {
        self.remove(member);
        self.scores.insert(member.clone(), score);
        self.order
            .insert((score, member.to_string()), member.clone());
    }

    pub(super) fn remove(&mut self, member: &M) {
        if let Some(score) = self.scores.remove(member) {
            self.order.remove(&(score, member.to_string()));
        }
    }

    pub(super) fn pop_last(&mut self) -> Option<(S, M)> {
        let ((score, _), member) = self.order.pop_last()?;
        self.scores.remove(&member);
        Some((score, member))
    }

    /// In order, lowest score first.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (S, &M)> {
        self.order
            .iter()
            .map(|((score, _), member)| (*score, member))
    }

    /// The first `limit` members whose score satisfies a condition that holds for the lowest.
    pub(super) fn first(&self, limit: u32, due: impl Fn(S) -> bool) -> Vec<(S, M)> {
        self.iter()
            .take_while(|(score, _)| due(*score))
            .take(limit as usize)
            .map(|(score, member)| (score, member.clone()))
            .collect()
    }

    /// The first `limit` members whose score satisfies a condition that holds for the highest.
    pub(super) fn last(&self, limit: u32, ahead: impl Fn(S) -> bool) -> Vec<M> {
        let from_the_end = self.iter().rev();
        let mut members: Vec<M> = from_the_end
            .take_while(|(score, _)| ahead(*score))
            .map(|(_, member)| member.clone())
            .collect();
        members.reverse();
        members.truncate(limit as usize);
        members
    }

    pub(super) fn contains(&self, member: &M) -> bool {
        self.scores.contains_key(member)
    }

    pub(super) fn len(&self) -> usize {
        self.scores.len()
    }
}
