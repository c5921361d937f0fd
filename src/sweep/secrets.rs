//! Reads secrets when they are needed. References in the plan name the environment variable or the file
//! that contains a secret.

use std::path::Path;

use crate::engine::Secret;
use crate::plan::SecretRef;
use crate::tls::TlsFileError;
use crate::units::AddressError;

/// Why a secret or an endpoint's address cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The environment variable is not set.
    #[error("environment variable {variable} is not set, but {names} refers to it")]
    NoVariable {
        /// The variable.
        variable: String,
        /// The part of the plan that refers to the variable.
        names: &'static str,
    },
    /// The file cannot be read.
    #[error("cannot read {what} from {path}: {source}")]
    NoFile {
        /// The secret that was expected in the file.
        what: &'static str,
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The file or variable contains no usable secret.
    #[error("{what} from {reference} is empty or contains characters that a header cannot carry")]
    BadKey {
        /// The secret that was expected.
        what: &'static str,
        /// The reference to the secret.
        reference: String,
    },
    /// Several of the errors above.
    #[error("{}", joined(.0))]
    Several(Vec<ResolveError>),
    /// A file of `tls` cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsFileError),
    /// The address of the endpoint or of its proxy is invalid.
    #[error(transparent)]
    Address(#[from] AddressError),
}

/// What a secret is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Key,
    Header,
    Variable,
    Proxy,
}

/// Reads the secret value of an environment variable of a launched server.
pub(super) fn variable(reference: &SecretRef, folder: &Path) -> Result<String, ResolveError> {
    resolve_secret(Use::Variable, reference, folder).map(|secret| secret.reveal().to_owned())
}

/// Joins the messages of several errors.
fn joined(errors: &[ResolveError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Reads the secret that a reference names. Paths of files are relative to `folder`.
pub(super) fn resolve_secret(used: Use, reference: &SecretRef, folder: &Path) -> Result<Secret, ResolveError> {
    let (what, names) = match used {
        Use::Key => ("the api_key", "the endpoint's api_key"),
        Use::Header => ("the value of a header", "a header"),
        Use::Variable => ("a variable", "`env` of `launch`"),
        Use::Proxy => ("the address of the proxy", "the endpoint's `proxy`"),
    };
    let no_variable = |variable: &str| ResolveError::NoVariable { variable: variable.to_owned(), names };
    let text =
        match reference {
            SecretRef::Env(name) => std::env::var(name).map_err(|_| no_variable(name))?,
            SecretRef::File(path) => std::fs::read_to_string(folder.join(path))
                .map_err(|source| ResolveError::NoFile { what, path: path.clone(), source })?,
        };
    let key = match reference {
        SecretRef::Env(_) => text.trim(),
        // Only the first line of a file is used, so that it may contain other text below.
        SecretRef::File(_) => text.lines().next().unwrap_or("").trim(),
    };
    // A header value may contain spaces, like `Basic …`. A bearer key may not.
    let first = if used == Use::Key { 0x21 } else { 0x20 };
    if key.is_empty() || !key.bytes().all(|byte| (first..0x7f).contains(&byte)) {
        return Err(ResolveError::BadKey { what, reference: reference.to_string() });
    }
    Ok(Secret::new(key.to_owned()))
}
