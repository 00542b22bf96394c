//! The second and the third look: only what is as it was, and still wrong, is a finding.

use std::collections::HashMap;

use super::{
    Examination, Problem,
    cure::{Case, Cure},
    look::within,
    places::{Mark, Spot},
};
use crate::{
    ids::{DefinitionHash, InstanceId, RunId, TaskName},
    store::{StoreError, TaskRecord, redis::scripts::mend::Mending},
};

/// How often what is suspected is looked at again.
const LOOKS: usize = 2;

/// A task that stands nowhere, or runs without a claim key.
#[derive(Debug, Clone)]
pub(super) struct TaskSuspect {
    pub(super) id: InstanceId,
    pub(super) run: RunId,
    pub(super) definition: DefinitionHash,
    pub(super) task: TaskName,
    pub(super) record: TaskRecord,
    pub(super) spot: Spot,
    pub(super) mark: Mark,
    /// What tells whether anything has happened to it: see [`Examination::traces`].
    pub(super) seen: Trace,
    pub(super) without_claim: bool,
}

/// Fields that no transition of a task, and no pause or resume of its instance, leaves as they were.
pub(super) type Trace = Vec<Option<Vec<u8>>>;

/// What seems wrong at first.
#[derive(Debug, Clone)]
pub(super) enum Suspect {
    Task(TaskSuspect),
    /// Within one snapshot.
    Within {
        id: InstanceId,
        problems: Vec<Problem>,
    },
    /// What a script compares at one moment.
    Index {
        key: String,
        problem: Problem,
        mending: Mending,
    },
    Parked {
        id: InstanceId,
    },
    Aside {
        ticket: String,
        reason: String,
    },
    Type {
        key: String,
        expected: &'static str,
    },
}

/// Suspects by how they are looked at again.
#[derive(Debug, Default)]
struct Sorted {
    tasks: Vec<TaskSuspect>,
    within: HashMap<InstanceId, Vec<Problem>>,
    indexes: Vec<Suspect>,
    parked: Vec<InstanceId>,
    aside: Vec<(String, String)>,
    types: Vec<(String, &'static str)>,
}

impl Sorted {
    fn of(suspects: Vec<Suspect>) -> Self {
        let mut sorted = Self::default();
        for suspect in suspects {
            match suspect {
                Suspect::Task(task) => sorted.tasks.push(task),
                Suspect::Within { id, problems } => {
                    sorted.within.insert(id, problems);
                }
                Suspect::Index { .. } => sorted.indexes.push(suspect),
                Suspect::Parked { id } => sorted.parked.push(id),
                Suspect::Aside { ticket, reason } => sorted.aside.push((ticket, reason)),
                Suspect::Type { key, expected } => sorted.types.push((key, expected)),
            }
        }
        sorted
    }

    fn is_empty(&self) -> bool {
        self.tasks.is_empty()
            && self.within.is_empty()
            && self.indexes.is_empty()
            && self.parked.is_empty()
            && self.aside.is_empty()
            && self.types.is_empty()
    }
}

impl Examination<'_> {
    /// Looks again, twice, with a pause before each look.
    pub(super) async fn confirm(&self, suspects: Vec<Suspect>) -> Result<Vec<Case>, StoreError> {
        let mut sorted = Sorted::of(suspects);
        sorted.tasks = self.first_traces(sorted.tasks).await?;
        let mut tickets = HashMap::new();
        for _ in 0..LOOKS {
            if sorted.is_empty() {
                return Ok(Vec::new());
            }
            tokio::time::sleep(self.pause).await;
            sorted.tasks = self.tasks_again(sorted.tasks, &mut tickets).await?;
            sorted.within = self.within_again(sorted.within).await?;
            sorted.indexes = self.still_ill(sorted.indexes).await?;
            sorted.parked = self.parked_again(sorted.parked).await?;
            sorted.aside = self.aside_again(sorted.aside).await?;
        }
        let types = self.types_again(&sorted.types).await?;
        Ok(self.cases(sorted, &tickets, types))
    }

    fn cases(
        &self,
        sorted: Sorted,
        tickets: &HashMap<Mark, String>,
        types: Vec<Case>,
    ) -> Vec<Case> {
        let mut cases = types;
        cases.extend(sorted.tasks.into_iter().map(|task| {
            let ticket = tickets.get(&task.mark).cloned();
            Case::of_task(self.keys.instance(&task.id), task, ticket)
        }));
        for (id, problems) in sorted.within {
            cases.extend(problems.into_iter().map(|problem| {
                let cure = Cure::within(&id, &problem);
                Case::new(self.keys.instance(&id), Some(id.clone()), problem, cure)
            }));
        }
        cases.extend(
            sorted
                .indexes
                .into_iter()
                .filter_map(|suspect| match suspect {
                    Suspect::Index {
                        key,
                        problem,
                        mending,
                    } => {
                        let (id, partition) = (mending.id.clone(), self.partition);
                        Some(Case::new(
                            key,
                            id,
                            problem,
                            Cure::Call { partition, mending },
                        ))
                    }
                    _ => None,
                }),
        );
        cases.extend(sorted.parked.into_iter().map(|id| {
            let cure = Cure::Parked { id: id.clone() };
            Case::new(self.keys.parked(&id), Some(id), Problem::StillParked, cure)
        }));
        cases.extend(sorted.aside.into_iter().map(|(ticket, reason)| {
            Case::of_aside(self.keys.aside(), self.partition, ticket, reason)
        }));
        cases
    }

    /// Run, status, who steered it last, and the record of the task.
    async fn traces(&self, tasks: &[TaskSuspect]) -> Result<Vec<Trace>, StoreError> {
        let mut traces = Vec::with_capacity(tasks.len());
        for some in tasks.chunks(self.batch) {
            let mut pipe = redis::pipe();
            pipe.ignore_errors();
            for one in some {
                pipe.cmd("HMGET")
                    .arg(self.keys.instance(&one.id))
                    .arg(&["run", "status", "controlled", "control"])
                    .arg(format!("task:{}", one.task));
            }
            let replies: Vec<redis::Value> = self.inner.pipeline("doctor", &pipe).await?;
            traces.extend(replies.into_iter().map(|reply| {
                // A key of another type is another finding.
                redis::from_redis_value::<Trace>(reply).unwrap_or_default()
            }));
            self.breathe().await;
        }
        Ok(traces)
    }

    /// Those that are still as the first look saw them.
    async fn first_traces(
        &self,
        mut tasks: Vec<TaskSuspect>,
    ) -> Result<Vec<TaskSuspect>, StoreError> {
        let traces = self.traces(&tasks).await?;
        for (task, trace) in tasks.iter_mut().zip(traces) {
            task.seen = trace;
        }
        tasks.retain(|task| {
            let is = |at: usize, text: String| {
                task.seen
                    .get(at)
                    .is_some_and(|seen| seen.as_deref() == Some(text.as_bytes()))
            };
            is(0, task.run.to_string()) && is(4, task.record.to_string())
        });
        Ok(tasks)
    }

    async fn unchanged(&self, tasks: Vec<TaskSuspect>) -> Result<Vec<TaskSuspect>, StoreError> {
        let traces = self.traces(&tasks).await?;
        let same = tasks
            .into_iter()
            .zip(traces)
            .filter(|(task, trace)| task.seen == *trace);
        Ok(same.map(|(task, _)| task).collect())
    }

    /// Unchanged before and after everything was walked, and found nowhere on the way. `tickets` are those of the tasks
    /// that run without a claim key.
    async fn tasks_again(
        &self,
        tasks: Vec<TaskSuspect>,
        tickets: &mut HashMap<Mark, String>,
    ) -> Result<Vec<TaskSuspect>, StoreError> {
        let mut tasks = self.unchanged(tasks).await?;
        if tasks.is_empty() {
            return Ok(tasks);
        }
        let wanted: HashMap<Mark, Spot> = tasks.iter().map(|task| (task.mark, task.spot)).collect();
        let mut found = HashMap::new();
        self.walk(|spot, mark, ticket| {
            if wanted
                .get(&mark)
                .is_some_and(|wanted| *wanted == spot || spot == Spot::Aside)
            {
                found.insert(mark, ticket.to_owned());
            }
        })
        .await?;
        for task in tasks.iter().filter(|task| task.spot == Spot::Ready) {
            if self.is_parked(task).await? {
                found.insert(task.mark, String::new());
            }
        }
        tasks.retain(|task| task.without_claim || !found.contains_key(&task.mark));
        let claims = self.have_claims(&tasks).await?;
        let mut claims = claims.into_iter();
        tasks.retain(|task| !claims.next().unwrap_or(false) || !task.without_claim);
        tickets.extend(found);
        self.unchanged(tasks).await
    }

    async fn is_parked(&self, task: &TaskSuspect) -> Result<bool, StoreError> {
        let mut parked = false;
        let entry = format!("\0{}\0{}\0{}", task.id, task.task, task.run.tail());
        self.list(&self.keys.parked(&task.id), |ticket| {
            parked |= ticket.contains(&entry);
        })
        .await?;
        Ok(parked)
    }

    async fn within_again(
        &self,
        before: HashMap<InstanceId, Vec<Problem>>,
    ) -> Result<HashMap<InstanceId, Vec<Problem>>, StoreError> {
        let ids = before.keys().cloned().collect();
        let mut still = HashMap::new();
        for (id, read) in self.snapshots(ids).await? {
            let mut problems = within(&read);
            problems.retain(|problem| before.get(&id).is_some_and(|all| all.contains(problem)));
            if !problems.is_empty() {
                still.insert(id, problems);
            }
        }
        Ok(still)
    }

    async fn parked_again(&self, parked: Vec<InstanceId>) -> Result<Vec<InstanceId>, StoreError> {
        let still = self.still_parked(parked).await?.into_iter();
        Ok(still
            .filter_map(|suspect| match suspect {
                Suspect::Parked { id } => Some(id),
                _ => None,
            })
            .collect())
    }

    async fn aside_again(
        &self,
        aside: Vec<(String, String)>,
    ) -> Result<Vec<(String, String)>, StoreError> {
        if aside.is_empty() {
            return Ok(aside);
        }
        let mut pipe = redis::pipe();
        for (ticket, _) in &aside {
            pipe.cmd("HEXISTS").arg(self.keys.aside()).arg(ticket);
        }
        let there: Vec<bool> = self.inner.pipeline("doctor", &pipe).await?;
        let still = aside.into_iter().zip(there).filter(|(_, there)| *there);
        Ok(still.map(|(one, _)| one).collect())
    }

    async fn types_again(&self, types: &[(String, &'static str)]) -> Result<Vec<Case>, StoreError> {
        let mut cases = Vec::new();
        for (key, expected) in types {
            let mut cmd = redis::cmd("TYPE");
            cmd.arg(key);
            let found: String = self.inner.command("doctor", &cmd).await?;
            if found != *expected && found != "none" {
                let problem = Problem::WrongType { expected, found };
                cases.push(Case::left(key.clone(), None, problem));
            }
        }
        Ok(cases)
    }
}
