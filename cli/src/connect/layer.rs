//! The three places where a connection can be described.

use std::path::{Path, PathBuf};

use super::parts::{FIELDS, Parts, variable};
use crate::exit::Usage;

/// The variable that names the configuration file; set and empty: there is none.
pub(super) const CONFIG: &str = "TENURE_CONFIG";

/// What one of them says, and how it spells what it says.
#[derive(Debug)]
pub(super) struct Layer {
    pub(super) parts: Parts,
    pub(super) from: From,
}

#[derive(Debug)]
pub(super) enum From {
    Options,
    Environment,
    File(PathBuf),
}

/// Reads a variable of the environment.
pub(super) type Read<'a> = &'a dyn Fn(&str) -> Result<Option<String>, Usage>;

impl Layer {
    pub(super) fn options(parts: Parts) -> Self {
        Self {
            parts,
            from: From::Options,
        }
    }

    /// An empty variable counts as none: scripts clear them so.
    pub(super) fn environment(read: Read<'_>) -> Result<Self, Usage> {
        let mut parts = Parts::default();
        for (field, _) in FIELDS {
            let name = variable(field);
            if let Some(value) = read(&name)?.filter(|value| !value.is_empty()) {
                parts
                    .set(field, value)
                    .map_err(|allowed| Usage::new(format!("{name} must be {allowed}")))?;
            }
        }
        Ok(Self {
            parts,
            from: From::Environment,
        })
    }

    /// The file that was named, which must be there; or else the usual one, if it is there.
    pub(super) fn file(named: Option<&Path>, read: Read<'_>) -> Result<Option<Self>, Usage> {
        let named = match named {
            Some(path) => Some(path.to_owned()),
            None => read(CONFIG)?.map(PathBuf::from),
        };
        match named {
            Some(path) if path.as_os_str().is_empty() => Ok(None),
            Some(path) => Self::read(&path).map(Some),
            None => match usual(read)?.filter(|path| path.exists()) {
                Some(path) => Self::read(&path).map(Some),
                None => Ok(None),
            },
        }
    }

    fn read(path: &Path) -> Result<Self, Usage> {
        let wrong =
            |what: String| Usage::new(format!("the configuration file {} {what}", path.display()));
        let text =
            std::fs::read_to_string(path).map_err(|e| wrong(format!("cannot be read: {e}")))?;
        let mut parts: Parts = toml::from_str(&text).map_err(|error| {
            // Not the error whole: it shows the line, and an address may hold a password.
            let before = error
                .span()
                .map_or("", |span| text.get(..span.start).unwrap_or(""));
            let line = before.matches('\n').count() + 1;
            wrong(format!("is wrong in line {line}: {}", error.message()))
        })?;
        // Files that it names are beside it, wherever the program is called from.
        let folder = path.parent().unwrap_or(Path::new(""));
        let files = [
            &mut parts.password_file,
            &mut parts.sentinel_password_file,
            &mut parts.tls_ca,
            &mut parts.tls_cert,
            &mut parts.tls_key,
        ];
        for file in files.into_iter().flatten() {
            *file = folder.join(&*file);
        }
        Ok(Self {
            parts,
            from: From::File(path.to_owned()),
        })
    }

    /// A part, as it is spelled here.
    pub(super) fn name(&self, field: &str) -> String {
        match &self.from {
            From::Options => format!("--{field}"),
            From::Environment => variable(field),
            From::File(path) => format!("`{field}` in {}", path.display()),
        }
    }
}

fn usual(read: Read<'_>) -> Result<Option<PathBuf>, Usage> {
    let set = |value: Option<String>| value.filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = match set(read("XDG_CONFIG_HOME")?) {
        Some(folder) => Some(folder),
        None => set(read("HOME")?).map(|home| home.join(".config")),
    };
    Ok(folder.map(|folder| folder.join("tenure").join("config.toml")))
}
