//! What one run is made from: few numbers, written as one word that repeats it.

use std::{fmt, str::FromStr};

/// What goes wrong in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    DieBefore,
    DieAfter,
    LoseReply,
    Repeat,
    Pause,
    Refuse,
    Outage,
    HintLost,
    HintLate,
    ClockStep,
    Slow,
    Blocked,
    /// A claim key is deleted while its owner lives.
    KeyLost,
    /// A ready entry stands twice, or comes when its task is no longer ready.
    EntryTwice,
}

impl Kind {
    pub(crate) const ALL: [Self; 14] = [
        Self::DieBefore,
        Self::DieAfter,
        Self::LoseReply,
        Self::Repeat,
        Self::Pause,
        Self::Refuse,
        Self::Outage,
        Self::HintLost,
        Self::HintLate,
        Self::ClockStep,
        Self::Slow,
        Self::Blocked,
        Self::KeyLost,
        Self::EntryTwice,
    ];

    fn bit(self) -> u16 {
        1 << self.index()
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

/// How long faults go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Until the end: only what holds at all times is asked for.
    Safety,
    /// For a while: then all has to end.
    Liveness,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scenario {
    pub(crate) mode: Mode,
    pub(crate) seed: u64,
    pub(crate) workers: usize,
    pub(crate) starts: usize,
    /// The most faults of calls.
    pub(crate) faults: usize,
    pub(crate) kinds: u16,
}

impl Scenario {
    pub(crate) fn new(mode: Mode, seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        // A few runs in peace show that nothing is taken from workers without a reason.
        let peace = seed.is_multiple_of(16);
        Self {
            mode,
            seed,
            workers: rng.usize(1..=4),
            starts: rng.usize(3..=9),
            faults: if peace { 0 } else { rng.usize(1..60) },
            kinds: if peace { 0 } else { u16::MAX },
        }
    }

    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.kinds & kind.bit() != 0
    }

    pub(crate) fn without(&self, kind: Kind) -> Self {
        Self {
            kinds: self.kinds & !kind.bit(),
            ..self.clone()
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match self.mode {
            Mode::Safety => "safety",
            Mode::Liveness => "liveness",
        };
        let Self {
            seed,
            workers,
            starts,
            faults,
            kinds,
            ..
        } = self;
        write!(f, "{mode}:{seed}")?;
        if *self != Self::new(self.mode, *seed) {
            write!(f, ":{workers}:{starts}:{faults}:{kinds}")?;
        }
        Ok(())
    }
}

impl FromStr for Scenario {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("a run is `safety:17` or `liveness:17:2:3:4:16383`, this is `{text}`");
        let (mode, numbers) = text.split_once(':').ok_or_else(wrong)?;
        let mode = match mode {
            "safety" => Mode::Safety,
            "liveness" => Mode::Liveness,
            _ => return Err(wrong()),
        };
        let numbers: Vec<u64> = numbers
            .split(':')
            .map(|n| n.parse().map_err(|_| wrong()))
            .collect::<Result<_, _>>()?;
        let small = |n: u64| usize::try_from(n).map_err(|_| wrong());
        match numbers[..] {
            [seed] => Ok(Self::new(mode, seed)),
            [seed, workers, starts, faults, kinds] => Ok(Self {
                mode,
                seed,
                workers: small(workers)?,
                starts: small(starts)?,
                faults: small(faults)?,
                kinds: u16::try_from(kinds).map_err(|_| wrong())?,
            }),
            _ => Err(wrong()),
        }
    }
}

#[test]
fn the_word_for_a_run_means_that_run() {
    let usual = Scenario::new(Mode::Liveness, 17);
    let shrunk = Scenario {
        starts: 1,
        ..usual.without(Kind::Pause)
    };
    for scenario in [usual, shrunk] {
        assert_eq!(scenario.to_string().parse(), Ok(scenario));
    }
    assert!("17".parse::<Scenario>().is_err());
}
