//! The program on a terminal of its own, as a person has it.

use std::{
    fs::File,
    io::{Read, Write},
    process::{Child, Command},
    sync::{Arc, Mutex},
    thread,
};

use nix::{
    pty::{Winsize, openpty},
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::world::until;

/// A terminal of 100 by 30, and what runs on it.
pub(crate) struct Terminal {
    keyboard: File,
    program: Child,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    pub(crate) fn run(mut command: Command) -> Self {
        let size = Winsize {
            ws_row: 30,
            ws_col: 100,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pty = openpty(&size, None).expect("a terminal");
        let slave = |what: &str| pty.slave.try_clone().expect(what);
        command
            .stdin(slave("standard input"))
            .stdout(slave("standard output"))
            .stderr(slave("standard error"));
        let program = command.spawn().expect("the program");
        let keyboard = File::from(pty.master);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut screen, seen) = (keyboard.try_clone().expect("the screen"), shown.clone());
        // Ends with an error when nobody has the other side any more.
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut piece) {
                seen.lock().expect("what is shown").extend(&piece[..count]);
            }
        });
        Self {
            keyboard,
            program,
            shown,
        }
    }

    /// All that was ever written to the screen.
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().expect("what is shown")).into_owned()
    }

    pub(crate) async fn until_shown(&self, text: &str) {
        until(&format!("{text:?} is shown"), async || {
            self.shown().contains(text)
        })
        .await;
    }

    pub(crate) fn type_in(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the keys");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.program.id()).expect("a process id");
        kill(Pid::from_raw(pid), signal).expect("a process");
    }

    /// Waits for the program's end.
    pub(crate) async fn code(&mut self) -> Option<i32> {
        let mut code = None;
        until("the program ends", async || {
            let ended = self.program.try_wait().expect("the program");
            code = ended.map(|status| status.code());
            ended.is_some()
        })
        .await;
        code.flatten()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.program.kill().is_ok() {
            self.program.wait().expect("the program's end");
        }
    }
}
