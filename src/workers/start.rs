//! Starts a worker.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// The hidden command of a worker.
pub const WORKER: &str = "worker";

/// The start command of one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartCommand {
    /// Starts this program on this machine.
    Here,
    /// A shell command that runs sweepline, for example on another machine: `ssh client-1 sweepline`.
    Shell(String),
}

impl StartCommand {
    /// Starts the worker, with pipes to its standard input, output and error.
    pub(super) fn spawn(&self) -> io::Result<Child> {
        let mut command = match self {
            StartCommand::Here => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg(WORKER);
                command
            }
            StartCommand::Shell(text) => {
                let mut command = Command::new("sh");
                command.args(["-c", &format!("exec {text} {WORKER}")]);
                command
            }
        };
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The worker has a separate process group, so that Ctrl-C in a terminal reaches only the coordinator,
        // which ends the worker.
        pipes.process_group(0).spawn()
    }

    /// Formats the command for messages.
    pub(super) fn shown(&self) -> String {
        match self {
            StartCommand::Here => "a process on this machine".to_owned(),
            StartCommand::Shell(text) => format!("started by `{text}`"),
        }
    }
}
