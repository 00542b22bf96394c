//! How commands answer: a text for people, or JSON for programs, on standard output.

use std::io::{self, Write};

use comfy_table::{Table, presets};
use serde::Serialize;

/// The choice between them: an option of every command that answers something.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Answer {
    /// Answer in JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Answer {
    /// Writes one answer: as one JSON document, or as what `text` makes of it.
    pub(crate) fn write<T: Serialize>(
        self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        if self.json {
            line(&serde_json::to_string_pretty(value)?)
        } else {
            line(text(value).trim_end())
        }
    }
}

/// A line on standard output. A reader that has seen enough (`| head`) ends the program without a word.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => Ok(other?),
    }
}

/// The first line of a text, and of that no more than so many characters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    let is_all = line.len() == text.len() && line.chars().count() <= most;
    if is_all {
        return line.to_owned();
    }
    let short: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", short.trim_end())
}

/// A table without lines, as wide as it needs to be: it is read by people and cut by `awk`.
pub(crate) fn table<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(head.map(str::to_uppercase));
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let text = table.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_text_is_cut_to_one_line_and_says_so() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("longer", 5), "long…");
        assert_eq!(cut("two\nlines", 20), "two…");
        assert_eq!(cut("", 5), "");
    }
}
