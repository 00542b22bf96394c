//! In place of `tls.rs` without the feature `tls`: there are no certificates, and no encrypted connections.

use redis::{
    ConnectionAddr, ConnectionInfo, RedisError, cluster::ClusterClientBuilder,
    sentinel::SentinelClientBuilder,
};

use crate::error::StoreError;

/// None.
#[derive(Clone, Default)]
pub(super) struct Certificates;

#[expect(
    clippy::unused_self,
    clippy::unnecessary_wraps,
    reason = "with the feature they do something"
)]
impl Certificates {
    pub(super) fn allow() -> Result<(), &'static str> {
        Err("encrypted connections need the feature `tls` of the crate `tenure`")
    }

    pub(super) fn are_given(&self) -> bool {
        false
    }

    pub(super) fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }

    pub(super) fn put_into(&self, info: ConnectionInfo) -> Result<ConnectionInfo, RedisError> {
        Ok(info)
    }

    pub(super) fn of_cluster(&self, builder: ClusterClientBuilder) -> ClusterClientBuilder {
        builder
    }

    pub(super) fn of_master(
        &self,
        builder: SentinelClientBuilder,
        _data: &ConnectionAddr,
    ) -> SentinelClientBuilder {
        builder
    }
}
