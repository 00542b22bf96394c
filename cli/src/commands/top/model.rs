//! What the screen knows: fed by looks and keys, asked by the drawing. Pure.

use std::{cmp::Reverse, collections::VecDeque, time::Duration};

use tenure::time::Timestamp;

use crate::commands::queues::Queue;

/// How many looks the curve of the throughput remembers.
const REMEMBERED: usize = 120;

/// What was seen at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Look {
    pub(super) at: Timestamp,
    pub(super) states: States,
    /// Instances that ended so in each of the last seconds.
    pub(super) completed: f64,
    pub(super) failed: f64,
    pub(super) queues: Vec<Queue>,
    pub(super) workers: Vec<Worker>,
    pub(super) failures: Vec<Failure>,
}

/// How much there is of what: tasks where they stand, instances that wait, are paused or over.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct States {
    pub(super) ready: usize,
    pub(super) running: usize,
    pub(super) delayed: usize,
    pub(super) waiting: usize,
    pub(super) paused: usize,
    pub(super) completed: usize,
    pub(super) failed: usize,
    pub(super) cancelled: usize,
    pub(super) terminated: usize,
}

/// A worker, as it said itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Worker {
    pub(super) id: String,
    pub(super) process: String,
    pub(super) busy: usize,
    pub(super) slots: usize,
    pub(super) draining: bool,
    pub(super) up: Duration,
    pub(super) seen: Duration,
    pub(super) queues: Vec<String>,
    pub(super) workflows: Vec<String>,
}

/// A dead instance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Failure {
    pub(super) id: String,
    pub(super) workflow: String,
    pub(super) task: String,
    pub(super) message: String,
    pub(super) at: Timestamp,
}

/// A part of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pane {
    Queues,
    Workers,
    Failures,
}

impl Pane {
    pub(super) const ALL: [Self; 3] = [Self::Queues, Self::Workers, Self::Failures];

    /// By what it can be sorted.
    fn orders(self) -> &'static [&'static str] {
        match self {
            Self::Queues => &["depth", "age", "name"],
            Self::Workers => &["busy", "seen", "name"],
            Self::Failures => &["time", "task"],
        }
    }
}

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Press {
    Quit,
    Freeze,
    Sort,
    Up,
    Down,
    Next,
    Enter,
    Back,
}

/// What the loop has to do after a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wish {
    Nothing,
    Quit,
    /// Read this instance and show it.
    Show(String),
}

/// What covers the screen until it is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Detail {
    pub(super) title: String,
    pub(super) lines: Vec<String>,
}

/// A pane's order and which row is chosen: by its name, so that it stays when the rows move.
#[derive(Debug, Clone, Default)]
struct Choice {
    order: usize,
    chosen: Option<String>,
}

/// All that is shown.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) namespace: String,
    /// The keys are told in the last line: somebody is there to press them.
    pub(super) is_live: bool,
    pub(super) look: Option<Look>,
    /// Why the last look failed, and how many in a row did.
    pub(super) lost: Option<(String, usize)>,
    pub(super) frozen: bool,
    pub(super) focus: Pane,
    pub(super) detail: Option<Detail>,
    /// Completed in a second, the newest last.
    pub(super) history: VecDeque<u64>,
    choices: [Choice; 3],
}

impl Model {
    pub(super) fn new(namespace: String, is_live: bool) -> Self {
        Self {
            namespace,
            is_live,
            look: None,
            lost: None,
            frozen: false,
            focus: Pane::Queues,
            detail: None,
            history: VecDeque::new(),
            choices: Default::default(),
        }
    }

    /// What a look brought. A frozen screen keeps what it shows.
    pub(super) fn take(&mut self, look: Result<Look, String>) {
        if self.frozen {
            return;
        }
        match look {
            Ok(mut look) => {
                if self.history.len() == REMEMBERED {
                    self.history.pop_front();
                }
                self.history.push_back(whole(look.completed));
                self.sort(&mut look);
                self.look = Some(look);
                self.lost = None;
            }
            Err(error) => {
                let before = self.lost.as_ref().map_or(0, |(_, looks)| *looks);
                self.lost = Some((error, before + 1));
            }
        }
    }

    pub(super) fn press(&mut self, press: Press) -> Wish {
        if self.detail.is_some() {
            return self.press_in_detail(press);
        }
        match press {
            Press::Quit => return Wish::Quit,
            Press::Freeze => self.frozen = !self.frozen,
            Press::Sort => {
                let orders = self.focus.orders().len();
                let choice = self.choice_mut();
                choice.order = (choice.order + 1) % orders;
                if let Some(mut look) = self.look.take() {
                    self.sort(&mut look);
                    self.look = Some(look);
                }
            }
            Press::Up => self.choose(-1),
            Press::Down => self.choose(1),
            Press::Next => {
                let next = (self.focus as usize + 1) % Pane::ALL.len();
                self.focus = Pane::ALL[next];
            }
            Press::Enter => return self.enter(),
            Press::Back => self.choice_mut().chosen = None,
        }
        Wish::Nothing
    }

    fn press_in_detail(&mut self, press: Press) -> Wish {
        match press {
            Press::Quit => Wish::Quit,
            Press::Enter | Press::Back => {
                self.detail = None;
                Wish::Nothing
            }
            Press::Freeze | Press::Sort | Press::Up | Press::Down | Press::Next => Wish::Nothing,
        }
    }

    /// By what a pane is sorted.
    pub(super) fn order(&self, pane: Pane) -> &'static str {
        pane.orders()[self.choices[pane as usize].order]
    }

    /// The row that is chosen in a pane, as long as it is there.
    pub(super) fn chosen(&self, pane: Pane) -> Option<usize> {
        let chosen = self.choices[pane as usize].chosen.as_ref()?;
        self.names(pane).iter().position(|name| name == chosen)
    }

    fn choice_mut(&mut self) -> &mut Choice {
        &mut self.choices[self.focus as usize]
    }

    fn choose(&mut self, step: isize) {
        let names = self.names(self.focus);
        let at = match self.chosen(self.focus) {
            Some(at) => at.saturating_add_signed(step),
            None => 0,
        };
        let name = names.get(at.min(names.len().saturating_sub(1))).cloned();
        self.choice_mut().chosen = name;
    }

    fn names(&self, pane: Pane) -> Vec<String> {
        let Some(look) = &self.look else {
            return Vec::new();
        };
        match pane {
            Pane::Queues => look.queues.iter().map(Queue::name).collect(),
            Pane::Workers => look.workers.iter().map(|w| w.id.clone()).collect(),
            Pane::Failures => look.failures.iter().map(|f| f.id.clone()).collect(),
        }
    }

    fn enter(&mut self) -> Wish {
        let (Some(at), Some(look)) = (self.chosen(self.focus), &self.look) else {
            return Wish::Nothing;
        };
        match self.focus {
            Pane::Failures => return Wish::Show(look.failures[at].id.clone()),
            Pane::Queues => self.detail = Some(super::detail::queue(&look.queues[at])),
            Pane::Workers => self.detail = Some(super::detail::worker(&look.workers[at])),
        }
        Wish::Nothing
    }

    fn sort(&self, look: &mut Look) {
        match self.order(Pane::Queues) {
            "depth" => look.queues.sort_by_key(|q| (Reverse(q.ready), q.name())),
            "age" => look.queues.sort_by_key(|q| (Reverse(q.oldest), q.name())),
            _ => look.queues.sort_by_key(Queue::name),
        }
        match self.order(Pane::Workers) {
            "busy" => look
                .workers
                .sort_by_key(|w| (Reverse(w.busy), w.id.clone())),
            "seen" => look
                .workers
                .sort_by_key(|w| (Reverse(w.seen), w.id.clone())),
            _ => look.workers.sort_by_key(|w| w.id.clone()),
        }
        match self.order(Pane::Failures) {
            "time" => look.failures.sort_by_key(|f| (Reverse(f.at), f.id.clone())),
            _ => look
                .failures
                .sort_by_key(|f| (f.workflow.clone(), f.task.clone(), Reverse(f.at))),
        }
    }
}

/// Rounded, as the curve takes it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is small and positive"
)]
fn whole(rate: f64) -> u64 {
    rate.max(0.0).round() as u64
}
