//! Every key and channel name, in one place.

use std::num::NonZeroU16;

use crate::ids::{
    DefinitionHash, InstanceId, ListName, MailboxId, Namespace, Partition, TaskName, WorkerId,
    WorkflowName,
};

/// The names of a namespace: those of each partition begin with `{ns:p}:`, so that all that one script touches is in
/// one hash slot.
#[derive(Debug)]
pub(super) struct Keys {
    namespace: Namespace,
    prefixes: Vec<String>,
}

impl Keys {
    pub(super) fn new(namespace: Namespace, partitions: NonZeroU16) -> Self {
        let prefixes = Partition::all(partitions)
            .map(|p| format!("{{{namespace}:{p}}}:"))
            .collect();
        Self {
            namespace,
            prefixes,
        }
    }

    pub(super) fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The names of one partition; `None` if the namespace has no such partition.
    pub(super) fn of(&self, partition: Partition) -> Option<PartitionKeys<'_>> {
        self.prefixes
            .get(usize::from(partition.number()))
            .map(|prefix| PartitionKeys { prefix })
    }

    pub(super) fn definition(&self, hash: DefinitionHash) -> String {
        format!("{{{}}}:def:{hash}", self.namespace)
    }

    pub(super) fn definitions(&self) -> String {
        format!("{{{}}}:definitions", self.namespace)
    }

    /// Who says what of itself.
    pub(super) fn worker(&self, worker: &WorkerId) -> String {
        format!("{{{}}}:worker:{worker}", self.namespace)
    }

    pub(super) fn workers(&self) -> String {
        format!("{{{}}}:workers", self.namespace)
    }

    pub(super) fn workflow(&self, name: &WorkflowName) -> String {
        format!("{{{}}}:workflow:{name}", self.namespace)
    }
}

/// `{ns}:meta`: what the whole namespace agrees on.
pub(super) fn namespace_meta(namespace: &Namespace) -> String {
    format!("{{{namespace}}}:meta")
}

/// The names of one partition.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartitionKeys<'a> {
    /// `{ns:p}:`
    pub(super) prefix: &'a str,
}

impl PartitionKeys<'_> {
    fn with(self, rest: &str) -> String {
        [self.prefix, rest].concat()
    }

    pub(super) fn meta(self) -> String {
        self.with("meta")
    }

    pub(super) fn seq(self) -> String {
        self.with("seq")
    }

    pub(super) fn woken(self) -> String {
        self.with("woken")
    }

    pub(super) fn running(self) -> String {
        self.with("running")
    }

    pub(super) fn delayed(self) -> String {
        self.with("delayed")
    }

    pub(super) fn waiting(self) -> String {
        self.with("waiting")
    }

    pub(super) fn paused(self) -> String {
        self.with("paused")
    }

    pub(super) fn keeper(self) -> String {
        self.with("keeper")
    }

    pub(super) fn aside(self) -> String {
        self.with("aside")
    }

    pub(super) fn lists(self) -> String {
        self.with("lists")
    }

    pub(super) fn done(self, status: &str) -> String {
        [self.prefix, "done:", status].concat()
    }

    pub(super) fn instance(self, id: &InstanceId) -> String {
        [self.prefix, "instance:", id.as_str()].concat()
    }

    pub(super) fn errors(self, id: &InstanceId) -> String {
        [self.prefix, "errors:", id.as_str()].concat()
    }

    pub(super) fn parked(self, id: &InstanceId) -> String {
        [self.prefix, "parked:", id.as_str()].concat()
    }

    pub(super) fn claim(self, id: &InstanceId, task: &TaskName) -> String {
        [self.prefix, "claim:", id.as_str(), ":", task.as_str()].concat()
    }

    pub(super) fn ready(self, list: &ListName) -> String {
        format!("{}ready:{list}", self.prefix)
    }

    pub(super) fn idle(self, list: &ListName) -> String {
        format!("{}idle:{list}", self.prefix)
    }

    pub(super) fn last(self, worker: &WorkerId) -> String {
        [self.prefix, "last:", worker.as_str()].concat()
    }

    pub(super) fn worker(self, worker: &WorkerId) -> String {
        [self.prefix, "worker:", worker.as_str()].concat()
    }

    /// A channel, not a key.
    pub(super) fn mail(self, mailbox: &MailboxId) -> String {
        [self.prefix, "mail:", mailbox.as_str()].concat()
    }

    /// A channel, not a key.
    pub(super) fn events(self) -> String {
        self.with("events")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // case 69
    #[test]
    fn no_two_names_meet_in_one_claim_key() {
        let keys = Keys::new(Namespace::default(), NonZeroU16::MIN);
        let keys = keys.of(Partition::default()).expect("partition 0");
        let id = |text: &str| InstanceId::new(text).expect("an id");
        let task = TaskName::new("c").expect("a name");
        assert_eq!(
            keys.claim(&id("a:b"), &task),
            "{tenure:0}:claim:a:b:c",
            "an id may hold a colon"
        );
        assert!(
            TaskName::new("b:c").is_err(),
            "a task may not, so `a:b` + `c` is the only reading"
        );
        assert!(WorkerId::new("a:b").is_err());
        assert!(Namespace::new("a:0}:b").is_err());
    }
}
