//! Where a payload comes from: the command line, a file, or standard input.

use std::{
    convert::Infallible,
    io::{self, Read},
    path::PathBuf,
    str::FromStr,
};

use anyhow::Context;
use bytes::Bytes;

use super::{from_json, parse};
use crate::exit::Usage;

/// Something that is given as itself, as `@file`, or as `-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// As itself.
    Text(String),
    /// `@file`.
    File(PathBuf),
    /// `-`: standard input, to its end.
    Stdin,
}

impl FromStr for Source {
    type Err = Infallible;

    fn from_str(given: &str) -> Result<Self, Infallible> {
        Ok(match given.strip_prefix('@') {
            Some(path) => Self::File(path.into()),
            None if given == "-" => Self::Stdin,
            None => Self::Text(given.to_owned()),
        })
    }
}

impl Source {
    /// A file by its name alone, or standard input.
    pub(crate) fn of_path(given: &str) -> Self {
        match given.strip_prefix('@').unwrap_or(given) {
            "-" => Self::Stdin,
            path => Self::File(path.into()),
        }
    }

    /// All that is there.
    pub(crate) fn bytes(&self) -> anyhow::Result<Vec<u8>> {
        match self {
            Self::Text(text) => Ok(text.clone().into_bytes()),
            Self::File(path) => std::fs::read(path)
                .with_context(|| format!("`{}` cannot be read", path.display()))
                .map_err(Usage::because),
            Self::Stdin => {
                let mut bytes = Vec::new();
                io::stdin()
                    .lock()
                    .read_to_end(&mut bytes)
                    .context("standard input cannot be read")?;
                Ok(bytes)
            }
        }
    }

    /// All that is there, as text.
    pub(crate) fn text(&self) -> anyhow::Result<String> {
        let text = String::from_utf8(self.bytes()?);
        text.with_context(|| format!("{self} is no text in UTF-8"))
            .map_err(Usage::because)
    }

    /// The JSON that is there, as a payload.
    pub(crate) fn payload(&self) -> anyhow::Result<Bytes> {
        let payload = parse(&self.text()?).and_then(|value| from_json(&value));
        payload
            .with_context(|| format!("{self} is no payload"))
            .map_err(Usage::because)
    }

    /// The MessagePack that is there, which is looked through but not changed.
    pub(crate) fn message_pack(&self) -> anyhow::Result<Bytes> {
        let bytes = self.bytes()?;
        super::to_json(&bytes)
            .with_context(|| format!("{self} is no payload"))
            .map_err(Usage::because)?;
        Ok(bytes.into())
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) if text.chars().count() > 60 => {
                let start: String = text.chars().take(60).collect();
                write!(f, "`{start}…`")
            }
            Self::Text(text) => write!(f, "`{text}`"),
            Self::File(path) => write!(f, "what is in `{}`", path.display()),
            Self::Stdin => f.write_str("what came on standard input"),
        }
    }
}
