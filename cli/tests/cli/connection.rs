//! How every command finds its Redis.

use std::{fs, path::Path, process::Command};

use tenure_test_support::{Certificates, RedisCluster, RedisSentinel, RedisServer};

use crate::world::{Said, World};

const PASSWORD: &str = "s3cret:of@the/test";

/// The program with nothing in its environment but this.
fn program(home: &Path, args: &[&str], environment: &[(&str, &str)]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TENURE_")) {
        command.env_remove(name);
    }
    command
        .args(args)
        .env("HOME", home)
        .env_remove("XDG_CONFIG_HOME")
        .envs(environment.iter().copied());
    let said: Said = command.output().expect("the program").into();
    let text = format!("{}{}", said.out, said.err);
    assert!(!text.contains("s3cret"), "{args:?}: {said:?}");
    said
}

fn connects(home: &Path, args: &[&str], environment: &[(&str, &str)]) {
    let args: Vec<&str> = ["workers"].iter().chain(args).copied().collect();
    let said = program(home, &args, environment);
    assert_eq!(said.code, 0, "{args:?}: {said:?}");
    assert_eq!(said.out, "no workers\n");
}

fn refused(home: &Path, args: &[&str], environment: &[(&str, &str)]) -> String {
    let args: Vec<&str> = ["workers"].iter().chain(args).copied().collect();
    let said = program(home, &args, environment);
    assert_eq!(said.code, 2, "{args:?}: {said:?}");
    said.err
}

fn protected() -> RedisServer {
    let server = RedisServer::start();
    let password = format!(">{PASSWORD}");
    let rights = ["~*", "&*", "+@all"];
    let words = ["ACL", "SETUSER", "app", "reset", "on", &password];
    let words: Vec<&str> = words.into_iter().chain(rights).collect();
    server.run::<()>(&words);
    server
}

fn written(server: &RedisServer, name: &str, text: &str) -> String {
    let path = server.dir().join(name);
    fs::write(&path, text).expect("a file");
    path.to_string_lossy().into_owned()
}

#[test]
fn host_port_user_and_a_password_file_are_enough() {
    let server = protected();
    let home = server.dir();
    let port = server.port().to_string();
    let file = written(&server, "password", &format!("{PASSWORD}\n"));
    let place = ["--port", &port, "--user", "app"];
    connects(
        home,
        &[&place[..], &["--password-file", &file]].concat(),
        &[],
    );
    connects(home, &place, &[("TENURE_REDIS_PASSWORD", PASSWORD)]);
    let url = server.url();
    let beside = [
        ("TENURE_REDIS_URL", url.as_str()),
        ("TENURE_REDIS_USER", "app"),
        ("TENURE_REDIS_PASSWORD", PASSWORD),
    ];
    connects(home, &[], &beside);
}

#[test]
fn a_password_is_shown_by_no_error_and_no_log() {
    let server = protected();
    let home = server.dir();
    let port = server.port().to_string();
    let log = ("TENURE_LOG", "trace");
    let wrong = ("TENURE_REDIS_PASSWORD", "s3cret-and-wrong");
    let args = ["workers", "--port", &port, "--user", "app"];
    let said = program(home, &args, &[wrong, log]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(
        said.err.contains("refused the user or the password"),
        "{said:?}"
    );
    let url = server.url_as("app", "s3cret-and-wrong");
    let said = program(home, &["workers"], &[("TENURE_REDIS_URL", &url), log]);
    assert_eq!(said.code, 5, "{said:?}");
    let right = ("TENURE_REDIS_PASSWORD", PASSWORD);
    assert_eq!(program(home, &args, &[right, log]).code, 0);
    let help = program(home, &["workers", "--help"], &[("TENURE_REDIS_URL", &url)]);
    assert!(help.out.contains("TENURE_REDIS_URL"), "{help:?}");
}

#[test]
fn a_socket_is_a_place() {
    let server = RedisServer::with(["--save", "", "--unixsocket", "a b.sock"]);
    let path = server.dir().join("a b.sock");
    let path = path.to_string_lossy();
    connects(server.dir(), &["--socket", &path], &[]);
    connects(server.dir(), &[], &[("TENURE_REDIS_SOCKET", &path)]);
}

#[test]
fn encrypted_connections_show_a_certificate_and_believe_the_given_authority() {
    let certificates = Certificates::make();
    let (server, port) = certificates.server();
    let home = server.dir();
    let port = port.to_string();
    let file = |name, end| certificates.file(name, end).to_string_lossy().into_owned();
    let (ca, cert, key) = (
        file("ca", "pem"),
        file("client", "pem"),
        file("client", "key"),
    );
    let place = ["--host", "127.0.0.1", "--port", &port];
    let shown = ["--tls-ca", &ca, "--tls-cert", &cert, "--tls-key", &key];
    connects(home, &[&place[..], &shown].concat(), &[]);
    let url = format!("rediss://127.0.0.1:{port}");
    connects(home, &[&["--redis", &url][..], &shown].concat(), &[]);

    let without = [&["workers"][..], &place, &["--tls-ca", &ca]].concat();
    assert_eq!(program(home, &without, &[]).code, 5, "no certificate");
    let unknown = [&["workers"][..], &place, &["--tls"], &shown[2..]].concat();
    assert_eq!(program(home, &unknown, &[]).code, 5, "an unknown authority");
    let swapped = ["--tls-ca", &key, "--tls-cert", &cert, "--tls-key", &key];
    let said = refused(home, &[&place[..], &swapped].concat(), &[]);
    assert!(said.contains("the CA certificate"), "{said}");
    let open = server.url();
    let said = refused(home, &[&["--redis", &open][..], &shown].concat(), &[]);
    assert!(said.contains("rediss://"), "{said}");
}

#[test]
fn a_cluster_is_named_by_its_nodes() {
    let cluster = RedisCluster::start();
    let nodes = cluster.url().replace("redis+cluster://", "");
    connects(cluster.nodes()[0].dir(), &["--cluster", &nodes], &[]);
}

// case 28
#[test]
fn sentinels_and_their_master_have_users_of_their_own() {
    let server = protected();
    let home = server.dir();
    let sentinel = RedisSentinel::start(
        &server,
        ("watcher", "s3cret-of-sentinel"),
        ("app", PASSWORD),
    );
    server.run::<()>(&["ACL", "SETUSER", "default", "off"]);
    let node = format!("127.0.0.1:{}", sentinel.port());
    let own = written(&server, "own", "s3cret-of-sentinel");
    let data = written(&server, "data", PASSWORD);
    let place = [
        "--sentinel",
        &node,
        "--sentinel-master",
        RedisSentinel::MASTER,
    ];
    let logins = [
        "--sentinel-user",
        "watcher",
        "--sentinel-password-file",
        &own,
        "--user",
        "app",
        "--password-file",
        &data,
    ];
    connects(home, &[&place[..], &logins].concat(), &[]);
    let swapped = [
        "--sentinel-user",
        "app",
        "--sentinel-password-file",
        &data,
        "--user",
        "app",
        "--password-file",
        &data,
    ];
    let args = [&["workers"][..], &place, &swapped].concat();
    assert_eq!(
        program(home, &args, &[]).code,
        5,
        "the Sentinel knows no such user"
    );
}

#[test]
fn what_is_not_given_comes_from_the_configuration_file() {
    let server = protected();
    let home = server.dir();
    written(&server, "password", PASSWORD);
    let text = format!(
        "port = {}\nuser = \"app\"\npassword-file = \"password\"\nnamespace = \"shop\"\n",
        server.port()
    );
    let file = written(&server, "redis.toml", &text);
    connects(home, &["--config", &file], &[]);
    connects(home, &[], &[("TENURE_CONFIG", &file)]);
    let kept: Vec<String> = server.run(&["KEYS", "{shop}:*"]);
    assert_eq!(kept, ["{shop}:meta"]);

    let folder = home.join(".config/tenure");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("config.toml"), text).expect("a file");
    fs::write(folder.join("password"), PASSWORD).expect("a file");
    connects(home, &[], &[]);
    let none = refused(home, &[], &[("TENURE_CONFIG", "")]);
    assert!(none.contains("which Redis?"), "{none}");

    let wrong = written(
        &server,
        "wrong.toml",
        "redis = \"redis://u:s3cret@a\"\nhots = 1\n",
    );
    let said = refused(home, &["--config", &wrong], &[]);
    assert!(said.contains("line 2") && said.contains("`hots`"), "{said}");
    assert!(said.contains("`host`"), "it names what is allowed: {said}");
    let torn = written(&server, "torn.toml", "redis = \"redis://u:s3cret@a\n");
    refused(home, &["--config", &torn], &[]);
    refused(home, &["--config", "/nowhere/at/all.toml"], &[]);
}

#[test]
fn an_option_comes_before_the_environment_and_that_before_the_file() {
    let server = RedisServer::start();
    let home = server.dir();
    let url = server.url();
    let nobody = "redis://127.0.0.1:1";
    let file = written(&server, "nobody.toml", &format!("redis = \"{nobody}\"\n"));
    let config = ("TENURE_CONFIG", file.as_str());
    let said = program(home, &["workers"], &[config]);
    assert_eq!(said.code, 5, "{said:?}");
    connects(home, &[], &[config, ("TENURE_REDIS_URL", &url)]);
    let port = server.port().to_string();
    let environment = [config, ("TENURE_REDIS_URL", nobody)];
    connects(home, &["--port", &port], &environment);
    let said = refused(home, &["--redis", &url, "--host", "a"], &[]);
    assert!(
        said.contains("--redis") && said.contains("--host"),
        "{said}"
    );
}

#[test]
fn the_demo_hands_its_connection_on() {
    let server = protected();
    let home = server.dir();
    let file = written(&server, "password", PASSWORD);
    let port = server.port().to_string();
    let args = [
        "demo",
        "--instances",
        "20",
        "--port",
        &port,
        "--user",
        "app",
        "--password-file",
        &file,
    ];
    server.run::<()>(&["ACL", "SETUSER", "default", "off"]);
    // What is in the environment names another Redis: the options count, for the workers too.
    let elsewhere = [("TENURE_REDIS_URL", "redis://127.0.0.1:1")];
    let said = program(home, &args, &elsewhere);
    assert_eq!(said.code, 0, "{said:?}");
    let world = World::new();
    let said = world.run(&["demo", "--keep", "--instances", "1"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn the_short_help_names_the_common_ways_alone() {
    let server = RedisServer::start();
    let short = program(server.dir(), &["workers", "-h"], &[]).out;
    let long = program(server.dir(), &["workers", "--help"], &[]).out;
    assert!(
        short.contains("--redis") && !short.contains("--tls-ca"),
        "{short}"
    );
    assert!(
        long.contains("--tls-ca") && long.contains("Connection:"),
        "{long}"
    );
}
