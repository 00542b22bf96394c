//! What is done about a finding.

use std::time::Duration;

use super::{Doctor, Finding, Outcome, Problem, confirm::TaskSuspect, places::Spot};
use crate::{
    engine,
    ids::{InstanceId, Nonce, Partition, Ticket},
    store::{
        Control, ControlReply, ControlRequest, Inspect, Retention, Store, StoreError, TaskState,
        TickRequest,
        redis::scripts::mend::{Answer, Mending, Mode, call},
    },
    workflow::{Graph, NodeKind},
};

/// The fields of a snapshot that can be told from others, mostly.
const DERIVED: [&str; 5] = ["v", "status", "open", "times", "waits"];

/// A finding, and how to put it right.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) finding: Finding,
    pub(super) cure: Cure,
}

#[derive(Debug)]
pub(super) enum Cure {
    /// There is none that is safe.
    None,
    /// A task, with its ticket if one was seen.
    Task {
        task: Box<TaskSuspect>,
        ticket: Option<String>,
    },
    /// A field of a snapshot.
    Within {
        id: InstanceId,
    },
    Call {
        partition: Partition,
        mending: Mending,
    },
    Parked {
        id: InstanceId,
    },
}

impl Cure {
    /// Of what is wrong within a snapshot: there is one if the other fields, or the definition, may tell.
    pub(super) fn within(id: &InstanceId, problem: &Problem) -> Self {
        let told = match problem {
            Problem::Miscounted { .. } | Problem::NotAwaited { .. } => true,
            Problem::Unreadable { field, .. } => DERIVED.contains(&field.as_str()),
            _ => false,
        };
        if told {
            Self::Within { id: id.clone() }
        } else {
            Self::None
        }
    }
}

impl Case {
    pub(super) fn new(key: String, id: Option<InstanceId>, problem: Problem, cure: Cure) -> Self {
        let outcome = match cure {
            Cure::None => Outcome::Left(problem.advice()),
            _ => Outcome::Mendable(problem.remedy()),
        };
        Self {
            finding: Finding {
                key,
                id,
                problem,
                outcome,
            },
            cure,
        }
    }

    pub(super) fn left(key: String, id: Option<InstanceId>, problem: Problem) -> Self {
        Self::new(key, id, problem, Cure::None)
    }

    pub(super) fn of_task(key: String, task: TaskSuspect, ticket: Option<String>) -> Self {
        let problem = if task.without_claim {
            Problem::NoClaim {
                task: task.task.clone(),
            }
        } else {
            Problem::StandsNowhere {
                task: task.task.clone(),
                state: task.record.state,
            }
        };
        let (id, task) = (Some(task.id.clone()), Box::new(task));
        Self::new(key, id, problem, Cure::Task { task, ticket })
    }

    pub(super) fn of_aside(
        key: String,
        partition: Partition,
        ticket: String,
        reason: String,
    ) -> Self {
        let read: Option<Ticket> = ticket.parse().ok();
        let id = read.as_ref().map(|ticket| ticket.id.clone());
        let cure = match read {
            None => Cure::None,
            Some(read) => Cure::Call {
                partition,
                mending: Mending {
                    action: "aside",
                    owner: None,
                    id: id.clone(),
                    key: key.clone(),
                    args: vec![
                        ticket.clone(),
                        read.entry(),
                        format!("task:{}", read.task),
                        read.tail.to_string(),
                    ],
                    list: Some(read.list),
                },
            },
        };
        Self::new(key, id, Problem::Aside { ticket, reason }, cure)
    }
}

impl Doctor {
    /// A case of a task whose ticket cannot be made again is not said to be mendable.
    pub(super) async fn promised(&self, case: Case) -> Result<Case, StoreError> {
        if let Cure::Task { task, ticket: None } = &case.cure
            && self.ticket(task).await?.is_none()
        {
            let Finding {
                key, id, problem, ..
            } = case.finding;
            return Ok(Case::left(key, id, problem));
        }
        Ok(case)
    }

    /// Puts right what can be, and says what came of it.
    pub(super) async fn mend_case(&self, case: Case) -> Result<Finding, StoreError> {
        let Case { mut finding, cure } = case;
        let mended = match cure {
            Cure::None => false,
            Cure::Call { partition, mending } => self.put_right(partition, &mending).await?,
            Cure::Parked { id } => self.give_back(&id).await?,
            Cure::Within { id } => self.restore(&id, &finding.problem).await?,
            Cure::Task { task, ticket } => match self.task_mending(&task, ticket).await? {
                Some(mending) => {
                    let home = self.home(&task.id);
                    let mended = self.put_right(home, &mending).await?;
                    if task.without_claim {
                        self.reap(home).await?;
                    }
                    mended
                }
                None => false,
            },
        };
        finding.outcome = if mended {
            Outcome::Mended(finding.problem.remedy())
        } else {
            Outcome::Left(finding.problem.advice())
        };
        Ok(finding)
    }

    pub(super) fn home(&self, id: &InstanceId) -> Partition {
        id.partition(self.store.partitions())
    }

    /// Whether it is well now. What has changed since it was seen is none of ours any more.
    pub(super) async fn put_right(
        &self,
        partition: Partition,
        mending: &Mending,
    ) -> Result<bool, StoreError> {
        let keys = self.store.0.keys_of(partition)?;
        let mended = call(&self.store.0, keys, mending, Mode::Mend).await?;
        Ok(match mended {
            Answer::Well | Answer::Mended | Answer::Changed => true,
            Answer::Ill | Answer::Left => false,
        })
    }

    /// As a worker does: claims of those that died are taken back, also when no worker is there to do it.
    async fn reap(&self, partition: Partition) -> Result<(), StoreError> {
        let request = TickRequest {
            partition,
            keeper: None,
            expected: None,
            promote: 0,
            reap: 100,
            prune: 0,
            crash_delay: Duration::from_secs(1),
            ttl: Duration::from_secs(30),
            retention: Retention::default(),
        };
        // Each call takes the oldest; what it leaves is taken by the next worker.
        for _ in 0..100 {
            if !self.store.tick(request.clone()).await?.again {
                break;
            }
        }
        Ok(())
    }

    /// Parked tickets of an instance that runs: as a resume gives them back.
    async fn give_back(&self, id: &InstanceId) -> Result<bool, StoreError> {
        loop {
            let request = ControlRequest {
                id: id.clone(),
                run: None,
                control: Control::Resume,
                reason: Some("its tickets were still parked".to_owned()),
                actor: Some("tenure doctor".to_owned()),
                nonce: Nonce::random(),
            };
            match self.store.control(request).await? {
                ControlReply::Again { .. } => {}
                ControlReply::Done { .. } => return Ok(true),
                _ => return Ok(false),
            }
        }
    }

    /// How a task is put where it belongs; `None` if that cannot be told.
    async fn task_mending(
        &self,
        task: &TaskSuspect,
        seen: Option<String>,
    ) -> Result<Option<Mending>, StoreError> {
        let ticket = match seen.and_then(|ticket| ticket.parse::<Ticket>().ok()) {
            Some(ticket) => Some((ticket, Duration::ZERO)),
            None => self.ticket(task).await?,
        };
        let Some((ticket, delay)) = ticket else {
            return Ok(None);
        };
        let keys = self.store.0.keys_of(self.home(&task.id))?;
        let (action, key, what) = match task.spot {
            Spot::Ready => ("entry", keys.ready(&ticket.list), ticket.entry()),
            Spot::Delayed => ("ticket", keys.delayed(), ticket.to_string()),
            Spot::Running | Spot::Aside => ("ticket", keys.running(), ticket.to_string()),
        };
        let owner = task
            .record
            .worker
            .clone()
            .filter(|_| task.spot == Spot::Running);
        let nonce = task
            .record
            .nonce
            .map_or_else(String::new, |n| n.to_string());
        let claim = owner.as_ref().map_or_else(String::new, |worker| {
            format!("{worker} {} {} {nonce} ", task.run, task.record.attempt)
        });
        Ok(Some(Mending {
            action,
            owner: owner.map(|worker| (task.task.clone(), worker)),
            id: Some(task.id.clone()),
            key,
            list: Some(ticket.list),
            args: vec![
                task.run.to_string(),
                format!("task:{}", task.task),
                task.record.to_string(),
                what,
                crate::time::millis(delay).to_string(),
                claim,
            ],
        }))
    }

    /// The ticket of a task, from its definition, and after how long it is due.
    async fn ticket(&self, task: &TaskSuspect) -> Result<Option<(Ticket, Duration)>, StoreError> {
        let (Ok(Some(snapshot)), Some(bytes)) = (
            self.store.snapshot(&task.id).await,
            self.store.published(task.definition).await?,
        ) else {
            return Ok(None);
        };
        let Ok(graph) = Graph::from_bytes(&bytes) else {
            return Ok(None);
        };
        let Some(node) = graph.find(&task.task) else {
            return Ok(None);
        };
        let delay = match (task.record.state, graph.node(node).kind) {
            (TaskState::Delayed, _) if task.record.attempt > 0 => Duration::ZERO,
            // Never early: as if it began now.
            (TaskState::Delayed, NodeKind::Delay(delay)) => delay,
            // A start that was to be later: when, is written nowhere else.
            (TaskState::Delayed, _) => return Ok(None),
            _ => Duration::ZERO,
        };
        let next = engine::goes_on(&graph, &snapshot.values, node);
        let ticket = Ticket {
            list: next.list,
            id: task.id.clone(),
            task: next.task,
            tail: task.run.tail(),
            purpose: crate::ids::Purpose::Run,
            input: next.input,
        };
        Ok(Some((ticket, delay)))
    }
}
