//! TLS for measured connections and all other clients, with the system's root certificates (`roots`) unless a
//! plan explicitly accepts any certificate.

mod roots;

pub use roots::{client, in_words, spare_roots};

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use rustls_platform_verifier::Verifier;
use tokio_rustls::TlsConnector;

/// HTTP/2 in ALPN.
pub const HTTP2: &[u8] = b"h2";

/// Creates a connector that offers only HTTP/2, or only HTTP/1.1. Fails if the system's certificates cannot
/// be read.
pub fn connector(insecure: bool, http2: bool) -> io::Result<TlsConnector> {
    let provider = ring::default_provider();
    let builder = ClientConfig::builder_with_provider(Arc::new(provider.clone()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let verifier: Arc<dyn ServerCertVerifier> = if insecure {
        Arc::new(AnyCertificate(provider))
    } else {
        let verifier = Verifier::new_with_extra_roots(spare_roots().iter().cloned(), Arc::new(provider));
        Arc::new(verifier.map_err(|error| io::Error::other(in_words(error.to_string())))?)
    };
    let mut config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    config.alpn_protocols = vec![if http2 { HTTP2.to_vec() } else { b"http/1.1".to_vec() }];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Accepts any certificate, for `insecure_tls: true` in the plan.
#[derive(Debug)]
struct AnyCertificate(CryptoProvider);

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
