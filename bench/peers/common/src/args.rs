use std::{env, str::FromStr};

use tokio::runtime::Builder;

use crate::Result;

/// What one job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One task.
    Single,
    /// Three tasks, one after the other.
    Chain,
    /// Ten tasks at once, and one when all have ended.
    Fan,
}

impl Shape {
    /// Tasks of one job.
    pub const fn tasks(self) -> usize {
        match self {
            Self::Single => 1,
            Self::Chain => 3,
            Self::Fan => 11,
        }
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "single" => Ok(Self::Single),
            "chain" => Ok(Self::Chain),
            "fan" => Ok(Self::Fan),
            other => Err(format!("`{other}` is none of single, chain, fan")),
        }
    }
}

/// `<program> <load> --url URL [--shape single] [--count 1000] [--slots 200] [--threads 1] [--tuned] [--hold] [--bare]`
#[derive(Debug, Clone)]
pub struct Args {
    /// `throughput`, `idle`, `depth`, `enqueue`, `worker`, or what a program has of its own.
    pub load: String,
    /// Where the server is.
    pub url: String,
    /// What one job is. Default: single.
    pub shape: Shape,
    /// Jobs of the load. Default: 1000.
    pub count: usize,
    /// Tasks that run at once. Default: 200.
    pub slots: usize,
    /// Threads of the runtime. Default: 1, as a program of Node has.
    pub threads: usize,
    /// The settings with which the peer recovers sooner. Default: its own.
    pub tuned: bool,
    /// Handlers of `worker` never end. Default: they end at once.
    pub hold: bool,
    /// The peer without its locks and events, where it can. Default: with them.
    pub bare: bool,
}

impl Args {
    /// Reads the command line.
    ///
    /// # Errors
    /// An option that is unknown or has no value.
    pub fn parse() -> Result<Self> {
        let mut words = env::args().skip(1);
        let mut args = Self {
            load: words.next().ok_or("the load is missing")?,
            url: String::new(),
            shape: Shape::Single,
            count: 1000,
            slots: 200,
            threads: 1,
            tuned: false,
            hold: false,
            bare: false,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--url" => args.url = value()?,
                "--shape" => args.shape = value()?.parse()?,
                "--count" => args.count = value()?.parse()?,
                "--slots" => args.slots = value()?.parse()?,
                "--threads" => args.threads = value()?.parse()?,
                "--tuned" => args.tuned = true,
                "--hold" => args.hold = true,
                "--bare" => args.bare = true,
                other => return Err(format!("unknown option {other}").into()),
            }
        }
        Ok(args)
    }

    /// Runs a program to its end on a runtime with so many threads.
    ///
    /// # Errors
    /// Those of the program, and a runtime that cannot be made.
    pub fn block_on(&self, program: impl Future<Output = Result<()>>) -> Result<()> {
        let mut builder = match self.threads {
            1 => Builder::new_current_thread(),
            _ => Builder::new_multi_thread(),
        };
        builder
            .worker_threads(self.threads)
            .enable_all()
            .build()?
            .block_on(program)
    }
}
