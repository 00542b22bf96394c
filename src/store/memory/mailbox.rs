//! Hints and events: bounded, lossy, and never in the way of a transition.

use std::collections::HashMap;

use futures_util::{StreamExt, stream};
use tokio::sync::broadcast::{self, Receiver, Sender, error::RecvError};

use crate::{
    ids::MailboxId,
    store::{Event, Hint, Hints, StatusEvent, StatusEvents},
};

/// How many hints wait in a mailbox before the oldest are lost.
const HINTS: usize = 256;
/// How many events wait for a slow subscriber before the oldest are lost.
const EVENTS: usize = 4096;

/// Who listens.
#[derive(Debug)]
pub(super) struct Mailboxes {
    hints: HashMap<MailboxId, Sender<Hint>>,
    events: Sender<StatusEvent>,
}

impl Default for Mailboxes {
    fn default() -> Self {
        Self {
            hints: HashMap::new(),
            events: broadcast::channel(EVENTS).0,
        }
    }
}

impl Mailboxes {
    /// A new reader of a mailbox. One that falls behind is told to look itself.
    pub(super) fn open(&mut self, mailbox: MailboxId) -> Hints {
        self.hints.retain(|_, sender| sender.receiver_count() > 0);
        let receiver = self
            .hints
            .entry(mailbox)
            .or_insert_with(|| broadcast::channel(HINTS).0)
            .subscribe();
        let news = stream::unfold(receiver, |mut receiver: Receiver<Hint>| async move {
            match receiver.recv().await {
                Ok(hint) => Some((hint, receiver)),
                Err(RecvError::Lagged(_)) => Some((Hint::Subscribed, receiver)),
                Err(RecvError::Closed) => None,
            }
        });
        stream::iter([Hint::Subscribed]).chain(news).boxed()
    }

    pub(super) fn events(&self) -> StatusEvents {
        stream::unfold(self.events.subscribe(), |mut receiver| async move {
            match receiver.recv().await {
                Ok(event) => Some((Event::Changed(event), receiver)),
                Err(RecvError::Lagged(events)) => {
                    let events = Some(events);
                    Some((Event::Missed { events }, receiver))
                }
                Err(RecvError::Closed) => None,
            }
        })
        .boxed()
    }

    /// Delivers what a transition said. That nobody listens is nothing to mend.
    pub(super) fn send(&self, outbox: Outbox) {
        for (mailbox, hint) in outbox.hints {
            if let Some(sender) = self.hints.get(&mailbox) {
                sender.send(hint).ok();
            }
        }
        for event in outbox.events {
            self.events.send(event).ok();
        }
    }
}

/// What a transition says at its end.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pub(super) hints: Vec<(MailboxId, Hint)>,
    pub(super) events: Vec<StatusEvent>,
}
