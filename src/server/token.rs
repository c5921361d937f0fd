//! Runs a command that prints a token for the server. The token is never part of an error: neither what the
//! command printed on its standard output, nor the same words on its standard error.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::units::Nanos;
use crate::units::secrecy::{is_scheme, keys_in, names_secret};

use super::command::{CommandEnd, Output, RunningCommand, cannot_start, shown_end};

/// Maximum number of bytes that a token command may print. Servers accept headers of about this size.
const LONGEST_TOKEN: usize = 16 * 1024;
/// How long to wait for the end of a command's output after the command has ended. A process that the command
/// started may hold the output open.
const OUTPUT_WITHIN: Duration = Duration::from_secs(2);
/// Number of lines at the end of the command's standard error that an error quotes.
const TAIL_LINES: usize = 8;
/// Words of the standard output that have at least this many characters are removed from quoted lines.
const SHORTEST_SECRET: usize = 4;
/// A word after the name of a secret and a colon is removed if it has at least this many characters. Shorter words
/// are part of a sentence, as in `token: expired`.
const SHORTEST_VALUE: usize = 12;

/// Why a command printed no token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenError {
    /// The sweep was stopped while the command ran.
    Stopped,
    /// The command failed.
    Failed {
        /// The reason, as the end of a sentence about the command.
        reason: String,
        /// The last lines of the command's standard error, without secrets; empty if there are none.
        reported: String,
    },
}

impl TokenError {
    fn of(reason: impl Into<String>) -> TokenError {
        TokenError::Failed { reason: reason.into(), reported: String::new() }
    }
}

/// Runs a token command in `folder` and returns the token: the only line on its standard output, without blanks
/// around it. The command is killed with its process group after `within`, and when `stop` becomes true.
/// `secrets` are values that its error must not contain.
pub fn print_token(
    command: &[String],
    folder: &Path,
    within: Nanos,
    secrets: &[String],
    stop: &watch::Receiver<bool>,
) -> Result<String, TokenError> {
    let no_pipe = |error: std::io::Error| TokenError::of(cannot_start(&error));
    let (out, to_out) = std::io::pipe().map_err(no_pipe)?;
    let (errors, to_errors) = std::io::pipe().map_err(no_pipe)?;
    let running = RunningCommand::start(command, &[], folder, [to_out, to_errors]).map_err(TokenError::of)?;
    let (out, errors) = (Output::read(out), Output::read(errors));
    let ended = running.wait(Instant::now() + Duration::from(within), stop, || {});
    let reason = match ended {
        CommandEnd::Exited(status) if status.success() => {
            return token(&out.end(OUTPUT_WITHIN)).map_err(TokenError::of);
        }
        CommandEnd::Exited(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, signal) => format!("was ended by signal {}", signal.unwrap_or_default()),
        },
        CommandEnd::TimedOut => format!("did not end within {within}"),
        CommandEnd::Lost(reason) => reason,
        CommandEnd::Stopped => return Err(TokenError::Stopped),
    };
    // A part of what was printed may be on its way. It is needed to remove it from the quoted lines.
    let printed = String::from_utf8_lossy(&out.end(OUTPUT_WITHIN)).into_owned();
    let words = printed.split_whitespace().filter(|word| word.len() >= SHORTEST_SECRET).map(str::to_owned);
    let secrets: Vec<String> = secrets.iter().cloned().chain(words).collect();
    let reported = tail(&errors.end(OUTPUT_WITHIN), &secrets);
    Err(TokenError::Failed { reason, reported })
}

/// Returns the token in the output of a command, or what is wrong with the output.
fn token(output: &[u8]) -> Result<String, &'static str> {
    if output.len() > LONGEST_TOKEN {
        return Err("printed more than 16 KiB, which is no token");
    }
    let Ok(text) = str::from_utf8(output) else { return Err("printed bytes that are not UTF-8") };
    let token = text.trim();
    if token.is_empty() {
        return Err("printed nothing on its standard output");
    }
    if token.lines().count() > 1 {
        return Err("printed several lines, but only the token may be on its standard output");
    }
    Ok(token.to_owned())
}

/// Returns the last lines of a command's standard error, without secrets.
fn tail(errors: &[u8], secrets: &[String]) -> String {
    let shown = shown_end(errors, secrets);
    let lines: Vec<&str> = shown.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(TAIL_LINES)..].iter();
    last.map(|line| without_keys(line)).collect::<Vec<_>>().join("\n")
}

/// Replaces what may be a secret in a line that a command reported: keys of well-known services, JSON Web Tokens,
/// credentials after a scheme (`Bearer …`), and long values after the name of a secret.
fn without_keys(line: &str) -> String {
    let mut is_behind_scheme = false;
    let mut is_behind_name = false;
    let mut shown = Vec::new();
    for word in line.split(' ') {
        let bare = word.trim_matches(['"', '\'', ',', ';']);
        let is_key = bare.starts_with("eyJ") || keys_in(bare).next().is_some();
        let is_secret = is_key || is_behind_scheme || (is_behind_name && bare.len() >= SHORTEST_VALUE);
        is_behind_scheme = is_scheme(bare);
        is_behind_name = word.ends_with(':') && names_secret(word);
        let value_at = word.find('=').filter(|at| names_secret(&word[..*at])).map(|at| at + 1);
        shown.push(match value_at {
            _ if is_secret => "[secret]".to_owned(),
            Some(at) if at < word.len() => format!("{}[secret]", &word[..at]),
            _ => word.to_owned(),
        });
    }
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(script: &str, within: Nanos) -> Result<String, TokenError> {
        let (_sender, stop) = watch::channel(false);
        let command = ["sh", "-c", script].map(str::to_owned);
        print_token(&command, Path::new(""), within, &["known-token".to_owned()], &stop)
    }

    fn reason(script: &str) -> String {
        match print(script, Nanos::from_secs(60)) {
            Err(TokenError::Failed { reason, .. }) => reason,
            other => panic!("{script}: {other:?}"),
        }
    }

    #[test]
    fn the_only_line_is_the_token() {
        let long = Nanos::from_secs(60);
        assert_eq!(print("echo ' abc.def '; echo", long), Ok("abc.def".to_owned()));
        assert_eq!(print("printf abc; echo warning >&2", long), Ok("abc".to_owned()));
        assert_eq!(print("echo Basic abc", long), Ok("Basic abc".to_owned()));
        assert!(reason("true").contains("printed nothing"));
        assert!(reason("echo a; echo b").contains("several lines"));
        assert!(reason("head -c 20000 /dev/zero | tr '\\0' x").contains("16 KiB"));
        assert!(reason("head -c 400000 /dev/zero | tr '\\0' x").contains("16 KiB"));
    }

    #[test]
    fn an_error_quotes_what_was_reported_without_secrets() {
        let script = "echo canary-token; echo 'no: canary-token known-token eyJhbGciOi sk-0123456789ab' >&2; exit 3";
        let failed = TokenError::Failed {
            reason: "ended with exit code 3".to_owned(),
            reported: "no: [secret] [secret] [secret] [secret]".to_owned(),
        };
        assert_eq!(print(script, Nanos::from_secs(60)), Err(failed));
    }

    #[test]
    fn what_may_be_a_secret_is_not_quoted() {
        for (line, shown) in [
            ("> Authorization: Bearer abc", "> Authorization: Bearer [secret]"),
            ("> X-Api-Key: 0123456789ab", "> X-Api-Key: [secret]"),
            ("could not refresh the token: expired", "could not refresh the token: expired"),
            ("curl -d client_secret=abc&x=1", "curl -d client_secret=[secret]"),
            ("key 'sk-0123456789ab', \"eyJhbGciOi\"", "key [secret] [secret]"),
            ("tokens left: 5", "tokens left: 5"),
        ] {
            assert_eq!(without_keys(line), shown);
        }
    }

    #[test]
    fn a_command_that_takes_too_long_is_killed_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let printed = print(&format!("sleep 600 & echo $! > {}; wait", file.display()), Nanos::from_millis(500));
        assert_eq!(printed, Err(TokenError::of("did not end within 500ms")));
        let pid = std::fs::read_to_string(file).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        while !state().is_empty() && !state().contains(") Z") {
            assert!(Instant::now() < deadline, "its child is still alive: {}", state());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_stop_ends_the_command() {
        let (sender, stop) = watch::channel(true);
        let command = ["sleep", "600"].map(str::to_owned);
        let printed = print_token(&command, Path::new(""), Nanos::from_secs(600), &[], &stop);
        assert_eq!(printed, Err(TokenError::Stopped));
        drop(sender);
    }
}
