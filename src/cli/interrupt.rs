//! Signals that end a sweep: Ctrl-C, `kill`, and a closed terminal.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::cli::failure::{Exit, Failure};
use crate::report::progress;

/// Becomes true at the first SIGINT, SIGTERM or SIGHUP. The sweep then stops and prints its final notes.
/// The second SIGINT or SIGTERM ends the program at once. A closing terminal sends more than one SIGHUP,
/// so a second SIGHUP has no such effect; SIGHUP is ignored if the program was started to outlive its
/// terminal (`nohup`).
pub(crate) fn listen_for_signals() -> Result<watch::Receiver<bool>, Failure> {
    let (sender, receiver) = watch::channel(false);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Unexpected(error.into()))?;
    let (mut interrupt, mut terminate, mut hangup) = {
        let _inside = runtime.enter();
        let listen = |kind| signal(kind).map_err(|error| Failure::Unexpected(error.into()));
        let hangup = (!ignores_hangup()).then(|| listen(SignalKind::hangup())).transpose()?;
        (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?, hangup)
    };
    let listen = move || {
        runtime.block_on(async {
            let mut asked = 0;
            loop {
                tokio::select! {
                    _ = interrupt.recv() => asked += 1,
                    _ = terminate.recv() => asked += 1,
                    () = closed(&mut hangup) => asked = asked.max(1),
                }
                if asked > 1 {
                    progress::leave();
                    std::process::exit(i32::from(Exit::Interrupted.code()));
                }
                sender.send_replace(true);
            }
        });
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(listen).map_err(|e| Failure::Unexpected(e.into()))?;
    Ok(receiver)
}

/// Becomes ready when the terminal has closed; never becomes ready if that is ignored.
async fn closed(hangup: &mut Option<Signal>) {
    match hangup {
        Some(hangup) => drop(hangup.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether the parent process set SIGHUP to be ignored. Only Linux reports this without unsafe code.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // The lowest bit is signal 1, SIGHUP.
    mask & 1 == 1
}
