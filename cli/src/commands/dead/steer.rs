//! `tenure dead retry` and `tenure dead discard`: what `tenure retry` and `tenure delete` do, to the dead of one kind.

use tenure::Client;

use super::{check, group::Kind, unknown};
use crate::{
    answer::Answer,
    commands::control::{Beginning, Consent, Consented, Verb, Why, consent, find, work},
    connect::Connection,
    exit::{Exit, Usage},
    filter::{Select, WHICH},
};

/// Options of both.
#[derive(Debug, clap::Args)]
struct Which {
    /// Those of this group of `tenure dead`
    #[arg(long, value_name = "GROUP", help_heading = WHICH)]
    error: Option<String>,
    /// All dead instances
    #[arg(long, help_heading = WHICH)]
    all: bool,
    #[command(flatten)]
    select: Select,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    answer: Answer,
}

/// Options of `tenure dead retry`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure dead retry --error 3f9a1c20 --reason 'the bank is back'
  tenure dead retry --workflow order --created-after 2h --yes
  tenure dead retry --all --dry-run

Single ones: tenure retry ID")]
pub(super) struct RetryArgs {
    #[command(flatten)]
    from: Beginning,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    why: Why,
}

/// Options of `tenure dead discard`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure dead discard --error 3f9a1c20
  tenure dead discard --created-before 30d --yes

Single ones: tenure delete ID")]
pub(super) struct DiscardArgs {
    #[command(flatten)]
    which: Which,
}

pub(super) async fn retry(args: RetryArgs) -> anyhow::Result<Exit> {
    steer(Verb::Retry(args.from.retry()), args.which, args.why).await
}

pub(super) async fn discard(args: DiscardArgs) -> anyhow::Result<Exit> {
    steer(Verb::Delete, args.which, Why::default()).await
}

async fn steer(verb: Verb, which: Which, why: Why) -> anyhow::Result<Exit> {
    check(&which.select)?;
    let narrows = which.error.is_some() || !which.select.is_empty();
    if narrows == which.all {
        let both = if narrows { ", not both" } else { "" };
        let what =
            "which of the dead? Give --error GROUP, filters such as --workflow NAME, or --all";
        return Err(Usage::new(format!("{what}{both}")).into());
    }
    let client = Client::new(which.connection.open().await?);
    let mut select = which.select.clone();
    select.status = vec![tenure::Status::Failed];
    let group = which.error.as_deref();
    let found = find(&client, &verb, &select, |summary| {
        group.is_none_or(|group| Kind::of(summary).name() == group)
    })
    .await?;
    if let (true, Some(group)) = (found.is_empty(), group) {
        return Ok(unknown(group));
    }
    match consent(&verb, &found, which.consent, which.answer)? {
        Consented::No(exit) => Ok(exit),
        Consented::Yes => work(&client, &why.order(verb), &found, which.answer).await,
    }
}
