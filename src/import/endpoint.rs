//! Converts the server's address and the API key of a command to fields of an endpoint.

use super::address::address;
use super::clean;
use super::draft::Field;
use super::error::ImportError;
use super::job::Around;
use super::notes::Notes;
use super::said::Said;
use super::shell::{Command, marks};
use super::text::{cell_text, is_no_key, secret, text_value};
use crate::units::text::is_variable;

/// How the tool extends the address in a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    /// The tool calls `/v1/…` below the address.
    AddsV1,
    /// The address is already the base of the API.
    IsBase,
}

/// Returns the field `url` of the server at this address; `remedy` states how to set another address in the
/// tool.
pub(super) fn url(
    place: &str,
    said: Said<String>,
    path: Path,
    remedy: &str,
    notes: &Notes,
    line: usize,
) -> Result<Field, ImportError> {
    let shown = super::shell::shown(&notes.secrets.hide(&said.value));
    if said.value.contains(';') {
        let what = format!("`{shown}` contains several addresses");
        return Err(ImportError::shape(
            place,
            what,
            "a plan has one endpoint per address: import one command for each",
        ));
    }
    if said.value.contains('$') || !marks(&said.value).is_empty() {
        let what = format!("the address `{shown}` contains a variable that has no value in the imported text");
        let remedy = "write the address itself, or pass it to import: sweepline import --url http://HOST:PORT …";
        return Err(ImportError::shape(place, what, remedy));
    }
    let read = address(&said.value).map_err(|reason| {
        ImportError::shape(place, format!("`{shown}` is not a server's base URL: {reason}"), remedy)
    })?;
    if read.had_secret {
        clean::credentials(notes, line);
    }
    // If a secret was removed from the address, the origin does not show the original address.
    let first = said.origin.split(' ').next().unwrap_or_default();
    let origin = if read.is_changed && read.had_secret { first.to_owned() } else { said.origin };
    // The address on which a server listens is not necessarily one to which requests can be sent.
    let base = read.url.replacen("://0.0.0.0", "://127.0.0.1", 1);
    let base = ["/chat/completions", "/completions"].iter().find_map(|call| base.strip_suffix(call)).unwrap_or(&base);
    let url = match path {
        Path::AddsV1 if !base.ends_with("/v1") => format!("{base}/v1"),
        _ => base.to_owned(),
    };
    Ok(Field::new("url", text_value(&url), origin))
}

/// Returns the effective address: `import --url`, or else the command's own, or else the address of the
/// server that the script started before.
pub(super) fn base(said: Option<Said<String>>, around: &Around, notes: &Notes, line: usize) -> Option<Said<String>> {
    first(said, around.url.as_ref(), "the server's address", notes, line)
}

/// Returns the effective model: `import --model`, or else the command's own, or else the model of the server
/// that the script started.
pub(super) fn model_id(
    said: Option<Said<String>>,
    around: &Around,
    notes: &Notes,
    line: usize,
) -> Option<Said<String>> {
    first(said, around.model.as_ref().filter(|(id, _)| !id.trim().is_empty()), "the model", notes, line)
}

fn first(
    said: Option<Said<String>>,
    around: Option<&(String, String)>,
    what: &str,
    notes: &Notes,
    line: usize,
) -> Option<Said<String>> {
    let around = around.map(|(value, origin)| Said { value: value.clone(), origin: origin.clone() });
    match (around, said) {
        (Some(given), Some(said)) if given.origin.starts_with("import --") => {
            let instead = cell_text(&notes.secrets.hide(&super::shell::shown(&said.value)));
            let why = format!("`{}` sets {what}, instead of {instead}", given.origin);
            notes.needless(said.origin.split(' ').next().unwrap_or_default(), &why, line);
            Some(given)
        }
        (around, said) => said.or(around),
    }
}

/// Returns the address from the options for host and port; `None` if neither is given.
pub(super) fn of_parts(host: Option<Said<String>>, port: Option<Said<String>>, default: &str) -> Option<Said<String>> {
    let origins: Vec<&str> = [&host, &port].into_iter().flatten().map(|said| said.origin.as_str()).collect();
    let port = port.as_ref().map_or(default, |port| port.value.as_str());
    let value = host_and_port(host.as_ref().map(|host| host.value.as_str()), port);
    (!origins.is_empty()).then(|| Said { value, origin: origins.join(" ") })
}

/// Returns the address of a host and port; for a server that listens on all interfaces, the host is
/// `127.0.0.1`.
pub(super) fn host_and_port(host: Option<&str>, port: &str) -> String {
    let host = host.filter(|host| !["0.0.0.0", "::", "[::]"].contains(host)).unwrap_or("127.0.0.1");
    let host = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
    format!("http://{host}:{port}")
}

/// Returns the field that refers to the API key, from an option or else from the first of these variables
/// that is set for the command.
pub(super) fn api_key(
    option: Option<Said<String>>,
    variables: &[&str],
    command: &Command,
    notes: &Notes,
) -> Option<Field> {
    let usual = variables.first().copied().unwrap_or("API_KEY");
    if let Some(Said { value, origin }) = option {
        let name = origin.split([' ', '=']).next().unwrap_or_default().to_owned();
        if marks(&value).is_empty() && is_no_key(&value) {
            notes.needless(&format!("{name} ***"), "not a key: no key is sent", command.line);
            return None;
        }
        let variable = marks(&value).first().filter(|name| is_variable(name)).map(|name| (*name).to_owned());
        let origin = match &variable {
            Some(variable) => format!("{name}, from ${variable}"),
            None => format!("{name}: put the key into the variable {usual}"),
        };
        return Some(Field::new("api_key", secret(variable.as_deref().unwrap_or(usual)), origin));
    }
    let set = variables.iter().find(|variable| command.secrets.iter().any(|name| name == *variable))?;
    Some(Field::new("api_key", secret(set), format!("{set} in the environment")))
}

/// The prefix of the key in an authorization header.
const BEARER: &str = "bearer ";

/// Returns the field that refers to the API key in an authorization header; `None` if the header contains no
/// bearer token.
pub(super) fn key_of_header(value: &str, origin: &str) -> Option<Field> {
    let begin = value.get(..BEARER.len()).filter(|begin| begin.eq_ignore_ascii_case(BEARER))?;
    Some(key_of_value(value[begin.len()..].trim(), origin, "OPENAI_API_KEY"))
}

/// Returns the field that refers to an API key, which is a literal or the name of a variable. A literal key
/// belongs into the variable `usual`.
pub(super) fn key_of_value(key: &str, origin: &str, usual: &str) -> Field {
    let named = key.strip_prefix('$').map(|name| name.trim_matches(['{', '}']));
    let variable = marks(key).first().copied().or(named).filter(|name| is_variable(name));
    let origin = match variable {
        Some(variable) => format!("{origin}, from ${variable}"),
        None => format!("{origin}: put the key into the variable {usual}"),
    };
    Field::new("api_key", secret(variable.unwrap_or(usual)), origin)
}

/// Returns the value that a script or a command line assigns to a variable; `None` if it is not set.
pub(super) fn variable(command: &Command, name: &str, notes: &Notes) -> Option<Said<String>> {
    let (_, value) = command.env.iter().rfind(|(known, _)| known == name)?;
    let shown = super::shell::shown(&notes.secrets.hide(value));
    Some(Said { value: value.clone(), origin: format!("{name}={shown}") })
}
