//! What is asked for, and how much of it.

use std::{num::NonZeroUsize, time::Duration};

use clap::ValueEnum;

/// Options of `tenure bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure bench                                    every kind of load: made for two minutes of two free cores
  tenure bench --only single,chain --count 200000 one figure, measured longer
  tenure bench --full --json > today.json         all sizes, three rounds: half an hour to an hour
  tenure bench --redis redis://127.0.0.1:6379     on a Redis that runs already, in a namespace of its own

Build it with --release: a debug build measures the build.")]
pub(crate) struct Args {
    /// Every kind of load, in small sizes (this is the default)
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// All sizes, in three rounds of which the median is shown
    #[arg(long)]
    pub(crate) full: bool,
    /// Only these loads
    #[arg(long, value_name = "LOAD,…", value_delimiter = ',')]
    pub(crate) only: Vec<Load>,
    /// Address of a Redis to use; without it each load starts a redis-server of its own
    #[arg(
        long,
        env = "TENURE_REDIS_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub(crate) redis: Option<String>,
    /// The rows as JSON, on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// At most so many tasks, timers, claims or samples of each kind
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(10..=10_000_000))]
    pub(crate) count: Option<u64>,
    /// How long loads go on that are measured over a time
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) seconds: Option<u64>,
    /// How often each load is run; the median is shown
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=21))]
    pub(crate) rounds: Option<u32>,
    /// Starts per second of the open loop
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) rate: u64,
    /// Threads of the client and of each worker process; with tasks this small, one is the fastest
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) threads: NonZeroUsize,
}

/// A kind of load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Load {
    /// One-task instances: started in bulk, drained, and both at a steady rate
    Single,
    /// Chains of 3, 9 and 40 tasks
    Chain,
    /// Forks of 10 and 100 branches with a join
    Fan,
    /// Latencies and commands of a worker that has nothing else to do
    Idle,
    /// Lateness of timers while many others wait
    Timers,
    /// Draining from long queues
    Depth,
    /// Bytes of an instance: queued, running, completed
    Memory,
    /// What heartbeats of many claims cost
    Heartbeats,
    /// A worker with many claims is killed
    Recovery,
    /// 1, 2 and 4 worker processes
    Processes,
    /// Without an append-only file, with one, and with one that is synced for each write
    Aof,
    /// 1 and 3 Redis nodes
    Nodes,
}

impl Load {
    /// Whether it cannot be run on a Redis that was given.
    pub(crate) fn needs_own_server(self) -> bool {
        matches!(self, Self::Aof | Self::Nodes)
    }
}

/// How much of everything.
#[derive(Debug, Clone)]
pub(crate) struct Sizes {
    /// Tasks of a load that is counted.
    pub(crate) tasks: u64,
    /// Starts per second of the open loop.
    pub(crate) rate: u64,
    /// How long a load goes on that is measured over a time.
    pub(crate) window: Duration,
    /// Instances that are started one after the other on an idle worker.
    pub(crate) samples: u64,
    /// Timers that only wait.
    pub(crate) timers: u64,
    /// Lengths of queues.
    pub(crate) depths: Vec<u64>,
    /// Tasks that are drained from such a queue.
    pub(crate) drained: u64,
    /// Instances whose memory is measured.
    pub(crate) instances: u64,
    /// Claims that are kept alive by heartbeats.
    pub(crate) claims: u64,
    /// Their TTL.
    pub(crate) heartbeat_ttl: Duration,
    /// Claims of the worker that is killed, and their TTL.
    pub(crate) held: u64,
    pub(crate) ttl: Duration,
    /// Calls of one measurement of the reference.
    pub(crate) reference: u64,
    pub(crate) rounds: u32,
}

impl Sizes {
    const QUICK: Self = Self {
        tasks: 30_000,
        rate: 5000,
        window: Duration::from_secs(4),
        samples: 500,
        timers: 20_000,
        depths: Vec::new(),
        drained: 20_000,
        instances: 5000,
        claims: 10_000,
        heartbeat_ttl: Duration::from_secs(30),
        held: 1000,
        ttl: Duration::from_secs(2),
        reference: 30_000,
        rounds: 1,
    };

    const FULL: Self = Self {
        tasks: 200_000,
        rate: 5000,
        window: Duration::from_secs(20),
        samples: 3000,
        timers: 100_000,
        depths: Vec::new(),
        drained: 50_000,
        instances: 20_000,
        claims: 10_000,
        heartbeat_ttl: Duration::from_secs(30),
        held: 1000,
        ttl: Duration::from_secs(5),
        reference: 100_000,
        rounds: 3,
    };

    /// What the options ask for.
    pub(crate) fn of(args: &Args) -> Self {
        let (mut sizes, depths) = if args.full {
            (Self::FULL, vec![1000, 10_000, 100_000, 1_000_000])
        } else {
            (Self::QUICK, vec![1000, 100_000])
        };
        (sizes.depths, sizes.rate) = (depths, args.rate);
        if let Some(count) = args.count {
            sizes.limit(count);
        }
        if let Some(seconds) = args.seconds {
            sizes.window = Duration::from_secs(seconds);
            // A third of it is the shortest time in which every claim is extended.
            sizes.heartbeat_ttl = sizes.heartbeat_ttl.min(3 * sizes.window);
        }
        sizes.rounds = args.rounds.unwrap_or(sizes.rounds);
        sizes
    }

    fn limit(&mut self, count: u64) {
        self.tasks = count;
        for size in [
            &mut self.samples,
            &mut self.timers,
            &mut self.drained,
            &mut self.instances,
            &mut self.claims,
            &mut self.held,
            &mut self.reference,
        ] {
            *size = count.min(*size);
        }
        for depth in &mut self.depths {
            *depth = count.min(*depth);
        }
        self.depths.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(change: impl FnOnce(&mut Args)) -> Sizes {
        let mut args = Args {
            quick: false,
            full: false,
            only: Vec::new(),
            redis: None,
            json: false,
            count: None,
            seconds: None,
            rounds: None,
            rate: 5000,
            threads: NonZeroUsize::MIN,
        };
        change(&mut args);
        Sizes::of(&args)
    }

    #[test]
    fn a_count_bounds_everything_that_is_counted_and_raises_only_tasks() {
        let small = sizes(|args| (args.full, args.count) = (true, Some(50)));
        assert_eq!((small.tasks, small.timers, small.claims), (50, 50, 50));
        assert_eq!(small.depths, [50]);
        let large = sizes(|args| args.count = Some(1_000_000));
        assert_eq!((large.tasks, large.samples), (1_000_000, 500));
    }

    #[test]
    fn full_has_all_sizes_of_which_quick_has_some() {
        let (quick, full) = (sizes(|_| {}), sizes(|args| args.full = true));
        assert!(quick.depths.iter().all(|depth| full.depths.contains(depth)));
        assert_eq!(
            (full.timers, full.claims, full.held),
            (100_000, 10_000, 1000)
        );
        assert!(quick.rounds < full.rounds);
    }
}
