//! Each script keeps its contract: the header says what it takes and answers, the wrapper beside it knows every answer.

use std::{collections::BTreeSet, fs, path::Path};

/// The commands that the scripts may use: what README.md asks a user's rights to include.
const COMMANDS: &[&str] = &[
    "DEL",
    "EXISTS",
    "GET",
    "HDEL",
    "HEXISTS",
    "HGET",
    "HKEYS",
    "HMGET",
    "HSET",
    "HSTRLEN",
    "INCR",
    "LLEN",
    "LPOS",
    "LPUSH",
    "LRANGE",
    "LREM",
    "LTRIM",
    "PEXPIRE",
    "PTTL",
    "PUBLISH",
    "RPUSH",
    "SADD",
    "SET",
    "SPUBLISH",
    "SREM",
    "SISMEMBER",
    "TYPE",
    "TIME",
    "UNLINK",
    "ZADD",
    "ZPOPMAX",
    "ZRANGE",
    "ZRANGEBYSCORE",
    "ZREM",
    "ZSCORE",
    "HGETALL",
    "HINCRBY",
    "HLEN",
    "HSETNX",
    "LINDEX",
    "SCARD",
    "SMEMBERS",
    "SSCAN",
    "ZCARD",
    "ZCOUNT",
    "ZSCAN",
    "PX",
    "LIMIT",
    "MAXLEN",
    "RANK",
    "WITHSCORES",
    "WRONGTYPE",
    "SCAN",
    "MATCH",
    "COUNT",
    "NOPERM",
];
const PARTS: [&str; 6] = ["KEYS", "DERIVED", "ARGV", "RETURNS", "COST", "CALLED"];

struct Script {
    name: String,
    header: String,
    code: String,
    wrapper: String,
}

fn read(path: impl AsRef<Path>) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn names() -> Vec<String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua");
    let mut names: Vec<String> = fs::read_dir(dir)
        .expect("lua/")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a name")
        })
        .filter_map(|name| name.strip_suffix(".lua").map(str::to_owned))
        .filter(|name| name != "prelude" && !name.contains('_'))
        .collect();
    names.sort();
    names
}

/// The parts of a script that stand in files of their own, `<script>_<part>.lua`.
fn parts(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua");
    let mut files: Vec<_> = fs::read_dir(dir)
        .expect("lua/")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a name")
        })
        .filter(|file| file.starts_with(&format!("{name}_")))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|file| read(format!("lua/{file}")))
        .collect()
}

fn scripts() -> Vec<Script> {
    let script = |name: String| {
        let text = read(format!("lua/{name}.lua"));
        let (header, code): (Vec<&str>, Vec<&str>) = {
            let lines: Vec<&str> = text.lines().collect();
            let end = lines
                .iter()
                .position(|l| !l.starts_with("--"))
                .unwrap_or(lines.len());
            (lines[..end].to_vec(), lines[end..].to_vec())
        };
        Script {
            header: header.join("\n"),
            code: parts(&name) + &code.join("\n"),
            wrapper: read(format!("src/store/redis/scripts/{name}.rs")),
            name,
        }
    };
    names().into_iter().map(script).collect()
}

/// The text of one part of a header.
fn part<'a>(script: &'a Script, name: &str) -> &'a str {
    let from = script
        .header
        .find(&format!("-- {name}"))
        .unwrap_or_else(|| panic!("{}: the header has no {name}", script.name));
    let rest = &script.header[from..];
    let end = PARTS
        .iter()
        .filter_map(|part| rest[3..].find(&format!("-- {part}")))
        .min()
        .map_or(rest.len(), |end| end + 3);
    &rest[..end]
}

/// What stands between quotes.
fn literals(text: &str, quote: char) -> BTreeSet<String> {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("--") && !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split(quote).skip(1).step_by(2))
        .map(str::to_owned)
        .collect()
}

fn is_tag(word: &str) -> bool {
    word.len() > 1 && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

#[test]
fn every_script_has_a_header_with_all_its_parts_in_order() {
    let scripts = scripts();
    assert!(
        scripts.len() >= 9,
        "start, claim, extend, settle, release, tick, control, watch, publish"
    );
    for script in &scripts {
        let first = format!("-- {}: ", script.name);
        assert!(
            script.header.starts_with(&first),
            "{}: begins with its name and purpose",
            script.name
        );
        let places: Vec<_> = PARTS
            .iter()
            .map(|part| script.header.find(&format!("-- {part}")))
            .collect();
        assert!(
            places.iter().all(Option::is_some),
            "{}: {places:?}",
            script.name
        );
        assert!(places.is_sorted(), "{}: {places:?}", script.name);
    }
}

#[test]
fn every_fixed_key_and_argument_is_in_the_header() {
    for script in scripts() {
        for (table, name) in [("KEYS[", "KEYS"), ("ARGV[", "ARGV")] {
            let numbers = script.code.split(table).skip(1).filter_map(|rest| {
                let number = rest.split(']').next()?;
                number.parse::<u32>().ok()
            });
            let said = part(&script, name);
            for number in numbers {
                let listed = said
                    .split(|c: char| !c.is_ascii_digit())
                    .any(|word| word == number.to_string());
                assert!(
                    listed,
                    "{}: {name}[{number}] is not in the header",
                    script.name
                );
            }
        }
    }
}

#[test]
fn every_answer_in_a_header_is_sent_and_is_known_to_the_wrapper() {
    for script in scripts() {
        let known = literals(&script.wrapper, '"');
        let sent = literals(&script.code, '\'');
        let matched: BTreeSet<_> = script
            .wrapper
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix('"')?.split_once("=>"))
            .flat_map(|(arms, _)| literals(&format!("\"{arms}"), '"'))
            .filter(|word| is_tag(word))
            .collect();
        // A scan answers with a cursor and what it found.
        assert!(
            !matched.is_empty() || ["remove", "census"].contains(&script.name.as_str()),
            "{}",
            script.name
        );
        for tag in &matched {
            let said = part(&script, "RETURNS");
            assert!(
                said.contains(tag.as_str()),
                "{}: `{tag}` is not in RETURNS",
                script.name
            );
            assert!(sent.contains(tag), "{}: `{tag}` is never sent", script.name);
        }
        let answers: BTreeSet<&str> = part(&script, "RETURNS")
            .split(|c: char| !c.is_ascii_lowercase() && c != '-')
            .collect();
        let returned: BTreeSet<_> = script
            .code
            .lines()
            .filter(|line| {
                ["return", "reply =", "again =", "role =", "parked =", "what"]
                    .iter()
                    .any(|w| line.contains(w))
            })
            .flat_map(|line| literals(line, '\''))
            .filter(|word| is_tag(word) && answers.contains(word.as_str()))
            .collect();
        for tag in returned {
            assert!(
                known.contains(&tag),
                "{}: the wrapper does not know `{tag}`",
                script.name
            );
        }
    }
}

#[test]
fn scripts_use_only_the_commands_that_are_documented() {
    let readme = read("lua/README.md");
    let mut texts: Vec<(String, String)> = scripts()
        .into_iter()
        .map(|script| (script.name, script.code))
        .collect();
    let prelude = read("lua/prelude.lua") + &parts("prelude");
    texts.push(("prelude".to_owned(), prelude));
    for (name, code) in texts {
        let upper = literals(&code, '\'')
            .into_iter()
            .filter(|word| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase()));
        for word in upper {
            assert!(
                COMMANDS.contains(&word.as_str()),
                "{name}: `{word}` is not a known command"
            );
            assert!(
                readme.contains(&word),
                "{name}: `{word}` is not in lua/README.md"
            );
        }
    }
}

#[test]
fn every_script_and_part_is_short_enough_to_read() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua");
    let functions = fs::read_dir(dir.join("functions")).expect("lua/functions/");
    let entries = fs::read_dir(&dir).expect("lua/").chain(functions);
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            continue;
        }
        let lines = read(&path).lines().count();
        assert!(lines <= 140, "{}: {lines} lines", path.display());
    }
}

#[test]
fn scripts_stay_within_the_dialect_of_redis_6_2() {
    for (name, code) in scripts().into_iter().map(|s| (s.name, s.code)).chain([(
        "prelude".to_owned(),
        read("lua/prelude.lua") + &parts("prelude"),
    )]) {
        assert!(!code.starts_with("#!"), "{name}: a shebang needs 7.0");
        for newer in [
            "'GT'",
            "'LT'",
            "LMPOP",
            "SETRESP",
            "redis.acl_check",
            "redis.set_repl",
        ] {
            assert!(!code.contains(newer), "{name}: {newer}");
        }
    }
}

#[test]
fn the_table_of_the_readme_has_every_script() {
    let readme = read("lua/README.md");
    for name in names() {
        assert!(
            readme.contains(&format!("| [{name}]({name}.lua) |")),
            "{name}"
        );
        assert!(readme.contains(&format!("scripts/{name}.rs")), "{name}");
    }
}
