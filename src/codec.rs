//! Payloads: MessagePack with named fields, human-readable forms (a UUID is a string), copied byte for byte.
//!
//! As in JSON, nothing and something that is nothing look alike: `Some(None)` and `Some(())` read back as `None`.

use bytes::Bytes;
use serde::{
    Serialize,
    de::{DeserializeOwned, Error as _},
};

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

/// The payload of nothing.
pub(crate) const NIL: Bytes = Bytes::from_static(b"\xc0");

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
    let mut reader = rmp_serde::Deserializer::new(bytes).with_human_readable();
    let value = T::deserialize(&mut reader).map_err(error)?;
    match reader.get_ref().len() {
        0 => Ok(value),
        left => Err(error(rmp_serde::decode::Error::custom(format!(
            "the value is over {left} bytes before the end"
        )))),
    }
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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde::Deserialize;
    use uuid::Uuid;

    use super::*;

    fn round<T: Serialize + DeserializeOwned>(value: &T) -> T {
        decode(&encode(value).unwrap()).unwrap()
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    enum Shape {
        Unit,
        New(u64),
        Tuple(i8, String),
        Named { id: Uuid, none: Option<u8> },
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Nest {
        inner: Option<Box<Nest>>,
    }

    #[test]
    fn values_of_every_shape_come_back_as_they_were() {
        let id = Uuid::from_u128(7);
        let shapes = vec![
            Shape::Unit,
            Shape::New(u64::MAX),
            Shape::Tuple(-1, "ä".into()),
            Shape::Named { id, none: None },
        ];
        assert_eq!(round(&shapes), shapes);
        round(&());
        let maps = HashMap::from([(3_u8, HashMap::<String, ()>::new())]);
        assert_eq!(round(&maps), maps);
    }

    #[test]
    fn bytes_of_all_values_and_deep_nesting_come_back_as_they_were() {
        // case 34
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(round(&all), all);
        let buffer = serde_bytes::ByteBuf::from(all);
        assert_eq!(round(&buffer), buffer);
        let deep = (0..64).fold(Nest { inner: None }, |inner, _| Nest {
            inner: Some(Box::new(inner)),
        });
        assert_eq!(round(&deep), deep);
    }

    #[test]
    fn structs_are_maps_of_names_and_ids_are_text() {
        let value = Shape::Named {
            id: Uuid::nil(),
            none: None,
        };
        let seen: serde_json::Value = decode(&encode(&value).unwrap()).unwrap();
        assert_eq!(
            seen,
            serde_json::json!({"Named": {"id": Uuid::nil().to_string(), "none": null}})
        );
    }

    #[test]
    fn a_value_of_another_type_says_which_type_was_expected() {
        let error = decode::<u32>(&encode("text").unwrap()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "these 5 bytes are not a MessagePack value of type `u32`"
        );
        decode::<u32>(b"").unwrap_err();
    }

    #[test]
    fn bytes_behind_a_value_are_an_error() {
        assert_eq!(decode::<u8>(&[7]).unwrap(), 7);
        let CodecError::Decode { source, .. } = decode::<u8>(&[7, 7, 7]).unwrap_err() else {
            panic!("not a decoding error");
        };
        assert_eq!(
            source.to_string(),
            "the value is over 2 bytes before the end"
        );
    }

    #[test]
    fn a_join_reads_as_a_tuple_or_a_vec_of_its_parts() {
        let parts = [encode(&1_u8).unwrap(), encode("b").unwrap()];
        let value: (u8, String) = decode(&join(&parts)).unwrap();
        assert_eq!(value, (1, "b".to_owned()));
        for n in [0, 1, 15, 16, 256, 70_000_u32] {
            let parts: Vec<_> = (0..n).map(|i| encode(&i).unwrap()).collect();
            let values: Vec<u32> = decode(&join(&parts)).unwrap();
            assert!(values.into_iter().eq(0..n), "{n} parts");
        }
    }

    #[test]
    fn a_join_of_another_number_of_parts_is_not_read() {
        let parts = [encode(&1_u8).unwrap(), encode(&2_u8).unwrap()];
        decode::<(u8,)>(&join(&parts)).unwrap_err();
        decode::<(u8, u8, u8)>(&join(&parts)).unwrap_err();
    }
}
