//! Encrypted connections.

/// Without a provider the first encrypted connection panics; another library may have installed one.
pub(super) fn install_provider() {
    if rustls::crypto::ring::default_provider()
        .install_default()
        .is_err()
    {
        tracing::trace!("a provider for encryption is installed already");
    }
}
