//! Hints and events: one pub/sub connection for each store, shared by all its mailboxes, re-made when it breaks.
//!
//! A connection that swallows everything looks like a quiet one, so it is pinged; what was missed meanwhile is found by
//! looking, to which [`Hint::Subscribed`] calls.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{Stream, StreamExt};
use redis::{
    Msg, RedisError,
    aio::{PubSubSink, PubSubStream},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{Inner, connection::CONNECT, error::Failure, scripts::probe::PROBE};
use crate::{
    error::StoreError,
    ids::{InstanceId, MailboxId, Partition},
    store::{Hint, Hints, Status, StatusEvent, StatusEvents},
    time::Timestamp,
};

/// How often a quiet connection is pinged.
const PING: Duration = Duration::from_secs(3);
/// The first and the longest pause before a broken connection is made again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// How many hints or events wait for a receiver that is behind; more are dropped.
const BEHIND: usize = 1024;

/// What comes out of a subscription.
enum Delivery {
    Subscribed,
    Message(Partition, Vec<u8>),
}

struct Subscriber {
    id: u64,
    channels: Vec<(String, Partition)>,
    sender: mpsc::Sender<Delivery>,
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
            tokio::spawn(run(Arc::downgrade(inner), receiver));
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

/// Whether the user may subscribe, and over which connection.
pub(super) async fn probe(inner: &Inner) -> Result<(), StoreError> {
    let probing = async {
        let (mut sink, _stream) = open(inner).await?;
        for partition in Partition::all(inner.settings.partitions) {
            let prefix = inner.keys_of(partition).map(|keys| keys.prefix);
            let prefix = prefix.unwrap_or_default();
            let channels = [format!("{prefix}mail:{PROBE}"), format!("{prefix}events")];
            sink.subscribe(&channels[..]).await?;
            sink.unsubscribe(&channels[..]).await?;
        }
        Ok(())
    };
    patiently(inner, probing)
        .await
        .map_err(|failure| failure.into_error(&inner.place("connect")))
}

async fn patiently<T>(
    inner: &Inner,
    work: impl Future<Output = Result<T, RedisError>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(inner.settings.response_timeout.max(CONNECT), work).await {
        Ok(result) => result.map_err(Failure::of),
        Err(_) => Err(Failure::Silent),
    }
}

async fn open(inner: &Inner) -> Result<(PubSubSink, PubSubStream), RedisError> {
    let client = inner.server.node().await?;
    Ok(client.get_async_pubsub().await?.split())
}

/// The hub's task: connects, subscribes, delivers, and begins again when the connection breaks.
async fn run(inner: std::sync::Weak<Inner>, mut commands: mpsc::UnboundedReceiver<Command>) {
    let mut subscribers = HashMap::new();
    let mut pause = PAUSES.0;
    loop {
        while let Ok(command) = commands.try_recv() {
            apply(command, &mut subscribers);
        }
        if subscribers.is_empty() {
            match commands.recv().await {
                Some(command) => apply(command, &mut subscribers),
                None => return,
            }
            continue;
        }
        let Some(store) = inner.upgrade() else { return };
        let connected = connect(&store, &mut subscribers).await;
        let patience = store.patience();
        drop(store);
        match connected {
            Ok((sink, stream)) => {
                pause = PAUSES.0;
                let mut session = Session {
                    sink,
                    stream,
                    patience,
                    subscribers: &mut subscribers,
                    commands: &mut commands,
                };
                if let Err(failure) = session.serve().await {
                    tracing::debug!(?failure, "the connection for hints broke");
                }
            }
            Err(failure) => {
                tracing::debug!(?failure, "no connection for hints");
                refuse(&failure, &mut subscribers);
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

fn apply(command: Command, subscribers: &mut HashMap<u64, Subscriber>) {
    match command {
        Command::Add(subscriber) => {
            subscribers.insert(subscriber.id, subscriber);
        }
        Command::Remove(id) => {
            subscribers.remove(&id);
        }
    }
}

/// Those who wait for their first subscription hear why there is none, and are gone; others wait for the next attempt.
fn refuse(failure: &Failure, subscribers: &mut HashMap<u64, Subscriber>) {
    subscribers.retain(|_, subscriber| match subscriber.waiting.take() {
        Some(waiting) => {
            if waiting.send(Err(failure.again())).is_err() {
                tracing::trace!("nobody waits for the mailbox any more");
            }
            false
        }
        None => true,
    });
}

async fn connect(
    inner: &Inner,
    subscribers: &mut HashMap<u64, Subscriber>,
) -> Result<(PubSubSink, PubSubStream), Failure> {
    let subscribing = async {
        let (mut sink, stream) = open(inner).await?;
        let channels: Vec<&str> = subscribers
            .values()
            .flat_map(|subscriber| subscriber.channels.iter().map(|(name, _)| name.as_str()))
            .collect();
        sink.subscribe(&channels[..]).await?;
        Ok((sink, stream))
    };
    let connected = patiently(inner, subscribing).await?;
    for subscriber in subscribers.values_mut() {
        subscriber.subscribed();
    }
    Ok(connected)
}

impl Subscriber {
    fn subscribed(&mut self) {
        if let Some(waiting) = self.waiting.take()
            && waiting.send(Ok(())).is_err()
        {
            tracing::trace!("nobody waits for the mailbox any more");
        }
        self.deliver(Delivery::Subscribed);
    }

    fn deliver(&self, delivery: Delivery) {
        // Lossy: whoever is so far behind has enough to look at, and looks.
        if self.sender.try_send(delivery).is_err() {
            tracing::trace!("a hint was dropped");
        }
    }
}

/// One connection, from the first subscription to the break.
struct Session<'a> {
    sink: PubSubSink,
    stream: PubSubStream,
    patience: Duration,
    subscribers: &'a mut HashMap<u64, Subscriber>,
    commands: &'a mut mpsc::UnboundedReceiver<Command>,
}

impl Session<'_> {
    /// Returns when nobody listens any more.
    async fn serve(&mut self) -> Result<(), Failure> {
        let mut ping = tokio::time::interval_at(Instant::now() + PING, PING);
        ping.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.subscribers.is_empty() {
            tokio::select! {
                message = self.stream.next() => match message {
                    Some(message) => self.deliver(&message),
                    None => return Err(Failure::Silent),
                },
                command = self.commands.recv() => match command {
                    Some(command) => self.command(command).await?,
                    None => return Ok(()),
                },
                _ = ping.tick() => self.ping().await?,
            }
        }
        Ok(())
    }

    async fn ping(&mut self) -> Result<(), Failure> {
        let patience = self.patience;
        let ping = self.sink.ping::<redis::Value>();
        match tokio::time::timeout(patience, ping).await {
            Ok(answer) => answer.map(drop).map_err(Failure::of),
            Err(_) => Err(Failure::Silent),
        }
    }

    async fn command(&mut self, command: Command) -> Result<(), Failure> {
        match command {
            Command::Add(mut subscriber) => {
                let names: Vec<&str> = subscriber
                    .channels
                    .iter()
                    .map(|(n, _)| n.as_str())
                    .collect();
                let subscribing = self.sink.subscribe(&names[..]);
                let result = match tokio::time::timeout(self.patience, subscribing).await {
                    Ok(result) => result.map_err(Failure::of),
                    Err(_) => Err(Failure::Silent),
                };
                match (result, subscriber.waiting.take()) {
                    (Ok(()), waiting) => {
                        subscriber.waiting = waiting;
                        subscriber.subscribed();
                        self.subscribers.insert(subscriber.id, subscriber);
                        Ok(())
                    }
                    (Err(failure), Some(waiting)) => {
                        let told = waiting.send(Err(failure.again()));
                        if told.is_err() {
                            tracing::trace!("nobody waits for the mailbox any more");
                        }
                        if matches!(failure, Failure::Refused(_)) {
                            Ok(())
                        } else {
                            Err(failure)
                        }
                    }
                    (Err(failure), None) => Err(failure),
                }
            }
            Command::Remove(id) => {
                let Some(gone) = self.subscribers.remove(&id) else {
                    return Ok(());
                };
                let names: Vec<&str> = gone
                    .channels
                    .iter()
                    .map(|(name, _)| name.as_str())
                    .filter(|name| !self.wanted(name))
                    .collect();
                if names.is_empty() {
                    return Ok(());
                }
                let unsubscribing = self.sink.unsubscribe(&names[..]);
                match tokio::time::timeout(self.patience, unsubscribing).await {
                    Ok(result) => result.map_err(Failure::of),
                    Err(_) => Err(Failure::Silent),
                }
            }
        }
    }

    fn wanted(&self, channel: &str) -> bool {
        self.subscribers
            .values()
            .any(|subscriber| subscriber.channels.iter().any(|(name, _)| name == channel))
    }

    fn deliver(&self, message: &Msg) {
        let channel = message.get_channel_name();
        for subscriber in self.subscribers.values() {
            for (name, partition) in &subscriber.channels {
                if name == channel {
                    let payload = message.get_payload_bytes().to_vec();
                    subscriber.deliver(Delivery::Message(*partition, payload));
                }
            }
        }
    }
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
            Delivery::Subscribed => vec![Hint::Subscribed],
            Delivery::Message(partition, payload) => String::from_utf8_lossy(&payload)
                .lines()
                .filter_map(|line| hint(line, partition))
                .collect(),
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
    let events = subscription.flat_map(|delivery| {
        futures_util::stream::iter(match delivery {
            Delivery::Subscribed => Vec::new(),
            Delivery::Message(_, payload) => String::from_utf8_lossy(&payload)
                .split('\n')
                .filter_map(event)
                .collect(),
        })
    });
    Ok(events.boxed())
}

/// A hint, if this version knows it.
fn hint(line: &str, partition: Partition) -> Option<Hint> {
    match line {
        "ready" => return Some(Hint::Ready { partition }),
        "timer" => return Some(Hint::Timer { partition }),
        _ => {}
    }
    let mut words = line.splitn(3, ' ');
    let (word, tail, id) = (words.next()?, words.next()?, words.next()?);
    let (tail, id) = (tail.parse().ok()?, InstanceId::stored(id).ok()?);
    match word {
        "cancel" => Some(Hint::Cancelled { id, tail }),
        "done" => Some(Hint::Done { id, tail }),
        _ => None,
    }
}

fn event(line: &str) -> Option<StatusEvent> {
    let mut words = line.splitn(6, '\t');
    let at = Timestamp::from_millis(words.next()?.parse().ok()?);
    let id = InstanceId::stored(words.next()?).ok()?;
    let run = words.next()?.parse().ok()?;
    let from = match words.next()? {
        "-" => None,
        word => Some(word.parse::<Status>().ok()?),
    };
    let to = words.next()?.parse().ok()?;
    Some(StatusEvent {
        id,
        run,
        from,
        to,
        at,
        error: words.next().map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_read_and_unknown_ones_passed_over() {
        let partition = Partition::default();
        assert_eq!(hint("ready", partition), Some(Hint::Ready { partition }));
        assert_eq!(hint("timer", partition), Some(Hint::Timer { partition }));
        let id = InstanceId::new("an order").expect("an id");
        let tail = "00000000abcd".parse().expect("a tail");
        assert_eq!(
            hint("cancel 00000000abcd an order", partition),
            Some(Hint::Cancelled { id, tail })
        );
        assert_eq!(hint("pause 1", partition), None);
        assert_eq!(hint("", partition), None);
    }

    #[test]
    fn an_event_keeps_its_message_whole() {
        let line = "12\to-1\t0198c0de-7e57-7000-8000-00000000abcd\trunning\tfailed\tno\tmoney";
        let event = event(line).expect("an event");
        assert_eq!(event.error.as_deref(), Some("no\tmoney"));
        assert_eq!(event.to, Status::Failed);
        assert_eq!(event.at.as_millis(), 12);
    }
}
