//! The settings of TLS of one endpoint: which certificates of servers are accepted, and the certificate that
//! the client presents.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::provider::provider;
use crate::units::regular_file;

/// Maximum size of a file with certificates or a key, in bytes. The bundles of operating systems are about 500 KB in
/// size.
const MOST_BYTES: u64 = 16 << 20;

/// The settings of TLS of one endpoint.
#[derive(Debug, Clone, Default)]
pub struct TlsSettings {
    /// Whether any certificate is accepted, without verification.
    pub insecure: bool,
    /// The only certificates that are trusted; `None` to trust the system's.
    pub(super) authorities: Option<Arc<[CertificateDer<'static>]>>,
    /// The certificate that the client presents; `None` if it presents none.
    pub(super) identity: Option<Arc<Identity>>,
}

/// The certificate of the client, with the certificates that lead to its authority, and its private key.
pub(super) struct Identity {
    pub(super) certificates: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[certificate and private key]")
    }
}

/// Why a file with certificates or a key cannot be used. The text never contains the file's content.
#[derive(Debug, thiserror::Error)]
pub enum TlsFileError {
    /// The file cannot be read.
    #[error("cannot read `tls.{key}` from {}: {source}; {}", .path.display(), regular_file::remedy(.source))]
    Unreadable {
        /// The key in the plan.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file does not contain what is expected.
    #[error("`tls.{key}`: {} contains no {wanted}; {remedy}", .path.display())]
    Useless {
        /// The key in the plan.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What is expected.
        wanted: &'static str,
        /// The remedy.
        remedy: &'static str,
    },
    /// The private key does not belong to the certificate, or its kind is not supported.
    #[error("`tls.cert` and `tls.key` cannot be used together: {0}")]
    Mismatch(String),
}

impl TlsSettings {
    /// Reads the files that a plan names: the certificates to trust, and the client's certificate with its
    /// private key, all in PEM.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read, or does not contain what is expected.
    pub fn read(
        insecure: bool,
        ca: Option<&Path>,
        identity: Option<(&Path, &Path)>,
    ) -> Result<TlsSettings, TlsFileError> {
        let authorities = ca.map(|path| certificates("ca", path)).transpose()?;
        let identity = identity.map(|(cert, key)| read_identity(cert, key)).transpose()?;
        Ok(TlsSettings { insecure, authorities: authorities.map(Into::into), identity: identity.map(Arc::new) })
    }
}

fn read_identity(cert: &Path, key: &Path) -> Result<Identity, TlsFileError> {
    let identity = Identity { certificates: certificates("cert", cert)?, key: private_key(key)? };
    let provider = provider();
    let signer = provider.key_provider.load_private_key(identity.key.clone_key());
    let signer = signer.map_err(|error| TlsFileError::Mismatch(error.to_string()))?;
    let certified = rustls::sign::CertifiedKey::new(identity.certificates.clone(), signer);
    match certified.keys_match() {
        // Whether they match is unknown for some kinds of keys. The server then decides.
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(identity),
        Err(rustls::Error::InconsistentKeys(_)) => {
            let text = "the private key does not belong to the first certificate in the file";
            Err(TlsFileError::Mismatch(text.to_owned()))
        }
        Err(error) => Err(TlsFileError::Mismatch(error.to_string())),
    }
}

fn read(key: &'static str, path: &Path) -> Result<Vec<u8>, TlsFileError> {
    let unreadable = |source| TlsFileError::Unreadable { key, path: path.to_owned(), source };
    regular_file::read(path, MOST_BYTES).map_err(unreadable)
}

fn certificates(key: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let bytes = read(key, path)?;
    let found: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) | Err(_) => Err(TlsFileError::Useless {
            key,
            path: path.to_owned(),
            wanted: "certificate in PEM",
            remedy: "convert it: openssl x509 -inform der -in FILE",
        }),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsFileError> {
    let bytes = read("key", path)?;
    if let Ok(key) = PrivateKeyDer::from_pem_slice(&bytes) {
        return Ok(key);
    }
    let is_encrypted = bytes.windows(9).any(|part| part == b"ENCRYPTED");
    let (wanted, remedy) = match is_encrypted {
        true => ("private key without a passphrase", "remove the passphrase: openssl pkey -in FILE -out KEY"),
        false => ("private key in PEM", "convert it: openssl pkey -inform der -in FILE"),
    };
    Err(TlsFileError::Useless { key: "key", path: path.to_owned(), wanted, remedy })
}

/// Accepts the certificates that lead to one of the plan's own authorities. A server's own certificate may be
/// named as well: webpki refuses certificates of authorities for servers, but most self-signed certificates
/// are marked as such.
#[derive(Debug)]
pub(super) struct OwnAuthorities {
    inner: Arc<WebPkiServerVerifier>,
    named: Arc<[CertificateDer<'static>]>,
}

impl OwnAuthorities {
    /// Creates a verifier that trusts only `named`.
    pub(super) fn new(
        named: Arc<[CertificateDer<'static>]>,
        provider: Arc<CryptoProvider>,
    ) -> std::io::Result<OwnAuthorities> {
        let mut roots = RootCertStore::empty();
        for certificate in named.iter() {
            roots.add(certificate.clone()).map_err(std::io::Error::other)?;
        }
        let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Ok(OwnAuthorities { inner: inner.map_err(std::io::Error::other)?, named })
    }
}

impl ServerCertVerifier for OwnAuthorities {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        let Err(error) = verified else { return verified };
        // The validity was checked before the kind of the certificate.
        let is_of_authority = error.to_string().contains("CaUsedAsEndEntity");
        if !is_of_authority || !self.named.iter().any(|named| named == end_entity) {
            return Err(error);
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
