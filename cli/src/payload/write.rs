//! From JSON to MessagePack.

use anyhow::{Context, anyhow, bail, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use rmp::encode;
use serde_json::{Number, Value};

use super::{BYTES, EXT, FLOAT, INT, MAP, MAX_DEPTH, STRING, is_marked};

/// A payload from JSON, by the table of [this module](super).
///
/// # Errors
/// What was meant to be something that JSON cannot hold, and is not; with where it stands.
pub(crate) fn from_json(value: &Value) -> anyhow::Result<Bytes> {
    let mut writer = Writer { out: Vec::new() };
    writer.value(value, 0)?;
    Ok(writer.out.into())
}

struct Writer {
    out: Vec<u8>,
}

impl Writer {
    fn value(&mut self, value: &Value, depth: usize) -> anyhow::Result<()> {
        match value {
            Value::Null => encode::write_nil(&mut self.out)?,
            Value::Bool(value) => encode::write_bool(&mut self.out, *value)?,
            Value::Number(number) => self.number(number)?,
            Value::String(text) => encode::write_str(&mut self.out, text)?,
            Value::Array(values) => {
                let depth = deeper(depth)?;
                encode::write_array_len(&mut self.out, count(values.len())?)?;
                for (at, value) in values.iter().enumerate() {
                    let at = || format!("in [{at}]");
                    self.value(value, depth).with_context(at)?;
                }
            }
            Value::Object(object) => match object.iter().next() {
                Some((key, value)) if object.len() == 1 && is_marked(key) => {
                    let what = || format!("in `{key}`");
                    self.marked(key, value, depth).with_context(what)?;
                }
                _ => {
                    let depth = deeper(depth)?;
                    encode::write_map_len(&mut self.out, count(object.len())?)?;
                    for (key, value) in object {
                        encode::write_str(&mut self.out, key)?;
                        let at = || format!("in `{key}`");
                        self.value(value, depth).with_context(at)?;
                    }
                }
            },
        }
        Ok(())
    }

    fn number(&mut self, number: &Number) -> anyhow::Result<()> {
        if let Some(number) = number.as_u64() {
            encode::write_uint(&mut self.out, number)?;
        } else if let Some(number) = number.as_i64() {
            encode::write_sint(&mut self.out, number)?;
        } else {
            let number = number.as_f64().context("a number beyond 64 bits")?;
            encode::write_f64(&mut self.out, number)?;
        }
        Ok(())
    }

    fn marked(&mut self, key: &str, value: &Value, depth: usize) -> anyhow::Result<()> {
        match key {
            BYTES => {
                let bytes = base64(value)?;
                encode::write_bin(&mut self.out, &bytes)?;
            }
            STRING => {
                let bytes = base64(value)?;
                encode::write_str_len(&mut self.out, count(bytes.len())?)?;
                self.out.extend_from_slice(&bytes);
            }
            INT => {
                let text = value.as_str().context("it holds no text")?;
                self.integer(text)?;
            }
            FLOAT => encode::write_f64(&mut self.out, float(value)?)?,
            EXT => self.extension(value)?,
            MAP => self.map(value, depth)?,
            _ => bail!(
                "an object with one single key that begins with `$` means what JSON cannot hold: {BYTES}, {STRING}, {INT}, \
                 {FLOAT}, {EXT} or {MAP}. For a map with just this key write {{\"{MAP}\":[[\"{key}\", …]]}}"
            ),
        }
        Ok(())
    }

    fn integer(&mut self, text: &str) -> anyhow::Result<()> {
        if let Ok(number) = text.parse::<u64>() {
            encode::write_uint(&mut self.out, number)?;
        } else {
            let number = text
                .parse::<i64>()
                .map_err(|_| anyhow!("`{text}` is no whole number of 64 bits"))?;
            encode::write_sint(&mut self.out, number)?;
        }
        Ok(())
    }

    fn extension(&mut self, value: &Value) -> anyhow::Result<()> {
        let parts = value.as_array().map(Vec::as_slice);
        let Some([kind, data]) = parts else {
            bail!("an extension is [type, \"<base64>\"]");
        };
        let kind = kind.as_i64().and_then(|kind| i8::try_from(kind).ok());
        let kind = kind.context("the type of an extension is a number from -128 to 127")?;
        let data = base64(data)?;
        encode::write_ext_meta(&mut self.out, count(data.len())?, kind)?;
        self.out.extend_from_slice(&data);
        Ok(())
    }

    fn map(&mut self, value: &Value, depth: usize) -> anyhow::Result<()> {
        let depth = deeper(depth)?;
        let pairs = value
            .as_array()
            .context("a map is a list of [key, value]")?;
        encode::write_map_len(&mut self.out, count(pairs.len())?)?;
        for (at, pair) in pairs.iter().enumerate() {
            let Some([key, value]) = pair.as_array().map(Vec::as_slice) else {
                bail!("[{at}] is no [key, value]");
            };
            let at = || format!("in [{at}]");
            self.value(key, depth).with_context(at)?;
            self.value(value, depth).with_context(at)?;
        }
        Ok(())
    }
}

fn base64(value: &Value) -> anyhow::Result<Vec<u8>> {
    let text = value.as_str().context("it holds no text in base64")?;
    STANDARD
        .decode(text)
        .with_context(|| format!("`{text}` is no base64"))
}

fn float(value: &Value) -> anyhow::Result<f64> {
    match value.as_str() {
        Some("NaN") => Ok(f64::NAN),
        Some("Infinity") => Ok(f64::INFINITY),
        Some("-Infinity") => Ok(f64::NEG_INFINITY),
        _ => bail!("{value} is none of \"NaN\", \"Infinity\", \"-Infinity\""),
    }
}

fn count(len: usize) -> anyhow::Result<u32> {
    u32::try_from(len).context("MessagePack holds no more than 2^32-1 of anything")
}

fn deeper(depth: usize) -> anyhow::Result<usize> {
    ensure!(
        depth < MAX_DEPTH,
        "more than {MAX_DEPTH} arrays and objects lie in each other; that many are allowed"
    );
    Ok(depth + 1)
}
