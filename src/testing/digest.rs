use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    codec::{self, CodecError},
    ids::IdError,
};

/// A fingerprint of a payload as it is stored: FNV-1a of its bytes, in 16 hexadecimal characters. It tells values of a
/// test apart; it is no protection against values that somebody chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Digest(u64);

impl Digest {
    /// Of bytes as they are stored.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Self(bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
    }

    /// Of a value as it would be stored.
    ///
    /// # Errors
    /// When the value cannot be written.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, CodecError> {
        Ok(Self::of_bytes(&codec::encode(value)?))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for Digest {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        u64::from_str_radix(text, 16)
            .map(Self)
            .map_err(|_| IdError::Stored {
                kind: "digest",
                value: crate::ids::shorten(text),
            })
    }
}
