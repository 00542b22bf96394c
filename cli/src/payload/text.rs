//! From text to JSON.

use anyhow::{Context, bail, ensure};
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
    if let Some(number) = outside(text).find(|token| is_too_large(token)) {
        bail!(
            "`{number}` is a whole number that does not fit 64 bits; give it as text, or rounded with a point: {number}.0"
        );
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = Value::deserialize(&mut reader).context("this is no JSON")?;
    reader.end().context("this is no JSON")?;
    Ok(value)
}

/// How many brackets are open at once, at most.
fn depth(text: &str) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    for token in outside(text) {
        match token {
            "[" | "{" => depth += 1,
            "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}

/// A number that serde_json would read as a rounded one.
fn is_too_large(token: &str) -> bool {
    let digits = token.strip_prefix('-').unwrap_or(token);
    digits.len() > 18
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && token.parse::<u64>().is_err()
        && token.parse::<i64>().is_err()
}

/// What stands outside of texts: brackets by themselves, and what is between brackets, commas, colons and spaces.
fn outside(text: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let mut escaped = false;
    let pieces = text.split_inclusive(move |c: char| {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ => {}
        }
        !quoted
            && matches!(
                c,
                '"' | '[' | ']' | '{' | '}' | ',' | ':' | ' ' | '\n' | '\r' | '\t'
            )
    });
    // A piece ends with what parts it from the next one; a text is such a piece as a whole.
    pieces
        .filter(|piece| !piece.contains('"'))
        .flat_map(|piece| {
            let end = piece.char_indices().next_back().map_or(0, |(at, _)| at);
            let (token, last) = piece.split_at(end);
            match last {
                "[" | "]" | "{" | "}" | "," | ":" | " " | "\n" | "\r" | "\t" => [token, last],
                _ => [piece, ""],
            }
        })
}
