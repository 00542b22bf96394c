use std::time::Duration;

use redis::{AsyncConnectionConfig, aio::MultiplexedConnection};

use crate::Result;

/// The client's own half a second is not enough on a machine that is busy.
const ANSWER: Duration = Duration::from_secs(60);

/// A connection of the program's own, apart from those of the peer.
///
/// # Errors
/// The connection's.
pub async fn connect(url: &str) -> Result<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(ANSWER));
    let client = redis::Client::open(url)?;
    Ok(client
        .get_multiplexed_async_connection_with_config(&config)
        .await?)
}

/// `used_memory` of a Redis.
///
/// # Errors
/// The connection's.
pub async fn used_memory(redis: &mut MultiplexedConnection) -> Result<u64> {
    let info: String = redis::cmd("INFO").arg("memory").query_async(redis).await?;
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("used_memory:"))
        .ok_or("INFO without used_memory")?;
    Ok(line.trim().parse()?)
}
