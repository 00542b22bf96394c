//! What a person does with an instance.

use std::sync::atomic::{AtomicU32, Ordering};

use super::{
    error::ClientError,
    handle::Handle,
    producer::Client,
    repeat::{GaveUp, repeat},
};
use crate::{
    engine::{self, Dead, RetryFrom, Standing},
    ids::{InstanceId, Nonce, RunId},
    store::{
        Control, ControlReply, ControlRequest, RetryRequest, Snapshot, Status, StoreError,
        TaskState,
    },
};

/// Who does something, and why. An empty text is none.
#[derive(Debug, Clone)]
struct Why {
    reason: Option<String>,
    actor: Option<String>,
}

impl Why {
    fn new(reason: impl Into<String>, actor: impl Into<String>) -> Self {
        let some = |text: String| (!text.is_empty()).then_some(text);
        Self {
            reason: some(reason.into()),
            actor: some(actor.into()),
        }
    }
}

impl<O> Handle<O> {
    /// Ends the instance as `cancelled`, at once and in every state: running tasks are told by their cancellation token
    /// and their results are refused. Repeating it is safe. An empty reason or actor is none.
    ///
    /// # Errors
    /// [`ClientError::Over`] when it had ended otherwise; [`ClientError::NotFound`], [`ClientError::Replaced`],
    /// [`ClientError::Store`].
    pub async fn cancel(
        &self,
        reason: impl Into<String>,
        actor: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.control(Control::Cancel, Why::new(reason, actor)).await
    }

    /// Ends the instance as `terminated`: the operator's way, without ceremony.
    ///
    /// # Errors
    /// As [`Handle::cancel`].
    pub async fn terminate(
        &self,
        reason: impl Into<String>,
        actor: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.control(Control::Terminate, Why::new(reason, actor))
            .await
    }

    /// Pauses the instance, at once and in every state: no task of it begins until it is [resumed](Handle::resume).
    ///
    /// Tasks that run go on, and their results are stored; what follows them is queued and waits. Timeouts, deadlines and
    /// delays go on too: what becomes due during the pause begins with the resume. `result()` waits.
    ///
    /// # Errors
    /// [`ClientError::AlreadyPaused`]; [`ClientError::Over`] when it has ended; [`ClientError::NotFound`],
    /// [`ClientError::Replaced`], [`ClientError::Store`].
    pub async fn pause(
        &self,
        reason: impl Into<String>,
        actor: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.control(Control::Pause, Why::new(reason, actor)).await
    }

    /// Lets the instance go on after a pause, also one that an error led to: the task that failed begins again then, with
    /// all its attempts. Resuming what is not paused changes nothing.
    ///
    /// If the future is dropped, or the process dies, it goes on or is still paused; of a workflow that has more than
    /// 1000 tickets waiting, resume it again to be sure that all are back.
    ///
    /// # Errors
    /// [`ClientError::Over`] when it has ended; [`ClientError::NotFound`], [`ClientError::Replaced`],
    /// [`ClientError::Store`].
    pub async fn resume(
        &self,
        reason: impl Into<String>,
        actor: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.control(Control::Resume, Why::new(reason, actor)).await
    }

    /// Brings a dead (failed) instance back to life in one transition: the tasks to begin at are ready with all their
    /// attempts, what came of them is taken back, and what was under way when the instance died goes on. What is
    /// completed beside them stays. The count of attempts goes on.
    ///
    /// It needs the definition of the instance, which each worker that has it publishes.
    ///
    /// # Errors
    /// [`ClientError::NotDead`]; [`ClientError::UnknownTask`] when the task was not reached, with those that were;
    /// [`ClientError::Unpublished`]; [`ClientError::NotFound`], [`ClientError::Replaced`], [`ClientError::Store`].
    pub async fn retry(
        &self,
        from: RetryFrom,
        reason: impl Into<String>,
        actor: impl Into<String>,
    ) -> Result<(), ClientError> {
        let why = Why::new(reason, actor);
        let nonce = Nonce::random();
        loop {
            let snapshot = self.snapshot().await?;
            let Some(died_at) = snapshot.finished_at else {
                return Err(self.not_dead(snapshot.header.status));
            };
            if snapshot.header.status != Status::Failed {
                return Err(self.not_dead(snapshot.header.status));
            }
            let graph = self.graph(&snapshot.header).await?;
            let plan = engine::retry(&graph, &dead(&snapshot), &from).map_err(|unknown| {
                ClientError::UnknownTask {
                    id: self.id().clone(),
                    task: unknown.task,
                    reached: unknown.reached,
                }
            })?;
            let request = RetryRequest {
                id: self.id().clone(),
                run: self.run(),
                died_at,
                plan,
                reason: why.reason.clone(),
                actor: why.actor.clone(),
                nonce,
            };
            let store = self.client().store_ref();
            let patience = self.client().patience();
            match repeat(patience, || store.retry(request.clone())).await {
                // It was retried and died once more meanwhile: that death is the one to look at.
                Ok(ControlReply::Changed { .. }) => {}
                Ok(reply) => return answer(self.id(), self.run(), Control::Retry, reply),
                Err(GaveUp { error, .. }) => return Err(error.into()),
            }
        }
    }

    /// Removes the instance with all that is stored of it, at once instead of after its retention. It has to be over.
    /// Its id is free then, as if it had never been used.
    ///
    /// # Errors
    /// [`ClientError::Live`] when it is not over; [`ClientError::NotFound`], [`ClientError::Replaced`],
    /// [`ClientError::Store`].
    pub async fn delete(&self) -> Result<(), ClientError> {
        self.control(Control::Delete, Why::new("", "")).await
    }

    async fn control(&self, control: Control, why: Why) -> Result<(), ClientError> {
        let store = self.client().store_ref();
        let request = ControlRequest {
            id: self.id().clone(),
            run: Some(self.run()),
            control,
            reason: why.reason,
            actor: why.actor,
            nonce: Nonce::random(),
        };
        loop {
            let calls = AtomicU32::new(0);
            let call = || {
                calls.fetch_add(1, Ordering::Relaxed);
                store.control(request.clone())
            };
            return match repeat(self.client().patience(), call).await {
                Ok(ControlReply::Again { .. }) => continue,
                // The call before this one did it, and its answer was lost.
                Ok(ControlReply::NotFound)
                    if control == Control::Delete && calls.load(Ordering::Relaxed) > 1 =>
                {
                    Ok(())
                }
                Ok(reply) => answer(self.id(), self.run(), control, reply),
                Err(GaveUp { error, .. }) => Err(error.into()),
            };
        }
    }

    fn not_dead(&self, status: Status) -> ClientError {
        ClientError::NotDead {
            id: self.id().clone(),
            status,
        }
    }
}

fn answer(
    id: &InstanceId,
    run: RunId,
    control: Control,
    reply: ControlReply,
) -> Result<(), ClientError> {
    let id = id.clone();
    match reply {
        ControlReply::Done { .. } => Ok(()),
        ControlReply::Over { status, .. } | ControlReply::Live { status, .. }
            if control == Control::Retry =>
        {
            Err(ClientError::NotDead { id, status })
        }
        ControlReply::Over { status, .. } => Err(ClientError::Over { id, status }),
        ControlReply::Live { status, .. } => Err(ClientError::Live { id, status }),
        ControlReply::AlreadyPaused { .. } => Err(ClientError::AlreadyPaused { id }),
        ControlReply::Replaced { .. } => Err(ClientError::Replaced { id, run }),
        ControlReply::NotFound => Err(ClientError::NotFound { id }),
        ControlReply::Again { .. } | ControlReply::Changed { .. } => {
            let reason = format!("{} is not to be repeated", control.as_str());
            let call = "control";
            Err(StoreError::Protocol { call, reason }.into())
        }
    }
}

/// What the engine has to know of a dead instance.
fn dead(snapshot: &Snapshot) -> Dead {
    let standing = |state| match state {
        TaskState::Completed => Standing::Completed,
        TaskState::Failed => Standing::Failed,
        TaskState::Cleared => Standing::Cleared,
        TaskState::Ready
        | TaskState::Running
        | TaskState::Delayed
        | TaskState::Waiting
        | TaskState::Closed => Standing::Open,
    };
    let nodes = snapshot.tasks.iter();
    let joins = snapshot.joins.iter();
    Dead {
        nodes: nodes.map(|(t, r)| (t.clone(), standing(r.state))).collect(),
        values: snapshot.values.clone(),
        arrived: joins.map(|(j, r)| (j.clone(), r.who.clone())).collect(),
    }
}

impl Client {
    /// Cancels the run that an id has now; see [`Handle::cancel`].
    ///
    /// # Errors
    /// As [`Client::handle`] and [`Handle::cancel`].
    pub async fn cancel(
        &self,
        id: impl AsRef<str>,
        reason: impl Into<String>,
        actor: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.handle(id).await?.cancel(reason, actor).await
    }

    /// Terminates the run that an id has now; see [`Handle::terminate`].
    ///
    /// # Errors
    /// As [`Client::handle`] and [`Handle::terminate`].
    pub async fn terminate(
        &self,
        id: impl AsRef<str>,
        reason: impl Into<String>,
        actor: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.handle(id).await?.terminate(reason, actor).await
    }

    /// Pauses the run that an id has now; see [`Handle::pause`].
    ///
    /// # Errors
    /// As [`Client::handle`] and [`Handle::pause`].
    pub async fn pause(
        &self,
        id: impl AsRef<str>,
        reason: impl Into<String>,
        actor: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.handle(id).await?.pause(reason, actor).await
    }

    /// Resumes the run that an id has now; see [`Handle::resume`].
    ///
    /// # Errors
    /// As [`Client::handle`] and [`Handle::resume`].
    pub async fn resume(
        &self,
        id: impl AsRef<str>,
        reason: impl Into<String>,
        actor: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.handle(id).await?.resume(reason, actor).await
    }

    /// Retries the dead run that an id has now; see [`Handle::retry`].
    ///
    /// # Errors
    /// As [`Client::handle`] and [`Handle::retry`].
    pub async fn retry(
        &self,
        id: impl AsRef<str>,
        from: RetryFrom,
        reason: impl Into<String>,
        actor: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.handle(id).await?.retry(from, reason, actor).await
    }

    /// Deletes the finished run that an id has now; see [`Handle::delete`].
    ///
    /// # Errors
    /// As [`Client::handle`] and [`Handle::delete`].
    pub async fn delete(&self, id: impl AsRef<str>) -> Result<(), ClientError> {
        self.handle(id).await?.delete().await
    }
}
