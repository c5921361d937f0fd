//! Runs a driver's command-line tool and returns its output, with limits on time and size.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::super::gap::Gap;
use crate::units::Nanos;
use crate::units::text::plain;

/// Maximum number of bytes read from a tool's output.
const MOST_BYTES: u64 = 4 << 20;
/// Maximum number of characters that an error message quotes from a tool's output.
const MOST_QUOTED: usize = 160;
/// Interval between checks whether a tool that has closed its output has ended.
const LOOK: Duration = Duration::from_millis(2);

/// Runs a program and returns its standard output. A program that takes longer than `within` is killed
/// together with its children.
pub(crate) fn output(program: &str, arguments: &[&str], within: Duration) -> Result<String, Gap> {
    let until = Instant::now() + within;
    let mut child = spawn(program, arguments)?;
    let printed = child.stdout.take().and_then(read);
    let errors = child.stderr.take().and_then(read);
    let late = || Gap { kind: "timeout", why: format!("{program} did not end within {}", Nanos::from(within)) };
    let Some(bytes) = printed.and_then(|printed| wait(&printed, until)) else {
        end(&mut child);
        return Err(late());
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => break,
            Ok(Some(status)) => {
                let errors = errors.and_then(|errors| wait(&errors, until)).unwrap_or_default();
                return Err(failed(program, &status.to_string(), &[bytes, errors].concat()));
            }
            Ok(None) if Instant::now() < until => std::thread::sleep(LOOK),
            Ok(None) | Err(_) => {
                end(&mut child);
                return Err(late());
            }
        }
    }
    if bytes.len() as u64 >= MOST_BYTES {
        let why = format!("{program} printed {} MiB or more", MOST_BYTES >> 20);
        return Err(Gap { kind: "too_large", why });
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn spawn(program: &str, arguments: &[&str]) -> Result<Child, Gap> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    command.spawn().map_err(|error| {
        let what = if error.kind() == std::io::ErrorKind::NotFound { "is not in PATH" } else { "cannot be started" };
        let why = format!("{program} {what}");
        let why = if what.starts_with("is") { why } else { format!("{why}: {error}") };
        Gap { kind: "no_gpu", why }
    })
}

/// Reads `from` to its end on a separate thread. A child of the tool may hold the output open, in which case
/// reading never ends. Returns `None` if no thread can be started.
fn read(from: impl Read + Send + 'static) -> Option<Receiver<Vec<u8>>> {
    let (sender, receiver) = channel();
    let work = move || {
        let mut bytes = Vec::new();
        // An error is ignored, and the output that arrived before it is kept.
        let _ = from.take(MOST_BYTES).read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    };
    std::thread::Builder::new().name("gpu tool".to_owned()).spawn(work).ok()?;
    Some(receiver)
}

fn wait(printed: &Receiver<Vec<u8>>, until: Instant) -> Option<Vec<u8>> {
    printed.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
}

fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    // `wait` could block forever if the process is stuck in the kernel.
    let _ = child.try_wait();
}

fn failed(program: &str, how: &str, said: &[u8]) -> Gap {
    let text = String::from_utf8_lossy(said);
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).map(plain);
    let first: Option<String> = first.map(|line| line.chars().take(MOST_QUOTED).collect());
    let words = first.map(|line| format!(": {line}")).unwrap_or_default();
    Gap { kind: "failed", why: format!("{program} ended with {how}{words}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn what_a_tool_prints_is_read_and_what_it_says_of_its_end() {
        assert_eq!(output("sh", &["-c", "printf 'a, 1\n'; echo no >&2"], LONG).as_deref(), Ok("a, 1\n"));
        let gap = output("sh", &["-c", "echo; echo 'no driver' >&2; exit 9"], LONG).unwrap_err();
        assert_eq!((gap.kind, gap.why.as_str()), ("failed", "sh ended with exit status: 9: no driver"));
        let gap = output("no-such-tool-here", &[], LONG).unwrap_err();
        assert_eq!((gap.kind, gap.why.as_str()), ("no_gpu", "no-such-tool-here is not in PATH"));
        let gap = output("sh", &["-c", "yes"], LONG).unwrap_err();
        assert!(["too_large", "failed"].contains(&gap.kind), "{gap:?}");
    }

    #[test]
    fn one_that_hangs_is_killed_with_what_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let script = format!("sleep 600 & echo $! > {}; wait", file.display());
        let gap = output("sh", &["-c", &script], Duration::from_secs(1)).unwrap_err();
        assert_eq!((gap.kind, gap.why.as_str()), ("timeout", "sh did not end within 1s"));
        let pid = std::fs::read_to_string(file).unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        let deadline = Instant::now() + LONG;
        while !state().is_empty() && !state().contains(") Z") {
            assert!(Instant::now() < deadline, "its child is still alive: {}", state());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
