//! Proves the invariants of a live installation: what stands in snapshots, indexes and lists fits together.
//!
//! The installation goes on meanwhile, so what seems wrong is only suspected: it is looked at again twice, some time
//! apart, in an order that nothing that moves can fool (the record of a task is read before and after all places were
//! walked, and must be the same), or by one script that compares both at one moment.

mod census;
mod confirm;
mod cure;
mod indexes;
mod look;
mod places;
mod problem;
mod report;
mod restore;
mod settings;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use self::{confirm::Suspect, cure::Case};
pub use self::{
    problem::Problem,
    report::{Finding, Note, Outcome, Progress, Report},
};
use super::{Inner, RedisStore, keys::PartitionKeys};
use crate::{
    ids::{DefinitionHash, Partition, WorkflowName},
    store::{Inspect, StoreError},
    workflow::Graph,
};

/// Between two pieces of work the server is left to others.
const BREATH: Duration = Duration::from_millis(2);
/// How many passes mending makes: what is mended shows what else is wrong.
const PASSES: usize = 4;

type Watcher = Arc<dyn Fn(&Progress) + Send + Sync>;

/// Looks for damage in what a store holds, and mends what is safe to mend. Made by [`RedisStore::doctor`].
///
/// It needs the rights of a worker, and `SCAN`, `TYPE`, `HSCAN`. `INFO` and `CONFIG` are used where they are allowed.
#[derive(Clone)]
pub struct Doctor {
    store: RedisStore,
    partition: Option<Partition>,
    batch: usize,
    pause: Duration,
    watcher: Option<Watcher>,
}

impl fmt::Debug for Doctor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doctor")
            .field("store", &self.store)
            .field("partition", &self.partition)
            .field("batch", &self.batch)
            .field("pause", &self.pause)
            .finish_non_exhaustive()
    }
}

impl RedisStore {
    /// A look at everything that is stored in this namespace.
    #[must_use]
    pub fn doctor(&self) -> Doctor {
        Doctor {
            store: self.clone(),
            partition: None,
            batch: 500,
            pause: Duration::from_millis(1500),
            watcher: None,
        }
    }
}

impl Doctor {
    /// Only this partition. Default: all.
    #[must_use]
    pub fn partition(mut self, partition: Partition) -> Self {
        self.partition = Some(partition);
        self
    }

    /// How many keys, members or entries are read at once: at least 1, at most 10000. Default: 500.
    #[must_use]
    pub fn batch(mut self, batch: usize) -> Self {
        self.batch = batch.clamp(1, 10_000);
        self
    }

    /// How long after a look what seemed wrong is looked at again; twice. Default: 1.5 s.
    #[must_use]
    pub fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Told after every batch how far it is. Default: nobody.
    #[must_use]
    pub fn on_progress(mut self, watcher: impl Fn(&Progress) + Send + Sync + 'static) -> Self {
        self.watcher = Some(Arc::new(watcher));
        self
    }

    /// Looks, and changes nothing. Bounded pieces, with a pause between them; the time it takes grows with what is stored.
    ///
    /// # Errors
    /// [`StoreError::Request`] for a partition that there is not; else the connection's.
    pub async fn examine(&self) -> Result<Report, StoreError> {
        let (mut report, cases) = self.pass().await?;
        report.findings = cases.into_iter().map(|case| case.finding).collect();
        Ok(report)
    }

    /// Looks, and mends what is safe: each by one script that compares what was seen before it writes. Looks again after
    /// something was mended, until nothing more shows.
    ///
    /// Dropping the future, or a crash, leaves what was mended so far mended.
    ///
    /// # Errors
    /// As [`Doctor::examine`].
    pub async fn mend(&self) -> Result<Report, StoreError> {
        let mut all: Vec<Finding> = Vec::new();
        for _ in 0..PASSES {
            let (mut report, cases) = self.pass().await?;
            let mut mended = false;
            for case in cases {
                let finding = self.mend_case(case).await?;
                mended |= matches!(finding.outcome, Outcome::Mended(_));
                let same = |one: &Finding| one.key == finding.key && one.problem == finding.problem;
                match all.iter_mut().find(|one| same(one)) {
                    Some(before) => *before = finding,
                    None => all.push(finding),
                }
            }
            if !mended {
                report.findings = all;
                return Ok(report);
            }
        }
        let (mut report, rest) = self.pass().await?;
        let rest = rest.into_iter().map(|case| case.finding);
        let known = |finding: &Finding| {
            all.iter()
                .any(|one| one.key == finding.key && one.problem == finding.problem)
        };
        let rest: Vec<Finding> = rest.filter(|finding| !known(finding)).collect();
        all.extend(rest);
        report.findings = all;
        Ok(report)
    }

    /// One look at everything.
    async fn pass(&self) -> Result<(Report, Vec<Case>), StoreError> {
        let inner = &self.store.0;
        let partitions: Vec<Partition> = match self.partition {
            Some(one) => vec![one],
            None => Partition::all(inner.settings.partitions).collect(),
        };
        let (mut report, mut cases) = (Report::default(), Vec::new());
        let clock = settings::ClockLook::begin(inner).await?;
        let (graphs, unreadable) = look::graphs(inner).await?;
        cases.extend(unreadable);
        let mut living = Living::new();
        for partition in partitions {
            let look = Examination {
                inner,
                keys: inner.keys_of(partition)?,
                partition,
                batch: self.batch,
                pause: self.pause,
                graphs: &graphs,
                watcher: self.watcher.as_ref(),
                seen: Mutex::default(),
            };
            for case in look.run(report.keys).await? {
                cases.push(self.promised(case).await?);
            }
            let seen = look
                .seen
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner);
            report.keys += seen.keys;
            report.instances += seen.instances;
            report.notes.extend(settings::unknown(&seen.unknown));
            if seen.cut {
                report.notes.push(Note(format!(
                    "partition {partition} was not looked at to its end, since so much was found: mend it, and look again"
                )));
            }
            for (definition, count) in seen.living {
                *living.entry(definition).or_default() += count;
            }
        }
        cases.extend(self.without_workers(living).await?);
        clock.end(inner, &mut report.notes).await?;
        settings::notes(inner, &mut report.notes).await;
        Ok((report, cases))
    }

    /// Definitions of live instances that no worker has: asked twice.
    async fn without_workers(&self, mut living: Living) -> Result<Vec<Case>, StoreError> {
        for again in [true, false] {
            for worker in self.store.workers().await? {
                for definition in &worker.definitions {
                    living.remove(definition);
                }
            }
            if living.is_empty() {
                return Ok(Vec::new());
            }
            if again {
                tokio::time::sleep(self.pause).await;
            }
        }
        let case =
            |((workflow, definition), instances): ((WorkflowName, DefinitionHash), usize)| {
                let problem = Problem::NoWorker {
                    workflow,
                    definition,
                    instances,
                };
                Case::left(self.store.0.keys.workers(), None, problem)
            };
        Ok(living.into_iter().map(case).collect())
    }
}

/// How many instances of each definition live.
type Living = BTreeMap<(WorkflowName, DefinitionHash), usize>;

/// What was counted on the way.
#[derive(Debug, Default)]
struct Seen {
    keys: usize,
    instances: usize,
    living: Living,
    unknown: BTreeSet<String>,
    /// Not all was looked at: there is a mass of findings already.
    cut: bool,
}

/// The look at one partition.
struct Examination<'a> {
    inner: &'a Inner,
    keys: PartitionKeys<'a>,
    partition: Partition,
    batch: usize,
    pause: Duration,
    graphs: &'a HashMap<DefinitionHash, Arc<Graph>>,
    watcher: Option<&'a Watcher>,
    seen: Mutex<Seen>,
}

impl Examination<'_> {
    /// At most so many suspects are kept: then they are looked at again, and it goes on.
    const SUSPECTS: usize = 2_000;
    /// After so many findings a partition is left: a mass of damage is mended piece by piece.
    const FINDINGS: usize = 1_000;

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn breathe(&self) {
        tokio::time::sleep(BREATH).await;
    }

    fn tell(&self, before: usize, suspects: usize) {
        if let Some(watcher) = self.watcher {
            watcher(&Progress {
                partition: self.partition,
                keys: before + self.seen().keys,
                suspects,
            });
        }
    }

    async fn run(&self, before: usize) -> Result<Vec<Case>, StoreError> {
        let places = places::Places::read(self).await?;
        let mut suspects: Vec<Suspect> = self.indexes(&places).await?;
        let mut cases = Vec::new();
        let mut cursor = Some("0".to_owned());
        while let Some(at) = cursor {
            let census = super::scripts::census::call(
                self.inner,
                self.keys.meta(),
                self.keys.prefix,
                &at,
                self.batch,
            )
            .await?;
            suspects.extend(self.census(&places, census.keys).await?);
            self.tell(before, suspects.len());
            if suspects.len() > Self::SUSPECTS {
                cases.extend(self.confirm(std::mem::take(&mut suspects)).await?);
            }
            self.breathe().await;
            let cut = census.next.is_some() && cases.len() >= Self::FINDINGS;
            self.seen().cut |= cut;
            cursor = census.next.filter(|_| !cut);
        }
        cases.extend(self.confirm(suspects).await?);
        let mut once: Vec<Case> = Vec::new();
        for case in cases {
            // A scan may name a key twice.
            if !once.iter().any(|one| one.finding == case.finding) {
                once.push(case);
            }
        }
        Ok(once)
    }
}
