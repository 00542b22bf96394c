//! Times and durations, as people read them.

use std::time::Duration;

use chrono::SecondsFormat;
use tenure::time::Timestamp;

/// In RFC 3339, to the millisecond, in UTC.
pub(crate) fn at(time: Timestamp) -> String {
    time.to_datetime().map_or_else(
        || format!("{time} ms"),
        |time| time.to_rfc3339_opts(SecondsFormat::Millis, true),
    )
}

/// In at most two units: `240ms`, `3.2s`, `5m 12s`, `3h 2m`, `12d 4h`.
pub(crate) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let two = |large: u64, unit: &str, small: u64, smaller: &str| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit} {small}{smaller}"),
    };
    match seconds {
        0 => format!("{}ms", duration.as_millis()),
        1..60 => {
            let tenths = duration.as_millis() / 100;
            match tenths % 10 {
                0 => format!("{seconds}s"),
                tenth => format!("{seconds}.{tenth}s"),
            }
        }
        60..3600 => two(seconds / 60, "m", seconds % 60, "s"),
        3600..86400 => two(seconds / 3600, "h", seconds % 3600 / 60, "m"),
        _ => two(seconds / 86400, "d", seconds % 86400 / 3600, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_in_two_units_at_most() {
        let told = |millis| span(Duration::from_millis(millis));
        assert_eq!(told(0), "0ms");
        assert_eq!(told(999), "999ms");
        assert_eq!(told(1_000), "1s");
        assert_eq!(told(3_250), "3.2s");
        assert_eq!(told(312_000), "5m 12s");
        assert_eq!(told(3_600_000), "1h");
        assert_eq!(told(10_920_000), "3h 2m");
        assert_eq!(told(1_051_200_000), "12d 4h");
    }

    #[test]
    fn times_are_told_in_utc_to_the_millisecond() {
        assert_eq!(
            at(Timestamp::from_millis(1_700_000_000_123)),
            "2023-11-14T22:13:20.123Z"
        );
    }
}
