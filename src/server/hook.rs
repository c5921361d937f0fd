//! Runs hooks. A hook is a command on this host or a request to the server under test. It has a time limit,
//! and the end of its output is recorded.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use http::Method;
use tokio::sync::watch;

use crate::network::{ClientError, Request};
use crate::rows::HookOutcome;
use crate::units::Nanos;

use super::command::{CommandEnd, KEPT, Output, RunningCommand, cannot_start, shown_end};
use super::probe::{LONGEST_WAIT, Question, client};

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
    let failed = |reason: String| Ok(HookEnd::failed(reason, start));
    let (reader, writer) = match std::io::pipe() {
        Ok(pipe) => pipe,
        Err(error) => return failed(cannot_start(&error)),
    };
    let errors = match writer.try_clone() {
        Ok(errors) => errors,
        Err(error) => return failed(cannot_start(&error)),
    };
    let running = match RunningCommand::start(command, env, folder, [writer, errors]) {
        Ok(running) => running,
        Err(reason) => return failed(reason),
    };
    let output = Output::read(reader);
    let mut is_announced = false;
    let announce = || {
        if !is_announced && start.elapsed() >= ANNOUNCED_AFTER {
            is_announced = true;
            (limits.announce)();
        }
    };
    let ended = match running.wait(start + Duration::from(limits.within), &limits.stop, announce) {
        CommandEnd::Exited(status) => HookEnd::of_status(status, start),
        CommandEnd::TimedOut => HookEnd::timed_out(limits.within, start),
        CommandEnd::Lost(reason) => HookEnd::failed(reason, start),
        CommandEnd::Stopped => return Err(HookStopped),
    };
    Ok(HookEnd { output: shown_end(&output.end(OUTPUT_WITHIN), limits.secrets), ..ended })
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
            output: shown_end(&data, limits.secrets),
            ..HookEnd::failed(String::new(), start)
        },
        Err(error) if error.is_timeout() && !error.is_connect() => HookEnd::timed_out(limits.within, start),
        Err(error) => {
            let detail = shown_end(error.words().as_bytes(), limits.secrets);
            HookEnd::failed(format!("no response: {detail}"), start)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::command::RECORDED;
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
