//! Servers while a sweep uses them: addresses, secrets resolved when they are needed, embedded servers kept alive.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use crate::engine::{Secret, Target, TargetError};
use crate::plan::{Endpoint, SecretRef};
use crate::server::{Embedded, Found};

/// An endpoint that is ready.
#[derive(Debug, Default)]
pub(crate) struct Live {
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
    #[error("environment variable {variable} is not set; {names} names it")]
    NoVariable {
        /// The variable.
        variable: String,
        /// What in the plan names it.
        names: &'static str,
    },
    /// The file cannot be read.
    #[error("cannot read {what} from {path}: {source}")]
    NoFile {
        /// What is to be there.
        what: &'static str,
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file or variable holds no key.
    #[error("{what} from {reference} is empty or has characters that a header cannot carry")]
    BadKey {
        /// What it is to be.
        what: &'static str,
        /// Where it was read.
        reference: String,
    },
    /// More than one of these.
    #[error("{}", joined(.0))]
    Several(Vec<ResolveError>),
    /// The address.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// What a secret is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Key,
    Header,
}

/// The target of an endpoint at `url`, with its key and the secret values of its headers resolved; `folder` is the plan's.
pub fn target<'a>(
    endpoint: &Endpoint,
    url: &str,
    of_headers: impl IntoIterator<Item = &'a SecretRef>,
    folder: &Path,
) -> Result<Target, ResolveError> {
    let mut target = Target::parse(url)?;
    target.insecure_tls = endpoint.insecure_tls;
    target.of_endpoint.lay(&endpoint.headers);
    let mut wrong = Vec::new();
    if let Some(reference) = &endpoint.api_key {
        match resolve_secret(Use::Key, reference, folder) {
            Ok(key) => target.api_key = Some(key),
            Err(error) => wrong.push(error),
        }
    }
    let references: BTreeSet<SecretRef> =
        of_headers.into_iter().cloned().chain(target.of_endpoint.secrets().cloned()).collect();
    for reference in references {
        match resolve_secret(Use::Header, &reference, folder) {
            Ok(secret) => drop(target.secrets.insert(reference, secret)),
            Err(error) => wrong.push(error),
        }
    }
    match wrong.len() {
        0 => Ok(target),
        1 => Err(wrong.remove(0)),
        _ => Err(ResolveError::Several(wrong)),
    }
}

/// What several errors say, each once.
fn joined(errors: &[ResolveError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The address as it is shown: somebody may have put the key into it, too. A key that can be read only once is left to
/// whoever sends it.
pub(super) fn shown(endpoint: &Endpoint, url: &str, folder: &Path) -> String {
    let is_at_hand = |key: &&SecretRef| match key {
        SecretRef::Env(_) => true,
        SecretRef::File(path) => folder.join(path).is_file(),
    };
    let key = endpoint.api_key.as_ref().filter(is_at_hand).and_then(|key| resolve_secret(Use::Key, key, folder).ok());
    key.map_or_else(|| url.to_owned(), |key| key.redact(url))
}

/// Reads a secret from where its reference says.
fn resolve_secret(used: Use, reference: &SecretRef, folder: &Path) -> Result<Secret, ResolveError> {
    let (what, names) = match used {
        Use::Key => ("the api_key", "the endpoint's api_key"),
        Use::Header => ("the value of a header", "a header"),
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
        // A file may say more below its first line.
        SecretRef::File(_) => text.lines().next().unwrap_or("").trim(),
    };
    // A header may have blanks inside, like `Basic …`; a bearer key has none.
    let first = if used == Use::Key { 0x21 } else { 0x20 };
    if key.is_empty() || !key.bytes().all(|byte| (first..0x7f).contains(&byte)) {
        return Err(ResolveError::BadKey { what, reference: reference.to_string() });
    }
    Ok(Secret::new(key.to_owned()))
}
