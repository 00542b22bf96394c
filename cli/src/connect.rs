//! Where the store is: shared by all commands.

use tenure::{Namespace, RedisStore};

/// Options of every command that talks to Redis.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Connection {
    /// Address of the Redis, such as redis://user:password@host:6379
    #[arg(
        long,
        env = "TENURE_REDIS_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub(crate) redis: Option<String>,
    /// Prefix of all keys
    #[arg(
        long,
        env = "TENURE_NAMESPACE",
        default_value = "tenure",
        value_name = "NAME"
    )]
    pub(crate) namespace: Namespace,
}

impl Connection {
    /// Connects, or says which option is missing.
    pub(crate) async fn open(&self) -> anyhow::Result<RedisStore> {
        let url = self.redis.as_deref().ok_or_else(|| {
            anyhow::anyhow!("which Redis? Give --redis URL or set TENURE_REDIS_URL")
        })?;
        Ok(RedisStore::builder(url)
            .namespace(self.namespace.clone())
            .connect()
            .await?)
    }
}
