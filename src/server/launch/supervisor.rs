//! The supervisor: a process between a sweep and the server that it launched. It holds the read end of a
//! pipe from the sweep and ends the server when the pipe closes.

use std::io::{self, BufRead, PipeReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, set_child_subreaper, test_kill_process_group};

use super::command::run_within;
use super::lease::Lease;
use super::log::Log;
use super::order::{MARK, Order, Said};
use super::processes;

/// Interval between checks whether processes are gone.
const LOOK: Duration = Duration::from_millis(20);
/// How long to wait for killed processes to be gone.
const KILLED_WITHIN: Duration = Duration::from_secs(5);
/// How long to wait, after the server's process has ended, until all that it printed is in the log. The limit is reached
/// only if the disk stalls, or if other processes of the server print without pause or hold back the end of a line.
const LOGGED_WITHIN: Duration = Duration::from_secs(10);

/// An event that a supervisor waits for.
enum Happened {
    /// The server's process has ended.
    Ended(io::Result<ExitStatus>),
    /// The sweep has requested the end of the server, or the sweep itself has ended.
    Stop,
}

/// The output of the server that is not yet in its log.
struct Unlogged {
    output: PipeReader,
    /// Whether output that was taken from the pipe is being written.
    is_writing: Arc<AtomicBool>,
}

impl Unlogged {
    /// Waits until the log contains everything that was printed before this call.
    fn wait(&self) {
        let deadline = Instant::now() + LOGGED_WITHIN;
        while self.exists() && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
    }

    /// The pipe is looked at first, because the flag is set before output is taken from the pipe.
    fn exists(&self) -> bool {
        ioctl_fionread(&self.output).is_ok_and(|bytes| bytes > 0) || self.is_writing.load(Ordering::SeqCst)
    }
}

/// Runs this process as a supervisor: reads the order from standard input, starts the server, and returns
/// when all processes of the server are gone.
pub fn supervise() -> io::Result<()> {
    // Orphaned processes of the server become children of this process, so that they can be found and ended.
    let _ = set_child_subreaper(Some(rustix::process::getpid()));
    let mut first = String::new();
    io::stdin().lock().read_line(&mut first)?;
    let order: Order = serde_json::from_str(&first)?;
    let mut lease = Lease::new(&order);
    lease.write(&order.lease)?;
    let (child, unlogged) = match spawn(&order) {
        Ok(spawned) => spawned,
        Err(error) => {
            say(&Said::Failed { reason: error.to_string() });
            Lease::remove(&order.lease);
            return Ok(());
        }
    };
    let pid = child.id();
    lease.started(pid);
    lease.write(&order.lease)?;
    say(&Said::Started { pid });
    let (sender, happened) = channel();
    wait_for(child, sender.clone())?;
    listen(sender)?;
    attend(&order, pid, &happened, &unlogged);
    Lease::remove(&order.lease);
    Ok(())
}

/// Sends a message to the sweep. Errors are ignored, because the sweep may be gone.
fn say(said: &Said) {
    let text = serde_json::to_string(said).unwrap_or_default();
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Starts the server, and returns what it printed that is not yet in its log.
fn spawn(order: &Order) -> io::Result<(Child, Unlogged)> {
    let (program, arguments) = order.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let log = Log::create(&order.log, &order.secrets)?;
    let (output, for_out) = io::pipe()?;
    let unlogged = Unlogged { output: output.try_clone()?, is_writing: Arc::default() };
    let for_err = for_out.try_clone()?;
    let mut command = Command::new(program);
    command.args(arguments).envs(&order.env).env(MARK, &order.mark).current_dir(&order.folder);
    let child = command.stdin(Stdio::null()).stdout(for_out).stderr(for_err).process_group(0).spawn()?;
    // `command` holds the write ends of the pipe, which would otherwise never close.
    drop(command);
    let is_writing = Arc::clone(&unlogged.is_writing);
    std::thread::Builder::new().name("server log".to_owned()).spawn(move || log.copy(output, &is_writing))?;
    Ok((child, unlogged))
}

fn wait_for(mut child: Child, sender: Sender<Happened>) -> io::Result<()> {
    let wait = move || drop(sender.send(Happened::Ended(child.wait())));
    std::thread::Builder::new().name("server wait".to_owned()).spawn(wait)?;
    Ok(())
}

/// Starts a thread that sends `Stop` when the sweep's pipe closes or delivers another line.
fn listen(sender: Sender<Happened>) -> io::Result<()> {
    let listen = move || {
        let mut line = String::new();
        let _ = io::stdin().lock().read_line(&mut line);
        let _ = sender.send(Happened::Stop);
    };
    std::thread::Builder::new().name("supervisor".to_owned()).spawn(listen)?;
    Ok(())
}

/// Waits for events, and then ends every process of the server.
fn attend(order: &Order, pid: u32, happened: &Receiver<Happened>, unlogged: &Unlogged) {
    let is_gone = match happened.recv() {
        // A command like `docker run -d` ends at once, but the server continues to run outside of the
        // command's process group until `stop` ends it.
        Ok(Happened::Ended(Ok(status))) if status.success() && order.stop.is_some() => {
            let _ = happened.recv();
            true
        }
        Ok(Happened::Ended(status)) => {
            // The sweep quotes the server's last lines as soon as it knows of the end.
            unlogged.wait();
            say(&Said::Ended { how: how(&status) });
            // Other processes of the server may still hold its port and devices.
            end(order, pid, happened, true);
            return;
        }
        Ok(Happened::Stop) | Err(_) => false,
    };
    end(order, pid, happened, is_gone);
}

fn how(status: &io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("with exit code {code}"),
            (None, Some(9)) => "by signal 9 (killed: out of memory, or by hand)".to_owned(),
            (None, signal) => format!("by signal {}", signal.unwrap_or_default()),
        },
        Err(error) => format!("in an unknown way ({error})"),
    }
}

/// Runs the `stop` command, then sends TERM, and then KILL, until no process of the server is left.
/// `is_gone` states whether the server's first process has already ended.
fn end(order: &Order, pid: u32, happened: &Receiver<Happened>, mut is_gone: bool) {
    let deadline = Instant::now() + order.stop_within();
    if let Some(stop) = &order.stop {
        run_within(stop, &order.env, &order.folder, deadline);
    }
    let signal_all = |signal: Signal| {
        processes::signal_group(pid, signal);
        processes::children_of(std::process::id()).into_iter().filter(|child| *child != pid).for_each(|child| {
            processes::signal(child, signal);
        });
    };
    signal_all(Signal::TERM);
    while Instant::now() < deadline && !nothing_left(pid, &mut is_gone, happened) {
        std::thread::sleep(LOOK);
    }
    let deadline = Instant::now() + KILLED_WITHIN;
    while Instant::now() < deadline && !nothing_left(pid, &mut is_gone, happened) {
        signal_all(Signal::KILL);
        std::thread::sleep(LOOK);
    }
}

fn nothing_left(pid: u32, is_gone: &mut bool, happened: &Receiver<Happened>) -> bool {
    while let Ok(what) = happened.try_recv() {
        *is_gone |= matches!(what, Happened::Ended(_));
    }
    processes::reap(pid);
    let group = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let has_group = group.is_some_and(|group| test_kill_process_group(group).is_ok());
    *is_gone && !has_group && processes::children_of(std::process::id()).is_empty()
}
