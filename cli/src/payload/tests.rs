//! The table of this module, row by row, and what holds for all values.

use proptest::prelude::*;
use rmp::encode::{
    write_array_len, write_bin, write_bool, write_ext_meta, write_f64, write_map_len, write_sint,
    write_str, write_str_len, write_uint,
};
use serde_json::{Value, json};

use super::{MAX_DEPTH, from_json, parse, to_json};

/// MessagePack, through JSON as text, and back.
fn round(bytes: &[u8]) -> Vec<u8> {
    let text = to_json(bytes).expect("MessagePack").to_string();
    let value = parse(&text).expect("JSON");
    from_json(&value).expect("a payload").to_vec()
}

fn told(bytes: &[u8]) -> Value {
    let value = to_json(bytes).expect("MessagePack");
    assert_eq!(round(bytes), bytes, "{value} comes back as it was");
    value
}

fn refused(value: &Value) -> String {
    format!("{:#}", from_json(value).expect_err("is refused"))
}

#[test]
fn what_json_holds_is_itself() {
    assert_eq!(told(b"\xc0"), json!(null));
    assert_eq!(told(b"\xc3"), json!(true));
    assert_eq!(told(b"\x07"), json!(7));
    assert_eq!(told(b"\xff"), json!(-1));
    assert_eq!(told(b"\xa3a\xc3\xa4"), json!("aä"));
    assert_eq!(told(b"\x92\x01\x90"), json!([1, []]));
    let ordered = told(b"\x82\xa1b\x01\xa1a\x80");
    assert_eq!(ordered.to_string(), r#"{"b":1,"a":{}}"#);
    assert_eq!(
        told(b"\xcf\0\x1f\xff\xff\xff\xff\xff\xff"),
        json!(9_007_199_254_740_991_u64)
    );
    assert_eq!(
        told(b"\xd3\xff\xe0\0\0\0\0\0\x01"),
        json!(-9_007_199_254_740_991_i64)
    );
}

#[test]
fn what_json_cannot_hold_is_marked() {
    assert_eq!(told(b"\xc4\x02\0\xff"), json!({"$bytes": "AP8="}));
    assert_eq!(
        told(b"\xcf\0\x20\0\0\0\0\0\0"),
        json!({"$int": "9007199254740992"})
    );
    assert_eq!(
        told(b"\xd3\xff\xe0\0\0\0\0\0\0"),
        json!({"$int": "-9007199254740992"})
    );
    assert_eq!(
        told(&[&[0xcf], &[0xff; 8][..]].concat()),
        json!({"$int": u64::MAX.to_string()})
    );
    assert_eq!(
        told(b"\xd6\xff\0\0\0\x01"),
        json!({"$ext": [-1, "AAAAAQ=="]})
    );
    assert_eq!(told(b"\xa2\xff\xfe"), json!({"$string": "//4="}));
    assert_eq!(told(b"\x81\x01\x02"), json!({"$map": [[1, 2]]}));
    assert_eq!(
        told(b"\x82\xa1a\x01\xa1a\x02"),
        json!({"$map": [["a", 1], ["a", 2]]})
    );
    assert_eq!(told(b"\x81\xa4$int\xa1x"), json!({"$map": [["$int", "x"]]}));
    assert_eq!(told(b"\x82\xa2$a\x01\xa2$b\x02"), json!({"$a": 1, "$b": 2}));
}

#[test]
fn the_table_for_users_is_that_of_this_module() {
    let module = include_str!("mod.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("//! "));
    let table: Vec<&str> = module.filter(|line| line.starts_with('|')).collect();
    let page = include_str!("../../../docs/payloads.md");
    assert_eq!(
        page.lines()
            .filter(|line| line.starts_with('|'))
            .collect::<Vec<_>>(),
        table
    );
}

#[test]
fn floats_stay_floats() {
    for number in [
        1.0,
        -0.0,
        0.1,
        1e300,
        f64::MIN_POSITIVE,
        f64::MAX,
        9.007_199_254_740_993e15,
    ] {
        let bytes = [&[0xcb], &number.to_be_bytes()[..]].concat();
        assert_eq!(round(&bytes), bytes, "{number}");
    }
    assert_eq!(
        to_json(b"\xcb\x3f\xf0\0\0\0\0\0\0").unwrap().to_string(),
        "1.0"
    );
    assert_eq!(told(b"\xcb\x7f\xf8\0\0\0\0\0\0"), json!({"$float": "NaN"}));
    assert_eq!(
        told(b"\xcb\x7f\xf0\0\0\0\0\0\0"),
        json!({"$float": "Infinity"})
    );
    assert_eq!(
        told(b"\xcb\xff\xf0\0\0\0\0\0\0"),
        json!({"$float": "-Infinity"})
    );
    assert_eq!(
        round(b"\xca\x3f\xc0\0\0"),
        b"\xcb\x3f\xf8\0\0\0\0\0\0",
        "1.5 of 32 bits"
    );
}

#[test]
fn integers_are_read_as_they_are_given() {
    let bytes = from_json(&parse("18446744073709551615").unwrap()).unwrap();
    assert_eq!(
        to_json(&bytes).unwrap(),
        json!({"$int": u64::MAX.to_string()})
    );
    assert_eq!(&from_json(&json!({"$int": "-1"})).unwrap()[..], b"\xff");
    parse("[-9223372036854775808, 1e19, 18446744073709551616.0, \"99999999999999999999\"]")
        .unwrap();
    for number in ["18446744073709551616", "-9223372036854775809"] {
        for text in [
            number,
            &format!("{{\"a\\\"\": [1, {number}]}}"),
            &format!("[{number} ]"),
        ] {
            let said = parse(text).expect_err("would be rounded").to_string();
            assert!(
                said.starts_with(&format!("`{number}` is a whole number that does not fit")),
                "{said}"
            );
        }
    }
}

#[test]
fn what_is_no_message_pack_is_said_with_its_position() {
    let said = |bytes: &[u8]| to_json(bytes).expect_err("no MessagePack").to_string();
    assert_eq!(
        said(b"\x92\x01\xc1"),
        "not MessagePack: 0xc1 at byte 2 begins no value"
    );
    assert_eq!(
        said(b"\xa5abc"),
        "not MessagePack: it ends at byte 4, where 5 more should follow from byte 1"
    );
    assert_eq!(
        said(b"\x01\x02\x03"),
        "not MessagePack: the value ends at byte 1, and 2 more follow"
    );
    assert!(said(b"").contains("ends at byte 0"));
    assert!(said(b"\xdd\xff\xff\xff\xff").contains("ends at byte 5"));
    assert!(said(b"\xc6\xff\xff\xff\xff").contains("4294967295 more"));
}

#[test]
fn what_is_marked_wrongly_is_refused_with_its_place() {
    assert_eq!(
        refused(&json!({"a": [1, {"$bytes": "%"}]})),
        "in `a`: in [1]: in `$bytes`: `%` is no base64: Invalid symbol 37, offset 0."
    );
    assert!(refused(&json!({"$int": "1.5"})).contains("`1.5` is no whole number of 64 bits"));
    assert!(refused(&json!({"$int": 1})).contains("no text"));
    assert!(refused(&json!({"$float": "inf"})).contains("\"-Infinity\""));
    assert!(refused(&json!({"$ext": [128, ""]})).contains("-128 to 127"));
    assert!(refused(&json!({"$map": [[1]]})).contains("[0] is no [key, value]"));
    let unknown = refused(&json!({"$id": 1}));
    assert!(unknown.contains(r#"{"$map":[["$id", …]]}"#), "{unknown}");
    assert!(parse("{\"a\":1} x").is_err());
}

#[test]
fn depth_is_bounded_and_no_matter_for_the_stack() {
    let nested = |head: &[u8], depth: usize| [&head.repeat(depth)[..], b"\xc0"].concat();
    for head in [&b"\x91"[..], b"\x81\xa1a", b"\x81\x01"] {
        // case 34
        assert_eq!(round(&nested(head, 64)), nested(head, 64));
        assert_eq!(round(&nested(head, MAX_DEPTH)), nested(head, MAX_DEPTH));
        let deep = to_json(&nested(head, MAX_DEPTH + 1)).expect_err("too deep");
        assert!(deep.to_string().contains("too deep"), "{deep}");
    }
    let text = format!("{}{}", "[".repeat(MAX_DEPTH + 1), "]".repeat(MAX_DEPTH + 1));
    assert!(refused(&parse(&text).unwrap()).contains("256 arrays and objects"));
    assert!(parse(&"[".repeat(1_000_000)).is_err());
}

/// MessagePack in its shortest form; NaN has one form only.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let write = |f: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        f(&mut out);
        out
    };
    let leaf = prop_oneof![
        Just(b"\xc0".to_vec()),
        any::<bool>().prop_map(move |b| write(&|out| write_bool(out, b).unwrap())),
        any::<u64>().prop_map(move |n| write(&|out| {
            write_uint(out, n).unwrap();
        })),
        any::<i64>().prop_map(move |n| write(&|out| {
            write_sint(out, n).unwrap();
        })),
        any::<i16>().prop_map(move |n| write(&|out| {
            write_sint(out, n.into()).unwrap();
        })),
        any::<f64>().prop_map(move |n| write(&|out| write_f64(out, n).unwrap())),
        prop_oneof![".{0,40}", "\\$(int|map|bytes|float|ext|string|x)?"]
            .prop_map(move |text| write(&|out| write_str(out, &text).unwrap())),
        prop::collection::vec(any::<u8>(), 0..300)
            .prop_map(move |bytes| write(&|out| write_bin(out, &bytes).unwrap())),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(move |bytes| write(&|out| {
            write_str_len(out, bytes.len() as u32).unwrap();
            out.extend_from_slice(&bytes);
        })),
        (any::<i8>(), prop::collection::vec(any::<u8>(), 0..20)).prop_map(move |(kind, bytes)| {
            write(&|out| {
                write_ext_meta(out, bytes.len() as u32, kind).unwrap();
                out.extend_from_slice(&bytes);
            })
        }),
    ];
    leaf.prop_recursive(6, 60, 5, move |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(move |values| write(&|out| {
                write_array_len(out, values.len() as u32).unwrap();
                out.extend(values.concat());
            })),
            prop::collection::vec(pair, 0..5).prop_map(move |pairs| write(&|out| {
                write_map_len(out, pairs.len() as u32).unwrap();
                for (key, value) in &pairs {
                    out.extend([&key[..], value].concat());
                }
            })),
        ]
    })
}

proptest! {
    #[test]
    fn every_payload_comes_back_as_it_was(bytes in payload()) {
        prop_assert_eq!(round(&bytes), bytes);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(value) = to_json(&bytes) {
            prop_assert_eq!(to_json(&from_json(&value).unwrap()).unwrap(), value);
        }
    }
}
