//! From text to JSON.

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::MAX_DEPTH;

/// Brackets of JSON for each level of MessagePack, at most: those of `{"$map": [[key, value]]}`.
const BRACKETS: usize = 3;

/// Reads JSON that may be as deep as [`to_json`](super::to_json) writes it: deeper than serde_json allows by itself.
///
/// # Errors
/// Line and column of what is no JSON.
pub(crate) fn parse(text: &str) -> anyhow::Result<Value> {
    let depth = depth(text);
    ensure!(
        depth <= MAX_DEPTH * BRACKETS,
        "{depth} brackets lie in each other; {} are allowed",
        MAX_DEPTH * BRACKETS
    );
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = Value::deserialize(&mut reader).context("this is no JSON")?;
    reader.end().context("this is no JSON")?;
    Ok(value)
}

/// How many brackets are open at once, at most.
fn depth(text: &str) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    let (mut quoted, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}
