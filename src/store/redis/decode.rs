//! Replies of scripts, taken apart: anything unexpected is [`StoreError::Protocol`], never a guess.

use std::{fmt, str::FromStr, vec};

use bytes::Bytes;
use redis::Value;

use crate::{error::StoreError, time::Timestamp};

/// The items of an array reply, read one after another.
pub(super) struct Items {
    call: &'static str,
    items: vec::IntoIter<Value>,
}

impl Items {
    pub(super) fn of(call: &'static str, value: Value) -> Result<Self, StoreError> {
        match value {
            Value::Array(items) => Ok(Self {
                call,
                items: items.into_iter(),
            }),
            other => Err(odd(call, "an array", &other)),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.len() == 0
    }

    pub(super) fn value(&mut self) -> Result<Value, StoreError> {
        self.items.next().ok_or(StoreError::Protocol {
            call: self.call,
            reason: "the answer is too short".to_owned(),
        })
    }

    pub(super) fn text(&mut self) -> Result<String, StoreError> {
        let call = self.call;
        text(call, self.value()?)
    }

    pub(super) fn parse<T>(&mut self) -> Result<T, StoreError>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        let text = self.text()?;
        parse(self.call, &text)
    }

    /// `None` for an empty text.
    pub(super) fn optional<T>(&mut self) -> Result<Option<T>, StoreError>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        let text = self.text()?;
        if text.is_empty() {
            return Ok(None);
        }
        parse(self.call, &text).map(Some)
    }

    pub(super) fn time(&mut self) -> Result<Timestamp, StoreError> {
        self.parse().map(Timestamp::from_millis)
    }

    pub(super) fn bytes(&mut self) -> Result<Bytes, StoreError> {
        match self.value()? {
            Value::BulkString(bytes) => Ok(bytes.into()),
            other => Err(odd(self.call, "bytes", &other)),
        }
    }

    pub(super) fn items(&mut self) -> Result<Self, StoreError> {
        let call = self.call;
        Self::of(call, self.value()?)
    }

    pub(super) fn unknown_tag(&self, tag: &str) -> StoreError {
        unknown_tag(self.call, tag)
    }
}

/// A tag that stands alone, or an array that begins with one.
pub(super) fn tagged(call: &'static str, value: Value) -> Result<(String, Items), StoreError> {
    match value {
        Value::Array(_) => {
            let mut items = Items::of(call, value)?;
            Ok((items.text()?, items))
        }
        other => Ok((
            text(call, other)?,
            Items {
                call,
                items: Vec::new().into_iter(),
            },
        )),
    }
}

pub(super) fn text(call: &'static str, value: Value) -> Result<String, StoreError> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).map_err(|e| StoreError::Protocol {
            call,
            reason: e.to_string(),
        }),
        Value::SimpleString(text) => Ok(text),
        Value::Int(number) => Ok(number.to_string()),
        other => Err(odd(call, "text", &other)),
    }
}

pub(super) fn parse<T>(call: &'static str, text: &str) -> Result<T, StoreError>
where
    T: FromStr,
    T::Err: fmt::Display,
{
    text.parse().map_err(|e: T::Err| protocol(call, &e))
}

pub(super) fn protocol(call: &'static str, reason: &impl fmt::Display) -> StoreError {
    StoreError::Protocol {
        call,
        reason: reason.to_string(),
    }
}

pub(super) fn unknown_tag(call: &'static str, tag: &str) -> StoreError {
    StoreError::Protocol {
        call,
        reason: format!("unknown answer `{}`", crate::ids::shorten(tag)),
    }
}

fn odd(call: &'static str, expected: &str, value: &Value) -> StoreError {
    let kind = match value {
        Value::Nil => "nothing",
        Value::Int(_) => "a number",
        Value::BulkString(_) | Value::SimpleString(_) => "text",
        Value::Array(_) => "an array",
        _ => "something else",
    };
    StoreError::Protocol {
        call,
        reason: format!("{expected} was expected, {kind} came"),
    }
}
