//! Calls of scripts: joined at compile time, sent by their hash, sent whole when the server does not know them.

use std::{borrow::Cow, sync::LazyLock, time::Duration};

use bytes::Bytes;
use deadpool_redis::Pool;
use redis::{Cmd, FromRedisValue, Pipeline, RedisError, Script, Value};
use tokio::time::Instant;

use super::{
    Inner,
    connection::{Bulk, Lane, Wire, pool_error},
    error::{Failure, Place},
};
use crate::error::StoreError;

/// The first and the longest pause before a call is repeated that met a moment of the server.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(200));

/// A payload so many times as long as a script dwarfs it.
const DWARFS: usize = 20;

/// A script with the name it has in errors.
pub(super) struct Named {
    pub(super) name: &'static str,
    /// What is sent.
    pub(super) text: &'static str,
    script: LazyLock<Script>,
}

impl Named {
    pub(super) const fn new(
        name: &'static str,
        text: &'static str,
        script: fn() -> Script,
    ) -> Self {
        Self {
            name,
            text,
            script: LazyLock::new(script),
        }
    }
}

/// The prelude, the parts of a script if it has any, and its own file of `lua/`, joined at compile time.
macro_rules! script {
    ($name:literal $(, $part:literal)*) => {{
        const TEXT: &str = concat!(
            include_str!("../../../../lua/prelude_texts.lua"),
            include_str!("../../../../lua/prelude.lua"),
            $(include_str!(concat!("../../../../lua/", $part, ".lua")),)*
            include_str!(concat!("../../../../lua/", $name, ".lua"))
        );
        $crate::store::redis::script::Named::new($name, TEXT, || redis::Script::new(TEXT))
    }};
}
pub(super) use script;

/// Keys and arguments of one call.
#[derive(Debug, Default)]
pub(super) struct Args {
    keys: Vec<String>,
    args: Vec<Arg>,
    /// Bytes of payload among the arguments.
    payload: usize,
}

#[derive(Debug)]
enum Arg {
    Text(Cow<'static, str>),
    Number(i64),
    Payload(Bytes),
}

impl Args {
    pub(super) fn key(&mut self, key: String) -> &mut Self {
        self.keys.push(key);
        self
    }

    pub(super) fn arg(&mut self, text: impl Into<Cow<'static, str>>) -> &mut Self {
        self.args.push(Arg::Text(text.into()));
        self
    }

    pub(super) fn number(&mut self, number: impl Into<i64>) -> &mut Self {
        self.args.push(Arg::Number(number.into()));
        self
    }

    /// A count: never near the limits of an `i64`.
    pub(super) fn count(&mut self, count: usize) -> &mut Self {
        self.number(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// A number of milliseconds, or an empty text.
    pub(super) fn optional(&mut self, number: Option<i64>) -> &mut Self {
        match number {
            Some(number) => self.number(number),
            None => self.arg(""),
        }
    }

    pub(super) fn payload(&mut self, bytes: Bytes) -> &mut Self {
        self.payload += bytes.len();
        self.args.push(Arg::Payload(bytes));
        self
    }

    /// How many arguments there are so far.
    pub(super) fn len(&self) -> usize {
        self.args.len()
    }

    /// Puts a count into a place that was kept free for it by [`Args::count`].
    pub(super) fn set_count(&mut self, at: usize, count: usize) -> &mut Self {
        if let Some(arg) = self.args.get_mut(at) {
            *arg = Arg::Number(i64::try_from(count).unwrap_or(i64::MAX));
        }
        self
    }

    /// Puts a word into a place that was kept free for it.
    pub(super) fn set(&mut self, at: usize, word: &'static str) {
        if let Some(arg) = self.args.get_mut(at) {
            *arg = Arg::Text(Cow::Borrowed(word));
        }
    }

    /// Appends the keys and arguments of another.
    pub(super) fn append(&mut self, other: Self) {
        self.keys.extend(other.keys);
        self.args.extend(other.args);
        self.payload += other.payload;
    }

    fn command(&self, name: &'static str, script: &str) -> Cmd {
        let mut cmd = redis::cmd(name);
        cmd.arg(script).arg(self.keys.len());
        for key in &self.keys {
            cmd.arg(key);
        }
        for arg in &self.args {
            match arg {
                Arg::Text(text) => cmd.arg(text.as_ref()),
                Arg::Number(number) => cmd.arg(*number),
                Arg::Payload(bytes) => cmd.arg(bytes.as_ref()),
            };
        }
        cmd
    }
}

/// What is sent in one attempt.
#[derive(Clone, Copy)]
enum Work<'a> {
    Script(&'a Named, &'a Args),
    Command(&'a Cmd),
    Pipeline(&'a Pipeline),
}

impl Work<'_> {
    async fn on(self, wire: &mut Wire) -> Result<Value, RedisError> {
        match self {
            // A payload that dwarfs the script is not sent in vain to a server that may not know it.
            Self::Script(script, args) if args.payload > DWARFS * script.text.len() => {
                args.command("EVAL", script.text).query_async(wire).await
            }
            Self::Script(script, args) => {
                let by_hash = args.command("EVALSHA", script.script.get_hash());
                match by_hash.query_async(wire).await {
                    // Sent whole, it is known afterwards; no right to load scripts is needed.
                    Err(error) if matches!(Failure::of(error.clone()), Failure::NoScript) => {
                        args.command("EVAL", script.text).query_async(wire).await
                    }
                    result => result,
                }
            }
            Self::Command(cmd) => cmd.query_async(wire).await,
            Self::Pipeline(pipe) => pipe.query_async(wire).await,
        }
    }
}

impl Inner {
    /// Payloads from here on go over connections of their own.
    pub(super) const LARGE: usize = 256 * 1024;

    pub(super) fn place(&self, call: &'static str) -> Place<'_> {
        Place {
            call,
            server: &self.settings.shown,
            namespace: self.settings.namespace.as_str(),
            timeout: self.settings.response_timeout,
        }
    }

    /// One call of a script. Moments of the server (a slot that moves, a failover) are waited out up to the response
    /// timeout; an ambiguous failure is the caller's, who repeats the whole call.
    pub(super) async fn call(&self, script: &Named, args: Args) -> Result<Value, StoreError> {
        let large = args.payload > Self::LARGE;
        self.patiently(script.name, Work::Script(script, &args), large)
            .await
    }

    /// One command that only reads, or that is harmless to repeat.
    pub(super) async fn command<T: FromRedisValue>(
        &self,
        call: &'static str,
        cmd: &Cmd,
    ) -> Result<T, StoreError> {
        let value = self.patiently(call, Work::Command(cmd), false).await?;
        typed(call, value)
    }

    /// As [`Inner::command`], for a reply that is large.
    pub(super) async fn large_command<T: FromRedisValue>(
        &self,
        call: &'static str,
        cmd: &Cmd,
    ) -> Result<T, StoreError> {
        let value = self.patiently(call, Work::Command(cmd), true).await?;
        typed(call, value)
    }

    /// Several reads of one partition in one round trip.
    pub(super) async fn pipeline<T: FromRedisValue>(
        &self,
        call: &'static str,
        pipe: &Pipeline,
    ) -> Result<T, StoreError> {
        let value = self.patiently(call, Work::Pipeline(pipe), false).await?;
        typed(call, value)
    }

    async fn patiently(
        &self,
        call: &'static str,
        work: Work<'_>,
        large: bool,
    ) -> Result<Value, StoreError> {
        let until = Instant::now() + self.settings.response_timeout;
        let mut pause = PAUSES.0;
        loop {
            let result = match (&self.bulk, large) {
                (Bulk::Pool(pool), true) => on_pool(pool, work).await,
                (Bulk::Lane(lane), true) => self.on_lane(lane, work).await,
                (_, false) => self.on_lane(&self.lane, work).await,
            };
            match result {
                Ok(value) => return Ok(value),
                Err(Failure::Moment { .. }) if Instant::now() + pause < until => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSES.1);
                }
                Err(failure) => return Err(failure.into_error(&self.place(call))),
            }
        }
    }

    async fn on_lane(&self, lane: &Lane, work: Work<'_>) -> Result<Value, Failure> {
        let (generation, mut wire) = lane.wire(&self.server).await.map_err(Failure::of)?;
        work.on(&mut wire).await.map_err(|error| {
            let failure = Failure::of(error);
            if failure.spoils_connection() {
                lane.discard(generation);
            }
            failure
        })
    }
}

async fn on_pool(pool: &Pool, work: Work<'_>) -> Result<Value, Failure> {
    let own = pool.get().await.map_err(pool_error).map_err(Failure::of)?;
    // The guard keeps the place in the pool; what is sent goes through a clone of its connection.
    let mut wire = Wire::One((*own).clone());
    work.on(&mut wire).await.map_err(|error| {
        let failure = Failure::of(error);
        if failure.spoils_connection() {
            drop(deadpool_redis::Connection::take(own));
        }
        failure
    })
}

fn typed<T: FromRedisValue>(call: &'static str, value: Value) -> Result<T, StoreError> {
    T::from_redis_value(value).map_err(|e| StoreError::Protocol {
        call,
        reason: e.to_string(),
    })
}
