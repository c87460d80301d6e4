//! Clients that trust the certificates of the system, or Mozilla's where the system has none.
//!
//! A container made from nothing but the binary has no certificates, and without any no client can be made at all.

use reqwest::{Certificate, Client, ClientBuilder, Error};

/// Variables that say which certificates are to be trusted. Whoever sets one wants these and no others.
const CHOSEN: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// A client with these settings.
pub fn client(settings: impl Fn() -> ClientBuilder) -> Result<Client, Error> {
    // Fails only if a provider is installed already, which is as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let is_chosen = CHOSEN.iter().any(|it| std::env::var_os(it).is_some());
    match settings().build() {
        // What else may be wrong is wrong the second time too.
        Err(_) if !is_chosen => settings().tls_certs_only(mozilla()?).build(),
        built => built,
    }
}

/// The authorities that Mozilla trusted when the dependency was last updated.
fn mozilla() -> Result<Vec<Certificate>, Error> {
    webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().map(|it| Certificate::from_der(it)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mozillas_certificates_make_a_client() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let certificates = mozilla().unwrap();
        assert!(certificates.len() > 100, "{}", certificates.len());
        Client::builder().tls_certs_only(certificates).build().unwrap();
    }
}
