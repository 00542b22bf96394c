//! What is made anew each time: runs, nonces; and the hash of a definition.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{IdError, error::shorten};

/// A UUIDv7 that nobody else has; from a seed where a test set one for this thread.
pub(super) fn fresh_uuid() -> Uuid {
    #[cfg(feature = "testing")]
    if let Some(seeded) = crate::testing::uuid() {
        return seeded;
    }
    Uuid::now_v7()
}
/// One start of an instance id, made by the client: a UUIDv7.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunId(Uuid);

impl RunId {
    /// A new run.
    #[must_use]
    pub fn unique() -> Self {
        Self(fresh_uuid())
    }

    /// The last 12 characters: what entries carry to tell runs of one id apart.
    #[must_use]
    pub fn tail(self) -> RunTail {
        let mut tail = [0; 12];
        let mut buffer = Uuid::encode_buffer();
        tail.copy_from_slice(&self.0.hyphenated().encode_lower(&mut buffer).as_bytes()[24..]);
        RunTail(tail)
    }
}

impl From<Uuid> for RunId {
    fn from(value: Uuid) -> Self {
        Self(value)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RunId {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        Uuid::try_parse(value).map(Self).map_err(|_| IdError::Run {
            value: shorten(value),
        })
    }
}

/// The last 12 characters of a [`RunId`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunTail([u8; 12]);

impl RunTail {
    /// The tail as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for RunTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for RunTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for RunTail {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        let bytes: [u8; 12] = value.as_bytes().try_into().map_err(|_| IdError::Stored {
            kind: "run tail",
            value: shorten(value),
        })?;
        if bytes.iter().all(u8::is_ascii_hexdigit) {
            Ok(Self(bytes))
        } else {
            Err(IdError::Stored {
                kind: "run tail",
                value: shorten(value),
            })
        }
    }
}

/// What makes one claiming call different from every other: 8 characters, never repeated for one task.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Nonce([u8; 8]);

impl Nonce {
    /// A new nonce.
    #[must_use]
    pub fn random() -> Self {
        Self(std::array::from_fn(|_| fastrand::alphanumeric() as u8))
    }

    /// The nonce as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Nonce {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        match value.as_bytes().try_into() {
            Ok(bytes) if value.bytes().all(|b| b.is_ascii_alphanumeric()) => Ok(Self(bytes)),
            _ => Err(IdError::Stored {
                kind: "nonce",
                value: shorten(value),
            }),
        }
    }
}

/// The hash of a workflow's definition: 16 hexadecimal characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DefinitionHash([u8; 16]);

impl DefinitionHash {
    /// The hash as text, from the first 8 bytes of a digest.
    #[must_use]
    pub fn from_digest(digest: [u8; 8]) -> Self {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        Self(std::array::from_fn(|i| {
            let byte = digest[i / 2];
            HEX[usize::from(if i % 2 == 0 { byte >> 4 } else { byte & 15 })]
        }))
    }

    /// The hash as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for DefinitionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for DefinitionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for DefinitionHash {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        match value.as_bytes().try_into() {
            Ok(bytes)
                if value
                    .bytes()
                    .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) =>
            {
                Ok(Self(bytes))
            }
            _ => Err(IdError::Stored {
                kind: "definition hash",
                value: shorten(value),
            }),
        }
    }
}
