//! The demo's last word.

use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets::UTF8_FULL_CONDENSED};

use super::report::Report;

/// The table.
pub(crate) fn render(report: &Report, started: Duration, took: Duration) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    let per_second =
        |count: u64, time: Duration| format!("{:.0}", count as f64 / time.as_secs_f64().max(0.001));
    let percentile = |q: f64| format!("{} ms", report.latency.value_at_quantile(q));
    let mut rows = vec![
        (
            "instances completed",
            format!("{} of {}", report.completed, report.instances),
        ),
        ("tasks completed", report.tasks.to_string()),
        ("attempts", report.attempts.to_string()),
        ("failures that were retried", report.failures.to_string()),
        (
            "started",
            format!("{} instances/s", per_second(report.instances, started)),
        ),
        (
            "throughput",
            format!("{} tasks/s", per_second(report.tasks, took)),
        ),
        (
            "latency of an instance p50 / p99",
            format!("{} / {}", percentile(0.5), percentile(0.99)),
        ),
        ("tasks that ran twice", report.ran_twice.to_string()),
        (
            "results committed twice",
            report.committed_twice.to_string(),
        ),
    ];
    if let Some(recovery) = &report.recovery {
        rows.push((
            "claims lost with the killed worker",
            report.crashes.to_string(),
        ));
        rows.push((
            "of these, handlers begun again elsewhere",
            recovery.tasks.to_string(),
        ));
        rows.push((
            "the last of them, after the kill",
            format!("{} ms", recovery.millis),
        ));
    }
    for (name, value) in rows {
        table.add_row([name.to_owned(), value]);
    }
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}
