//! What a Redis says of itself: `INFO`.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Context;
use redis::{
    AsyncConnectionConfig, IntoConnectionInfo, aio::MultiplexedConnection, io::tcp::TcpSettings,
};

/// Long enough for whatever a benchmark does to a server.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection as the library makes it: without delay, and with more patience.
pub(crate) async fn connect(url: &str) -> anyhow::Result<MultiplexedConnection> {
    let info = url
        .into_connection_info()
        .context("the address is not one of a single Redis")?
        .set_tcp_settings(TcpSettings::default().set_nodelay(true));
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(Duration::from_secs(5)))
        .set_response_timeout(Some(PATIENCE));
    Ok(redis::Client::open(info)?
        .get_multiplexed_async_connection_with_config(&config)
        .await?)
}

/// How often a command was called, and for how many microseconds it ran.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Calls {
    pub(crate) calls: f64,
    pub(crate) micros: f64,
}

/// What a server did since it was started.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stats {
    /// Seconds of CPU time, of all its threads.
    pub(crate) cpu: f64,
    pub(crate) commands: BTreeMap<String, Calls>,
}

impl Stats {
    /// Asks a server.
    pub(crate) async fn of(connection: &mut MultiplexedConnection) -> anyhow::Result<Self> {
        let cpu = section(connection, "cpu").await?;
        let commands = section(connection, "commandstats").await?;
        Ok(Self {
            cpu: number(&cpu, "used_cpu_user")? + number(&cpu, "used_cpu_sys")?,
            commands: commands.lines().filter_map(command).collect(),
        })
    }

    /// Adds what another server did.
    pub(crate) fn add(&mut self, other: &Self) {
        self.cpu += other.cpu;
        for (name, calls) in &other.commands {
            let sum = self.commands.entry(name.clone()).or_default();
            sum.calls += calls.calls;
            sum.micros += calls.micros;
        }
    }

    /// Calls and time of scripts since `earlier`.
    pub(crate) fn scripts_since(&self, earlier: &Self) -> Calls {
        self.sum_since(earlier, |name| matches!(name, "eval" | "evalsha"))
    }

    /// Calls and time of commands inside scripts since `earlier`: all that the protocol calls nowhere else, and that
    /// this benchmark does not call while it measures.
    pub(crate) fn inside_since(&self, earlier: &Self) -> Calls {
        self.sum_since(earlier, |name| {
            let name = name.split('|').next().unwrap_or(name);
            !OUTSIDE.contains(&name)
        })
    }

    fn sum_since(&self, earlier: &Self, wanted: impl Fn(&str) -> bool) -> Calls {
        let mut sum = Calls::default();
        for (name, now) in self.commands.iter().filter(|(name, _)| wanted(name)) {
            let before = earlier.commands.get(name).copied().unwrap_or_default();
            sum.calls += now.calls - before.calls;
            sum.micros += now.micros - before.micros;
        }
        sum
    }

    /// Calls of each command since `earlier`, most often called first.
    pub(crate) fn each_since(&self, earlier: &Self) -> Vec<(String, f64)> {
        let mut each: Vec<(String, f64)> = self
            .commands
            .iter()
            .map(|(name, now)| {
                let before = earlier.commands.get(name).copied().unwrap_or_default();
                (name.clone(), now.calls - before.calls)
            })
            .filter(|(_, calls)| *calls > 0.0)
            .collect();
        each.sort_by(|a, b| b.1.total_cmp(&a.1));
        each
    }
}

/// Commands that stand in no script, or that the count of instances needs.
const OUTSIDE: [&str; 19] = [
    "eval",
    "evalsha",
    "info",
    "config",
    "ping",
    "hello",
    "client",
    "auth",
    "select",
    "script",
    "cluster",
    "subscribe",
    "unsubscribe",
    "ssubscribe",
    "sunsubscribe",
    "smembers",
    "zcard",
    "hlen",
    "command",
];

/// A part of `INFO`.
pub(crate) async fn section(
    connection: &mut MultiplexedConnection,
    name: &str,
) -> anyhow::Result<String> {
    redis::cmd("INFO")
        .arg(name)
        .query_async(connection)
        .await
        .with_context(|| format!("INFO {name} is needed to measure what Redis does"))
}

/// A number of a section.
pub(crate) fn number(section: &str, name: &str) -> anyhow::Result<f64> {
    text(section, name)
        .and_then(|value| value.parse().ok())
        .with_context(|| format!("INFO has no number `{name}`"))
}

/// A line of a section.
pub(crate) fn text<'a>(section: &'a str, name: &str) -> Option<&'a str> {
    section
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .map(str::trim)
}

/// `cmdstat_hmget:calls=3,usec=7,…`
fn command(line: &str) -> Option<(String, Calls)> {
    let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(':')?;
    let field = |key: &str| {
        rest.split(',')
            .find_map(|part| part.strip_prefix(key)?.strip_prefix('='))?
            .trim()
            .parse::<f64>()
            .ok()
    };
    let calls = Calls {
        calls: field("calls")?,
        micros: field("usec")?,
    };
    Some((name.to_owned(), calls))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(lines: &[&str]) -> Stats {
        Stats {
            cpu: 0.0,
            commands: lines.iter().filter_map(|line| command(line)).collect(),
        }
    }

    #[test]
    fn scripts_and_what_they_call_are_told_apart() {
        let before = stats(&["cmdstat_evalsha:calls=1,usec=10,usec_per_call=10.00"]);
        let after = stats(&[
            "cmdstat_evalsha:calls=3,usec=50,usec_per_call=16.67,rejected_calls=0,failed_calls=0",
            "cmdstat_hmget:calls=4,usec=8,usec_per_call=2.00",
            "cmdstat_zadd:calls=2,usec=1,usec_per_call=0.50",
            "cmdstat_config|resetstat:calls=1,usec=9,usec_per_call=9.00",
            "cmdstat_ping:calls=7,usec=9,usec_per_call=1.00",
        ]);
        let scripts = after.scripts_since(&before);
        assert_eq!((scripts.calls, scripts.micros), (2.0, 40.0));
        let inside = after.inside_since(&before);
        assert_eq!((inside.calls, inside.micros), (6.0, 9.0));
        assert_eq!(after.each_since(&before)[0], ("ping".to_owned(), 7.0));
    }

    #[test]
    fn numbers_and_texts_of_a_section_are_found_by_their_whole_name() {
        let section = "# CPU\r\nused_cpu_sys_children:7.5\r\nused_cpu_sys:1.25\r\n";
        assert_eq!(number(section, "used_cpu_sys").ok(), Some(1.25));
        assert_eq!(text(section, "used_cpu_sys_children"), Some("7.5"));
        assert!(number(section, "used_cpu").is_err());
    }
}
