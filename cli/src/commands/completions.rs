//! `tenure completions`: what a shell needs to complete commands and options.

use clap::Command;
use clap_complete::{Shell, generate};

use crate::exit::Exit;

/// Options of `tenure completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure completions bash > ~/.local/share/bash-completion/completions/tenure
  tenure completions zsh  > ~/.zfunc/_tenure      with ~/.zfunc in fpath
  tenure completions fish > ~/.config/fish/completions/tenure.fish")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

/// Prints them.
pub(crate) fn run(args: &Args, mut command: Command) -> anyhow::Result<Exit> {
    let mut text = Vec::new();
    generate(args.shell, &mut command, "tenure", &mut text);
    crate::answer::line(String::from_utf8(text)?.trim_end())?;
    Ok(Exit::Done)
}
