//! Where the store is: shared by all commands.
//!
//! What is said on the command line comes before the environment, and that before the configuration file. Each of the
//! three is a layer of the same [`Parts`]; [`merge`] makes one of them, [`route`] makes a connection of that.

mod layer;
mod merge;
mod parts;
mod route;
mod secret;
#[cfg(test)]
mod tests;

use std::{path::PathBuf, process::Command};

use tenure::{Namespace, RedisStore};

use self::{
    layer::Layer,
    parts::{FIELDS, Parts, variable},
};
use crate::exit::Usage;

/// Options of every command that talks to Redis.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Connection {
    #[command(flatten)]
    parts: Box<Parts>,
    /// Read what is not given from this file, in TOML: keys are named as these options, without dashes in front
    /// [default: tenure/config.toml in $XDG_CONFIG_HOME or ~/.config] [env: TENURE_CONFIG; empty: no file]
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Connection",
        hide_short_help = true
    )]
    config: Option<PathBuf>,
}

impl Connection {
    /// Connects, or says what is missing.
    pub(crate) async fn open(&self) -> anyhow::Result<RedisStore> {
        let parts = self.merged()?;
        Ok(route::builder(&parts)?.connect().await?)
    }

    /// Whether it is said anywhere where Redis is.
    pub(crate) fn is_given(&self) -> anyhow::Result<bool> {
        Ok(self.merged()?.place().is_some())
    }

    /// The prefix of all keys.
    pub(crate) fn namespace(&self) -> anyhow::Result<Namespace> {
        route::namespace(&self.merged()?)
    }

    /// Takes another one.
    pub(crate) fn set_namespace(&mut self, namespace: &Namespace) {
        self.parts.namespace = Some(namespace.to_string());
    }

    /// Lets a program of ours connect to the same place. All of it goes by the environment, which other users cannot
    /// list: an address may hold a password.
    pub(crate) fn hand_on(&self, command: &mut Command) -> anyhow::Result<()> {
        for (field, _) in FIELDS {
            command.env_remove(variable(field));
        }
        command.env(layer::CONFIG, "");
        for (field, value) in self.merged()?.given() {
            command.env(variable(field), value);
        }
        Ok(())
    }

    fn merged(&self) -> anyhow::Result<Parts> {
        let environment = |name: &str| match std::env::var(name) {
            Ok(value) => Ok(Some(value)),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => {
                Err(Usage::new(format!("{name} is no UTF-8 text")))
            }
        };
        let mut layers = vec![
            Layer::options(Parts::clone(&self.parts)),
            Layer::environment(&environment)?,
        ];
        layers.extend(Layer::file(self.config.as_deref(), &environment)?);
        Ok(merge::merge(&layers)?)
    }
}
