//! The program on a terminal of its own, as a person has it.

use std::{
    fs::File,
    io::{Read, Write},
    num::NonZero,
    process::{Child, Command},
    sync::{Arc, Mutex},
    thread,
};

use nix::{
    pty::{Winsize, openpty},
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use vt100::Parser;

use crate::world::until;

/// A terminal of 100 by 30, and what runs on it.
pub(crate) struct Terminal {
    keyboard: File,
    program: Child,
    shown: Arc<Mutex<Parser>>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    pub(crate) fn run(mut command: Command) -> Self {
        let [rows, columns] = [30, 100].map(|n| NonZero::new(n).expect("a size"));
        let size = Winsize {
            ws_row: rows.get(),
            ws_col: columns.get(),
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
        let shown = Arc::new(Mutex::new(Parser::new(rows, columns, 0)));
        let (mut screen, seen) = (keyboard.try_clone().expect("the screen"), shown.clone());
        let written = Arc::new(Mutex::new(Vec::new()));
        let all = written.clone();
        // Ends with an error when nobody has the other side any more.
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut piece) {
                seen.lock().expect("what is shown").process(&piece[..count]);
                all.lock().expect("what is written").extend(&piece[..count]);
            }
        });
        Self {
            keyboard,
            program,
            shown,
            written,
        }
    }

    /// What is to be seen on it now.
    pub(crate) fn shown(&self) -> String {
        self.shown
            .lock()
            .expect("what is shown")
            .screen()
            .contents()
    }

    /// Whether it is as it was before the program: the screen of the shell, with its cursor.
    pub(crate) fn is_given_back(&self) -> bool {
        let shown = self.shown.lock().expect("what is shown");
        !shown.screen().alternate_screen() && !shown.screen().hide_cursor()
    }

    pub(crate) async fn until_shown(&self, text: &str) {
        until(&format!("{text:?} is shown"), async || {
            self.shown().contains(text)
        })
        .await;
    }

    /// As it was written, at whatever time: for what is overwritten soon.
    pub(crate) async fn until_written(&self, text: &str) {
        until(&format!("{text:?} is written"), async || {
            let written = self.written.lock().expect("what is written");
            String::from_utf8_lossy(&written).contains(text)
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
