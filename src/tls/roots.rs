//! Root certificates: the system's, or if the system has none, Mozilla's at the time of the build.
//!
//! Without root certificates, no HTTP client can be created, not even for plain HTTP. GPU containers and
//! chroots often have no root certificates.

use std::env;
use std::sync::OnceLock;

use reqwest::{Certificate, Client, ClientBuilder};
use rustls::pki_types::CertificateDer;
use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

/// Environment variables that name certificates to use instead of the system's.
const CHOSEN: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Returns Mozilla's root certificates if the system has none, otherwise an empty list. If `SSL_CERT_FILE` or
/// `SSL_CERT_DIR` is set, only the certificates at these paths are used; if none of them can be read, setting
/// up TLS fails.
pub fn spare_roots() -> &'static [CertificateDer<'static>] {
    static HAS_NONE: OnceLock<bool> = OnceLock::new();
    let is_chosen = || CHOSEN.iter().any(|name| env::var_os(name).is_some());
    match HAS_NONE.get_or_init(|| !is_chosen() && rustls_native_certs::load_native_certs().certs.is_empty()) {
        true => TLS_SERVER_ROOT_CERTS,
        false => &[],
    }
}

/// Returns the builder of a client that trusts the system's roots or, if there are none, Mozilla's.
pub fn client() -> ClientBuilder {
    let spare = spare_roots().iter().filter_map(|root| Certificate::from_der(root).ok());
    Client::builder().tls_certs_merge(spare)
}

/// Returns the names of the variables in `CHOSEN` that are set.
pub(super) fn chosen() -> String {
    CHOSEN.into_iter().filter(|name| env::var_os(name).is_some()).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use rustls::RootCertStore;

    use super::*;

    #[test]
    fn every_spare_root_can_be_trusted() {
        let mut store = RootCertStore::empty();
        for root in TLS_SERVER_ROOT_CERTS {
            store.add(root.clone()).unwrap();
            Certificate::from_der(root).unwrap();
        }
        assert!(store.len() > 100, "{} roots", store.len());
    }
}
