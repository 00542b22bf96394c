//! The loop between keys, looks and the terminal.

use std::time::Duration;

use anyhow::Context;
use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use futures_util::StreamExt;
use ratatui::DefaultTerminal;
use tenure::Client;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{mpsc, watch},
    time::MissedTickBehavior,
};

use super::{
    detail,
    draw::draw,
    look::Looker,
    model::{Detail, Look, Model, Press, Wish},
};

/// What came of something that was read in the background.
enum News {
    Look(Result<Look, String>),
    Detail(Detail),
}

/// Draws until somebody quits. The terminal is as before afterwards, also after a panic (ratatui's hook) and a signal.
pub(super) async fn show(client: Client, model: Model, every: Duration) -> anyhow::Result<()> {
    let stops = Stops::new()?;
    let terminal = ratatui::try_init()?;
    let shown = Screen::new(client, model).run(terminal, stops, every).await;
    ratatui::try_restore()?;
    shown
}

/// The signals that end it.
struct Stops([Signal; 3]);

impl Stops {
    fn new() -> anyhow::Result<Self> {
        let of = |kind: SignalKind| signal(kind);
        Ok(Self([
            of(SignalKind::terminate())?,
            of(SignalKind::interrupt())?,
            of(SignalKind::hangup())?,
        ]))
    }

    async fn any(&mut self) {
        let [terminate, interrupt, hangup] = &mut self.0;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

struct Screen {
    client: Client,
    model: Model,
    frozen: watch::Sender<bool>,
}

impl Screen {
    fn new(client: Client, model: Model) -> Self {
        Self {
            client,
            model,
            frozen: watch::Sender::new(false),
        }
    }

    async fn run(
        mut self,
        mut terminal: DefaultTerminal,
        mut stops: Stops,
        every: Duration,
    ) -> anyhow::Result<()> {
        let (send, mut news) = mpsc::channel(8);
        let looking = look(
            self.client.clone(),
            every,
            self.frozen.subscribe(),
            send.clone(),
        );
        let mut looking = tokio::spawn(looking);
        let mut keys = EventStream::new();
        loop {
            terminal.draw(|frame| draw(frame, &self.model))?;
            tokio::select! {
                () = stops.any() => return Ok(()),
                // It ends before this loop by a panic alone.
                ended = &mut looking => return ended.context("the screen gets no news any more"),
                Some(news) = news.recv() => match news {
                    News::Look(look) => self.model.take(look),
                    News::Detail(detail) => self.model.detail = Some(detail),
                },
                key = keys.next() => match key {
                    // The terminal is gone.
                    None | Some(Err(_)) => return Ok(()),
                    Some(Ok(event)) => if !self.event(&event, &send) {
                        return Ok(());
                    },
                },
            }
        }
    }

    /// Whether it goes on.
    fn event(&mut self, event: &Event, send: &mpsc::Sender<News>) -> bool {
        let Some(press) = press(event) else {
            return true;
        };
        match self.model.press(press) {
            Wish::Quit => return false,
            Wish::Nothing => {}
            Wish::Show(id) => {
                let (client, send) = (self.client.clone(), send.clone());
                tokio::spawn(async move {
                    let detail = detail::instance(&client, id).await;
                    // Nobody listens any more when the screen is closed.
                    send.send(News::Detail(detail)).await.ok();
                });
            }
        }
        self.frozen.send_replace(self.model.frozen);
        true
    }
}

/// Looks again and again, until nobody listens.
async fn look(
    client: Client,
    every: Duration,
    frozen: watch::Receiver<bool>,
    send: mpsc::Sender<News>,
) {
    let mut looker = Looker::new(client);
    let mut next = tokio::time::interval(every);
    next.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        next.tick().await;
        if *frozen.borrow() {
            continue;
        }
        let look = looker.look().await.map_err(|error| error.to_string());
        if send.send(News::Look(look)).await.is_err() {
            return;
        }
    }
}

fn press(event: &Event) -> Option<Press> {
    let Event::Key(KeyEvent {
        code,
        modifiers,
        kind: KeyEventKind::Press,
        ..
    }) = event
    else {
        return None;
    };
    let press = match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Press::Quit,
        KeyCode::Char('q') => Press::Quit,
        KeyCode::Char('p') => Press::Freeze,
        KeyCode::Char('s') => Press::Sort,
        KeyCode::Up | KeyCode::Char('k') => Press::Up,
        KeyCode::Down | KeyCode::Char('j') => Press::Down,
        KeyCode::Tab => Press::Next,
        KeyCode::Enter => Press::Enter,
        KeyCode::Esc => Press::Back,
        _ => return None,
    };
    Some(press)
}
