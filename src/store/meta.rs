use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::codec::{self, CodecError};

/// What a start says about itself, for people: stored with the instance, never looked at by workers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StartMeta {
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Who or what started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
}

impl StartMeta {
    /// Reads what a [`Snapshot`](super::Snapshot) holds as `meta`.
    ///
    /// # Errors
    /// [`CodecError::Decode`] when it was written by something else.
    pub fn decode(meta: &[u8]) -> Result<Self, CodecError> {
        codec::decode(meta)
    }

    /// As [`StartMeta::decode`]; nothing when it cannot be read.
    pub(crate) fn lenient(meta: Option<&[u8]>) -> Self {
        meta.and_then(|meta| Self::decode(meta).ok())
            .unwrap_or_default()
    }

    /// As it is stored; `None` when there is nothing to say.
    pub(crate) fn encode(&self) -> Result<Option<Bytes>, CodecError> {
        if *self == Self::default() {
            return Ok(None);
        }
        codec::encode(self).map(Some)
    }
}
