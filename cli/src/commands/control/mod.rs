//! `tenure cancel`, `terminate`, `pause`, `resume`, `retry` and `delete`: steers instances by id or by filter.

mod ask;
mod outcome;
mod targets;
mod verb;
mod work;

use tenure::{Client, RetryFrom, ids::TaskName};

use self::targets::Targets;
pub(crate) use self::{
    ask::{Consented, consent},
    targets::{Consent, find},
    verb::Verb,
    work::{Order, work},
};
use crate::{actor, answer::Answer, connect::Connection, exit::Exit};

/// The commands.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Cancels instances: they end at once, running tasks are told and their results refused
    #[command(after_help = help(CANCEL))]
    Cancel(Args),
    /// Terminates instances: as cancel, for operators; nothing of them goes on
    #[command(after_help = help(TERMINATE))]
    Terminate(Args),
    /// Pauses instances: no task of theirs begins until they are resumed
    #[command(after_help = help(PAUSE))]
    Pause(Args),
    /// Lets paused instances go on
    #[command(after_help = help(RESUME))]
    Resume(Args),
    /// Brings instances that failed back to life, at the task that failed
    #[command(after_help = help(RETRY))]
    Retry(RetryArgs),
    /// Deletes instances that are over, with all that is stored of them
    #[command(after_help = help(DELETE))]
    Delete(DeleteArgs),
}

/// What all of them have in common.
const EXIT: &str = "\
Each instance has a line that says what became of it; one that cannot be steered does not stop the others. The exit code is
that of the worst: 0 done, or so already; 3 there is no such instance; 4 refused; 5 Redis does not answer,
and the rest was left. What a filter names is counted and shown first, then it asks; without a terminal it does nothing
unless --yes is given (2), and after a no it ends with 1. Of those, instances that ended or went meanwhile are skipped, which is no fault.";

fn help(examples: &str) -> String {
    format!("{examples}\n\n{EXIT}")
}

const CANCEL: &str = "\
Examples:
  tenure cancel order-42 --reason 'double order'
  tenure cancel --workflow order --label tenant=acme      shows how many, and asks
  tenure cancel --prefix import- --dry-run                shows which they are, and does nothing
  tenure cancel --prefix import- --dry-run | grep 2025 | tenure cancel -";
const TERMINATE: &str = "\
Examples:
  tenure terminate order-42 --reason 'runs in circles'
  tenure terminate --workflow import --created-before 3d --yes";
const PAUSE: &str = "\
Examples:
  tenure pause order-42 --reason 'the customer calls back'
  tenure pause --workflow order --reason 'the bank is down'
Tasks that run go on to their end, and their results are stored. Timers go on too; what is due begins with the resume.";
const RESUME: &str = "\
Examples:
  tenure resume order-42
  tenure resume --workflow order --reason 'the bank is back'
  tenure resume --all --yes";
const RETRY: &str = "\
Examples:
  tenure retry order-42                      begins again at the task that failed, with all its attempts
  tenure retry order-42 --from reserve       takes the result of this task back, and all that came of it
  tenure retry order-42 --from-start         as if nothing had been done
  tenure retry --workflow order --created-after 2h
See also `tenure dead`, which shows what failed by its errors and retries one kind of them.";
const DELETE: &str = "\
Examples:
  tenure delete order-42
  tenure delete --status cancelled,terminated --created-before 30d --yes
What is over goes by itself when its retention has passed. What lives has to be cancelled or terminated first.";

/// Options of most of them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    targets: Targets,
    #[command(flatten)]
    why: Why,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    answer: Answer,
}

/// Options of `tenure retry`.
#[derive(Debug, clap::Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    from: Beginning,
    #[command(flatten)]
    rest: Args,
}

/// Options of `tenure delete`.
#[derive(Debug, clap::Args)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    targets: Targets,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    answer: Answer,
}

/// Where a retry begins. Default: at the tasks that failed.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Beginning {
    /// Begin again at this task; what came of it is taken back
    #[arg(long, value_name = "TASK")]
    from: Option<TaskName>,
    /// Begin again at the first tasks; all is taken back
    #[arg(long, conflicts_with = "from")]
    from_start: bool,
}

impl Beginning {
    pub(crate) fn retry(&self) -> RetryFrom {
        match &self.from {
            Some(task) => RetryFrom::Task(task.clone()),
            None if self.from_start => RetryFrom::Start,
            None => RetryFrom::Failed,
        }
    }
}

/// What is written into each instance.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Why {
    /// Why; written into each instance
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    reason: String,
    /// Who; written into each instance [default: $USER@host]
    #[arg(
        long,
        value_name = "NAME",
        env = "TENURE_ACTOR",
        hide_env_values = true
    )]
    actor: Option<String>,
}

impl Why {
    pub(crate) fn order(self, verb: Verb) -> Order {
        Order {
            verb,
            reason: self.reason,
            actor: self.actor.unwrap_or_else(actor::name),
        }
    }
}

/// Steers them.
pub(crate) async fn run(command: Command) -> anyhow::Result<Exit> {
    let (verb, args) = match command {
        Command::Cancel(args) => (Verb::Cancel, args),
        Command::Terminate(args) => (Verb::Terminate, args),
        Command::Pause(args) => (Verb::Pause, args),
        Command::Resume(args) => (Verb::Resume, args),
        Command::Retry(args) => (Verb::Retry(args.from.retry()), args.rest),
        Command::Delete(args) => (Verb::Delete, args.into()),
    };
    args.targets.check(&verb)?;
    let named = args.targets.named()?;
    let client = Client::new(args.connection.open().await?);
    let (targets, consented) = if args.targets.is_filter() {
        let found = find(&client, &verb, &args.targets.select, |_| true).await?;
        let consented = consent(&verb, &found, args.targets.consent, args.answer)?;
        (found, consented)
    } else {
        let mut asked = args.targets.consent;
        asked.yes = true;
        let consented = consent(&verb, &named, asked, args.answer)?;
        (named, consented)
    };
    match consented {
        Consented::No(exit) => Ok(exit),
        Consented::Yes => work(&client, &args.why.order(verb), &targets, args.answer).await,
    }
}

impl From<DeleteArgs> for Args {
    fn from(args: DeleteArgs) -> Self {
        Self {
            targets: args.targets,
            why: Why::default(),
            connection: args.connection,
            answer: args.answer,
        }
    }
}
