//! How clients reach the server of an endpoint, beyond its address. None of this affects what the server
//! computes, so it is not part of a run's identity.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::model::pem_file::PemFile;
use crate::plan::model::text_or_secret::TextOrSecret;

/// The certificates of the connections to an endpoint. All files are in PEM.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// A file with the certificates to trust instead of the system's: those of authorities, or the server's
    /// own certificate.
    #[schemars(example = "certs/ca.pem")]
    pub ca: Option<PemFile>,
    /// A file with the certificate by which the client identifies itself, followed by the certificates that
    /// lead to its authority. Requires `key`.
    #[schemars(example = "certs/client.pem")]
    #[serde(alias = "cert")]
    pub certificate: Option<PemFile>,
    /// A file with the private key of `certificate`, without a passphrase. It is read when connections are opened,
    /// and never copied or printed.
    #[schemars(example = "certs/client.key")]
    pub key: Option<PemFile>,
}

/// How clients reach the server of an endpoint, beyond its address.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Access {
    /// The name that is sent to the server (SNI and `Host`) instead of that in the address.
    pub host: Option<String>,
    /// The Unix socket on which the server listens.
    pub socket: Option<String>,
    /// The address of an HTTP proxy, or the reference to it.
    pub proxy: Option<TextOrSecret>,
    /// The certificates of connections.
    pub tls: Option<Tls>,
    /// Whether any certificate of the server is accepted.
    pub insecure_tls: bool,
}
