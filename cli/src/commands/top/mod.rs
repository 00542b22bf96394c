//! `tenure top`: a live screen.

mod detail;
mod draw;
mod look;
mod model;
mod screen;
#[cfg(test)]
mod tests;

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use ratatui::{Terminal, backend::TestBackend, buffer::Buffer};
use tenure::Client;

use self::{look::Looker, model::Model};
use crate::{
    answer,
    connect::Connection,
    exit::{Exit, Usage},
};

/// Options of `tenure top`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure top                    until q is pressed
  tenure top --once             one look, as plain text
  watch -n 10 tenure top --once --width 80

Keys: q quits, p freezes the screen, tab goes to the next part, the arrows choose a row, enter shows more of it, s sorts
its part otherwise.

The throughput is that of the last five seconds. It reads counts and lengths, the heads of the ready lists, the newest
failures, and what workers say of themselves every 30 s; it goes through no instances.")]
pub(crate) struct Args {
    /// Look once, and write it to standard output as plain text
    #[arg(long)]
    once: bool,
    /// With --once: how many columns
    #[arg(long, default_value_t = 120, value_name = "N", requires = "once", value_parser = clap::value_parser!(u16).range(40..=500))]
    width: u16,
    /// How long from one look to the next
    #[arg(long, default_value = "1s", value_parser = humantime::parse_duration, value_name = "DURATION")]
    every: Duration,
    #[command(flatten)]
    connection: Connection,
}

/// Shows it.
pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let is_on_terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
    if !(args.once || is_on_terminal) {
        return Err(Usage::new(
            "top draws on a terminal, and this is none; see `tenure top --once` for plain text, `tenure queues --json` and `tenure workers --json` for programs",
        )
        .into());
    }
    // One try for each read: the next look tries again, and the screen says so meanwhile.
    let client = Client::new(args.connection.open().await?).with_patience(Duration::ZERO);
    let model = Model::new(args.connection.namespace()?.to_string(), !args.once);
    if args.once {
        return once(client, model, args.width).await;
    }
    let every = args.every.max(Duration::from_millis(100));
    screen::show(client, model, every).await?;
    Ok(Exit::Done)
}

async fn once(client: Client, mut model: Model, width: u16) -> anyhow::Result<Exit> {
    let look = Looker::new(client).look().await?;
    model.take(Ok(look));
    answer::line(&plain(&model, width)?)?;
    Ok(Exit::Done)
}

/// The screen as text, without colours.
fn plain(model: &Model, width: u16) -> anyhow::Result<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, draw::height(model)))?;
    terminal.draw(|frame| draw::draw(frame, model))?;
    Ok(text(terminal.backend().buffer()))
}

fn text(buffer: &Buffer) -> String {
    let rows = buffer.content.chunks(buffer.area.width.max(1).into());
    let lines = rows.map(|row| {
        let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}
