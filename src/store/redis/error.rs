//! What the server and the connection say, as [`StoreError`].

use std::time::Duration;

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::error::StoreError;

/// What a failed call means for the connection and for the caller.
#[derive(Debug)]
pub(super) enum Failure {
    /// The script is not loaded: nothing ran.
    NoScript,
    /// Nothing was written; the same call can be repeated in a moment. `reconnect`: by another connection.
    Moment { reason: String, reconnect: bool },
    /// The connection is of no use any more; the call may have been carried out.
    Broken(RedisError),
    /// No answer in time; the call may have been carried out.
    Silent,
    /// The server refused, and would again.
    Refused(RedisError),
}

/// Words of the server that go by: nothing was written, and a little later the same call can succeed. The second part
/// says whether another connection is needed (the server has become a replica, or is going away).
const MOMENTS: [(&str, bool); 12] = [
    ("READONLY", true),
    ("LOADING", true),
    ("MASTERDOWN", true),
    ("TRYAGAIN", false),
    ("non local key", false),
    ("CLUSTERDOWN", false),
    ("MOVED ", false),
    ("ASK ", false),
    ("BUSY ", false),
    ("MISCONF", false),
    ("NOREPLICAS", false),
    ("max number of clients", true),
];

impl Failure {
    pub(super) fn of(error: RedisError) -> Self {
        match error.kind() {
            ErrorKind::Server(ServerErrorKind::NoScript) => return Self::NoScript,
            ErrorKind::Io if error.is_timeout() => return Self::Silent,
            ErrorKind::Io | ErrorKind::Parse | ErrorKind::ClusterConnectionNotFound => {
                return Self::Broken(error);
            }
            ErrorKind::MasterNameNotFoundBySentinel => {
                return Self::Moment {
                    reason: "no sentinel knows a master".to_owned(),
                    reconnect: true,
                };
            }
            _ => {}
        }
        let text = error.to_string();
        // A script reports the error of a command inside its own message.
        match MOMENTS.iter().find(|(word, _)| {
            error.code().is_some_and(|code| code == word.trim_end()) || text.contains(word)
        }) {
            Some((word, reconnect)) => Self::Moment {
                reason: word.trim_end().to_owned(),
                reconnect: *reconnect,
            },
            None => Self::Refused(error),
        }
    }

    /// Whether a new connection has to be made before the next call.
    pub(super) fn spoils_connection(&self) -> bool {
        matches!(
            self,
            Self::Broken(_)
                | Self::Silent
                | Self::Moment {
                    reconnect: true,
                    ..
                }
        )
    }

    /// The same, for one more who has to hear it.
    pub(super) fn again(&self) -> Self {
        match self {
            Self::NoScript => Self::NoScript,
            Self::Silent => Self::Silent,
            Self::Moment { reason, reconnect } => Self::Moment {
                reason: reason.clone(),
                reconnect: *reconnect,
            },
            Self::Broken(error) => Self::Broken(error.clone()),
            Self::Refused(error) => Self::Refused(error.clone()),
        }
    }

    pub(super) fn into_error(self, place: &Place<'_>) -> StoreError {
        match self {
            Self::Moment { reason, .. } => StoreError::Moment { reason },
            Self::Silent => StoreError::Timeout {
                timeout: place.timeout,
            },
            Self::Broken(source) => StoreError::Unavailable {
                server: place.server.to_owned(),
                source: Box::new(source),
            },
            Self::NoScript => StoreError::Moment {
                reason: "NOSCRIPT".to_owned(),
            },
            Self::Refused(error) => refused(error, place),
        }
    }
}

/// Where a call failed, for the message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) call: &'static str,
    pub(super) server: &'a str,
    pub(super) namespace: &'a str,
    pub(super) timeout: Duration,
}

fn refused(error: RedisError, place: &Place<'_>) -> StoreError {
    let text = error.to_string();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if error.kind() == ErrorKind::AuthenticationFailed || says(&["WRONGPASS", "NOAUTH"]) {
        StoreError::Login
    } else if error.code() == Some("OOM") || says(&["OOM command not allowed"]) {
        StoreError::OutOfMemory
    } else if error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm)
        || says(&[
            "NOPERM",
            "ACL failure",
            "no permissions",
            "executing the script can't",
        ])
    {
        StoreError::Right {
            missing: missing_right(&text),
            namespace: place.namespace.to_owned(),
        }
    } else {
        StoreError::Server {
            call: place.call,
            source: Box::new(error),
        }
    }
}

/// The part of the server's sentence that names the right, to stand behind "may not".
fn missing_right(text: &str) -> String {
    if text.contains("channel") {
        return "use the channels of the namespace (publish and subscribe)".to_owned();
    }
    let quoted = text.split('`').nth(1).or_else(|| {
        let (_, rest) = text.split_once(" '")?;
        rest.split('\'').next()
    });
    match quoted {
        Some(command) => format!("run `{command}`"),
        None if text.contains("key") => "touch the keys of the namespace".to_owned(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: ServerErrorKind, text: &str) -> Failure {
        Failure::of(RedisError::from((
            ErrorKind::Server(code),
            "",
            text.to_owned(),
        )))
    }

    #[test]
    fn what_the_server_refuses_only_for_now_is_tried_again() {
        for text in [
            "NOREPLICAS Not enough good replicas to write.",
            "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk",
            "max number of clients reached",
            "Script attempted to access a non local key in a cluster node",
        ] {
            let failure = said(ServerErrorKind::ResponseError, text);
            assert!(matches!(failure, Failure::Moment { .. }), "{failure:?}");
        }
        let failure = said(ServerErrorKind::ResponseError, "wrong number of arguments");
        assert!(matches!(failure, Failure::Refused(_)), "{failure:?}");
    }
}
