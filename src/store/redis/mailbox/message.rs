//! What is published, read back.

use bytes::Bytes;

use crate::{
    ids::{InstanceId, Partition},
    store::{Hint, Status, StatusEvent},
    time::Timestamp,
};

/// A hint, if this version knows it: a line, and for the end of an instance perhaps its result behind it.
pub(super) fn hint(message: &[u8], partition: Partition) -> Option<Hint> {
    let mut parts = message.splitn(2, |byte| *byte == b'\n');
    let line = std::str::from_utf8(parts.next()?).ok()?;
    match line {
        "ready" => return Some(Hint::Ready { partition }),
        "timer" => return Some(Hint::Timer { partition }),
        _ => {}
    }
    let mut words = line.splitn(3, ' ');
    let (word, tail, id) = (words.next()?, words.next()?, words.next()?);
    let (tail, id) = (tail.parse().ok()?, InstanceId::stored(id).ok()?);
    match word {
        "cancel" => Some(Hint::Cancelled { id, tail }),
        "done" => Some(Hint::Done {
            id,
            tail,
            result: parts.next().map(Bytes::copy_from_slice),
        }),
        _ => None,
    }
}

pub(super) fn event(line: &str) -> Option<StatusEvent> {
    let mut words = line.splitn(6, '\t');
    let at = Timestamp::from_millis(words.next()?.parse().ok()?);
    let id = InstanceId::stored(words.next()?).ok()?;
    let run = words.next()?.parse().ok()?;
    let from = match words.next()? {
        "-" => None,
        word => Some(word.parse::<Status>().ok()?),
    };
    let to = words.next()?.parse().ok()?;
    Some(StatusEvent {
        id,
        run,
        from,
        to,
        at,
        error: words.next().map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_read_and_unknown_ones_passed_over() {
        let partition = Partition::default();
        assert_eq!(hint(b"ready", partition), Some(Hint::Ready { partition }));
        assert_eq!(hint(b"timer", partition), Some(Hint::Timer { partition }));
        let id = InstanceId::new("an order").expect("an id");
        let tail = "00000000abcd".parse().expect("a tail");
        assert_eq!(
            hint(b"cancel 00000000abcd an order", partition),
            Some(Hint::Cancelled {
                id: id.clone(),
                tail
            })
        );
        let done = |result: Option<&'static [u8]>| {
            let (id, result) = (id.clone(), result.map(Bytes::from_static));
            Some(Hint::Done { id, tail, result })
        };
        assert_eq!(hint(b"done 00000000abcd an order", partition), done(None));
        assert_eq!(
            hint(b"done 00000000abcd an order\n\xc4\x02\n\xff", partition),
            done(Some(b"\xc4\x02\n\xff")),
            "a result may hold any byte"
        );
        assert_eq!(hint(b"pause 1", partition), None);
        assert_eq!(hint(b"", partition), None);
    }

    #[test]
    fn an_event_keeps_its_message_whole() {
        let line = "12\to-1\t0198c0de-7e57-7000-8000-00000000abcd\trunning\tfailed\tno\tmoney";
        let event = event(line).expect("an event");
        assert_eq!(event.error.as_deref(), Some("no\tmoney"));
        assert_eq!(event.to, Status::Failed);
        assert_eq!(event.at.as_millis(), 12);
    }
}
