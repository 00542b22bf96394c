//! How a state is printed: what there is, and nothing of what there is not.

use std::fmt::{Display, Formatter, Result};

use super::state::{Record, State, TaskState, Ticket};

impl Display for Record {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self {
            state,
            attempt,
            nonce,
            failures,
            crashes,
            worker,
        } = self;
        write!(f, "{state:?} {attempt} ")?;
        match nonce {
            0 => write!(f, "- {failures} {crashes} -"),
            _ => write!(f, "n{nonce} {failures} {crashes} w{worker}"),
        }
    }
}

impl Display for State {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(
            f,
            "run {} {:?}, open {}, arrived {}",
            self.run, self.status, self.open, self.arrived
        )?;
        for (at, task) in self.tasks.iter().enumerate() {
            if task.state != TaskState::Absent {
                let commits = self.commits[at];
                let key =
                    self.keys[at].map_or("no key".to_owned(), |c| format!("key of claim {c}"));
                writeln!(f, "  task {at}: {task}; {commits} commits; {key}")?;
            }
        }
        let ready = Ticket::all().filter(|t| self.ready[usize::from(t.0)] > 0);
        let ready: Vec<Ticket> = ready.collect();
        writeln!(
            f,
            "  ready {ready:?}, running {:?}, in doubt {:?}, delayed {:?}",
            self.running, self.in_doubt, self.delayed
        )?;
        for (at, claim) in self.claims().iter().enumerate() {
            let (ticket, record, fate) = (claim.ticket, claim.record, claim.fate);
            let sent = claim
                .settles
                .map_or(String::new(), |v| format!(", sent {v:?}"));
            writeln!(f, "  claim {at}: {ticket:?}, {record}, {fate:?}{sent}")?;
        }
        for worker in self.workers {
            let present = if self.is_present(worker.id) {
                "present"
            } else {
                "absent"
            };
            writeln!(f, "  w{} {present}: {:?}", worker.id, worker.doing)?;
        }
        Ok(())
    }
}
