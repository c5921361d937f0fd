//! Writes the state of a sweep to `live.json` about once per second, on a separate thread, so neither the
//! engine nor the sweep waits for the disk. If the file cannot be written, the sweep cannot be watched, but
//! its results are not affected.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::outlook::Outlook;
use super::state::{FORMAT, LiveFile};
use super::tracker::Tracker;
use crate::report::format::plain;
use crate::store::Moment;
use crate::sweep::event::Event;

const EVERY: Duration = Duration::from_secs(1);

/// Publishes the state of a running sweep, and removes the file when it is dropped.
pub(crate) struct Publisher {
    sweep: Arc<Mutex<Sweep>>,
    writer: Option<JoinHandle<()>>,
}

struct Sweep {
    file: PathBuf,
    plan: String,
    started: Moment,
    tracker: Tracker,
    is_over: bool,
}

impl Publisher {
    /// Starts publishing the state of a plan's sweep in `file`.
    pub(crate) fn start(plan: &str, file: &Path, outlook: Outlook) -> Publisher {
        let tracker = Tracker::new(outlook);
        let (plan, started) = (plain(plan), Moment::now());
        let sweep = Arc::new(Mutex::new(Sweep { file: file.to_owned(), plan, started, tracker, is_over: false }));
        let of_writer = Arc::clone(&sweep);
        let write = move || {
            loop {
                // The lock is not held during the write, because a stalled disk must not block events.
                let Some((file, text)) = of_writer.lock().ok().and_then(|mut sweep| sweep.text()) else { return };
                place(&file, &text);
                std::thread::park_timeout(EVERY);
            }
        };
        let writer = std::thread::Builder::new().name("live".to_owned()).spawn(write).ok();
        Publisher { sweep, writer }
    }

    /// Updates the state with an event of the sweep.
    pub(crate) fn take(&self, event: &Event) {
        if let Ok(mut sweep) = self.sweep.lock() {
            sweep.tracker.take(event);
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
            // An error means that the writer panicked, so it no longer writes the file.
            let _ = writer.join();
        }
        if let Ok(sweep) = self.sweep.lock() {
            let _ = std::fs::remove_file(&sweep.file);
        }
    }
}

impl Sweep {
    /// Returns the path of the file and its new content; `None` if the sweep is over.
    fn text(&mut self) -> Option<(PathBuf, Vec<u8>)> {
        if self.is_over {
            return None;
        }
        let now = LiveFile {
            format: FORMAT,
            plan: self.plan.clone(),
            pid: std::process::id(),
            started: self.started,
            written: Moment::now(),
            sweep: self.tracker.now(),
        };
        let mut text = serde_json::to_vec_pretty(&now).unwrap_or_default();
        text.push(b'\n');
        Some((self.file.clone(), text))
    }
}

/// Replaces the file atomically.
fn place(file: &Path, text: &[u8]) {
    let mut beside = file.to_owned().into_os_string();
    beside.push(".new");
    if std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, file)).is_err() {
        let _ = std::fs::remove_file(&beside);
    }
}
