//! Wrong wiring does not compile, and the compiler says what is wrong.
//!
//! Each case of `tests/compile_fail` stands beside what the compiler said when it was written. Compilers word and arrange
//! the rest of it differently, so of that only the headline and the label at the mistake are compared: what the reader
//! sees first, and for the most part our own words.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

const CASES: &str = "tests/compile_fail";

/// Where the compiler's messages of this run go.
fn copies() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile_fail")
}

fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == extension) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The headline, and the label at the mistake.
fn gist(message: &str) -> Vec<&str> {
    let headline = message.lines().next();
    let marked = message.lines().find(|line| line.contains('^'));
    let label = marked.and_then(|line| line.rsplit_once('^'));
    headline
        .into_iter()
        .chain(label.map(|(_, label)| label.trim()))
        .collect()
}

#[test]
fn wrong_wiring_does_not_compile_and_the_message_says_why() -> Result {
    let copies = copies();
    if copies.exists() {
        fs::remove_dir_all(&copies)?;
    }
    fs::create_dir_all(&copies)?;
    let cases = files(Path::new(CASES), "rs")?;
    for case in &cases {
        fs::copy(
            case,
            copies.join(case.file_name().ok_or("a case without a name")?),
        )?;
    }

    let compiled = Command::new(std::env::current_exe()?)
        .args(["--exact", "the_copies_do_not_compile", "--ignored"])
        .env("TRYBUILD", "overwrite")
        .output()?;
    let said = String::from_utf8_lossy(&compiled.stdout).into_owned()
        + &String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{said}");

    let messages = files(Path::new(CASES), "stderr")?;
    assert_eq!(messages.len(), cases.len(), "one message for each case");
    for expected in messages {
        let name = expected.file_name().ok_or("a message without a name")?;
        let (expected, now) = (fs::read_to_string(&expected)?, copies.join(name));
        let now = fs::read_to_string(&now)
            .map_err(|error| format!("{}: {error}\n{said}", now.display()))?;
        assert_eq!(gist(&expected), gist(&now), "{}\n{now}", name.display());
    }
    Ok(())
}

#[test]
#[ignore = "run by the other test, which tells it to write the messages down instead of comparing them"]
fn the_copies_do_not_compile() {
    let pattern = copies().join("*.rs");
    trybuild::TestCases::new().compile_fail(pattern);
}
