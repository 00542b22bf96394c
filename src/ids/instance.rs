//! Instances, and where they live.

use std::{fmt, num::NonZeroU16, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{IdError, MAX_INSTANCE_ID, error::shorten, run::fresh_uuid, text::text};

/// The user-chosen name of one execution of a workflow: 1 to 256 bytes of UTF-8 without control characters, `/` and `~`.
///
/// [`InstanceId::placed`] makes an id that lives in the partition of its placement; children of an instance are made by
/// the engine and carry a `/`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InstanceId(Arc<str>);

impl InstanceId {
    /// Checks and wraps an id that a user chose.
    ///
    /// # Errors
    /// [`IdError::Instance`] says what is allowed.
    pub fn new(value: impl AsRef<str>) -> Result<Self, IdError> {
        let value = value.as_ref();
        if value.contains(['/', '~']) {
            return Err(IdError::Instance {
                value: shorten(value),
            });
        }
        Self::stored(value)
    }

    /// `<placement>~<id>`: all ids of one placement live in one partition.
    ///
    /// # Errors
    /// [`IdError::Instance`] says what is allowed.
    pub fn placed(placement: impl AsRef<str>, id: impl AsRef<str>) -> Result<Self, IdError> {
        let (placement, id) = (Self::new(placement)?, Self::new(id)?);
        Self::stored(&format!("{placement}~{id}"))
    }

    /// A fresh id for an instance whose name does not matter: a UUIDv7.
    #[must_use]
    pub fn unique() -> Self {
        Self(fresh_uuid().to_string().into())
    }

    /// An id as it stands in the store: placement and children are allowed.
    pub(crate) fn stored(value: &str) -> Result<Self, IdError> {
        if (1..=MAX_INSTANCE_ID).contains(&value.len()) && !value.chars().any(char::is_control) {
            Ok(Self(value.into()))
        } else {
            Err(IdError::Instance {
                value: shorten(value),
            })
        }
    }

    /// The partition that this instance lives in: `CRC16(placement or root) mod 16384 mod partitions`.
    #[must_use]
    pub fn partition(&self, partitions: NonZeroU16) -> Partition {
        let root = self.0.split('/').next().unwrap_or(&self.0);
        let key = root
            .split_once('~')
            .map_or(root, |(placement, _)| placement);
        let slot = crc16::State::<crc16::XMODEM>::calculate(key.as_bytes()) % 16384;
        Partition(slot % partitions.get())
    }
}

text!(InstanceId, stored);

impl AsRef<str> for InstanceId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// A share of a namespace that lives in one hash slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Partition(u16);

impl Partition {
    /// All partitions of an installation with `count` of them.
    pub fn all(count: NonZeroU16) -> impl Iterator<Item = Self> {
        (0..count.get()).map(Self)
    }

    /// A partition as it was written down; whether there is one, the store says.
    pub(crate) fn from_number(number: u16) -> Self {
        Self(number)
    }

    /// The number in the hash tag.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
