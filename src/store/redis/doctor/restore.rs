//! Fields of a snapshot that can be told from the others.

use std::collections::HashMap;

use super::{Doctor, Problem};
use crate::{
    ids::{InstanceId, ListName, SignalName, TaskName},
    store::{Finished, Status, StoreError, redis::scripts::mend::Mending},
    workflow::Graph,
};

/// The fields of a snapshot that are texts, as they are stored.
struct Plain(HashMap<String, Vec<u8>>);

impl Plain {
    fn text(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .and_then(|value| str::from_utf8(value).ok())
    }

    /// When it ended, as far as it can be read.
    fn ended_at(&self) -> Option<i64> {
        let own = self.text("finished_at").and_then(|at| at.parse().ok());
        own.or_else(|| self.text("times")?.split(' ').nth(1)?.parse().ok())
    }

    /// Tasks whose records begin with one of these states.
    fn tasks_in(&self, states: &[&str]) -> Vec<&str> {
        let is = |name: &str| {
            let state = self.text(name).and_then(|record| record.split(' ').next());
            state.is_some_and(|state| states.contains(&state))
        };
        let tasks = self
            .0
            .keys()
            .filter(|name| name.starts_with("task:") && is(name));
        let mut tasks: Vec<&str> = tasks
            .filter_map(|name| name.strip_prefix("task:"))
            .collect();
        tasks.sort_unstable();
        tasks
    }
}

impl Doctor {
    /// Whether what was wrong within a snapshot is right now.
    pub(super) async fn restore(
        &self,
        id: &InstanceId,
        problem: &Problem,
    ) -> Result<bool, StoreError> {
        let keys = self.store.0.keys_of(self.home(id))?;
        let mending = match problem {
            Problem::Miscounted { .. } => Some(Mending {
                action: "count",
                owner: None,
                id: Some(id.clone()),
                key: keys.instance(id),
                list: None,
                args: Vec::new(),
            }),
            Problem::Unreadable { field, .. } if field == "open" => {
                self.field(id, "open", Some(String::new())).await?
            }
            Problem::Unreadable { field, .. } => {
                let plain = self.plain(id).await?;
                let value = self.derived(id, field, &plain).await?;
                self.field(id, field, value).await?
            }
            Problem::NotAwaited { .. } => {
                let value = self.waits(&self.plain(id).await?).await?;
                self.field(id, "waits", value).await?
            }
            _ => None,
        };
        let Some(mending) = mending else {
            return Ok(false);
        };
        if !self.put_right(self.home(id), &mending).await? {
            return Ok(false);
        }
        Ok(!self.store.within(id).await?.contains(problem))
    }

    /// How a field gets this value (an empty one: none), if it is still as it is now.
    async fn field(
        &self,
        id: &InstanceId,
        field: &str,
        value: Option<String>,
    ) -> Result<Option<Mending>, StoreError> {
        let Some(value) = value else {
            return Ok(None);
        };
        let key = self.store.0.keys_of(self.home(id))?.instance(id);
        let mut cmd = redis::cmd("HGET");
        cmd.arg(&key).arg(field);
        let seen: Option<Vec<u8>> = self.store.0.command("doctor", &cmd).await?;
        // What is no text cannot be compared as one.
        let Ok(seen) = String::from_utf8(seen.unwrap_or_default()) else {
            return Ok(None);
        };
        Ok(Some(Mending {
            action: "field",
            owner: None,
            id: Some(id.clone()),
            key,
            list: None,
            args: vec![field.to_owned(), seen, value],
        }))
    }

    async fn plain(&self, id: &InstanceId) -> Result<Plain, StoreError> {
        let (inner, key) = (
            &self.store.0,
            self.store.0.keys_of(self.home(id))?.instance(id),
        );
        let mut cmd = redis::cmd("HKEYS");
        cmd.arg(&key);
        let names: Vec<String> = inner.command("doctor", &cmd).await?;
        let short = [
            "run",
            "v",
            "status",
            "about",
            "times",
            "finished_at",
            "open",
            "waits",
        ];
        let names = names.into_iter();
        let names: Vec<String> = names
            .filter(|n| n.starts_with("task:") || short.contains(&n.as_str()))
            .collect();
        if names.is_empty() {
            return Ok(Plain(HashMap::new()));
        }
        let mut cmd = redis::cmd("HMGET");
        cmd.arg(&key).arg(&names);
        let values: Vec<Option<Vec<u8>>> = inner.command("doctor", &cmd).await?;
        let fields = names.into_iter().zip(values);
        Ok(Plain(
            fields
                .filter_map(|(name, value)| Some((name, value?)))
                .collect(),
        ))
    }

    /// What a field must be, from the others; `None` if it cannot be told.
    async fn derived(
        &self,
        id: &InstanceId,
        field: &str,
        plain: &Plain,
    ) -> Result<Option<String>, StoreError> {
        let is_open = !plain
            .tasks_in(&["ready", "delayed", "running", "waiting"])
            .is_empty();
        Ok(match field {
            // The first format, and so far the only one.
            "v" if plain.text("v").is_none() => Some("1".to_owned()),
            "status" => self
                .status(id, plain, is_open)
                .await?
                .map(|status| status.to_string()),
            // When it began is lost, and nothing depends on it.
            "times" if is_open => Some(String::new()),
            "waits" => self.waits(plain).await?,
            _ => None,
        })
    }

    /// A finished instance stands in the index of its status; a live one among the paused, or it runs.
    async fn status(
        &self,
        id: &InstanceId,
        plain: &Plain,
        is_open: bool,
    ) -> Result<Option<Status>, StoreError> {
        let (inner, keys) = (&self.store.0, self.store.0.keys_of(self.home(id))?);
        let run: Option<crate::ids::RunId> = plain.text("run").and_then(|run| run.parse().ok());
        if is_open {
            let mut cmd = redis::cmd("SISMEMBER");
            cmd.arg(keys.paused()).arg(id.as_str());
            let paused: bool = inner.command("doctor", &cmd).await?;
            return Ok(Some(if paused {
                Status::Paused
            } else {
                Status::Running
            }));
        }
        let (Some(run), Some(at)) = (run, plain.ended_at()) else {
            return Ok(None);
        };
        let entry = Finished {
            id: id.clone(),
            tail: run.tail(),
            at: crate::time::Timestamp::from_millis(at),
        };
        for status in Status::ALL
            .into_iter()
            .filter(|status| status.is_terminal())
        {
            let mut cmd = redis::cmd("LPOS");
            cmd.arg(keys.done(status.as_str())).arg(entry.to_string());
            let at: Option<u64> = inner.command("doctor", &cmd).await?;
            if at.is_some() {
                return Ok(Some(status));
            }
        }
        Ok(None)
    }

    /// ` <signal>=<task>=<list>` for each node that waits; their order is lost.
    async fn waits(&self, plain: &Plain) -> Result<Option<String>, StoreError> {
        let hash = plain
            .text("about")
            .and_then(|about| about.split(' ').nth(1)?.parse().ok());
        let Some(bytes) = (match hash {
            Some(hash) => self.store.0.published(hash).await?,
            None => None,
        }) else {
            return Ok(None);
        };
        let Ok(graph) = Graph::from_bytes(&bytes) else {
            return Ok(None);
        };
        let wait = |task: &str| -> Option<(SignalName, ListName)> {
            let node = graph.find(&TaskName::new(task).ok()?)?;
            Some((graph.node(node).signal.clone()?, graph.list(node)))
        };
        let mut waits = String::new();
        for task in plain.tasks_in(&["waiting"]) {
            let Some((signal, list)) = wait(task) else {
                return Ok(None);
            };
            waits.push_str(&format!(" {signal}={task}={list}"));
        }
        Ok(Some(waits))
    }
}
