//! From MessagePack to JSON.

use std::collections::HashSet;

use anyhow::{Context, bail, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use rmp::Marker;
use serde_json::{Number, Value, json};

use super::{BYTES, EXT, FLOAT, INT, MAP, MAX_DEPTH, MAX_SAFE, STRING, is_marked};

/// A payload as JSON, by the table of [this module](super).
///
/// # Errors
/// The position of the byte that is not MessagePack, or that comes after its end.
pub(crate) fn to_json(bytes: &[u8]) -> anyhow::Result<Value> {
    let mut reader = Reader { bytes, at: 0 };
    let value = reader.value(0)?;
    let (at, len) = (reader.at, bytes.len());
    ensure!(
        at == len,
        "not MessagePack: the value ends at byte {at}, and {} more follow",
        len - at
    );
    Ok(value)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> anyhow::Result<&'a [u8]> {
        let end = self.at.checked_add(len);
        let taken = end.and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.with_context(|| {
            format!(
                "not MessagePack: it ends at byte {}, where {len} more should follow from byte {}",
                self.bytes.len(),
                self.at
            )
        })?;
        self.at += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> anyhow::Result<[u8; N]> {
        Ok(self.take(N)?.try_into()?)
    }

    /// A length of 1, 2 or 4 bytes.
    fn len(&mut self, width: usize) -> anyhow::Result<usize> {
        let bytes = self.take(width)?;
        Ok(bytes
            .iter()
            .fold(0, |len, byte| len << 8 | usize::from(*byte)))
    }

    fn value(&mut self, depth: usize) -> anyhow::Result<Value> {
        let at = self.at;
        let [first] = self.array()?;
        Ok(match Marker::from_u8(first) {
            Marker::Null => Value::Null,
            Marker::False => Value::Bool(false),
            Marker::True => Value::Bool(true),
            Marker::FixPos(n) => json!(n),
            Marker::FixNeg(n) => json!(n),
            Marker::U8 => json!(u8::from_be_bytes(self.array()?)),
            Marker::U16 => json!(u16::from_be_bytes(self.array()?)),
            Marker::U32 => json!(u32::from_be_bytes(self.array()?)),
            Marker::U64 => unsigned(u64::from_be_bytes(self.array()?)),
            Marker::I8 => json!(i8::from_be_bytes(self.array()?)),
            Marker::I16 => json!(i16::from_be_bytes(self.array()?)),
            Marker::I32 => json!(i32::from_be_bytes(self.array()?)),
            Marker::I64 => signed(i64::from_be_bytes(self.array()?)),
            Marker::F32 => float(f32::from_be_bytes(self.array()?).into()),
            Marker::F64 => float(f64::from_be_bytes(self.array()?)),
            Marker::FixStr(len) => self.text(len.into())?,
            Marker::Str8 => self.sized(1, Self::text)?,
            Marker::Str16 => self.sized(2, Self::text)?,
            Marker::Str32 => self.sized(4, Self::text)?,
            Marker::Bin8 => self.sized(1, Self::binary)?,
            Marker::Bin16 => self.sized(2, Self::binary)?,
            Marker::Bin32 => self.sized(4, Self::binary)?,
            Marker::FixExt1 => self.extension(1)?,
            Marker::FixExt2 => self.extension(2)?,
            Marker::FixExt4 => self.extension(4)?,
            Marker::FixExt8 => self.extension(8)?,
            Marker::FixExt16 => self.extension(16)?,
            Marker::Ext8 => self.sized(1, Self::extension)?,
            Marker::Ext16 => self.sized(2, Self::extension)?,
            Marker::Ext32 => self.sized(4, Self::extension)?,
            Marker::FixArray(len) => self.list(len.into(), depth)?,
            Marker::Array16 => self.sized(2, |reader, len| reader.list(len, depth))?,
            Marker::Array32 => self.sized(4, |reader, len| reader.list(len, depth))?,
            Marker::FixMap(len) => self.map(len.into(), depth)?,
            Marker::Map16 => self.sized(2, |reader, len| reader.map(len, depth))?,
            Marker::Map32 => self.sized(4, |reader, len| reader.map(len, depth))?,
            Marker::Reserved => bail!("not MessagePack: 0xc1 at byte {at} begins no value"),
        })
    }

    fn sized(
        &mut self,
        width: usize,
        read: impl FnOnce(&mut Self, usize) -> anyhow::Result<Value>,
    ) -> anyhow::Result<Value> {
        let len = self.len(width)?;
        read(self, len)
    }

    fn text(&mut self, len: usize) -> anyhow::Result<Value> {
        let bytes = self.take(len)?;
        Ok(match std::str::from_utf8(bytes) {
            Ok(text) => json!(text),
            Err(_) => json!({STRING: STANDARD.encode(bytes)}),
        })
    }

    fn binary(&mut self, len: usize) -> anyhow::Result<Value> {
        Ok(json!({BYTES: STANDARD.encode(self.take(len)?)}))
    }

    fn extension(&mut self, len: usize) -> anyhow::Result<Value> {
        let kind = i8::from_be_bytes(self.array()?);
        Ok(json!({EXT: [kind, STANDARD.encode(self.take(len)?)]}))
    }

    fn list(&mut self, len: usize, depth: usize) -> anyhow::Result<Value> {
        let depth = self.deeper(depth)?;
        // A length is no promise: nothing is reserved for what may not be there.
        let mut values = Vec::new();
        for _ in 0..len {
            values.push(self.value(depth)?);
        }
        Ok(Value::Array(values))
    }

    fn map(&mut self, len: usize, depth: usize) -> anyhow::Result<Value> {
        let depth = self.deeper(depth)?;
        let mut pairs = Vec::new();
        for _ in 0..len {
            pairs.push((self.value(depth)?, self.value(depth)?));
        }
        Ok(object(pairs))
    }

    fn deeper(&self, depth: usize) -> anyhow::Result<usize> {
        ensure!(
            depth < MAX_DEPTH,
            "more than {MAX_DEPTH} arrays and maps lie in each other at byte {}: too deep to be shown as JSON",
            self.at
        );
        Ok(depth + 1)
    }
}

/// An object if one can hold these pairs, or else the list of them.
fn object(pairs: Vec<(Value, Value)>) -> Value {
    let keys: HashSet<&str> = pairs.iter().filter_map(|(key, _)| key.as_str()).collect();
    let is_marked = pairs.len() == 1 && keys.iter().any(|key| is_marked(key));
    if keys.len() < pairs.len() || is_marked {
        let pairs = pairs.into_iter().map(|(key, value)| json!([key, value]));
        return json!({ MAP: Value::Array(pairs.collect()) });
    }
    let pairs = pairs.into_iter().filter_map(|(key, value)| match key {
        Value::String(key) => Some((key, value)),
        _ => None,
    });
    Value::Object(pairs.collect())
}

fn unsigned(number: u64) -> Value {
    if number > MAX_SAFE {
        return json!({INT: number.to_string()});
    }
    json!(number)
}

fn signed(number: i64) -> Value {
    if number.unsigned_abs() > MAX_SAFE {
        return json!({INT: number.to_string()});
    }
    json!(number)
}

fn float(number: f64) -> Value {
    match Number::from_f64(number) {
        Some(number) => Value::Number(number),
        None if number.is_nan() => json!({FLOAT: "NaN"}),
        None if number > 0.0 => json!({FLOAT: "Infinity"}),
        None => json!({FLOAT: "-Infinity"}),
    }
}
