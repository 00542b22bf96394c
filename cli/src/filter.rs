//! Which instances: the options that `list` and all commands that steer many have in common.

use std::{str::FromStr, time::Duration};

use chrono::DateTime;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use tenure::{Client, Status, client::Filter, ids::WorkflowName, time::Timestamp};

/// The heading of these options in `--help`.
pub(crate) const WHICH: &str = "Which instances";

/// Filters. All that are given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct Select {
    /// Those of this workflow
    #[arg(long, value_name = "NAME", help_heading = WHICH)]
    pub(crate) workflow: Option<WorkflowName>,
    /// Those of this status; several times: of any of them
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = status(), help_heading = WHICH)]
    pub(crate) status: Vec<Status>,
    /// Those with this label; several times: with all of them
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label, help_heading = WHICH)]
    pub(crate) labels: Vec<(String, String)>,
    /// Those started at this time or later: 2026-11-30T22:00:00Z, or 2h for two hours ago
    #[arg(long, value_name = "TIME", help_heading = WHICH)]
    pub(crate) created_after: Option<When>,
    /// Those started before this time
    #[arg(long, value_name = "TIME", help_heading = WHICH)]
    pub(crate) created_before: Option<When>,
    /// Those whose id begins so
    #[arg(long, value_name = "TEXT", help_heading = WHICH)]
    pub(crate) prefix: Option<String>,
}

impl Select {
    /// Whether nothing was given: all instances.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// As the library takes it. Asks the store what time it is if a time is given as an age.
    pub(crate) async fn filter(&self, client: &Client) -> anyhow::Result<Filter> {
        let times = [self.created_after, self.created_before];
        let now = match times.iter().any(|t| matches!(t, Some(When::Ago(_)))) {
            true => client.now().await?,
            false => Timestamp::default(),
        };
        Ok(self.filter_at(now))
    }

    fn filter_at(&self, now: Timestamp) -> Filter {
        let mut filter = Filter::new();
        if let Some(workflow) = &self.workflow {
            filter = filter.workflow(workflow.clone());
        }
        if let Some(prefix) = &self.prefix {
            filter = filter.id_prefix(prefix);
        }
        if let Some(when) = self.created_after {
            filter = filter.created_after(when.at(now));
        }
        if let Some(when) = self.created_before {
            filter = filter.created_before(when.at(now));
        }
        filter = self.status.iter().copied().fold(filter, Filter::status);
        let labels = self.labels.iter();
        labels.fold(filter, |filter, (key, value)| filter.label(key, value))
    }
}

/// A moment, as people give it: by the calendar, or as an age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    At(Timestamp),
    Ago(Duration),
}

impl When {
    pub(crate) fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(time) => time,
            Self::Ago(age) => {
                let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
                Timestamp::from_millis(now.as_millis().saturating_sub(age))
            }
        }
    }
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(time) = DateTime::parse_from_rfc3339(text) {
            return Ok(Self::At(Timestamp::from_millis(time.timestamp_millis())));
        }
        humantime::parse_duration(text).map(Self::Ago).map_err(|_| {
            "a time is 2026-11-30T22:00:00Z (with its zone), or an age such as 30m, 2h, 3d"
                .to_owned()
        })
    }
}

pub(crate) fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a label is given as KEY=VALUE".to_owned()),
    }
}

pub(crate) fn status() -> impl TypedValueParser<Value = Status> {
    PossibleValuesParser::new(Status::ALL.map(Status::as_str))
        .try_map(|word| word.parse::<Status>())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        select: Select,
    }

    fn read(args: &[&str]) -> Result<Select, String> {
        let line = Line::try_parse_from(["x"].iter().chain(args));
        line.map(|line| line.select).map_err(|e| e.to_string())
    }

    #[test]
    fn all_options_of_a_filter_are_read() {
        assert!(read(&[]).expect("nothing").is_empty());
        let given = read(&[
            "--workflow=order",
            "--status=failed,paused",
            "--status=running",
            "--label=tenant=a=b",
            "--created-after=2026-11-30T22:00:00+01:00",
            "--created-before=2h",
            "--prefix=order-",
        ])
        .expect("a filter");
        assert!(!given.is_empty());
        assert_eq!(
            given.status,
            [Status::Failed, Status::Paused, Status::Running]
        );
        assert_eq!(given.labels, [("tenant".into(), "a=b".into())]);
        let now = Timestamp::from_millis(1_800_000_000_000);
        let time = |when: Option<When>| when.map(|when| when.at(now).as_millis());
        assert_eq!(time(given.created_after), Some(1_796_072_400_000));
        assert_eq!(time(given.created_before), Some(1_799_992_800_000));
    }

    #[test]
    fn what_is_no_filter_is_told_with_what_is_allowed() {
        let said = read(&["--created-after=yesterday"]).expect_err("no time");
        assert!(said.contains("2026-11-30T22:00:00Z"), "{said}");
        let said = read(&["--label=tenant"]).expect_err("no label");
        assert!(said.contains("KEY=VALUE"), "{said}");
        let said = read(&["--status=dead"]).expect_err("no status");
        assert!(
            said.contains("running, paused, completed, failed"),
            "{said}"
        );
    }
}
