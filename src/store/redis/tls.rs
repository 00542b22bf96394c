//! Encrypted connections: certificates, as they were given and as the redis crate takes them.

use redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, RedisError, TlsCertificates,
    cluster::ClusterClientBuilder, sentinel::SentinelClientBuilder,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

use crate::error::StoreError;

/// What the store shows and whom it believes, in PEM. Without any: nothing, and the system's root certificates.
#[derive(Clone, Default)]
pub(super) struct Certificates {
    pub(super) ca: Option<Vec<u8>>,
    /// Certificate and key.
    pub(super) client: Option<(Vec<u8>, Vec<u8>)>,
}

/// Without a provider the first encrypted connection panics; another library may have installed one.
pub(super) fn install_provider() {
    if rustls::crypto::ring::default_provider()
        .install_default()
        .is_err()
    {
        tracing::trace!("a provider for encryption is installed already");
    }
}

impl Certificates {
    /// Whether an encrypted address can be used.
    #[expect(clippy::unnecessary_wraps, reason = "without the feature it refuses")]
    pub(super) fn allow() -> Result<(), &'static str> {
        install_provider();
        Ok(())
    }

    pub(super) fn are_given(&self) -> bool {
        self.ca.is_some() || self.client.is_some()
    }

    /// Whether they can be read: the redis crate would take a file without certificates for one.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        if let Some(ca) = &self.ca {
            check_chain("the CA certificate", ca)?;
        }
        if let Some((certificate, key)) = &self.client {
            check_chain("the client certificate", certificate)?;
            PrivateKeyDer::from_pem_slice(key)
                .map_err(|e| unreadable("the client key", &e, "PRIVATE KEY"))?;
        }
        Ok(())
    }

    fn given(&self) -> TlsCertificates {
        TlsCertificates {
            client_tls: self
                .client
                .clone()
                .map(|(client_cert, client_key)| ClientTlsConfig {
                    client_cert,
                    client_key,
                }),
            root_cert: self.ca.clone(),
        }
    }

    /// Puts them into an encrypted address.
    pub(super) fn put_into(&self, info: ConnectionInfo) -> Result<ConnectionInfo, RedisError> {
        if !self.are_given() {
            return Ok(info);
        }
        Client::build_with_tls(info, self.given())
            .map(|client| client.get_connection_info().clone())
    }

    /// For the nodes of a cluster that it finds itself.
    pub(super) fn of_cluster(&self, builder: ClusterClientBuilder) -> ClusterClientBuilder {
        if self.are_given() {
            builder.certs(self.given())
        } else {
            builder
        }
    }

    /// For the master that Sentinels name, if that is encrypted.
    pub(super) fn of_master(
        &self,
        builder: SentinelClientBuilder,
        data: &ConnectionAddr,
    ) -> SentinelClientBuilder {
        match data {
            ConnectionAddr::TcpTls { .. } if self.are_given() => {
                builder.set_client_to_redis_certificates(self.given())
            }
            _ => builder,
        }
    }
}

fn check_chain(what: &'static str, pem: &[u8]) -> Result<(), StoreError> {
    let mut count = 0;
    for certificate in CertificateDer::pem_slice_iter(pem) {
        certificate.map_err(|e| unreadable(what, &e, "CERTIFICATE"))?;
        count += 1;
    }
    if count > 0 {
        return Ok(());
    }
    Err(unreadable(
        what,
        &rustls::pki_types::pem::Error::NoItemsFound,
        "CERTIFICATE",
    ))
}

fn unreadable(
    what: &'static str,
    error: &rustls::pki_types::pem::Error,
    begins: &'static str,
) -> StoreError {
    let reason = match error {
        rustls::pki_types::pem::Error::NoItemsFound => "there is none in it".to_owned(),
        // Never what it holds: it may be a key.
        rustls::pki_types::pem::Error::Base64Decode(_) => "it is not base64".to_owned(),
        rustls::pki_types::pem::Error::MissingSectionEnd { .. } => "its end is missing".to_owned(),
        _ => "it is damaged".to_owned(),
    };
    StoreError::Certificate {
        what,
        reason,
        begins,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_KEY: &[u8] = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

    fn refused(certificates: &Certificates) -> String {
        let error = certificates.check().expect_err("it must be refused");
        assert!(matches!(error, StoreError::Certificate { .. }), "{error:?}");
        error.to_string()
    }

    #[test]
    fn what_is_no_certificate_is_refused_by_name_and_not_shown() {
        for (ca, reason) in [
            (&b""[..], "none in it"),
            (b"s3cret", "none in it"),
            (b"-----BEGIN CERTIFICATE-----\ns3cret", "end is missing"),
            (
                b"-----BEGIN CERTIFICATE-----\n!s3cret!\n-----END CERTIFICATE-----\n",
                "not base64",
            ),
        ] {
            let said = refused(&Certificates {
                ca: Some(ca.to_vec()),
                client: None,
            });
            assert!(said.contains("the CA certificate"), "{said}");
            assert!(said.contains(reason), "{said}");
            assert!(!said.contains("s3cret"), "{said}");
        }
        let said = refused(&Certificates {
            ca: None,
            client: Some((NO_KEY.to_vec(), NO_KEY.to_vec())),
        });
        assert!(said.contains("the client key"), "{said}");
    }
}
