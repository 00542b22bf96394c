//! The first look: instances against the places that were read before, and indexes against instances.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use futures_util::{StreamExt, TryStreamExt, stream};

use super::{
    Examination, Problem,
    confirm::{Suspect, TaskSuspect},
    cure::Case,
    places::{Places, Spot, task_mark},
};
use crate::{
    ids::{DefinitionHash, InstanceId},
    store::{
        Inspect, Snapshot, StoreError, TaskState,
        redis::{
            Inner, RedisStore,
            scripts::{
                mend::{Answer, Mending, Mode},
                snapshot,
            },
        },
    },
    workflow::Graph,
};

/// How many scripts are under way at once.
const AT_ONCE: usize = 32;

/// The published definitions, and those that cannot be read.
pub(super) async fn graphs(
    inner: &Inner,
) -> Result<(HashMap<DefinitionHash, Arc<Graph>>, Vec<Case>), StoreError> {
    let mut cmd = redis::cmd("SMEMBERS");
    cmd.arg(inner.keys.definitions());
    let members: Vec<String> = inner.command("doctor", &cmd).await?;
    let hashes = members
        .iter()
        .filter_map(|member| member.split_once(':')?.1.parse().ok());
    let (mut graphs, mut cases) = (HashMap::new(), Vec::new());
    for hash in hashes.collect::<BTreeSet<DefinitionHash>>() {
        let reason = match inner.published(hash).await? {
            None => "it is missing".to_owned(),
            Some(bytes) => match Graph::from_bytes(&bytes) {
                Ok(graph) => {
                    graphs.insert(hash, Arc::new(graph));
                    continue;
                }
                Err(error) => error.to_string(),
            },
        };
        let problem = Problem::Unreadable {
            field: "the definition".to_owned(),
            reason,
        };
        cases.push(Case::left(inner.keys.definition(hash), None, problem));
    }
    Ok((graphs, cases))
}

/// What is wrong within a snapshot, by itself. Holds of one moment, as a script reads it.
pub(super) fn within(read: &Result<Option<Snapshot>, StoreError>) -> Vec<Problem> {
    let snapshot = match read {
        Ok(Some(snapshot)) => snapshot,
        Err(StoreError::Corrupt { what, reason, .. }) => {
            return vec![Problem::Unreadable {
                field: what.clone(),
                reason: reason.clone(),
            }];
        }
        Err(StoreError::Format { found, .. }) => {
            return vec![Problem::UnknownFormat {
                found: found.clone(),
            }];
        }
        Ok(None) | Err(_) => return Vec::new(),
    };
    let (status, open) = (snapshot.header.status, snapshot.open_tasks());
    let mut problems = Vec::new();
    if status.is_terminal() != snapshot.finished_at.is_some() || status.is_terminal() && open > 0 {
        problems.push(Problem::HalfEnded { status });
    } else if !status.is_terminal() && open == 0 {
        problems.push(Problem::NothingOpen);
    } else if !snapshot.tokens_are_counted() {
        problems.push(Problem::Miscounted {
            stored: snapshot.open,
            open,
        });
    }
    if !status.is_terminal() {
        let lost = snapshot
            .tasks
            .iter()
            .filter(|(task, record)| record.state == TaskState::Waiting && !snapshot.awaits(task));
        problems.extend(lost.map(|(task, _)| Problem::NotAwaited { task: task.clone() }));
    }
    problems
}

impl Examination<'_> {
    /// Of what scripts say is wrong, what is still wrong at this moment.
    pub(super) async fn still_ill(
        &self,
        suspects: Vec<Suspect>,
    ) -> Result<Vec<Suspect>, StoreError> {
        let looks = stream::iter(suspects).map(async |suspect| {
            let Suspect::Index { mending, .. } = &suspect else {
                return Ok::<_, StoreError>(Some(suspect));
            };
            let look = self.mending(mending, Mode::Look).await?;
            Ok(matches!(look, Answer::Ill | Answer::Left).then_some(suspect))
        });
        let left: Vec<Option<Suspect>> = looks.buffered(AT_ONCE).try_collect().await?;
        Ok(left.into_iter().flatten().collect())
    }

    pub(super) async fn mending(
        &self,
        mending: &Mending,
        mode: Mode,
    ) -> Result<Answer, StoreError> {
        crate::store::redis::scripts::mend::call(self.inner, self.keys, mending, mode).await
    }

    /// Snapshots as they are, each of one moment; only what concerns the record itself is an answer.
    pub(super) async fn snapshots(
        &self,
        ids: Vec<InstanceId>,
    ) -> Result<Vec<(InstanceId, Result<Option<Snapshot>, StoreError>)>, StoreError> {
        let reads = stream::iter(ids).map(async |id| match snapshot::call(self.inner, &id).await {
            Err(error)
                if !matches!(
                    error,
                    StoreError::Corrupt { .. } | StoreError::Format { .. }
                ) =>
            {
                Err(error)
            }
            read => Ok((id, read)),
        });
        reads.buffered(AT_ONCE).try_collect().await
    }

    /// The instances of one batch.
    pub(super) async fn instances(
        &self,
        places: &Places,
        ids: Vec<InstanceId>,
    ) -> Result<Vec<Suspect>, StoreError> {
        let (mut suspects, mut indexed, mut claimed) = (Vec::new(), Vec::new(), Vec::new());
        for (id, read) in self.snapshots(ids).await? {
            let problems = within(&read);
            if !problems.is_empty() {
                suspects.push(Suspect::Within {
                    id: id.clone(),
                    problems,
                });
            }
            let Ok(Some(snapshot)) = read else { continue };
            if snapshot.header.status.is_terminal() {
                indexed.extend(self.ended(places, &id, &snapshot));
            } else {
                let header = &snapshot.header;
                let definition = (header.workflow.clone(), header.definition);
                *self.seen().living.entry(definition).or_default() += 1;
                indexed.extend(self.members(places, &id, &snapshot));
                self.tasks(places, &id, &snapshot, &mut suspects, &mut claimed);
            }
        }
        suspects.extend(self.still_ill(indexed).await?);
        suspects.extend(self.unclaimed(claimed).await?);
        Ok(suspects)
    }

    /// Open tasks that did not stand where they should when the places were read; and those that run.
    fn tasks(
        &self,
        places: &Places,
        id: &InstanceId,
        snapshot: &Snapshot,
        suspects: &mut Vec<Suspect>,
        claimed: &mut Vec<TaskSuspect>,
    ) {
        for (task, record) in &snapshot.tasks {
            let Some(spot) = Spot::of(record.state) else {
                continue;
            };
            let mark = task_mark(id, task, snapshot.header.run.tail());
            let suspect = |without_claim| TaskSuspect {
                id: id.clone(),
                run: snapshot.header.run,
                definition: snapshot.header.definition,
                task: task.clone(),
                record: record.clone(),
                spot,
                mark,
                seen: Vec::new(),
                without_claim,
            };
            if !places.has(spot, mark) {
                suspects.push(Suspect::Task(suspect(false)));
            } else if spot == Spot::Running {
                claimed.push(suspect(true));
            }
        }
    }

    /// Running tasks whose claim key is gone.
    async fn unclaimed(&self, running: Vec<TaskSuspect>) -> Result<Vec<Suspect>, StoreError> {
        let claims = self.have_claims(&running).await?;
        let gone = running.into_iter().zip(claims).filter(|(_, there)| !there);
        Ok(gone.map(|(suspect, _)| Suspect::Task(suspect)).collect())
    }

    pub(super) async fn have_claims(&self, tasks: &[TaskSuspect]) -> Result<Vec<bool>, StoreError> {
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        for task in tasks {
            pipe.cmd("EXISTS")
                .arg(self.keys.claim(&task.id, &task.task));
        }
        self.inner.pipeline("doctor", &pipe).await
    }
}

impl RedisStore {
    /// The snapshot again, as the doctor reads it.
    pub(super) async fn within(&self, id: &InstanceId) -> Result<Vec<Problem>, StoreError> {
        match self.snapshot(id).await {
            Err(error)
                if !matches!(
                    error,
                    StoreError::Corrupt { .. } | StoreError::Format { .. }
                ) =>
            {
                Err(error)
            }
            read => Ok(within(&read)),
        }
    }
}
