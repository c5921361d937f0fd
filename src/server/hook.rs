//! Runs hooks. A hook is a command on this host or a request to the server under test. It has a time limit,
//! and the end of its output is recorded.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use http::Method;
use tokio::sync::watch;

use crate::network::{ClientError, Request};
use crate::rows::HookOutcome;
use crate::units::Nanos;
use crate::units::secrecy::without_secrets;
use crate::units::text::is_unseen;

use super::probe::{LONGEST_WAIT, Question, client};
use super::watchdog::{Watchdog, kill_group};

/// Maximum number of bytes at the end of a hook's output that are recorded.
const RECORDED: usize = 2 * 1024;
/// Number of bytes at the end of the output that are kept while the hook runs. More are kept than are
/// recorded, because secrets are removed before the record is truncated, so that it never contains a part
/// of a secret.
const KEPT: usize = 64 * 1024;
/// Interval between checks whether a command has ended.
const LOOK: Duration = Duration::from_millis(5);
/// How long to wait for the end of a command's output after the command has ended. A process that the
/// command started may hold the output open.
const OUTPUT_WITHIN: Duration = Duration::from_millis(200);
/// A hook that takes longer than this is announced to the user.
const ANNOUNCED_AFTER: Duration = Duration::from_secs(2);

/// The limits of a hook, and the callback that announces a slow hook.
pub struct HookLimits<'a> {
    /// Time limit of the hook.
    pub within: Nanos,
    /// Secret values, which are removed from the recorded output.
    pub secrets: &'a [String],
    /// Becomes true when the sweep must stop.
    pub stop: watch::Receiver<bool>,
    /// Called once if the hook takes long, to tell the user.
    pub announce: &'a dyn Fn(),
}

/// How a hook ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookEnd {
    /// The outcome.
    pub outcome: HookOutcome,
    /// The exit code of a command; `None` if it did not exit normally.
    pub exit_code: Option<i32>,
    /// The HTTP status of the response; `None` if the hook is a command or got no response.
    pub status: Option<u16>,
    /// Why there is neither an exit code nor a status; otherwise `None`.
    pub detail: Option<String>,
    /// Duration of the hook.
    pub took: Nanos,
    /// The last bytes of the output, without secrets.
    pub output: String,
}

/// The error for a sweep that was stopped while the hook was running. Stopping the sweep also ends the hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookStopped;

impl HookEnd {
    fn failed(detail: String, start: Instant) -> HookEnd {
        HookEnd {
            outcome: HookOutcome::Failed,
            exit_code: None,
            status: None,
            detail: Some(detail),
            took: Nanos::from(start.elapsed()),
            output: String::new(),
        }
    }

    fn timed_out(within: Nanos, start: Instant) -> HookEnd {
        let end = HookEnd::failed(format!("did not end within {within}"), start);
        HookEnd { outcome: HookOutcome::TimedOut, ..end }
    }

    fn of_status(status: ExitStatus, start: Instant) -> HookEnd {
        let outcome = if status.success() { HookOutcome::Ok } else { HookOutcome::Failed };
        let detail = status.signal().map(|signal| format!("ended by signal {signal}"));
        HookEnd { outcome, exit_code: status.code(), detail, ..HookEnd::failed(String::new(), start) }
    }
}

/// Runs a command to its end in its own process group. If the command exceeds its time limit, or is still
/// running when sweepline is killed, the whole group is killed. Processes that a finished command left
/// running are not killed.
pub fn run_command(
    command: &[String],
    env: &[(&str, String)],
    folder: &Path,
    limits: HookLimits<'_>,
) -> Result<HookEnd, HookStopped> {
    let start = Instant::now();
    let Some((program, arguments)) = command.split_first() else {
        return Ok(HookEnd::failed("no program in the command".to_owned(), start));
    };
    let not_started = |error: std::io::Error| HookEnd::failed(format!("cannot start it: {error}"), start);
    // Systems differ in whether a relative path is resolved before or after changing the current folder, so
    // the path is made absolute.
    let place = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let whole = if program.contains('/') {
        match std::path::absolute(place.join(program)) {
            Ok(whole) => whole,
            Err(error) => return Ok(not_started(error)),
        }
    } else {
        program.into()
    };
    let (reader, writer) = match std::io::pipe() {
        Ok(pipe) => pipe,
        Err(error) => return Ok(not_started(error)),
    };
    let mut started = Command::new(whole);
    started.args(arguments).envs(env.iter().map(|(name, value)| (name, value))).current_dir(place).process_group(0);
    let errors = match writer.try_clone() {
        Ok(errors) => errors,
        Err(error) => return Ok(not_started(error)),
    };
    let mut child = match started.stdin(Stdio::null()).stdout(writer).stderr(errors).spawn() {
        Ok(child) => child,
        Err(_) if !Path::new("/dev/null").exists() => {
            return Ok(HookEnd::failed("cannot start it: this system has no /dev/null; mount /dev".to_owned(), start));
        }
        Err(error) => return Ok(not_started(error)),
    };
    // `started` also holds the write ends of the pipe, which would keep the pipe open.
    drop(started);
    let _watchdog = Watchdog::over(child.id());
    let output = Output::read(reader);
    let deadline = start + Duration::from(limits.within);
    let mut is_announced = false;
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break HookEnd::of_status(status, start),
            Ok(None) => {}
            Err(error) => break HookEnd::failed(format!("cannot wait for it: {error}"), start),
        }
        let is_stopped = *limits.stop.borrow();
        if is_stopped || Instant::now() >= deadline {
            kill_group(child.id());
            let _ = child.wait();
            if is_stopped {
                return Err(HookStopped);
            }
            break HookEnd::timed_out(limits.within, start);
        }
        if !is_announced && start.elapsed() >= ANNOUNCED_AFTER {
            is_announced = true;
            (limits.announce)();
        }
        std::thread::sleep(LOOK);
    };
    Ok(HookEnd { output: recorded(&output.end(), limits.secrets), ..ended })
}

/// The last bytes of a command's output. A thread reads the output, so a command that prints a lot is never
/// blocked.
struct Output {
    kept: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Output {
    fn read(mut from: impl Read + Send + 'static) -> Output {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&kept);
        let read = move || {
            let mut buffer = vec![0; 16 * 1024];
            loop {
                match from.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => {
                        let mut kept = into.lock().unwrap_or_else(PoisonError::into_inner);
                        kept.extend_from_slice(&buffer[..count]);
                        if kept.len() > 2 * KEPT {
                            let surplus = kept.len() - KEPT;
                            kept.drain(..surplus);
                        }
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
        };
        // If the thread cannot be started, the output is lost, and the command's writes fail.
        let reader = std::thread::Builder::new().name("hook output".to_owned()).spawn(read).ok();
        Output { kept, reader }
    }

    /// Returns the output that was kept. Processes that the command left running may hold the pipe open.
    /// This function waits for them only briefly, and returns what has been written so far.
    fn end(self) -> Vec<u8> {
        let deadline = Instant::now() + OUTPUT_WITHIN;
        while self.reader.as_ref().is_some_and(|reader| !reader.is_finished()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Sends a request without a body to the server of `question`. `path` starts at the server's root.
pub fn send_request(
    question: &Question,
    method: &str,
    path: &str,
    limits: HookLimits<'_>,
) -> Result<HookEnd, HookStopped> {
    let start = Instant::now();
    let failed = |detail: String| Ok(HookEnd::failed(detail, start));
    let question = Question { connect: question.connect.min(LONGEST_WAIT), within: limits.within, ..question.clone() };
    let path = question.address().from_root(path);
    let Ok(method) = Method::from_bytes(method.as_bytes()) else {
        return failed(format!("`{method}` is not a method"));
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(error.to_string()),
    };
    let client = match client(&question) {
        Ok(client) => client,
        Err(error) => return failed(error.to_string()),
    };
    let mut stop = limits.stop;
    let sent = async {
        let mut response = client.send(question.signed(Request::new(method, path))).await?;
        let status = response.status();
        let mut data = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            data.extend_from_slice(&chunk);
            if data.len() > 2 * KEPT {
                let surplus = data.len() - KEPT;
                data.drain(..surplus);
            }
        }
        Ok::<_, ClientError>((status, data))
    };
    let answered = runtime.block_on(async {
        let mut sent = std::pin::pin!(sent);
        let mut stopped = std::pin::pin!(async { drop(stop.wait_for(|stop| *stop).await) });
        tokio::select! {
            biased;
            () = &mut stopped => return Err(HookStopped),
            answered = &mut sent => return Ok(answered),
            () = tokio::time::sleep(ANNOUNCED_AFTER) => (limits.announce)(),
        }
        tokio::select! {
            biased;
            () = &mut stopped => Err(HookStopped),
            answered = &mut sent => Ok(answered),
        }
    })?;
    Ok(match answered {
        Ok((status, data)) => HookEnd {
            outcome: if status.is_success() { HookOutcome::Ok } else { HookOutcome::Failed },
            status: Some(status.as_u16()),
            detail: None,
            output: recorded(&data, limits.secrets),
            ..HookEnd::failed(String::new(), start)
        },
        Err(error) if error.is_timeout() && !error.is_connect() => HookEnd::timed_out(limits.within, start),
        Err(error) => {
            let detail = recorded(error.words().as_bytes(), limits.secrets);
            HookEnd::failed(format!("no response: {detail}"), start)
        }
    })
}

/// Formats the end of an output for recording and display. Secrets are removed before the output is
/// truncated, and control characters and invisible characters are removed as well.
fn recorded(output: &[u8], secrets: &[String]) -> String {
    let text = String::from_utf8_lossy(output);
    let text = without_secrets(&text, secrets.iter().map(String::as_str), "[secret]");
    let shown: String = text.chars().filter(|c| matches!(c, '\n' | '\t') || !is_unseen(*c)).collect();
    let shown = shown.trim_end();
    let mut from = shown.len().saturating_sub(RECORDED);
    while !shown.is_char_boundary(from) {
        from += 1;
    }
    shown[from..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, within: Nanos, secrets: &[String]) -> HookEnd {
        let (_sender, stop) = watch::channel(false);
        let command = ["sh", "-c", script].map(str::to_owned);
        let limits = HookLimits { within, secrets, stop, announce: &|| {} };
        run_command(&command, &[("SWEEPLINE_HOOK", "before_run".to_owned())], Path::new(""), limits).unwrap()
    }

    #[test]
    fn a_command_ends_with_its_code_and_the_end_of_its_output() {
        let ended = run("echo one; echo two >&2; echo $SWEEPLINE_HOOK; exit 3", Nanos::from_secs(60), &[]);
        assert_eq!((ended.outcome, ended.exit_code, ended.detail), (HookOutcome::Failed, Some(3), None));
        assert_eq!(ended.output, "one\ntwo\nbefore_run");
        let ended = run("kill -9 $$", Nanos::from_secs(60), &[]);
        assert_eq!((ended.outcome, ended.detail.as_deref()), (HookOutcome::Failed, Some("ended by signal 9")));
        let ended = run("exit 0", Nanos::from_secs(60), &[]);
        assert_eq!((ended.outcome, ended.exit_code, ended.output.as_str()), (HookOutcome::Ok, Some(0), ""));
    }

    #[test]
    fn a_command_that_takes_too_long_is_killed_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let ended = run(&format!("sleep 600 & echo $! > {}; wait", file.display()), Nanos::from_millis(500), &[]);
        assert_eq!(ended.outcome, HookOutcome::TimedOut);
        assert_eq!(ended.detail.as_deref(), Some("did not end within 500ms"));
        let pid = std::fs::read_to_string(file).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        while !state().is_empty() && !state().contains(") Z") {
            assert!(Instant::now() < deadline, "its child is still alive: {}", state());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_a_command_left_running_does_not_hold_it_up() {
        let start = Instant::now();
        let ended = run("(trap '' HUP; sleep 5) & echo begun", Nanos::from_secs(60), &[]);
        assert_eq!((ended.outcome, ended.output.as_str()), (HookOutcome::Ok, "begun"));
        assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    }

    #[test]
    fn the_end_of_a_long_output_is_kept_without_secrets() {
        let secrets = ["hunter2hunter2".to_owned()];
        let ended =
            run("yes 'key hunter2hunter2 \x1b[31m' | head -c 5000000; echo; echo last", Nanos::from_secs(60), &secrets);
        assert!(ended.output.len() <= RECORDED && ended.output.len() > RECORDED - 4, "{}", ended.output.len());
        assert!(ended.output.ends_with("key [secret] [31m\nkey [secret]\nlast") || ended.output.ends_with("last"));
        assert!(!ended.output.contains("hunter2") && !ended.output.contains('\x1b'), "{}", ended.output);
    }
}
