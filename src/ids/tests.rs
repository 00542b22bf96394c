use std::{fmt, num::NonZeroU16, str::FromStr};

use super::*;

fn text_round_trips<T>(values: &[T])
where
    T: FromStr<Err = IdError> + fmt::Display + PartialEq + fmt::Debug,
{
    for value in values {
        assert_eq!(&value.to_string().parse::<T>().unwrap(), value);
    }
}

#[test]
fn names_are_1_to_64_characters_of_the_allowed_ones() {
    for good in ["a", "A-Za-z0-9_.-", &"x".repeat(64)] {
        assert_eq!(QueueName::new(good).unwrap().as_str(), good);
        assert_eq!(TaskName::new(good).unwrap().as_str(), good);
    }
    for bad in [
        "",
        " ",
        "a b",
        "a:b",
        "a/b",
        "a~b",
        "ä",
        "a\0",
        &"x".repeat(65),
    ] {
        let error = WorkflowName::new(bad).unwrap_err().to_string();
        assert!(
            error.contains("1 to 64 characters of A-Z a-z 0-9 _ . -"),
            "{error}"
        );
        TaskName::new(bad).unwrap_err();
        Namespace::new(bad).unwrap_err();
    }
    WorkerId::new("x".repeat(30)).unwrap();
    WorkerId::new("x".repeat(31)).unwrap_err();
}

#[test]
fn a_bad_name_is_shown_shortened_and_without_control_characters() {
    let error = QueueName::new("\n".repeat(1000)).unwrap_err().to_string();
    assert!(error.len() < 400, "{error}");
    assert!(!error.contains('\n') && error.contains("\\n") && error.contains('…'));
}

#[test]
fn names_with_a_separator_cannot_be_made_so_no_two_keys_meet() {
    // case 69
    for separator in [':', '\0', '{', '}', ' ', '~', '/'] {
        TaskName::new(format!("a{separator}b")).unwrap_err();
        QueueName::new(format!("a{separator}b")).unwrap_err();
    }
}

#[test]
fn a_task_of_a_loop_carries_its_iteration() {
    for good in ["a#0", "a#1", "a#4294967295"] {
        TaskName::new(good).unwrap();
    }
    for bad in [
        "a#",
        "#1",
        "a#01",
        "a#-1",
        "a#+1",
        "a#1#2",
        "a#4294967296",
        "a#x",
    ] {
        TaskName::new(bad).unwrap_err();
    }
}

#[test]
fn instance_ids_leave_out_what_is_reserved_and_allow_all_else() {
    for good in ["a", "order:42", "ä 🙂 {x}", &"x".repeat(256)] {
        assert_eq!(InstanceId::new(good).unwrap().as_str(), good);
    }
    for bad in [
        "",
        "a/b",
        "a~b",
        "a\0b",
        "a\nb",
        &"x".repeat(257),
        &"ä".repeat(129),
    ] {
        InstanceId::new(bad).unwrap_err();
    }
    assert_eq!(InstanceId::placed("p", "a").unwrap().as_str(), "p~a");
    InstanceId::placed("", "a").unwrap_err();
    InstanceId::placed("p~q", "a").unwrap_err();
    InstanceId::placed("x".repeat(200), "y".repeat(56)).unwrap_err();
}

#[test]
fn ids_of_one_placement_and_children_live_together() {
    let partitions = NonZeroU16::new(1000).unwrap();
    let of = |id: &str| InstanceId::stored(id).unwrap().partition(partitions);
    assert_eq!(of("p~a"), of("p~b"));
    assert_eq!(of("p~a"), of("p"));
    assert_eq!(of("root"), of("root/child#1/grandchild"));
    assert_eq!(of("p~a"), of("p~a/child"));
    // The slot that Redis Cluster gives to this key, 12739, and what 1000 partitions make of it.
    assert_eq!(of("123456789").number(), 739);
    let one = NonZeroU16::new(1).unwrap();
    assert_eq!(InstanceId::unique().partition(one).number(), 0);
    assert_eq!(Partition::all(partitions).count(), 1000);
}

#[test]
fn the_tail_of_a_run_is_the_end_of_its_text() {
    let run: RunId = "0198c0de-7e57-7000-8000-00000000abcd".parse().unwrap();
    assert_eq!(run.tail().as_str(), "00000000abcd");
    text_round_trips(&[run]);
    text_round_trips(&[run.tail()]);
    "not-a-run".parse::<RunId>().unwrap_err();
    "00000000abc".parse::<RunTail>().unwrap_err();
    "00000000abcg".parse::<RunTail>().unwrap_err();
}

#[test]
fn worker_ids_and_nonces_differ_each_time() {
    let (a, b) = (WorkerId::unique(), WorkerId::unique());
    assert_ne!(a, b);
    assert!(a.as_str().len() <= MAX_WORKER_ID);
    assert_eq!(WorkerId::new(a.as_str()).unwrap(), a);
    let nonce = Nonce::random();
    assert_ne!(nonce, Nonce::random());
    text_round_trips(&[nonce]);
    "1234567".parse::<Nonce>().unwrap_err();
    "1234 678".parse::<Nonce>().unwrap_err();
}

#[test]
fn a_hash_is_16_hexadecimal_characters() {
    let hash = DefinitionHash::from_digest([0, 1, 0x2f, 0xff, 0xa0, 9, 0x90, 0x0a]);
    assert_eq!(hash.as_str(), "00012fffa009900a");
    text_round_trips(&[hash]);
    "00012FFFA009900A".parse::<DefinitionHash>().unwrap_err();
    "00012fffa009900".parse::<DefinitionHash>().unwrap_err();
}

fn ticket(purpose: Purpose, input: InputRef) -> Ticket {
    Ticket {
        list: "default:00012fffa009900a".parse().unwrap(),
        id: InstanceId::stored("p~order 42 {x}:y/child").unwrap(),
        task: TaskName::new("a#3").unwrap(),
        tail: "a0000000abcd".parse().unwrap(),
        purpose,
        input,
    }
}

#[test]
fn a_ticket_is_its_list_and_its_entry_and_reads_back() {
    let output = InputRef::Field {
        field: ValueField::Output(TaskName::new("a").unwrap()),
        len: 104,
    };
    let one = ticket(Purpose::Run, output);
    assert_eq!(
        one.to_string(),
        "default:00012fffa009900a\0p~order 42 {x}:y/child\0a#3\0a0000000abcdout:a 104"
    );
    assert_eq!(one.to_string(), format!("{}\0{}", one.list, one.entry()));
    let input = InputRef::Field {
        field: ValueField::Input,
        len: 0,
    };
    let overdue = ticket(Purpose::TimedOut, InputRef::Join);
    assert!(overdue.entry().ends_with("a0000000abcd!@"));
    text_round_trips(&[one, overdue, ticket(Purpose::TimedOut, input)]);
}

#[test]
fn a_broken_ticket_is_an_error() {
    for bad in [
        "",
        "default:00012fffa009900a",
        "default:00012fffa009900a\0id\0a",
        "default:00012fffa009900a\0id\0a\0short",
        "default:00012fffa009900a\0id\0a\0a0000000abcd",
        "default:00012fffa009900a\0id\0a\0a0000000abcdinput",
        "default:00012fffa009900a\0id\0a\0a0000000abcdinput x",
        "default:00012fffa009900a\0id\0a\0a0000000abcdin:a 1",
        "default:00012fffa009900a\0id\0a\0a0000000abc🙂@",
        "default\0id\0a\0a0000000abcd@",
    ] {
        bad.parse::<Ticket>().unwrap_err();
    }
}

#[test]
fn ids_are_checked_when_they_are_deserialized() {
    assert!(serde_json::from_str::<TaskName>(r#""a""#).is_ok());
    assert!(serde_json::from_str::<TaskName>(r#""a b""#).is_err());
    assert!(serde_json::from_str::<InstanceId>(r#""""#).is_err());
}
