//! Whom we trust: the authorities of the system, or Mozilla's where the system has none.
//!
//! A container made from nothing but the binary has no certificates, and without any no connection could be made at all.

use std::sync::{Arc, OnceLock};

use rustls::{
    ClientConfig, ConfigBuilder, Error, RootCertStore, WantsVerifier, client::WantsClientCert,
};
use rustls_platform_verifier::Verifier;

/// Variables that say which certificates are to be trusted. Whoever sets one wants these and no others.
const CHOSEN: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// How secure connections are made.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    /// To servers, in the newest protocol that both speak.
    pub(crate) servers: Arc<ClientConfig>,
    /// To proxies, which are told what to do in HTTP/1.1.
    pub(crate) proxies: Arc<ClientConfig>,
}

impl Tls {
    /// What the system trusts, read once: that takes longer than the rest of a short run.
    pub(crate) fn of_system() -> Result<Self, Error> {
        static READ: OnceLock<Result<Tls, Error>> = OnceLock::new();
        READ.get_or_init(|| {
            let is_chosen = CHOSEN.iter().any(|it| std::env::var_os(it).is_some());
            match Self::platform() {
                Err(_) if !is_chosen => Self::trusting(mozilla()?),
                read => read,
            }
        })
        .clone()
    }

    fn platform() -> Result<Self, Error> {
        let builder = builder()?;
        let verifier = Verifier::new(builder.crypto_provider().clone())?;
        Ok(Self::new(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))))
    }

    /// Trusts these and nobody else.
    pub(crate) fn trusting(roots: RootCertStore) -> Result<Self, Error> {
        Ok(Self::new(builder()?.with_root_certificates(roots)))
    }

    fn new(builder: ConfigBuilder<ClientConfig, WantsClientCert>) -> Self {
        let proxies = builder.with_no_client_auth();
        let mut servers = proxies.clone();
        servers.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self { servers: Arc::new(servers), proxies: Arc::new(proxies) }
    }
}

fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
}

/// The authorities that Mozilla trusted when the dependency was last updated.
fn mozilla() -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        roots.add(certificate.clone())?;
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mozillas_certificates_can_be_trusted() {
        let roots = mozilla().unwrap();
        assert!(roots.len() > 100, "{}", roots.len());
        Tls::trusting(roots).unwrap();
    }
}
