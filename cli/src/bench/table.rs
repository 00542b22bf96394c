//! The table.

use comfy_table::{CellAlignment, Table, presets};

use super::row::{Figure, Percentiles, Row};

const HEAD: [&str; 12] = [
    "load",
    "count",
    "per second",
    "of raw",
    "latency of",
    "p50 / p99 / p99.9 ms",
    "client µs",
    "Redis µs",
    "in scripts",
    "calls",
    "commands",
    "besides",
];

/// All rows.
pub(crate) fn render(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(HEAD);
    for row in rows {
        table.add_row(cells(row));
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        if !matches!(at, 0 | 4 | 11) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}

fn cells(row: &Row) -> Vec<String> {
    let costs = row.costs.as_ref();
    let cost = |number: Option<f64>| number.map_or_else(String::new, |n| format!("{n:.2}"));
    let figures: Vec<String> = row.figures.iter().map(figure).collect();
    vec![
        row.load.clone(),
        format!("{} {}", row.count, row.unit),
        row.rate
            .map_or_else(String::new, |rate| format!("{rate:.0}")),
        cost(row.ratio),
        row.latency.map_or("", |latency| latency.of).to_owned(),
        row.latency.as_ref().map_or_else(String::new, percentiles),
        cost(costs.map(|c| c.client_micros)),
        cost(costs.map(|c| c.redis_micros)),
        cost(costs.map(|c| c.script_micros)),
        cost(costs.map(|c| c.calls)),
        cost(costs.map(|c| c.commands)),
        figures.join(", "),
    ]
}

fn percentiles(latency: &Percentiles) -> String {
    let millis = |micros: u64| {
        let millis = micros as f64 / 1000.0;
        if millis < 10.0 {
            format!("{millis:.2}")
        } else {
            format!("{millis:.0}")
        }
    };
    format!(
        "{} / {} / {}",
        millis(latency.p50),
        millis(latency.p99),
        millis(latency.p999)
    )
}

fn figure(figure: &Figure) -> String {
    let Figure { name, value, unit } = figure;
    let number = if value.abs() < 100.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.0}")
    };
    let space = if unit.is_empty() { "" } else { " " };
    format!("{name} {number}{space}{unit}")
}
