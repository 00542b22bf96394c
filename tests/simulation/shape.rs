//! Random workflows, built with the public builder.

use std::time::Duration;

use fastrand::Rng;
use serde::{Deserialize, Serialize};
use tenure::{
    OnExhausted, RetryPolicy, TaskContext, Workflow,
    workflow::{AtStart, BehindTask, Chain},
};

use crate::handler::work;

/// What flows through them: made by one attempt of one task, and by no other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Token {
    pub(crate) by: String,
    pub(crate) serial: u64,
}

/// From here on a workflow only comes to its end.
const NODES: usize = 14;

/// A random workflow.
pub(crate) fn workflow(rng: &mut Rng, name: &str) -> Workflow<Token, Token> {
    let mut shape = Shape { rng, nodes: 0 };
    let steps = shape.rng.usize(1..5);
    let start: Chain<Token, Token, AtStart> = Workflow::builder(name);
    let start = match shape.rng.u8(0..3) {
        0 => start.on_exhausted(OnExhausted::Pause),
        _ => start,
    };
    let chain = shape.grow(start, steps, 0);
    chain.build().expect("random workflows are valid")
}

struct Shape<'a> {
    rng: &'a mut Rng,
    nodes: usize,
}

impl Shape<'_> {
    fn name(&mut self, kind: &str) -> String {
        self.nodes += 1;
        format!("{kind}{}", self.nodes)
    }

    /// So many steps more, the last of them a task.
    fn grow<At>(
        &mut self,
        chain: Chain<Token, Token, At>,
        steps: usize,
        depth: usize,
    ) -> Chain<Token, Token, BehindTask> {
        if steps <= 1 || self.nodes >= NODES {
            return self.task(chain);
        }
        match self.rng.u8(0..12) {
            0..5 => {
                let chain = self.task(chain);
                self.grow(chain, steps - 1, depth)
            }
            5..7 => {
                let (name, delay) = (self.name("delay"), self.millis(20, 1500));
                self.grow(chain.delay(name, delay), steps - 1, depth)
            }
            7..9 => {
                let chain = self.wait(chain);
                self.grow(chain, steps - 1, depth)
            }
            _ if depth >= 2 => self.task(chain),
            _ => {
                let chain = self.fork(chain, depth);
                self.grow(chain, steps - 1, depth)
            }
        }
    }

    fn task<At>(&mut self, chain: Chain<Token, Token, At>) -> Chain<Token, Token, BehindTask> {
        let name = self.name("task");
        self.tune(chain.task(name, |ctx: TaskContext, token: Token| work(ctx, token)))
    }

    /// A wait for one of two signals, and a task behind it.
    fn wait<At>(&mut self, chain: Chain<Token, Token, At>) -> Chain<Token, Token, BehindTask> {
        let (name, signal) = (self.name("wait"), self.rng.bool());
        let signal = if signal { "go" } else { "on" };
        let chain = chain.await_signal::<Token>(name).signal(signal);
        match self.rng.u8(0..8) {
            0 => {
                let timeout = self.millis(500, 4000);
                self.task(chain.timeout(timeout))
            }
            1..3 => {
                let chain = chain.or_none_after(self.millis(100, 4000));
                let name = self.name("task");
                self.tune(chain.task(name, |ctx: TaskContext, token: Option<Token>| {
                    work(ctx, token)
                }))
            }
            _ => self.task(chain),
        }
    }

    fn fork<At>(
        &mut self,
        chain: Chain<Token, Token, At>,
        depth: usize,
    ) -> Chain<Token, Token, BehindTask> {
        let join = self.name("join");
        let joined = match self.rng.u8(0..4) {
            0 => {
                let branches = self.rng.usize(1..=4);
                let each = chain.fork_each(0..branches, |_, branch| {
                    let steps = self.rng.usize(1..3);
                    self.grow(branch, steps, depth + 1)
                });
                each.join(join, |ctx: TaskContext, all: Vec<Token>| work(ctx, all))
            }
            1 => {
                let forked = chain.fork(|f| {
                    let f = f.branch(|b| self.grow(b, 2, depth + 1)).branch(|b| b);
                    f.branch(|b| self.grow(b, 1, depth + 1))
                });
                forked.join(join, |ctx: TaskContext, all: (Token, Token, Token)| {
                    work(ctx, all)
                })
            }
            _ => {
                let forked = chain.fork(|f| {
                    f.branch(|b| self.grow(b, 2, depth + 1)).branch(|b| {
                        let (name, delay) = (self.name("delay"), self.millis(10, 800));
                        self.grow(b, 1, depth + 1).delay(name, delay)
                    })
                });
                forked.join(join, |ctx: TaskContext, both: (Token, Token)| {
                    work(ctx, both)
                })
            }
        };
        self.tune(joined)
    }

    /// Retries, bounds and sometimes a queue of its own.
    fn tune(&mut self, task: Chain<Token, Token, BehindTask>) -> Chain<Token, Token, BehindTask> {
        let delay = self.millis(1, 400);
        let policy = if self.rng.bool() {
            RetryPolicy::exponential(delay).cap(Duration::from_secs(1))
        } else {
            RetryPolicy::fixed(delay)
        };
        let mut task = task.retry(policy.max_attempts(self.rng.u32(3..7)));
        if self.rng.u8(0..4) == 0 {
            task = task.timeout(self.millis(150, 1200));
        }
        if self.rng.u8(0..12) == 0 {
            task = task.deadline(self.millis(2000, 9000));
        }
        if self.rng.u8(0..8) == 0 {
            task = task.queue("other");
        }
        task
    }

    fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.rng.u64(least..most))
    }
}
