use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::Arc,
    time::Duration,
};

use super::{History, Line, places::Places, rules, signals, timing};
use crate::{
    ids::{DefinitionHash, InstanceId, RunId, ValueField},
    store::{Snapshot, Store, StoreError},
    workflow::Graph,
};

/// What was promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// Every acknowledged start is finished, lives, or was replaced; when all is quiet it is over.
    StartKept,
    /// An instance that failed has a reason within the bounds of its workflow.
    FailureExplained,
    /// Each task has one result, made by the attempt that is stored, and all that came after it saw this one.
    OneResult,
    /// An attempt of a task is given out once, to one worker, and runs once.
    AttemptsGrow,
    /// Failures, crashes and attempts stay within their budgets.
    WithinBudget,
    /// A run ends once, and all who are told of its end are told the same.
    OneEnd,
    /// A run's live tokens are its open tasks; one that is over has none.
    OpenCounted,
    /// A join counts each branch once and fires once, when enough have arrived.
    JoinOnce,
    /// An acknowledged signal is taken once, in the order of those of its name, or kept.
    SignalsKept,
    /// Nothing begins before its delay is over.
    NeverEarly,
    /// Each open task of a live instance stands where something will find it.
    HasCause,
    /// When all is quiet nothing is left: no entry, timer, running ticket or claim key.
    NothingLeft,
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// Which.
    pub rule: Rule,
    /// By which instance, if by one.
    pub id: Option<InstanceId>,
    /// How.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.rule)?;
        if let Some(id) = &self.id {
            write!(f, " [{id}]")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// What was found.
pub(super) type Found = Vec<Violation>;

/// Compares a ledger with a store.
#[derive(Debug, Clone)]
pub struct Check {
    graphs: HashMap<DefinitionHash, Arc<Graph>>,
    tolerance: Duration,
}

/// All that is known of one instance when it is checked.
pub(super) struct Case<'a> {
    pub(super) id: &'a InstanceId,
    pub(super) snapshot: &'a Snapshot,
    pub(super) graph: Option<&'a Graph>,
    /// The stored payloads that the graph knows of.
    pub(super) values: &'a BTreeMap<ValueField, bytes::Bytes>,
    pub(super) lines: &'a [&'a Line],
}

impl Case<'_> {
    pub(super) fn run(&self) -> RunId {
        self.snapshot.header.run
    }

    pub(super) fn violation(&self, rule: Rule, what: String) -> Violation {
        Violation {
            rule,
            id: Some(self.id.clone()),
            what,
        }
    }
}

impl Check {
    /// For instances of one definition.
    #[must_use]
    pub fn new(graph: &Arc<Graph>) -> Self {
        Self {
            graphs: HashMap::new(),
            tolerance: Duration::ZERO,
        }
        .and(graph)
    }

    /// And of another one.
    #[must_use]
    pub fn and(mut self, graph: &Arc<Graph>) -> Self {
        self.graphs.insert(graph.hash(), Arc::clone(graph));
        self
    }

    /// By how much the ledger's clock and the store's may differ. Default: not at all.
    #[must_use]
    pub fn tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// What holds at all times, whatever happens: also while workers run, die and come back.
    ///
    /// Ledger and store have to be of one moment: nobody else may write between the reading of the ledger and the end of
    /// this call. A simulation on one thread has such moments; elsewhere stop the workers first.
    ///
    /// # Errors
    /// The store's.
    pub async fn always(
        &self,
        store: &dyn Store,
        history: &History,
    ) -> Result<Vec<Violation>, StoreError> {
        let mut found = Found::new();
        rules::attempts(history, &mut found);
        rules::stored_once(history, &mut found);
        rules::ends(history, &mut found);
        let by_instance = by_instance(history);
        for (id, lines) in &by_instance {
            match store.snapshot(id).await? {
                Some(snapshot) => {
                    self.instance(store, id, &snapshot, lines, &mut found)
                        .await?;
                }
                None => rules::gone(id, lines, &mut found),
            }
        }
        Ok(sorted(found))
    }

    /// That each open task of a live instance stands where something will find it. Holds at all times too, of one moment
    /// as [`Check::always`].
    ///
    /// # Errors
    /// The store's.
    pub async fn causes(
        &self,
        store: &dyn Store,
        history: &History,
    ) -> Result<Vec<Violation>, StoreError> {
        let by_instance = by_instance(history);
        let ids = by_instance.keys().copied();
        let places = Places::read(store, ids, self.graphs.values()).await?;
        let mut found = Found::new();
        for id in by_instance.keys() {
            if let Some(snapshot) = store.snapshot(id).await? {
                places.causes(id, &snapshot, &mut found);
            }
        }
        Ok(sorted(found))
    }

    /// What holds when nothing goes wrong any more and all had time to end: every start is over and nothing is left.
    ///
    /// # Errors
    /// The store's.
    pub async fn finally(
        &self,
        store: &dyn Store,
        history: &History,
    ) -> Result<Vec<Violation>, StoreError> {
        let mut found = Found::new();
        let by_instance = by_instance(history);
        let ids = by_instance.keys().copied();
        let places = Places::read(store, ids, self.graphs.values()).await?;
        places.left(&mut found);
        for (&id, lines) in &by_instance {
            let Some(snapshot) = store.snapshot(id).await? else {
                continue;
            };
            if !snapshot.header.status.is_terminal() {
                found.push(Violation {
                    rule: Rule::StartKept,
                    id: Some(id.clone()),
                    what: format!(
                        "run {} still lives: {:?}",
                        snapshot.header.run, snapshot.tasks
                    ),
                });
            }
            let tasks: BTreeSet<_> = snapshot
                .tasks
                .keys()
                .chain(lines.iter().filter_map(|line| line.task()))
                .collect();
            for task in tasks {
                if let Some((worker, ttl)) = store.claim_key(id, task).await? {
                    found.push(Violation {
                        rule: Rule::NothingLeft,
                        id: Some(id.clone()),
                        what: format!("{worker} still holds the key of {task} for {ttl} ms"),
                    });
                }
            }
        }
        Ok(sorted(found))
    }

    async fn instance(
        &self,
        store: &dyn Store,
        id: &InstanceId,
        snapshot: &Snapshot,
        lines: &[&Line],
        found: &mut Found,
    ) -> Result<(), StoreError> {
        let run = snapshot.header.run;
        let fields: Vec<ValueField> = snapshot.values.keys().cloned().collect();
        let stored = store.values(id, run, &fields).await?;
        let values = fields
            .into_iter()
            .zip(stored)
            .filter_map(|(field, bytes)| Some((field, bytes?)))
            .collect();
        let case = Case {
            id,
            snapshot,
            graph: self
                .graphs
                .get(&snapshot.header.definition)
                .map(AsRef::as_ref),
            values: &values,
            lines,
        };
        rules::starts(&case, found);
        rules::open(&case, found);
        rules::joins(&case, found);
        rules::budget(&case, found);
        rules::results(&case, found);
        rules::told(&case, found);
        signals::signals(&case, found);
        rules::explained(&case, found);
        timing::early(&case, self.tolerance, found);
        Ok(())
    }
}

fn sorted(mut found: Found) -> Found {
    found.sort();
    found.dedup();
    found
}

fn by_instance(history: &History) -> BTreeMap<&InstanceId, Vec<&Line>> {
    let mut lines: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in history.lines() {
        lines.entry(line.id()).or_default().push(line);
    }
    lines
}
