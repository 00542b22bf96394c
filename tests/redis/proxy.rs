//! A way to a server on which large transfers can be made to stick.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// A connection that has carried so much in one direction counts as one with a large payload.
const LARGE: usize = 1024 * 1024;

#[derive(Default)]
struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
    waiting: AtomicUsize,
}

/// Passes everything on, but while it holds, connections stop as soon as they carry much.
pub(crate) struct Proxy {
    port: u16,
    gate: Arc<Gate>,
}

impl Proxy {
    pub(crate) fn to(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let gate = Arc::new(Gate::default());
        let shared = gate.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
                    return;
                };
                let (from, to) = (
                    client.try_clone().expect("a socket"),
                    server.try_clone().expect("a socket"),
                );
                let (one, other) = (shared.clone(), shared.clone());
                thread::spawn(move || copy(client, server, &one));
                thread::spawn(move || copy(to, from, &other));
            }
        });
        Self { port, gate }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn hold(&self) {
        *self.gate.closed.lock().expect("the gate") = true;
    }

    pub(crate) fn release(&self) {
        *self.gate.closed.lock().expect("the gate") = false;
        self.gate.opened.notify_all();
    }

    /// Whether a connection has stopped.
    pub(crate) fn is_holding(&self) -> bool {
        self.gate.waiting.load(Ordering::SeqCst) > 0
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream, gate: &Gate) {
    let mut buffer = vec![0; 64 * 1024];
    let mut carried = 0;
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        carried += count;
        if carried > LARGE {
            let closed = gate.closed.lock().expect("the gate");
            if *closed {
                gate.waiting.fetch_add(1, Ordering::SeqCst);
                let opened = gate.opened.wait_while(closed, |closed| *closed);
                drop(opened.expect("the gate"));
                gate.waiting.fetch_sub(1, Ordering::SeqCst);
            }
            // Counted anew: a connection is used again for small things.
            carried = 0;
        }
        if to.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}
