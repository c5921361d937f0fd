//! `sweepline report --watch PLAN` serves the page of a running or finished sweep on loopback and updates
//! it as runs are committed. The page is served until the command ends, and nothing is written. The command
//! lowers its priority, because it may run on the machine that measures.

mod guard;
mod pages;
mod server;
mod state;

use std::io::Read;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::FileType;
use tokio::sync::watch;

use guard::Guard;
use pages::WatchedPage;

use crate::cli::failure::{Exit, Failure};
use crate::cli::interrupt::listen_for_signals;
use crate::cli::report::asked::Asked;
use crate::cli::results::Readings;
use crate::cli::{output, stderr};
use crate::report::format::plain;
use crate::report::html::{Report, waiting};
use crate::units::NonceSeed;

/// Interval between checks for new results.
const LOOK: Duration = Duration::from_millis(500);

/// Minimum pause after a report, as a multiple of the time that the report took. It limits the load that
/// reports put on the machine.
const SPARING: u32 = 9;

/// Reads results and creates their report, based on the state of the previous read.
type Make = fn(&Asked, Option<Readings>) -> Result<(Readings, Report), Failure>;

/// Serves the page until the command is ended.
pub(super) fn run(asked: Asked, port: u16, report: Make) -> Result<Exit, Failure> {
    // Errors of the plan and of the folder are reported immediately.
    let workspace = asked.runs.open(&asked.folder)?;
    asked.runs.picked(&workspace)?;
    let stop = listen_for_signals()?;
    // Best effort: if the priority cannot be lowered, it stays as it is.
    let _ = rustix::process::nice(10);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Unexpected(error.into()))?;
    let listener = runtime.block_on(server::listen(port)).map_err(|error| taken(port, &error))?;
    let port = listener.local_addr().map_err(|error| Failure::Unexpected(error.into()))?.port();
    let token = NonceSeed::random().map_err(|error| Failure::Unexpected(error.into()))?.to_string();
    let url = format!("http://127.0.0.1:{port}/{token}/");
    let name = plain(&workspace.plan().name);
    let first = waiting(
        &name,
        &format!("No run of {name} has a result yet. The report appears here as soon as one is committed."),
    );
    let first = first.map_err(|error| Failure::Unexpected(error.into()))?;
    let page = Arc::new(WatchedPage::new(asked.folder.store()?, first));
    let (end, ends) = watch::channel(false);
    // The sender is also kept here, because the server ends when the last sender is dropped, and
    // `end_with_input` drops its own if standard input is not a pipe.
    let end = Arc::new(end);
    end_with_input(Arc::clone(&end));
    drop(workspace);
    output::print(&format!("{url}\n"))?;
    stderr::complain("everyone with this address can read the report; Ctrl-C ends it");
    // The thread is not joined, because its next report is no longer needed and it writes nothing.
    let maker = {
        let page = Arc::clone(&page);
        move || make(&asked, report, &page)
    };
    let maker = thread::Builder::new().name("report".to_owned()).spawn(maker);
    maker.map_err(|error| Failure::Unexpected(error.into()))?;
    runtime.block_on(async {
        let mut stop = stop;
        tokio::select! {
            () = server::serve(listener, Guard::new(token, port), page, ends) => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    });
    drop(end);
    runtime.shutdown_background();
    Ok(Exit::Done)
}

fn taken(port: u16, error: &std::io::Error) -> Failure {
    Failure::Usage(format!(
        "cannot listen on port {port} of 127.0.0.1 ({error}): choose another port with --port, or use --port 0 for any \
         free one"
    ))
}

/// Ends the command when its standard input is closed, if standard input is a pipe or a socket of the
/// parent process. A file, `/dev/null` and a terminal have no such effect; a closing terminal sends a
/// signal.
fn end_with_input(end: Arc<watch::Sender<bool>>) {
    let is_pipe = rustix::fs::fstat(std::io::stdin().as_fd())
        .is_ok_and(|stat| matches!(FileType::from_raw_mode(stat.st_mode), FileType::Fifo | FileType::Socket));
    if is_pipe {
        thread::spawn(move || {
            let mut input = std::io::stdin();
            let mut ignored = [0; 256];
            while matches!(input.read(&mut ignored), Ok(read) if read > 0) {}
            end.send_replace(true);
        });
    }
}

/// Creates the report again whenever something has changed.
fn make(asked: &Asked, report: Make, page: &WatchedPage) {
    let mut before: Option<Readings> = None;
    let mut seen = None;
    let mut not_before = Instant::now();
    loop {
        let stamp = stamp(asked);
        if seen.as_ref() != Some(&stamp) && Instant::now() >= not_before {
            let start = Instant::now();
            before = make_once(asked, page, report(asked, before.take()));
            seen = Some(stamp);
            not_before = Instant::now() + start.elapsed() * SPARING;
        }
        thread::sleep(LOOK);
    }
}

/// Creates a report and publishes it; returns the state of the read, so that only new results are read next
/// time.
fn make_once(asked: &Asked, page: &WatchedPage, made: Result<(Readings, Report), Failure>) -> Option<Readings> {
    let told = |why: &dyn std::fmt::Display| format!("The report could not be made: {why}");
    match made {
        Ok((readings, report)) => {
            let there = readings.runs.len();
            let results = (there, there + readings.without_result());
            match report.watched() {
                Ok(watched) => page.put(watched, results),
                Err(error) => page.lack(Some(told(&error)), Some(results)),
            }
            Some(readings)
        }
        Err(failure) => {
            // Before the first commit there is nothing to show.
            let is_early = matches!(failure, Failure::Usage(_)) && !has_results(asked);
            page.lack((!is_early).then(|| told(&failure.in_words())), None);
            None
        }
    }
}

fn has_results(asked: &Asked) -> bool {
    asked.folder.store().is_ok_and(|store| store.has_runs().is_ok_and(|has_runs| has_runs))
}

/// Returns when results, attempts and the plan last changed, according to the modification times of their
/// folders and of the plan's file. A commit is a rename into one of these folders.
fn stamp(asked: &Asked) -> Vec<Option<SystemTime>> {
    let Ok(store) = asked.folder.store() else { return Vec::new() };
    let layout = store.layout();
    let paths: [PathBuf; 5] =
        [layout.runs(), layout.attempts(), layout.superseded(), layout.inventory(), asked.runs.plan_file().to_owned()];
    paths.iter().map(|path| path.metadata().and_then(|metadata| metadata.modified()).ok()).collect()
}
