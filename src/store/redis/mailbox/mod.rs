//! Hints and events: one pub/sub connection for each store, shared by all its mailboxes, re-made when it breaks.
//!
//! A connection that swallows everything looks like a quiet one, so it is pinged; what was missed meanwhile is found by
//! looking, to which [`Hint::Subscribed`] calls.

mod line;
mod message;
mod session;

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use futures_util::{Stream, StreamExt};
use tokio::sync::{mpsc, oneshot};

use self::{
    line::Line,
    message::{event, hint},
};
use super::{Inner, error::Failure, scripts::probe::PROBE};
use crate::{
    error::StoreError,
    ids::{MailboxId, Partition},
    store::{Event, Hint, Hints, StatusEvents},
};

/// How many hints or events wait for a receiver that is behind; more are dropped.
const BEHIND: usize = 1024;

/// What comes out of a subscription.
enum Delivery {
    /// The subscription is new, or is back after a break.
    Subscribed,
    /// So many lines were dropped because the receiver is behind.
    Missed(u64),
    Message(Partition, Vec<u8>),
}

struct Subscriber {
    id: u64,
    channels: Vec<(String, Partition)>,
    sender: mpsc::Sender<Delivery>,
    /// How many lines were dropped that it was not told of yet.
    missed: u64,
    /// The answer to who subscribed, until the channels are subscribed for the first time.
    waiting: Option<oneshot::Sender<Result<(), Failure>>>,
}

enum Command {
    Add(Subscriber),
    Remove(u64),
}

/// The way to the task that owns the pub/sub connection; the task lives as long as there is a subscription.
pub(super) struct Hub {
    commands: Mutex<Option<mpsc::UnboundedSender<Command>>>,
    next: std::sync::atomic::AtomicU64,
}

impl Hub {
    pub(super) fn new() -> Self {
        Self {
            commands: Mutex::new(None),
            next: std::sync::atomic::AtomicU64::new(0),
        }
    }
}

/// One subscription; dropping it unsubscribes.
struct Subscription {
    id: u64,
    commands: mpsc::UnboundedSender<Command>,
    receiver: mpsc::Receiver<Delivery>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if self.commands.send(Command::Remove(self.id)).is_err() {
            tracing::trace!("the mailbox outlived its store");
        }
    }
}

impl Stream for Subscription {
    type Item = Delivery;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Delivery>> {
        self.receiver.poll_recv(cx)
    }
}

async fn subscribe(
    inner: &Arc<Inner>,
    channels: Vec<(String, Partition)>,
) -> Result<Subscription, StoreError> {
    let (sender, receiver) = mpsc::channel(BEHIND);
    let (answer, answered) = oneshot::channel();
    let id = inner
        .hub
        .next
        .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let subscriber = Subscriber {
        id,
        channels,
        sender,
        missed: 0,
        waiting: Some(answer),
    };
    let commands = {
        let mut commands = inner
            .hub
            .commands
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let live = commands.take().filter(|sender| !sender.is_closed());
        let live = live.unwrap_or_else(|| {
            let (sender, receiver) = mpsc::unbounded_channel();
            tokio::spawn(session::run(Arc::downgrade(inner), receiver));
            sender
        });
        commands.insert(live).clone()
    };
    let closed = || StoreError::Unavailable {
        server: inner.settings.shown.clone(),
        source: "the task that listens for hints has ended".into(),
    };
    commands
        .send(Command::Add(subscriber))
        .map_err(|_| closed())?;
    let subscription = Subscription {
        id,
        commands,
        receiver,
    };
    match answered.await {
        Ok(Ok(())) => Ok(subscription),
        Ok(Err(failure)) => Err(failure.into_error(&inner.place("mailbox"))),
        Err(_) => Err(closed()),
    }
}

/// Whether the user may subscribe.
pub(super) async fn probe(inner: &Inner) -> Result<(), StoreError> {
    let mut channels = Vec::new();
    for partition in Partition::all(inner.settings.partitions) {
        let keys = inner.keys_of(partition)?;
        channels.push(format!("{}mail:{PROBE}", keys.prefix));
        channels.push(keys.events());
    }
    let probing = async {
        let mut line = Line::open(inner).await?;
        line.subscribe(channels.clone()).await?;
        line.unsubscribe(channels).await
    };
    probing
        .await
        .map_err(|failure| failure.into_error(&inner.place("connect")))
}

/// Opens a mailbox in all partitions.
pub(super) async fn hints(inner: &Arc<Inner>, mailbox: &MailboxId) -> Result<Hints, StoreError> {
    let mut channels = Vec::new();
    for partition in Partition::all(inner.settings.partitions) {
        channels.push((inner.keys_of(partition)?.mail(mailbox), partition));
    }
    let subscription = subscribe(inner, channels).await?;
    let hints = subscription.flat_map(|delivery| {
        futures_util::stream::iter(match delivery {
            // Whoever missed hints has to look.
            Delivery::Subscribed | Delivery::Missed(_) => vec![Hint::Subscribed],
            Delivery::Message(partition, payload) => {
                hint(&payload, partition).into_iter().collect()
            }
        })
    });
    Ok(hints.boxed())
}

/// Listens to status changes in all partitions.
pub(super) async fn events(inner: &Arc<Inner>) -> Result<StatusEvents, StoreError> {
    let mut channels = Vec::new();
    for partition in Partition::all(inner.settings.partitions) {
        channels.push((inner.keys_of(partition)?.events(), partition));
    }
    let subscription = subscribe(inner, channels).await?;
    let mut begun = false;
    let events = subscription.flat_map(move |delivery| {
        futures_util::stream::iter(match delivery {
            // The first one is the beginning, any other the end of a break.
            Delivery::Subscribed if !std::mem::replace(&mut begun, true) => Vec::new(),
            Delivery::Subscribed => vec![Event::Missed { events: None }],
            Delivery::Missed(events) => vec![Event::Missed {
                events: Some(events),
            }],
            Delivery::Message(_, payload) => String::from_utf8_lossy(&payload)
                .split('\n')
                .filter_map(event)
                .map(Event::Changed)
                .collect(),
        })
    });
    Ok(events.boxed())
}
