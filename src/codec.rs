//! Payloads: MessagePack with named fields, human-readable forms (a UUID is a string), copied byte for byte.

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};

/// A payload that cannot be written or read as the type that was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// A value cannot be written as MessagePack.
    #[error("a value of type `{ty}` cannot be written as MessagePack")]
    Encode {
        /// The Rust type.
        ty: &'static str,
        /// What serde said.
        source: rmp_serde::encode::Error,
    },
    /// Stored bytes are not a value of this type.
    #[error("these {len} bytes are not a MessagePack value of type `{ty}`")]
    Decode {
        /// The Rust type.
        ty: &'static str,
        /// How many bytes there were.
        len: usize,
        /// What serde said.
        source: rmp_serde::decode::Error,
    },
}

/// Writes a value as a payload.
///
/// # Errors
/// [`CodecError::Encode`] when its `Serialize` fails.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Bytes, CodecError> {
    let mut bytes = Vec::with_capacity(128);
    value
        .serialize(
            &mut rmp_serde::Serializer::new(&mut bytes)
                .with_struct_map()
                .with_human_readable(),
        )
        .map_err(|source| CodecError::Encode {
            ty: std::any::type_name::<T>(),
            source,
        })?;
    Ok(bytes.into())
}

/// Reads a payload.
///
/// # Errors
/// [`CodecError::Decode`] when the bytes are not a `T`, or when bytes are left over.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let error = |source| CodecError::Decode {
        ty: std::any::type_name::<T>(),
        len: bytes.len(),
        source,
    };
    let mut reader = rmp_serde::Deserializer::from_read_ref(bytes).with_human_readable();
    T::deserialize(&mut reader).map_err(error)
}

/// The payload of a join: an array header and the branches' bytes behind it; nothing is decoded.
#[must_use]
pub fn join(parts: &[Bytes]) -> Bytes {
    let mut bytes = Vec::with_capacity(5 + parts.iter().map(Bytes::len).sum::<usize>());
    match u32::try_from(parts.len()).unwrap_or(u32::MAX) {
        n @ 0..=15 => bytes.push(0x90 | n as u8),
        n @ 16..=0xffff => {
            bytes.push(0xdc);
            bytes.extend_from_slice(&(n as u16).to_be_bytes());
        }
        n => {
            bytes.push(0xdd);
            bytes.extend_from_slice(&n.to_be_bytes());
        }
    }
    for part in parts {
        bytes.extend_from_slice(part);
    }
    bytes.into()
}
