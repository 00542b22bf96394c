//! Payloads as JSON, without loss. Payloads are MessagePack, which can hold what JSON cannot; this is how both are told:
//!
//! | MessagePack | JSON |
//! |---|---|
//! | nil, booleans, text, arrays, whole numbers up to 2^53−1 either way | themselves |
//! | maps with text as keys | objects, in the same order |
//! | floating-point numbers | numbers with a point or an exponent: `1.0` stays one |
//! | NaN and the infinities | `{"$float": "NaN"}`, `"Infinity"`, `"-Infinity"` |
//! | whole numbers beyond ±(2^53−1) | `{"$int": "18446744073709551615"}` |
//! | bytes | `{"$bytes": "<base64>"}` |
//! | extensions (a timestamp is type −1) | `{"$ext": [-1, "<base64>"]}` |
//! | text that is no UTF-8 | `{"$string": "<base64>"}` |
//! | other maps: a key that is no text, a key that comes twice, one single key that begins with `$` | `{"$map": [[key, value], …]}` |
//!
//! docs/payloads.md has the same table. What is read from JSON follows the same table, so that what was shown can be given back: the same value, written in the
//! shortest MessagePack (which is how Tenure's clients write it; a 32-bit float comes back as one of 64 bits). A whole
//! number that fits 64 bits may be given as it is; another one is refused, where serde_json would round it. An object with one single key that begins with `$` and is not in the
//! table is refused. Both ways end at [`MAX_DEPTH`] levels.

mod read;
mod source;
mod text;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use self::{read::to_json, source::Source, text::parse, write::from_json};

/// How deep arrays and maps may lie in each other: more than anybody writes, less than what a stack bears.
pub(crate) const MAX_DEPTH: usize = 256;

/// The largest whole number that every reader of JSON reads exactly.
const MAX_SAFE: u64 = (1 << 53) - 1;

const BYTES: &str = "$bytes";
const INT: &str = "$int";
const FLOAT: &str = "$float";
const EXT: &str = "$ext";
const STRING: &str = "$string";
const MAP: &str = "$map";

/// Whether an object with this single key means something else than itself.
fn is_marked(key: &str) -> bool {
    key.starts_with('$')
}
