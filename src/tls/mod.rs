//! TLS for measured connections and all other clients. Uses the system's root certificates (`roots`),
//! unless the plan names its own authorities or explicitly accepts any certificate.

mod provider;
mod roots;
mod settings;
mod words;

pub use roots::{client, spare_roots};
pub use settings::{TlsFileError, TlsSettings};
pub use words::{in_words, is_about_certificates};

use provider::provider;
use settings::OwnAuthorities;

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use rustls_platform_verifier::Verifier;
use tokio_rustls::TlsConnector;

/// The name of HTTP/2 in ALPN.
pub const HTTP2: &[u8] = b"h2";

/// Creates a connector that offers only HTTP/2 if `http2` is set, otherwise only HTTP/1.1. Fails if the
/// system's certificates cannot be read.
pub fn connector(settings: &TlsSettings, http2: bool) -> io::Result<TlsConnector> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(verifier(settings)?);
    let mut config = match &settings.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => builder
            .with_client_auth_cert(identity.certificates.clone(), identity.key.clone_key())
            .map_err(io::Error::other)?,
    };
    config.alpn_protocols = vec![if http2 { HTTP2.to_vec() } else { b"http/1.1".to_vec() }];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Returns the verifier of servers' certificates.
fn verifier(settings: &TlsSettings) -> io::Result<Arc<dyn ServerCertVerifier>> {
    if settings.insecure {
        return Ok(Arc::new(AnyCertificate(provider())));
    }
    if let Some(authorities) = &settings.authorities {
        return Ok(Arc::new(OwnAuthorities::new(Arc::clone(authorities), provider())?));
    }
    let verifier = Verifier::new_with_extra_roots(spare_roots().iter().cloned(), provider());
    Ok(Arc::new(verifier.map_err(|error| io::Error::other(in_words(error.to_string())))?))
}

/// Accepts any certificate, for `insecure_tls: true` in the plan.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
