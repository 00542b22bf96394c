//! One line of the table.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::{measure::Spent, reference::Reference};

/// What one load measured.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    pub(crate) load: String,
    /// What is counted: tasks, starts, calls.
    pub(crate) unit: &'static str,
    pub(crate) count: u64,
    pub(crate) seconds: f64,
    /// For each second; absent where the rate was given or is of no interest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<f64>,
    /// Calls of the raw reference for each second, just before and after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reference: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latency: Option<Percentiles>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) costs: Option<Costs>,
    /// What only this load measures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) figures: Vec<Figure>,
}

/// Microseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Percentiles {
    /// What lies between the two moments.
    pub(crate) of: &'static str,
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    pub(crate) p999: u64,
    pub(crate) samples: u64,
}

/// For each of what is counted.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Costs {
    pub(crate) client_micros: f64,
    pub(crate) redis_micros: f64,
    pub(crate) script_micros: f64,
    /// Script calls: commands outside of scripts.
    pub(crate) calls: f64,
    /// Commands inside of scripts.
    pub(crate) commands: f64,
    /// The commands one by one, those that are called at least once for 100.
    pub(crate) each: BTreeMap<String, f64>,
}

/// A number of a load's own.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
}

impl Row {
    pub(crate) fn new(load: impl Into<String>, unit: &'static str, count: u64) -> Self {
        Self {
            load: load.into(),
            unit,
            count,
            seconds: 0.0,
            rate: None,
            reference: None,
            ratio: None,
            latency: None,
            costs: None,
            figures: Vec::new(),
        }
    }

    /// With the time it took, and its rate.
    pub(crate) fn took(mut self, seconds: f64) -> Self {
        self.seconds = seconds;
        self.rate = Some(self.count as f64 / seconds.max(1e-6));
        self
    }

    /// With all that it cost, its time and its rate.
    pub(crate) fn spent(self, spent: &Spent) -> Self {
        self.took(spent.seconds).costs(spent)
    }

    /// With what it cost.
    pub(crate) fn costs(mut self, spent: &Spent) -> Self {
        let count = self.count.max(1) as f64;
        self.costs = Some(Costs {
            client_micros: spent.client * 1e6 / count,
            redis_micros: spent.redis * 1e6 / count,
            script_micros: spent.scripts * 1e6 / count,
            calls: spent.calls / count,
            commands: spent.commands / count,
            each: spent
                .each
                .iter()
                .map(|(name, calls)| (name.clone(), calls / count))
                .filter(|(_, calls)| *calls >= 0.01)
                .collect(),
        });
        self.seconds = spent.seconds;
        self
    }

    /// With a latency; nothing when nothing was recorded.
    pub(crate) fn latency(mut self, of: &'static str, recorded: &Histogram<u64>) -> Self {
        if !recorded.is_empty() {
            self.latency = Some(Percentiles {
                of,
                p50: recorded.value_at_quantile(0.5),
                p99: recorded.value_at_quantile(0.99),
                p999: recorded.value_at_quantile(0.999),
                samples: recorded.len(),
            });
        }
        self
    }

    /// With a number of its own.
    pub(crate) fn figure(
        mut self,
        name: impl Into<String>,
        value: f64,
        unit: &'static str,
    ) -> Self {
        self.figures.push(Figure {
            name: name.into(),
            value,
            unit,
        });
        self
    }

    /// With the median of the references around it.
    pub(crate) fn against(mut self, references: &[Reference]) -> Self {
        let mut rates: Vec<f64> = references.iter().map(Reference::rate).collect();
        self.reference = median(&mut rates);
        self.ratio = match (self.rate, self.reference) {
            (Some(rate), Some(reference)) => Some(rate / reference),
            _ => None,
        };
        self
    }

    /// What rounds are ordered by.
    fn key(&self) -> f64 {
        self.ratio
            .or(self.rate)
            .or(self.latency.map(|latency| latency.p50 as f64))
            .or(self.figures.first().map(|figure| figure.value))
            .unwrap_or(0.0)
    }
}

/// Of the same rows in several rounds, the median ones.
pub(crate) fn medians(rounds: Vec<Vec<Row>>) -> Vec<Row> {
    let mut by_row: Vec<Vec<Row>> = Vec::new();
    for rows in rounds {
        for (at, row) in rows.into_iter().enumerate() {
            match by_row.get_mut(at) {
                Some(same) => same.push(row),
                None => by_row.push(vec![row]),
            }
        }
    }
    by_row
        .into_iter()
        .filter_map(|mut rows| {
            rows.sort_by(|a, b| a.key().total_cmp(&b.key()));
            let middle = rows.len() / 2;
            (!rows.is_empty()).then(|| rows.swap_remove(middle))
        })
        .collect()
}

/// The median; of an even number the mean of the two in the middle.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some(f64::midpoint(values[low], values[high]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_rounds_is_taken_row_by_row() {
        let row = |name: &str, seconds| Row::new(name, "tasks", 100).took(seconds);
        let rounds = vec![
            vec![row("a", 1.0), row("b", 9.0)],
            vec![row("a", 3.0), row("b", 7.0)],
            vec![row("a", 2.0), row("b", 8.0)],
        ];
        let rows = medians(rounds);
        let seconds: Vec<f64> = rows.iter().map(|row| row.seconds).collect();
        assert_eq!(seconds, [2.0, 8.0]);
    }

    #[test]
    fn a_median_lies_between_the_two_in_the_middle() {
        assert_eq!(median(&mut [3.0, 1.0]), Some(2.0));
        assert_eq!(median(&mut [3.0, 1.0, 9.0]), Some(3.0));
        assert_eq!(median(&mut []), None);
    }
}
