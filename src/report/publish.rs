//! Writes what a sweep says of itself into `live.json`, about once a second, on a thread of its own: neither the engine nor the sweep
//! waits for the disk. Best effort: a folder that takes no such file has no watcher, and no worse result.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::format::plain;
use super::live::Live;
use super::live_state::{FORMAT, LiveState, LiveWait};
use crate::store::Moment;
use crate::sweep::event::{Event, RunView};

const EVERY: Duration = Duration::from_secs(1);

/// Publishes a running sweep; what it wrote is gone when it goes.
pub(crate) struct Publisher {
    sweep: Arc<Mutex<Sweep>>,
    writer: Option<JoinHandle<()>>,
}

struct Sweep {
    file: PathBuf,
    /// Everything but what is read at the instant of writing.
    state: LiveState,
    live: Vec<Live>,
    waits: HashMap<String, Wait>,
    /// Time that each run not yet ended takes as a whole, in nanoseconds, by number.
    remaining: HashMap<usize, u64>,
    /// Time that the sweep takes for each second of its runs.
    pace: f64,
    is_over: bool,
}

struct Wait {
    reason: String,
    since: Instant,
    within: Option<Duration>,
}

impl Publisher {
    /// Begins to publish the sweep of a plan in `file`; the sweep takes `pace` seconds for each second of its runs.
    pub(crate) fn start(plan: &str, file: &Path, pace: f64) -> Publisher {
        let state = LiveState {
            format: FORMAT,
            plan: plain(plan),
            pid: std::process::id(),
            started: Moment::now(),
            written: Moment::now(),
            runs: 0,
            settled: 0,
            committed: 0,
            failed: 0,
            given_up: 0,
            skipped: 0,
            left_s: None,
            stopping: false,
            under_way: Vec::new(),
            waits: Vec::new(),
            last_trouble: None,
        };
        let sweep = Sweep {
            file: file.to_owned(),
            state,
            live: Vec::new(),
            waits: HashMap::new(),
            remaining: HashMap::new(),
            pace,
            is_over: false,
        };
        let sweep = Arc::new(Mutex::new(sweep));
        let of_writer = Arc::clone(&sweep);
        let write = move || {
            loop {
                // A disk that stands still holds up nobody who tells an event.
                let Some((file, text)) = of_writer.lock().ok().and_then(|mut sweep| sweep.text()) else { return };
                place(&file, &text);
                std::thread::park_timeout(EVERY);
            }
        };
        let writer = std::thread::Builder::new().name("live".to_owned()).spawn(write).ok();
        Publisher { sweep, writer }
    }

    /// Takes an event of the sweep.
    pub(crate) fn take(&self, event: &Event) {
        if let Ok(mut sweep) = self.sweep.lock() {
            sweep.take(event);
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        if let Ok(mut sweep) = self.sweep.lock() {
            sweep.is_over = true;
        }
        if let Some(writer) = self.writer.take() {
            writer.thread().unpark();
            // One that panicked writes no longer.
            let _ = writer.join();
        }
        if let Ok(sweep) = self.sweep.lock() {
            let _ = std::fs::remove_file(&sweep.file);
        }
    }
}

impl Sweep {
    fn take(&mut self, event: &Event) {
        match event {
            Event::Begin { todo, settled } => {
                (self.state.runs, self.state.settled) = (settled + todo.len(), *settled);
                self.remaining = todo.iter().map(|run| (run.number, run.expected_ns())).collect();
            }
            Event::Started { run, progress } => {
                self.live.push(Live::new(ProgressBar::hidden(), run, progress));
            }
            Event::Committed { run } => {
                self.off(run, true);
                self.state.committed += 1;
            }
            Event::Failed { run, reason } => {
                self.off(run, true);
                self.state.failed += 1;
                self.trouble(run, &format!("failed: {reason}"));
            }
            Event::Again { run, reason, again, of } => {
                self.off(run, false);
                self.trouble(run, &format!("spoiled, to be tried again ({again} of {of}): {reason}"));
            }
            Event::GivenUp { run, cause, reason, times } => {
                self.off(run, true);
                self.state.given_up += 1;
                self.trouble(run, &format!("given up: {cause} ({times} of {times}): {reason}"));
            }
            Event::Skipped { run, reason } => {
                self.off(run, true);
                self.state.skipped += 1;
                self.trouble(run, &format!("skipped: {reason}"));
            }
            Event::Waiting { endpoint, waiting } => {
                let since = Instant::now().checked_sub(waiting.waited).unwrap_or_else(Instant::now);
                self.wait(endpoint, &waiting.reason, since, Some(waiting.within));
            }
            Event::Launching { endpoint, .. } => {
                self.wait(endpoint, "its server is being started", Instant::now(), None)
            }
            Event::Slow { endpoint, .. } => {
                self.wait(endpoint, "the server has not answered yet", Instant::now(), None)
            }
            Event::Endpoint { endpoint, .. } | Event::Launched { endpoint, .. } => drop(self.waits.remove(endpoint)),
            Event::Relaunching { endpoint, reason, .. } => {
                self.state.last_trouble = Some(plain(&format!("{endpoint}: to be started again: {reason}")));
            }
            Event::Stopping => self.state.stopping = true,
            Event::Far { .. } | Event::Busy { .. } | Event::End => {}
        }
    }

    fn wait(&mut self, endpoint: &str, reason: &str, since: Instant, within: Option<Duration>) {
        self.waits.insert(endpoint.to_owned(), Wait { reason: plain(reason), since, within });
    }

    fn trouble(&mut self, run: &RunView, what: &str) {
        self.state.last_trouble = Some(plain(&format!("{}: {what}", run.name)));
    }

    /// A run is under way no longer; `for_good` says that it does not come back.
    fn off(&mut self, run: &RunView, for_good: bool) {
        self.live.retain(|live| live.number() != run.number);
        if for_good {
            self.remaining.remove(&run.number);
        }
    }

    /// The file, and what is to stand in it now; none when the sweep is over.
    fn text(&mut self) -> Option<(PathBuf, Vec<u8>)> {
        if self.is_over {
            return None;
        }
        let whole: u64 = self.remaining.values().sum();
        let gone: u64 = self.live.iter().map(Live::gone_ns).sum();
        let is_known = self.state.runs > 0;
        let state = &mut self.state;
        state.left_s = is_known.then(|| whole.saturating_sub(gone) as f64 * self.pace / 1e9);
        state.written = Moment::now();
        state.under_way = self.live.iter_mut().map(Live::state).collect();
        let wait = |(endpoint, wait): (&String, &Wait)| LiveWait {
            endpoint: plain(endpoint),
            reason: wait.reason.clone(),
            waited_s: wait.since.elapsed().as_secs_f64(),
            within_s: wait.within.map(|within| within.as_secs_f64()),
        };
        state.waits = self.waits.iter().map(wait).collect();
        state.waits.sort_by(|a, b| a.endpoint.cmp(&b.endpoint));
        let mut text = serde_json::to_vec_pretty(&self.state).unwrap_or_default();
        text.push(b'\n');
        Some((self.file.clone(), text))
    }
}

/// Replaces the file in one step.
fn place(file: &Path, text: &[u8]) {
    let mut beside = file.to_owned().into_os_string();
    beside.push(".new");
    if std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, file)).is_err() {
        let _ = std::fs::remove_file(&beside);
    }
}
