use redis::aio::MultiplexedConnection;

use crate::Result;

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
