use futures_util::{StreamExt, stream};

use super::{
    error::ClientError,
    handle::{Handle, Untyped},
    list::{Cursor, Filter},
    producer::Client,
};
use crate::{engine::RetryFrom, ids::InstanceId, store::Status};

/// How many instances are steered at once.
const AT_ONCE: usize = 16;

/// What is done to many instances.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    Cancel,
    Terminate,
    Pause,
    Resume,
    Retry(RetryFrom),
    Delete,
}

impl Action {
    /// Whether it makes sense for an instance of this status.
    fn is_for(&self, status: Status) -> bool {
        match self {
            Self::Cancel | Self::Terminate => !status.is_terminal(),
            Self::Pause => status == Status::Running,
            Self::Resume => status == Status::Paused,
            Self::Retry(_) => status == Status::Failed,
            Self::Delete => status.is_terminal(),
        }
    }
}

/// How far it is.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Progress {
    /// How many instances it was done to.
    pub done: usize,
    /// How many were not to be steered so any more when their turn came: they had ended, for instance.
    pub skipped: usize,
    /// Those that could not be steered, and why.
    pub failed: Vec<(InstanceId, ClientError)>,
}

/// The same for all instances that a filter names, page by page; made by [`Client::cancel_all`] and its likes.
///
/// Nothing is done before it is awaited. Dropping it, or the death of the process, leaves what is done done; the same call
/// again does the rest. Instances that begin to match meanwhile may be taken too; a filter with
/// [`created_before`](Filter::created_before) says which are meant.
#[derive(Debug)]
#[must_use = "nothing is done before it is run"]
pub struct Bulk<'a> {
    client: &'a Client,
    action: Action,
    filter: Filter,
    reason: String,
    actor: String,
    cursor: Option<Cursor>,
    /// How many the present pass through the listing has done.
    in_pass: usize,
    progress: Progress,
    is_over: bool,
}

impl Bulk<'_> {
    /// Why; written into each instance. Default: no reason.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }

    /// Who; written into each instance. Default: nobody.
    pub fn actor(mut self, actor: impl Into<String>) -> Self {
        self.actor = actor.into();
        self
    }

    /// To the end. What is done while the listing moves is found by going through it again, until a pass does nothing.
    ///
    /// # Errors
    /// As [`Client::list`]. What goes wrong with single instances is in [`Progress::failed`].
    pub async fn run(mut self) -> Result<Progress, ClientError> {
        while self.step().await?.is_some() {}
        Ok(self.progress)
    }

    /// One page more; `None` when all is done. For who shows how far it is, or stops in between.
    ///
    /// # Errors
    /// As [`Bulk::run`]; the same page is tried again by the next call.
    pub async fn step(&mut self) -> Result<Option<&Progress>, ClientError> {
        if self.is_over {
            return Ok(None);
        }
        let mut filter = self.filter.clone();
        if let Some(cursor) = self.cursor.clone() {
            filter = filter.after(cursor);
        }
        let page = self.client.list(&filter).await?;
        let instances = page
            .instances
            .iter()
            .filter(|i| self.action.is_for(i.status));
        let handles = instances.map(|i| Handle::new(self.client.clone(), i.id.clone(), i.run));
        let handles: Vec<Handle> = handles.collect();
        let steered = stream::iter(handles).map(|handle| self.steer(handle));
        let outcomes: Vec<_> = steered.buffer_unordered(AT_ONCE).collect().await;
        for (id, outcome) in outcomes {
            self.count(id, outcome);
        }
        self.cursor = page.next;
        if self.cursor.is_none() {
            self.is_over = self.in_pass == 0;
            self.in_pass = 0;
        }
        Ok(Some(&self.progress))
    }

    fn count(&mut self, id: InstanceId, outcome: Result<(), ClientError>) {
        match outcome {
            Ok(()) => {
                self.progress.done += 1;
                self.in_pass += 1;
            }
            Err(
                ClientError::Over { .. }
                | ClientError::NotFound { .. }
                | ClientError::Replaced { .. }
                | ClientError::AlreadyPaused { .. }
                | ClientError::NotDead { .. }
                | ClientError::Live { .. },
            ) => self.progress.skipped += 1,
            Err(error) => {
                // Another pass meets it again.
                if !self.progress.failed.iter().any(|(known, _)| *known == id) {
                    self.progress.failed.push((id, error));
                }
            }
        }
    }

    async fn steer(&self, handle: Handle<Untyped>) -> (InstanceId, Result<(), ClientError>) {
        let (reason, actor) = (self.reason.as_str(), self.actor.as_str());
        let done = match &self.action {
            Action::Cancel => handle.cancel(reason, actor).await,
            Action::Terminate => handle.terminate(reason, actor).await,
            Action::Pause => handle.pause(reason, actor).await,
            Action::Resume => handle.resume(reason, actor).await,
            Action::Retry(from) => handle.retry(from.clone(), reason, actor).await,
            Action::Delete => handle.delete().await,
        };
        (handle.id().clone(), done)
    }
}

impl Client {
    fn bulk(&self, action: Action, mut filter: Filter) -> Bulk<'_> {
        if !filter.names_status() {
            let fit = Status::ALL.into_iter().filter(|s| action.is_for(*s));
            filter = fit.fold(filter, Filter::status);
        }
        Bulk {
            client: self,
            action,
            filter,
            reason: String::new(),
            actor: String::new(),
            cursor: None,
            in_pass: 0,
            progress: Progress::default(),
            is_over: false,
        }
    }

    /// Cancels all live instances that a filter names; see [`Handle::cancel`].
    ///
    /// ```
    /// # use tenure::{Client, client::Filter};
    /// # async fn example(client: Client) -> anyhow::Result<()> {
    /// let all = Filter::new().label("tenant", "acme");
    /// let progress = client.cancel_all(all).reason("the tenant left").actor("ada").run().await?;
    /// println!("{} cancelled", progress.done);
    /// # Ok(())
    /// # }
    /// ```
    pub fn cancel_all(&self, filter: Filter) -> Bulk<'_> {
        self.bulk(Action::Cancel, filter)
    }

    /// Terminates all live instances that a filter names; see [`Handle::terminate`].
    pub fn terminate_all(&self, filter: Filter) -> Bulk<'_> {
        self.bulk(Action::Terminate, filter)
    }

    /// Pauses all running instances that a filter names; see [`Handle::pause`].
    pub fn pause_all(&self, filter: Filter) -> Bulk<'_> {
        self.bulk(Action::Pause, filter)
    }

    /// Resumes all paused instances that a filter names; see [`Handle::resume`].
    pub fn resume_all(&self, filter: Filter) -> Bulk<'_> {
        self.bulk(Action::Resume, filter)
    }

    /// Retries all dead instances that a filter names; see [`Handle::retry`]. One that dies again meanwhile is retried
    /// again: a filter with [`created_before`](Filter::created_before) does not help against that, a fix does.
    pub fn retry_all(&self, from: RetryFrom, filter: Filter) -> Bulk<'_> {
        self.bulk(Action::Retry(from), filter)
    }

    /// Deletes all finished instances that a filter names; see [`Handle::delete`].
    pub fn delete_all(&self, filter: Filter) -> Bulk<'_> {
        self.bulk(Action::Delete, filter)
    }
}
