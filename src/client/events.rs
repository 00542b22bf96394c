//! Status changes, as they happen.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::{Stream, StreamExt};

use super::{error::ClientError, producer::Client};
use crate::store::{Event, Status, StatusEvent, StatusEvents};

/// Which status changes to hear of. Default: all.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct EventFilter {
    id_prefix: String,
    statuses: Vec<Status>,
}

impl EventFilter {
    /// All changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only those of instances whose id begins so.
    pub fn id_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.id_prefix = prefix.into();
        self
    }

    /// Only those to this status. Several calls: to any of them.
    pub fn status(mut self, status: Status) -> Self {
        self.statuses.push(status);
        self
    }

    fn accepts(&self, event: &StatusEvent) -> bool {
        event.id.as_str().starts_with(&self.id_prefix)
            && (self.statuses.is_empty() || self.statuses.contains(&event.to))
    }
}

/// A subscription to status changes; see [`Client::events`]. A stream that ends only with its store.
pub struct Events {
    all: StatusEvents,
    filter: EventFilter,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events")
            .field("filter", &self.filter)
            .finish_non_exhaustive()
    }
}

impl Events {
    /// The next change, or what was missed before it. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Event> {
        StreamExt::next(self).await
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            match self.all.poll_next_unpin(cx) {
                Poll::Ready(Some(Event::Changed(event))) if !self.filter.accepts(&event) => {}
                other => return other,
            }
        }
    }
}

impl Client {
    /// Listens to changes of status, from now on: an instance that ends, however. The transition that ends it publishes
    /// the change; a listener slows nobody, and a slow one misses some. What was missed is said with [`Event::Missed`], also
    /// after a broken connection; then [`Client::list`] tells how things stand. Dropping it unsubscribes.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn events(&self, filter: EventFilter) -> Result<Events, ClientError> {
        let all = self.store_ref().events().await?;
        Ok(Events { all, filter })
    }
}
