//! The task of a hub: one connection, and who listens on it.

use std::{collections::HashMap, time::Duration};

use tokio::{sync::mpsc, time::Instant};

use super::{Command, Delivery, Subscriber, line::Line};
use crate::store::redis::{Inner, error::Failure};

/// How often a quiet connection is pinged.
const PING: Duration = Duration::from_secs(3);
/// The first and the longest pause before a broken connection is made again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// The hub's task: connects, subscribes, delivers, and begins again when the connection breaks.
pub(super) async fn run(
    inner: std::sync::Weak<Inner>,
    mut commands: mpsc::UnboundedReceiver<Command>,
) {
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
        drop(store);
        match connected {
            Ok(line) => {
                pause = PAUSES.0;
                let mut session = Session {
                    line,
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
    subscribers.retain(|_, subscriber| !subscriber.refused(failure));
}

async fn connect(
    inner: &Inner,
    subscribers: &mut HashMap<u64, Subscriber>,
) -> Result<Line, Failure> {
    let mut line = Line::open(inner).await?;
    let channels = subscribers.values().flat_map(Subscriber::names).collect();
    line.subscribe(channels).await?;
    for subscriber in subscribers.values_mut() {
        subscriber.subscribed();
    }
    Ok(line)
}

impl Subscriber {
    fn names(&self) -> impl Iterator<Item = String> {
        self.channels.iter().map(|(name, _)| name.clone())
    }

    /// Tells who waits for the first subscription how it went; false if nobody waits.
    fn answer(&mut self, result: Result<(), Failure>) -> bool {
        let Some(waiting) = self.waiting.take() else {
            return false;
        };
        if waiting.send(result).is_err() {
            tracing::trace!("nobody waits for the mailbox any more");
        }
        true
    }

    /// Whether it was the first subscription, so that nobody uses this mailbox.
    fn refused(&mut self, failure: &Failure) -> bool {
        self.answer(Err(failure.again()))
    }

    fn subscribed(&mut self) {
        self.answer(Ok(()));
        self.deliver(Delivery::Subscribed);
    }

    /// Lossy: whoever is so far behind hears later how much was dropped.
    fn deliver(&mut self, delivery: Delivery) {
        self.tell_missed();
        let lines = match &delivery {
            Delivery::Message(_, payload) => 1 + payload.iter().filter(|b| **b == b'\n').count(),
            Delivery::Subscribed | Delivery::Missed(_) => 1,
        };
        if self.missed > 0 || self.sender.try_send(delivery).is_err() {
            self.missed += u64::try_from(lines).unwrap_or(u64::MAX);
        }
    }

    fn tell_missed(&mut self) {
        if self.missed > 0 && self.sender.try_send(Delivery::Missed(self.missed)).is_ok() {
            self.missed = 0;
        }
    }
}

/// One connection, from the first subscription to the break.
struct Session<'a> {
    line: Line,
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
                message = self.line.next() => match message {
                    Some((channel, payload)) => self.deliver(&channel, &payload),
                    None => return Err(Failure::Silent),
                },
                command = self.commands.recv() => match command {
                    Some(Command::Add(subscriber)) => self.add(subscriber).await?,
                    Some(Command::Remove(id)) => self.remove(id).await?,
                    None => return Ok(()),
                },
                _ = ping.tick() => {
                    self.subscribers.values_mut().for_each(Subscriber::tell_missed);
                    self.line.ping().await?;
                }
            }
        }
        Ok(())
    }

    async fn add(&mut self, mut subscriber: Subscriber) -> Result<(), Failure> {
        let Err(failure) = self.line.subscribe(subscriber.names().collect()).await else {
            subscriber.subscribed();
            self.subscribers.insert(subscriber.id, subscriber);
            return Ok(());
        };
        subscriber.refused(&failure);
        // The connection is whole when only a right is missing.
        match failure {
            Failure::Refused(_) => Ok(()),
            broken => Err(broken),
        }
    }

    async fn remove(&mut self, id: u64) -> Result<(), Failure> {
        let Some(gone) = self.subscribers.remove(&id) else {
            return Ok(());
        };
        let names: Vec<String> = gone.names().filter(|name| !self.wanted(name)).collect();
        if names.is_empty() {
            return Ok(());
        }
        self.line.unsubscribe(names).await
    }

    fn wanted(&self, channel: &str) -> bool {
        self.subscribers
            .values()
            .any(|subscriber| subscriber.channels.iter().any(|(name, _)| name == channel))
    }

    fn deliver(&mut self, channel: &str, payload: &[u8]) {
        for subscriber in self.subscribers.values_mut() {
            let channels = subscriber.channels.iter();
            let here = channels.filter(|(name, _)| name == channel);
            // A mailbox has one channel for each partition.
            let partition = here.map(|(_, partition)| *partition).next();
            if let Some(partition) = partition {
                subscriber.deliver(Delivery::Message(partition, payload.to_vec()));
            }
        }
    }
}
