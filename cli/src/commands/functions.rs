//! `tenure functions`: what makes one-liners of `redis-cli`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use tenure::{RedisStore, store::redis::InstalledFunctions};

use crate::{answer::Answer, connect::Connection, exit::Exit};

/// Options of `tenure functions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure functions install        then: redis-cli FCALL tenure_signal 0 tenure order-42 approval '{\"approved\":true}'
  tenure functions show           which version is there
  tenure functions export lua     for Redis 6.2: redis-cli --eval lua/tenure_pause.lua , tenure order-42
  tenure functions remove

The functions need Redis 7 and serve every namespace of the server. docs/redis-cli.md lists them. Who installs needs the
right to FUNCTION; who calls needs FCALL (or FCALL_RO for those that read) besides the rights of a client.")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Loads the library `tenure` of Redis functions, in place of one that is there
    Install(Server),
    /// Says which version is installed
    Show(Server),
    /// Removes the library
    Remove(Server),
    /// Writes the library and each function as a script into a directory; needs no Redis
    Export {
        /// Where to; it is made if it is not there
        dir: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct Server {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    answer: Answer,
}

/// What there is, and what there was.
#[derive(Debug, Serialize)]
struct Report {
    /// The version that is installed now.
    installed: Option<String>,
    /// The version that was there before it was replaced or removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// What this program would install.
    ours: String,
}

fn shown(found: Option<&InstalledFunctions>) -> Option<String> {
    found.map(|found| {
        let unknown = || "without a version".to_owned();
        found.version.clone().unwrap_or_else(unknown)
    })
}

/// Does what is asked for.
pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let ours = RedisStore::functions_version();
    match args.action {
        Action::Install(server) => {
            let before = server.connection.open().await?.install_functions().await?;
            let report = Report {
                installed: Some(ours.clone()),
                before: shown(before.as_ref()),
                ours,
            };
            let same = before.is_some_and(|before| before.current);
            server.answer.write(&report, |r| installed(r, same))?;
            Ok(Exit::Done)
        }
        Action::Show(server) => {
            let found = server
                .connection
                .open()
                .await?
                .installed_functions()
                .await?;
            let report = Report {
                installed: shown(found.as_ref()),
                before: None,
                ours,
            };
            let current = found.as_ref().is_some_and(|found| found.current);
            server.answer.write(&report, |r| there(r, current))?;
            Ok(if found.is_some() {
                Exit::Done
            } else {
                Exit::NotFound
            })
        }
        Action::Remove(server) => {
            let before = server.connection.open().await?.remove_functions().await?;
            let report = Report {
                installed: None,
                before: shown(before.as_ref()),
                ours,
            };
            server.answer.write(&report, removed)?;
            Ok(Exit::Done)
        }
        Action::Export { dir } => export(&dir),
    }
}

fn installed(report: &Report, same: bool) -> String {
    let ours = &report.ours;
    match &report.before {
        None => format!("installed the functions of Tenure {ours}"),
        Some(_) if same => format!("the functions of Tenure {ours} were there already"),
        Some(before) => {
            format!("installed the functions of Tenure {ours}, in place of those of {before}")
        }
    }
}

fn there(report: &Report, current: bool) -> String {
    match &report.installed {
        None => {
            "the functions of Tenure are not installed; `tenure functions install` does it".into()
        }
        Some(version) if current => format!("installed: the functions of Tenure {version}"),
        Some(version) => format!(
            "installed: the functions of Tenure {version}; this is {}, `tenure functions install` replaces them",
            report.ours
        ),
    }
}

fn removed(report: &Report) -> String {
    match &report.before {
        None => "the functions of Tenure were not installed".to_owned(),
        Some(version) => format!("removed the functions of Tenure {version}"),
    }
}

fn export(dir: &Path) -> anyhow::Result<Exit> {
    let write = |name: &str, text: &str| {
        let path = dir.join(format!("{name}.lua"));
        std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
    };
    std::fs::create_dir_all(dir).with_context(|| format!("{} cannot be made", dir.display()))?;
    write("tenure", &RedisStore::functions())?;
    let scripts = RedisStore::function_scripts();
    for (name, text) in &scripts {
        write(name, text)?;
    }
    crate::answer::line(&format!(
        "{} scripts and the library tenure.lua of Tenure {} are in {}",
        scripts.len(),
        RedisStore::functions_version(),
        dir.display()
    ))?;
    Ok(Exit::Done)
}
