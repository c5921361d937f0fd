//! Reads secrets when they are needed. References in the plan name the environment variable or the file
//! that contains a secret.

use std::io;
use std::path::{Path, PathBuf};

use tokio::sync::watch;

use crate::engine::Secret;
use crate::plan::{MOUNTED, SecretRef, TokenCommand, mount_of};
use crate::server::TokenError;
use crate::tls::TlsFileError;
use crate::units::AddressError;

use super::tokens::TOKENS;

/// Why a secret or an endpoint's address cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The environment variable is not set.
    #[error("environment variable {variable} is not set, but {names} refers to it; set it first")]
    NoVariable {
        /// The variable.
        variable: String,
        /// The part of the plan that refers to the variable.
        names: &'static str,
    },
    /// The file cannot be read.
    #[error("cannot read {what} from {path}: {source}; create the file, or correct the reference")]
    NoFile {
        /// The secret that was expected in the file.
        what: &'static str,
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is a link that leaves the folder of mounted secrets.
    #[error(
        "{path} leads to {real}, outside {mount}; if this is intended, refer to {real} itself, and allow it with \
         --allow-outside"
    )]
    LeavesMount {
        /// The file in the plan.
        path: String,
        /// The folder of mounted secrets.
        mount: &'static str,
        /// The file to which the link leads.
        real: String,
    },
    /// The command printed no token.
    #[error(
        "the token command of {names}, `{command}`, {reason}; run it in the plan's folder, and correct it until it \
         prints only the token{}", quoted_lines(.reported)
    )]
    NoToken {
        /// The part of the plan that contains the command.
        names: &'static str,
        /// The command.
        command: String,
        /// The reason.
        reason: String,
        /// The last lines that the command wrote to its standard error.
        reported: String,
    },
    /// The sweep was stopped while a token command ran.
    #[error("stopped")]
    Stopped,
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

/// Returns the last lines of a command's output for the end of an error; empty if there are none.
fn quoted_lines(lines: &str) -> String {
    let indented: String = lines.lines().map(|line| format!("\n  {line}")).collect();
    if indented.is_empty() { indented } else { format!("; it reported:{indented}") }
}

/// Reads the secret that a reference names. Paths of files are relative to `folder`.
pub(super) fn resolve_secret(used: Use, reference: &SecretRef, folder: &Path) -> Result<Secret, ResolveError> {
    let (_never, stop) = watch::channel(false);
    resolve_until(used, reference, folder, &stop)
}

/// Reads the secret that a reference names, like [`resolve_secret`]. Fails if `stop` becomes true meanwhile.
pub(super) fn resolve_until(
    used: Use,
    reference: &SecretRef,
    folder: &Path,
    stop: &watch::Receiver<bool>,
) -> Result<Secret, ResolveError> {
    let (what, names) = match used {
        Use::Key => ("the api_key", "the endpoint's api_key"),
        Use::Header => ("the value of a header", "a header"),
        Use::Variable => ("a variable", "`env` of `launch`"),
        Use::Proxy => ("the address of the proxy", "the endpoint's `proxy`"),
    };
    let no_variable = |variable: &str| ResolveError::NoVariable { variable: variable.to_owned(), names };
    let text = match reference {
        SecretRef::Env(name) => std::env::var(name).map_err(|_| no_variable(name))?,
        SecretRef::File(path) => {
            let no_file = |source| ResolveError::NoFile { what, path: path.clone(), source };
            let file = match mount_of(path) {
                Some(mount) => mounted(path, mount, no_file)?,
                None => folder.join(path),
            };
            std::fs::read_to_string(file).map_err(no_file)?
        }
        SecretRef::Command(command) => token(command, names, folder, stop)?,
    };
    let key = match reference {
        SecretRef::Env(_) | SecretRef::Command(_) => text.trim(),
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

/// Returns the file to which a path in a folder of mounted secrets leads. Kubernetes mounts secrets as links, which
/// stay in that folder.
fn mounted(
    path: &str,
    mount: &'static str,
    no_file: impl Fn(io::Error) -> ResolveError,
) -> Result<PathBuf, ResolveError> {
    let real = std::fs::canonicalize(path).map_err(no_file)?;
    // `/var/run` is usually a link to `/run`.
    let mut mounts = MOUNTED.iter().filter_map(|folder| std::fs::canonicalize(folder).ok());
    if mounts.any(|folder| real.starts_with(folder)) {
        return Ok(real);
    }
    Err(ResolveError::LeavesMount { path: path.to_owned(), mount, real: real.display().to_string() })
}

/// Returns the token of a command.
fn token(
    command: &TokenCommand,
    names: &'static str,
    folder: &Path,
    stop: &watch::Receiver<bool>,
) -> Result<String, ResolveError> {
    match TOKENS.get(command, folder, stop) {
        Ok(token) => Ok(token.reveal().to_owned()),
        Err(TokenError::Stopped) => Err(ResolveError::Stopped),
        Err(TokenError::Failed { reason, reported }) => {
            Err(ResolveError::NoToken { names, command: command.to_string(), reason, reported })
        }
    }
}
