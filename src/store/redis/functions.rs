//! What can be called with `redis-cli` alone: a library of Redis functions, made of the same scripts as everything else.

use redis::Value;

use super::{Inner, RedisStore};
use crate::error::StoreError;

/// A transition as a function of Lua: its keys and arguments are those of the script.
macro_rules! transition {
    ($name:literal $(, $part:literal)*) => {
        concat!(
            "local function transition_", $name, "(KEYS, ARGV)\n",
            include_str!("../../../lua/prelude_texts.lua"),
            include_str!("../../../lua/prelude.lua"),
            $(include_str!(concat!("../../../lua/", $part, ".lua")),)*
            include_str!(concat!("../../../lua/", $name, ".lua")),
            "end\n"
        )
    };
}

/// All that the functions are made of.
const BODY: &str = concat!(
    transition!("start", "start_item"),
    transition!("signal"),
    transition!("control", "control_retry"),
    include_str!("../../../lua/functions/common.lua"),
    include_str!("../../../lua/functions/json.lua"),
    include_str!("../../../lua/functions/json_show.lua"),
    include_str!("../../../lua/functions/steer.lua"),
    include_str!("../../../lua/functions/begin.lua"),
    include_str!("../../../lua/functions/read.lua"),
);

/// What begins the second line of the library: the version stands behind it.
const STAMP: &str = "-- Tenure ";

/// One function.
struct Function {
    name: &'static str,
    /// What it is in [`BODY`].
    lua: &'static str,
    flags: &'static [&'static str],
}

const READS: &[&str] = &["no-writes", "allow-cross-slot-keys"];
/// What frees passes when memory is used up, as from a client.
const FREES: &[&str] = &["allow-oom", "allow-cross-slot-keys"];
const GROWS: &[&str] = &["allow-cross-slot-keys"];

const fn function(
    name: &'static str,
    lua: &'static str,
    flags: &'static [&'static str],
) -> Function {
    Function { name, lua, flags }
}

const FUNCTIONS: [Function; 10] = [
    function("tenure_start", "tenure_start", GROWS),
    function("tenure_signal", "tenure_signal", GROWS),
    function("tenure_cancel", "control('cancel')", FREES),
    function("tenure_terminate", "control('terminate')", FREES),
    function("tenure_pause", "control('pause')", FREES),
    function("tenure_resume", "control('resume')", FREES),
    function("tenure_show", "tenure_show", READS),
    function("tenure_result", "tenure_result", READS),
    function("tenure_list", "tenure_list", READS),
    function("tenure_counts", "tenure_counts", READS),
];

/// The version of a library: that of the crate, and the first 8 characters of the hash of its text.
fn version() -> String {
    let hash = redis::Script::new(BODY).get_hash().to_owned();
    format!("{} ({})", env!("CARGO_PKG_VERSION"), &hash[..8])
}

/// The library as `FUNCTION LOAD` takes it.
fn library() -> String {
    let register = |Function { name, lua, flags }: &Function| {
        let flags = flags.join("', '");
        format!(
            "redis.register_function{{ function_name = '{name}', callback = guarded({lua}), flags = {{ '{flags}' }} }}\n"
        )
    };
    let registered: String = FUNCTIONS.iter().map(register).collect();
    format!(
        "#!lua name=tenure\n{STAMP}{}\n{BODY}{registered}",
        version()
    )
}

/// The version in the text of a library, if it says one.
fn version_of(text: &str) -> Option<&str> {
    text.lines().nth(1)?.strip_prefix(STAMP)
}

/// The text of the library in a reply of `FUNCTION LIST`, of whichever shape it is.
fn text_in(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            text.starts_with("#!lua name=tenure").then(|| text.into())
        }
        Value::VerbatimString { text, .. } => {
            let ours = text.starts_with("#!lua name=tenure");
            ours.then(|| text.clone())
        }
        Value::Array(items) | Value::Set(items) => items.iter().find_map(text_in),
        Value::Map(pairs) => pairs.iter().find_map(|(_, value)| text_in(value)),
        _ => None,
    }
}

/// A library of functions that stands on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledFunctions {
    /// Which version; `None` if it does not say.
    pub version: Option<String>,
    /// Whether it is, to the byte, the one that this version installs.
    pub current: bool,
}

impl RedisStore {
    /// The version of the library that [`install_functions`](Self::install_functions) loads.
    #[must_use]
    pub fn functions_version() -> String {
        version()
    }

    /// The library `tenure` of Redis functions, as `FUNCTION LOAD` takes it.
    #[must_use]
    pub fn functions() -> String {
        library()
    }

    /// Each function as a script for `redis-cli --eval`, for servers older than Redis 7: its name and its text.
    #[must_use]
    pub fn function_scripts() -> Vec<(&'static str, String)> {
        let script = |f: &Function| {
            let text = format!(
                "{STAMP}{}\n{BODY}return guarded({})(KEYS, ARGV)\n",
                version(),
                f.lua
            );
            (f.name, text)
        };
        FUNCTIONS.iter().map(script).collect()
    }

    /// Installs the library `tenure` on the server, on a cluster on each primary; answers with what it replaced. It
    /// serves every namespace. Safe to repeat. If the future is dropped, it may be installed or not.
    ///
    /// # Errors
    /// [`StoreError::Unsuitable`] when the server is older than Redis 7; [`StoreError::Right`] when the user may not
    /// `FUNCTION LOAD` or `FUNCTION LIST`; the connection's.
    pub async fn install_functions(&self) -> Result<Option<InstalledFunctions>, StoreError> {
        let before = self.installed_functions().await?;
        let mut cmd = redis::cmd("FUNCTION");
        cmd.arg("LOAD").arg("REPLACE").arg(library());
        self.0.function_command(&cmd).await?;
        Ok(before)
    }

    /// The library `tenure` that stands on the server; `None` if there is none.
    ///
    /// # Errors
    /// As [`install_functions`](Self::install_functions).
    pub async fn installed_functions(&self) -> Result<Option<InstalledFunctions>, StoreError> {
        let mut cmd = redis::cmd("FUNCTION");
        cmd.arg("LIST")
            .arg("LIBRARYNAME")
            .arg("tenure")
            .arg("WITHCODE");
        let text = text_in(&self.0.function_command(&cmd).await?);
        Ok(text.map(|text| InstalledFunctions {
            version: version_of(&text).map(str::to_owned),
            current: text == library(),
        }))
    }

    /// Removes the library; answers with what there was.
    ///
    /// # Errors
    /// As [`install_functions`](Self::install_functions).
    pub async fn remove_functions(&self) -> Result<Option<InstalledFunctions>, StoreError> {
        let before = self.installed_functions().await?;
        if before.is_some() {
            let mut cmd = redis::cmd("FUNCTION");
            cmd.arg("DELETE").arg("tenure");
            self.0.function_command(&cmd).await?;
        }
        Ok(before)
    }
}

impl Inner {
    async fn function_command(&self, cmd: &redis::Cmd) -> Result<Value, StoreError> {
        match self.command::<Value>("functions", cmd).await {
            Err(StoreError::Server { source, .. })
                if source
                    .to_string()
                    .to_lowercase()
                    .contains("unknown command") =>
            {
                Err(StoreError::Unsuitable {
                    server: self.settings.shown.clone(),
                    reason: format!(
                        "it does not know the command FUNCTION (it is {}; functions came with Redis 7.0). `tenure functions \
                         export DIR` writes each of them as a script for `redis-cli --eval`",
                        self.version_shown().await
                    ),
                })
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_can_be_read_from_the_library() {
        assert_eq!(version_of(&library()), Some(version().as_str()));
        assert_eq!(version_of("#!lua name=tenure\nreturn 1"), None);
    }
}
