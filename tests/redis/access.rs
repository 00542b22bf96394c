//! Who may connect, and to what.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
};

use tenure::{
    ids::{MailboxId, Namespace},
    store::{Store, StoreError, redis::RedisStore},
};
use tenure_test_support::RedisServer;

use crate::making::{claim, done, item, settle, start, store, tick};

const PASSWORD: &str = "s3cret-of-the-test";

/// A user with what README.md asks for, and nothing more.
const RIGHTS: [&str; 7] = [
    "resetchannels",
    "~{tenure:*",
    "~{tenure}:*",
    "&{tenure:*",
    "+@all",
    "-@admin",
    "-@dangerous",
];

fn user(server: &RedisServer, more: &[&str]) -> String {
    let password = format!(">{PASSWORD}");
    let mut words = vec!["ACL", "SETUSER", "app", "reset", "on", &password];
    words.extend(RIGHTS);
    words.extend(more);
    server.run::<()>(&words);
    server.url_as("app", PASSWORD)
}

async fn refused(url: &str) -> StoreError {
    RedisStore::connect(url)
        .await
        .expect_err("it must be refused")
}

// case 29
#[tokio::test]
async fn a_user_without_info_config_client_keys_and_script_flush_works() {
    let server = RedisServer::start();
    let lacking = ["-info", "-config", "-client", "-keys", "-script", "-hello"];
    let url = user(&server, &lacking);
    let store = RedisStore::connect(&url).await.expect("a store");
    start(&store, item("order-1")).await;
    let claims = claim(&store, "w", 1).await.claims;
    settle(&store, "w", vec![done(&claims[0])]).await;
    tick(&store).await;
    let mailbox = store.mailbox(MailboxId::unique()).await;
    assert!(mailbox.is_ok());
}

// case 62
#[tokio::test]
async fn a_user_without_rights_on_channels_is_refused_at_connect_with_the_missing_right() {
    let server = RedisServer::start();
    let url = user(&server, &["resetchannels"]);
    let error = refused(&url).await;
    assert!(matches!(error, StoreError::Right { .. }), "{error:?}");
    assert!(error.to_string().contains("channels"), "{error}");
    let kept: Vec<String> = server.run(&["KEYS", "*instance*"]);
    assert!(kept.is_empty(), "nothing is left behind: {kept:?}");
}

// case 62
#[tokio::test]
async fn every_command_that_is_missing_is_named_at_connect() {
    let server = RedisServer::start();
    for command in [
        "zpopmax",
        "evalsha",
        "publish",
        "subscribe",
        "hset",
        "ltrim",
        "smembers",
        "hlen",
        "zcard",
        "hstrlen",
        "hincrby",
        "hsetnx",
        "hgetall",
        "lindex",
        "scard",
        "sscan",
        "zcount",
        "zscan",
    ] {
        let without = format!("-{command}");
        let url = user(&server, &[&without]);
        let error = refused(&url).await;
        assert!(
            matches!(error, StoreError::Right { .. }),
            "{command}: {error:?}"
        );
        assert!(error.to_string().contains(command), "{command}: {error}");
    }
}

// case 62
#[tokio::test]
async fn a_kind_of_key_that_is_missing_is_noticed_at_connect() {
    let server = RedisServer::start();
    let kinds = [
        "woken",
        "meta",
        "seq",
        "running",
        "delayed",
        "keeper",
        "aside",
        "lists",
        "last:*",
        "worker:*",
        "instance:*",
        "claim:*",
        "errors:*",
        "parked:*",
        "ready:*",
        "idle:*",
        "done:*",
    ];
    for lacking in kinds {
        let mut keys = vec!["resetkeys".to_owned(), "~{tenure}:*".to_owned()];
        keys.extend(
            kinds
                .iter()
                .filter(|kind| **kind != lacking)
                .map(|kind| format!("~{{tenure:0}}:{kind}")),
        );
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let error = refused(&user(&server, &keys)).await;
        assert!(
            matches!(error, StoreError::Right { .. }),
            "{lacking}: {error:?}"
        );
        assert!(error.to_string().contains("keys"), "{lacking}: {error}");
    }
}

#[tokio::test]
async fn a_wrong_password_is_a_typed_error_and_printed_nowhere() {
    let server = RedisServer::start();
    user(&server, &[]);
    let wrong = "wr0ng-of-the-test";
    let url = server.url_as("app", wrong);
    let builder = RedisStore::builder(&url);
    let error = refused(&url).await;
    assert!(matches!(error, StoreError::Login), "{error:?}");
    let said = format!("{builder:?} {error} {error:?}");
    assert!(!said.contains(wrong), "{said}");
    let store = RedisStore::connect(server.url_as("app", PASSWORD)).await;
    assert!(!format!("{store:?}").contains(PASSWORD));
    let nobody = server.url_as("nobody", wrong);
    assert!(matches!(refused(&nobody).await, StoreError::Login));
}

#[tokio::test]
async fn a_password_that_is_asked_for_and_not_given_is_a_typed_error() {
    let server = RedisServer::with(["--requirepass", PASSWORD]);
    let error = refused(&server.url()).await;
    assert!(matches!(error, StoreError::Login), "{error:?}");
}

/// Answers as a server of another version would.
fn pretend(version: &'static str) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut writer = stream.try_clone().expect("a stream");
                let mut reader = BufReader::new(stream);
                while let Some(command) = read_command(&mut reader) {
                    let answer = match command.as_str() {
                        "HELLO" => format!(
                            "*4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n${}\r\n{version}\r\n",
                            version.len()
                        ),
                        _ => "+OK\r\n".to_owned(),
                    };
                    if writer.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

/// The name of the next command; `None` at the end.
fn read_command(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let count: usize = line.trim().strip_prefix('*')?.parse().ok()?;
    let mut name = None;
    for _ in 0..count {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let length: usize = line.trim().strip_prefix('$')?.parse().ok()?;
        let mut word = vec![0; length + 2];
        reader.read_exact(&mut word).ok()?;
        name.get_or_insert(String::from_utf8_lossy(&word[..length]).into_owned());
    }
    name
}

#[tokio::test]
async fn a_server_that_is_too_old_is_refused_with_both_versions() {
    let port = pretend("6.0.16");
    let error = refused(&format!("redis://127.0.0.1:{port}")).await;
    assert!(matches!(error, StoreError::Unsuitable { .. }), "{error:?}");
    let said = error.to_string();
    assert!(said.contains("6.0.16") && said.contains("6.2"), "{said}");
}

#[tokio::test]
async fn a_server_that_is_no_redis_is_a_typed_error() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            if stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                .is_err()
            {
                return;
            }
        }
    });
    let error = refused(&format!("redis://127.0.0.1:{port}")).await;
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
}

#[tokio::test]
async fn nobody_who_listens_is_a_typed_error() {
    let mut server = RedisServer::start();
    server.stop();
    let error = refused(&server.url()).await;
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains(&server.port().to_string()));
}

#[tokio::test]
async fn keys_of_something_else_in_the_namespace_are_noticed_at_connect() {
    let server = RedisServer::start();
    for (key, words) in [
        ("{tenure}:meta", ["SET", "{tenure}:meta", "1"].as_slice()),
        ("{tenure:0}:meta", &["SET", "{tenure:0}:meta", "1"]),
        ("{tenure:0}:woken", &["SET", "{tenure:0}:woken", "1"]),
        ("{tenure:0}:seq", &["HSET", "{tenure:0}:seq", "a", "1"]),
        ("{tenure:0}:running", &["SET", "{tenure:0}:running", "1"]),
        ("{tenure:0}:aside", &["SET", "{tenure:0}:aside", "1"]),
    ] {
        server.run::<redis::Value>(words);
        let error = refused(&server.url()).await;
        assert!(
            matches!(error, StoreError::Unsuitable { .. }),
            "{key}: {error:?}"
        );
        server.run::<()>(&["DEL", key]);
    }
}

#[tokio::test]
async fn another_number_of_partitions_is_refused_with_both_numbers() {
    let server = RedisServer::start();
    let builder = RedisStore::builder(server.url());
    let first = builder
        .clone()
        .partitions(4)
        .connect()
        .await
        .expect("a store");
    assert_eq!(first.partitions().get(), 4);
    let error = builder.clone().partitions(3).connect().await;
    assert!(
        matches!(
            error,
            Err(StoreError::Partitions {
                stored: 4,
                asked: 3,
                ..
            })
        ),
        "{error:?}"
    );
    let follows = builder.clone().connect().await.expect("a store");
    assert_eq!(
        follows.partitions().get(),
        4,
        "who does not say takes what is there"
    );
    let other = Namespace::new("other").expect("a name");
    let other = builder.namespace(other).partitions(3).connect().await;
    assert!(other.is_ok(), "{other:?}");
}

#[tokio::test]
async fn connecting_leaves_nothing_behind_but_the_number_of_partitions() {
    let server = RedisServer::start();
    let _store = store(&server).await;
    let mut keys: Vec<String> = server.run(&["KEYS", "*"]);
    keys.sort();
    assert_eq!(keys, ["{tenure:0}:meta", "{tenure:0}:seq", "{tenure}:meta"]);
}

#[tokio::test]
async fn two_namespaces_on_one_server_do_not_meet() {
    let server = RedisServer::start();
    let other = RedisStore::builder(server.url())
        .namespace(Namespace::new("other").expect("a name"))
        .connect()
        .await
        .expect("a store");
    let store = store(&server).await;
    start(&store, item("order-1")).await;
    start(&other, item("order-1")).await;
    assert_eq!(claim(&store, "w", 10).await.claims.len(), 1);
    assert_eq!(claim(&other, "w", 10).await.claims.len(), 1);
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn an_encrypted_address_of_a_plain_server_is_a_typed_error_and_no_panic() {
    let server = RedisServer::start();
    let error = refused(&server.url().replace("redis://", "rediss://")).await;
    // The server waits for the end of what it takes for a command.
    assert!(error.is_ambiguous(), "{error:?}");
}
