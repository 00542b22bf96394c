//! How often each fault met each transition.

use std::fmt;

use tenure::testing::Transition;

use crate::scenario::Kind;

const KINDS: usize = Kind::ALL.len();
const TRANSITIONS: usize = Transition::ALL.len();

/// A table of counts. A fault that is not one of a call meets the next call of each transition that is made under it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Coverage {
    met: [[usize; TRANSITIONS]; KINDS],
    waiting: [[bool; TRANSITIONS]; KINDS],
    calls: [usize; TRANSITIONS],
}

fn index(transition: Transition) -> Option<usize> {
    Transition::ALL.iter().position(|t| *t == transition)
}

impl Coverage {
    /// A call is made.
    pub(crate) fn called(&mut self, transition: Transition) {
        let Some(t) = index(transition) else { return };
        self.calls[t] += 1;
        for kind in 0..KINDS {
            if std::mem::take(&mut self.waiting[kind][t]) {
                self.met[kind][t] += 1;
            }
        }
    }

    /// A call meets its fault.
    pub(crate) fn met(&mut self, kind: Kind, transition: Transition) {
        if let Some(t) = index(transition) {
            self.met[kind.index()][t] += 1;
        }
    }

    /// Something happens that the next calls meet.
    pub(crate) fn happened(&mut self, kind: Kind) {
        self.waiting[kind.index()] = [true; TRANSITIONS];
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for t in 0..TRANSITIONS {
            self.calls[t] += other.calls[t];
            for kind in 0..KINDS {
                self.met[kind][t] += other.met[kind][t];
            }
        }
    }

    /// The cell that was met least.
    pub(crate) fn least(&self) -> (Kind, Transition, usize) {
        let cells = Kind::ALL.into_iter().flat_map(|kind| {
            let row = self.met[kind.index()];
            (0..TRANSITIONS).map(move |t| (kind, Transition::ALL[t], row[t]))
        });
        cells
            .min_by_key(|(_, _, met)| *met)
            .expect("the table has cells")
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<10}", "")?;
        for transition in Transition::ALL {
            write!(f, "{:>9}", transition.to_string())?;
        }
        for kind in Kind::ALL {
            write!(f, "\n{:<10}", format!("{kind:?}"))?;
            for met in self.met[kind.index()] {
                write!(f, "{met:>9}")?;
            }
        }
        write!(f, "\n{:<10}", "calls")?;
        for calls in self.calls {
            write!(f, "{calls:>9}")?;
        }
        Ok(())
    }
}
