//! A file of instances to start: one JSON object in each line.

use anyhow::{Context, anyhow, bail};
use bytes::Bytes;
use serde_json::Value;
use tenure::{InstanceId, Start};

use super::{Begin, How, at, with};
use crate::{
    exit::Usage,
    payload::{Source, from_json, parse},
};

/// How many bad lines are told.
const TOLD: usize = 10;

/// What a line asks for.
#[derive(Debug)]
pub(super) struct Line {
    /// Its number, from 1.
    pub(super) number: usize,
    pub(super) id: Option<InstanceId>,
    pub(super) start: Start<Bytes>,
}

/// All lines, or which of them cannot be read.
pub(super) fn read(source: &Source, how: &How) -> anyhow::Result<Vec<Line>> {
    let text = source.text()?;
    let (mut lines, mut bad) = (Vec::new(), Vec::new());
    for (number, text) in (1..).zip(text.lines()) {
        if text.trim().is_empty() {
            continue;
        }
        match read_line(text, how) {
            Ok((id, start)) => lines.push(Line { number, id, start }),
            Err(error) => bad.push(format!("  line {number}: {error:#}")),
        }
    }
    if bad.is_empty() {
        return Ok(lines);
    }
    let count = bad.len();
    bad.truncate(TOLD);
    if count > TOLD {
        bad.push(format!("  and {} more", count - TOLD));
    }
    let what = format!(
        "{count} of {} lines cannot be read, so nothing was started\n{}",
        lines.len() + count,
        bad.join("\n")
    );
    Err(Usage::new(what).into())
}

fn read_line(text: &str, how: &How) -> anyhow::Result<(Option<InstanceId>, Start<Bytes>)> {
    let Value::Object(object) = parse(text)? else {
        bail!(
            "it is no object; one is {{\"id\": …, \"input\": …, \"labels\": {{…}}, \"delay\": \"5m\"}}"
        );
    };
    let (mut id, mut input, mut begin) = (None, Value::Null, how.begin());
    let mut how = how.clone();
    for (key, value) in object {
        match key.as_str() {
            "id" => id = Some(InstanceId::new(text_of("id", &value)?)?),
            "input" => input = value,
            "labels" => how.labels.extend(labels(&value)?),
            "delay" => {
                let delay = humantime::parse_duration(text_of("delay", &value)?);
                begin = Begin::After(delay.context("`delay` is no duration such as \"5m\"")?);
            }
            "at" => {
                begin = Begin::At(at(text_of("at", &value)?).map_err(|e| anyhow!("`at`: {e}"))?);
            }
            _ => bail!("`{key}` is none of id, input, labels, delay, at"),
        }
    }
    let input = from_json(&input).context("`input`")?;
    let mut start = with!(Start::new(input), &how, begin);
    if let Some(id) = &id {
        start = start.instance(id.clone());
    }
    Ok((id, start))
}

fn text_of<'a>(key: &str, value: &'a Value) -> anyhow::Result<&'a str> {
    let text = value.as_str();
    text.with_context(|| format!("`{key}` is no text but {value}"))
}

fn labels(value: &Value) -> anyhow::Result<Vec<(String, String)>> {
    let object = value.as_object();
    let object =
        object.context("`labels` is no object of texts, such as {\"tenant\": \"acme\"}")?;
    let labels = object.iter();
    labels
        .map(|(key, value)| Ok((key.clone(), text_of(key, value)?.to_owned())))
        .collect()
}
