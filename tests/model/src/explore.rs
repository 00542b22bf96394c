//! Breadth-first search through every state that a model can reach.
//!
//! By hand, because of what is asked at the end: whether *every* way out of *every* state ends well once faults stop.
//! That needs the whole graph, not only its states.

use std::{
    collections::HashMap,
    fmt::{self, Debug, Display, Write as _},
    hash::{BuildHasherDefault, Hash, Hasher},
};

/// A protocol: states, and atomic steps between them.
pub(crate) trait Model: Sized {
    type State: Clone + Eq + Hash + Display;
    type Action: Copy + Debug;

    fn start(&self) -> Self::State;

    /// Everything that could happen next; what changes nothing may be among it.
    fn actions(&self, state: &Self::State, into: &mut Vec<Self::Action>);

    fn step(&self, state: &Self::State, action: Self::Action) -> Self::State;

    /// Whether an action still happens when faults, and clients with new wishes, have stopped.
    fn heals(&self, state: &Self::State, action: Self::Action) -> bool;

    fn rules(&self) -> Vec<Rule<Self>>;
}

/// What must hold.
pub(crate) struct Rule<M: Model> {
    pub(crate) name: &'static str,
    pub(crate) check: Check<M>,
}

pub(crate) enum Check<M: Model> {
    /// In every state.
    Always(fn(&M, &M::State) -> bool),
    /// Of every step: before, action, after.
    Step(fn(&M, &M::State, M::Action, &M::State) -> bool),
    /// From every state, when faults stop there, every way is finite and ends in such a state.
    Leads(fn(&M, &M::State) -> bool),
}

/// What a search found.
pub(crate) struct Report {
    pub(crate) states: usize,
    pub(crate) steps: usize,
    pub(crate) broken: Option<Counterexample>,
}

/// The shortest way to where a rule is broken.
pub(crate) struct Counterexample {
    pub(crate) rule: &'static str,
    pub(crate) length: usize,
    text: String,
}

impl Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken: {}\n{}", self.rule, self.text)
    }
}

/// Visits every state, until a rule is broken or nothing new is found. `only`: the one rule to check.
pub(crate) fn explore<M: Model>(model: &M, only: Option<&str>) -> Report {
    let mut search = Search {
        model,
        rules: model.rules(),
        states: Vec::new(),
        came: Vec::new(),
        found: HashMap::default(),
        heals: Vec::new(),
        steps: 0,
    };
    let wanted = |rule: &Rule<M>| only.is_none_or(|name| name == rule.name);
    search.rules.retain(wanted);
    assert!(!search.rules.is_empty(), "there is no such rule");
    let broken = search.run();
    Report {
        states: search.states.len(),
        steps: search.steps,
        broken,
    }
}

struct Search<'m, M: Model> {
    model: &'m M,
    rules: Vec<Rule<M>>,
    states: Vec<M::State>,
    /// By which action, and from where, each state was reached first.
    came: Vec<Option<(u32, M::Action)>>,
    /// From the hash of a state (or the next free number after it) to its place.
    found: HashMap<u64, u32, BuildHasherDefault<Mix>>,
    /// The steps that go on happening when faults stop.
    heals: Vec<(u32, u32)>,
    steps: usize,
}

impl<M: Model> Search<'_, M> {
    fn run(&mut self) -> Option<Counterexample> {
        let start = self.model.start();
        self.place(&start, None);
        let mut actions = Vec::new();
        let mut at = 0;
        while at < self.states.len() {
            let from = index(at);
            let state = self.states[at].clone();
            if let Some(rule) = self.broken_in(&state) {
                return Some(self.counterexample(rule, from, None));
            }
            actions.clear();
            self.model.actions(&state, &mut actions);
            for &action in &actions {
                let next = self.model.step(&state, action);
                if next == state {
                    continue;
                }
                self.steps += 1;
                if let Some(rule) = self.broken_by(&state, action, &next) {
                    return Some(self.counterexample(rule, from, Some((action, &next))));
                }
                let to = self.place(&next, Some((from, action)));
                if self.model.heals(&state, action) {
                    self.heals.push((from, to));
                }
            }
            at += 1;
        }
        self.stuck()
    }

    /// Where a state is, which is put there if it is new.
    fn place(&mut self, state: &M::State, came: Option<(u32, M::Action)>) -> u32 {
        let mut mix = Mix::default();
        state.hash(&mut mix);
        let mut hash = mix.finish();
        while let Some(&at) = self.found.get(&hash) {
            if self.states[at as usize] == *state {
                return at;
            }
            hash = hash.wrapping_add(1);
        }
        let at = index(self.states.len());
        self.found.insert(hash, at);
        self.states.push(state.clone());
        self.came.push(came);
        at
    }

    fn broken_in(&self, state: &M::State) -> Option<&'static str> {
        let broken = |rule: &&Rule<M>| matches!(rule.check, Check::Always(holds) if !holds(self.model, state));
        self.rules.iter().find(broken).map(|rule| rule.name)
    }

    fn broken_by(
        &self,
        before: &M::State,
        action: M::Action,
        after: &M::State,
    ) -> Option<&'static str> {
        let broken = |rule: &&Rule<M>| matches!(rule.check, Check::Step(holds) if !holds(self.model, before, action, after));
        self.rules.iter().find(broken).map(|rule| rule.name)
    }

    /// Takes away, again and again, states that no healing step leads to any more. What is left over goes in circles;
    /// what has no healing step out of it must be an end.
    fn stuck(&self) -> Option<Counterexample> {
        let leads = |rule: &Rule<M>| match rule.check {
            Check::Leads(end) => Some((rule.name, end)),
            Check::Always(_) | Check::Step(_) => None,
        };
        let (name, is_end) = self.rules.iter().find_map(leads)?;
        let count = self.states.len();
        let (mut first, mut into) = (vec![0_u32; count + 1], vec![0_u32; count]);
        for &(from, to) in &self.heals {
            first[from as usize + 1] += 1;
            into[to as usize] += 1;
        }
        for at in 0..count {
            if first[at + 1] == 0 && !is_end(self.model, &self.states[at]) {
                return Some(self.counterexample(name, index(at), None));
            }
            first[at + 1] += first[at];
        }
        // The search visits states in order, so the steps are sorted by where they begin.
        let out = |at: usize| &self.heals[first[at] as usize..first[at + 1] as usize];
        let mut free: Vec<usize> = (0..count).filter(|&at| into[at] == 0).collect();
        while let Some(at) = free.pop() {
            for &(_, to) in out(at) {
                into[to as usize] -= 1;
                if into[to as usize] == 0 {
                    free.push(to as usize);
                }
            }
        }
        let circle = into.iter().position(|&left| left > 0)?;
        Some(self.counterexample(name, index(circle), None))
    }

    fn counterexample(
        &self,
        rule: &'static str,
        at: u32,
        last: Option<(M::Action, &M::State)>,
    ) -> Counterexample {
        let mut actions = Vec::new();
        let mut place = at;
        while let Some((from, action)) = self.came[place as usize] {
            actions.push(action);
            place = from;
        }
        actions.reverse();
        actions.extend(last.map(|(action, _)| action));
        let end = last.map_or(&self.states[at as usize], |(_, state)| state);
        let mut text = String::new();
        for (i, action) in actions.iter().enumerate() {
            writeln!(text, "{:4}. {action:?}", i + 1).expect("a string takes everything");
        }
        write!(text, "{end}").expect("a string takes everything");
        Counterexample {
            rule,
            length: actions.len(),
            text,
        }
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).expect("fewer than four thousand million states")
}

/// A fast hash; states with the same one are told apart by comparing them.
#[derive(Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ (mixed >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517C_C1B7_2722_0A95);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value.unsigned_abs() as u64);
    }
}
