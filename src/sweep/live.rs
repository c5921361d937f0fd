//! Servers while a sweep uses them: addresses, secrets resolved when they are needed, embedded servers kept alive.

use std::path::Path;
use std::time::Instant;

use crate::engine::{Secret, Target, TargetError};
use crate::plan::{Endpoint, SecretRef};
use crate::server::{Embedded, Found};

/// An endpoint that is ready.
#[derive(Debug, Default)]
pub struct Live {
    /// Where it is; none until it is known.
    pub target: Option<Target>,
    /// Its embedded server, if it has one.
    pub embedded: Option<Embedded>,
    /// What the probe found.
    pub found: Found,
    /// When it was asked last.
    pub asked: Option<Instant>,
}

/// Why an endpoint's address or key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The environment variable is not there.
    #[error("environment variable {0} is not set; the endpoint's api_key names it")]
    NoVariable(String),
    /// The file cannot be read.
    #[error("cannot read the api_key from {path}: {source}")]
    NoFile {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file or variable holds no key.
    #[error("the api_key from {0} is empty or has characters that a header cannot carry")]
    BadKey(String),
    /// The address.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// The target of an endpoint at `url`, with its key resolved; `folder` is the plan's.
pub fn target(endpoint: &Endpoint, url: &str, folder: &Path) -> Result<Target, ResolveError> {
    let mut target = Target::parse(url)?;
    target.insecure_tls = endpoint.insecure_tls;
    target.api_key = endpoint.api_key.as_ref().map(|key| resolve_secret(key, folder)).transpose()?;
    Ok(target)
}

/// The address as it is shown: somebody may have put the key into it, too. A key that can be read only once is left to
/// whoever sends it.
pub fn shown(endpoint: &Endpoint, url: &str, folder: &Path) -> String {
    let is_at_hand = |key: &&SecretRef| match key {
        SecretRef::Env(_) => true,
        SecretRef::File(path) => folder.join(path).is_file(),
    };
    let key = endpoint.api_key.as_ref().filter(is_at_hand).and_then(|key| resolve_secret(key, folder).ok());
    key.map_or_else(|| url.to_owned(), |key| key.redact(url))
}

/// Reads a secret from where its reference says.
fn resolve_secret(reference: &SecretRef, folder: &Path) -> Result<Secret, ResolveError> {
    let text = match reference {
        SecretRef::Env(name) => std::env::var(name).map_err(|_| ResolveError::NoVariable(name.clone()))?,
        SecretRef::File(path) => std::fs::read_to_string(folder.join(path))
            .map_err(|source| ResolveError::NoFile { path: path.clone(), source })?,
    };
    let key = match reference {
        SecretRef::Env(_) => text.trim(),
        // A file may say more below its first line.
        SecretRef::File(_) => text.lines().next().unwrap_or("").trim(),
    };
    if key.is_empty() || !key.bytes().all(|byte| (0x21..0x7f).contains(&byte)) {
        return Err(ResolveError::BadKey(reference.to_string()));
    }
    Ok(Secret::new(key.to_owned()))
}
