//! Runs a command of the plan: a hook, or a command that prints a token. Each command has its own process
//! group, an empty standard input and a time limit. If it exceeds the limit, or is still running when sweepline
//! is killed, the whole group is killed.

use std::io::{self, PipeWriter, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::units::secrecy::without_secrets;
use crate::units::text::is_unseen;

use super::watchdog::{Watchdog, kill_group};

/// Maximum number of bytes at the end of an output that are recorded or shown.
pub(super) const RECORDED: usize = 2 * 1024;
/// Number of bytes at the end of the output that are kept while the command runs. More are kept than are
/// recorded, because secrets are removed before the record is truncated, so that it never contains a part
/// of a secret.
pub(super) const KEPT: usize = 64 * 1024;
/// Interval between checks whether a command has ended.
const LOOK: Duration = Duration::from_millis(5);

/// A command that was started, and the watchdog over its process group.
pub(super) struct RunningCommand {
    child: Child,
    /// `None` if no watchdog could be started. If sweepline is killed, the command then continues to run.
    watchdog: Option<Watchdog>,
}

/// How a command ended.
pub(super) enum CommandEnd {
    /// It exited, or was ended by a signal.
    Exited(ExitStatus),
    /// It was killed because it exceeded its time limit.
    TimedOut,
    /// It was killed because the sweep was stopped.
    Stopped,
    /// The system cannot tell how it ended; the string gives the reason.
    Lost(String),
}

/// Returns the reason why a command was not started.
pub(super) fn cannot_start(error: &io::Error) -> String {
    format!("cannot start it: {error}")
}

impl RunningCommand {
    /// Starts a command in `folder`, with `env` added to its environment, writing to `outputs`: its standard
    /// output and its standard error. Fails with the reason.
    pub(super) fn start(
        command: &[String],
        env: &[(&str, String)],
        folder: &Path,
        outputs: [PipeWriter; 2],
    ) -> Result<RunningCommand, String> {
        let Some((program, arguments)) = command.split_first() else {
            return Err("no program in the command".to_owned());
        };
        // Systems differ in whether a relative path is resolved before or after changing the current folder, so
        // the path is made absolute.
        let place = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let whole = if program.contains('/') {
            std::path::absolute(place.join(program)).map_err(|error| cannot_start(&error))?
        } else {
            program.into()
        };
        let [stdout, stderr] = outputs;
        let watchdog = Watchdog::start();
        let group = watchdog.as_ref().and_then(|watchdog| i32::try_from(watchdog.group()).ok());
        let mut started = Command::new(whole);
        started.args(arguments).envs(env.iter().map(|(name, value)| (name, value))).current_dir(place);
        // Without a watchdog, the command has a group of its own.
        started.process_group(group.unwrap_or(0));
        // `started` holds the write ends of the pipes, which would keep the pipes open. It is dropped here.
        let child = match started.stdin(Stdio::null()).stdout(stdout).stderr(stderr).spawn() {
            Ok(child) => child,
            Err(_) if !Path::new("/dev/null").exists() => {
                return Err("cannot start it: this system has no /dev/null; mount /dev".to_owned());
            }
            Err(error) => return Err(cannot_start(&error)),
        };
        Ok(RunningCommand { child, watchdog })
    }

    /// Returns the command's process group.
    fn group(&self) -> u32 {
        self.watchdog.as_ref().map_or_else(|| self.child.id(), Watchdog::group)
    }

    /// Waits for the end of the command, and calls `meanwhile` again and again. At `deadline`, and when `stop`
    /// becomes true, the command's process group is killed. Processes that a finished command left running are
    /// not killed.
    pub(super) fn wait(
        mut self,
        deadline: Instant,
        stop: &watch::Receiver<bool>,
        mut meanwhile: impl FnMut(),
    ) -> CommandEnd {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return CommandEnd::Exited(status),
                Ok(None) => {}
                Err(error) => return CommandEnd::Lost(format!("cannot wait for it: {error}")),
            }
            let is_stopped = *stop.borrow();
            if is_stopped || Instant::now() >= deadline {
                kill_group(self.group());
                let _ = self.child.wait();
                return if is_stopped { CommandEnd::Stopped } else { CommandEnd::TimedOut };
            }
            meanwhile();
            std::thread::sleep(LOOK);
        }
    }
}

/// The last bytes of a command's output. A thread reads the output, so a command that prints a lot is never
/// blocked.
pub(super) struct Output {
    kept: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Output {
    /// Starts to read an output.
    pub(super) fn read(mut from: impl Read + Send + 'static) -> Output {
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
        let reader = std::thread::Builder::new().name("command output".to_owned()).spawn(read).ok();
        Output { kept, reader }
    }

    /// Returns the output that was kept, after the command has ended. Processes that the command left running
    /// may hold the pipe open. This function waits for them for at most `within`, and returns what has been
    /// written so far.
    pub(super) fn end(self, within: Duration) -> Vec<u8> {
        let deadline = Instant::now() + within;
        while self.reader.as_ref().is_some_and(|reader| !reader.is_finished()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Formats the end of an output for records and display. Secrets are removed before the output is
/// truncated, and control characters and invisible characters are removed as well.
pub(super) fn shown_end(output: &[u8], secrets: &[String]) -> String {
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
