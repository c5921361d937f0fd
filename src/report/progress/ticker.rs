//! Redraws a face a few times per second on a separate thread, so neither the engine nor the sweep waits
//! for a terminal.

use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use super::face::Face;
use super::tracker::Tracker;
use crate::sweep::event::Event;

const REFRESH: Duration = Duration::from_millis(250);

/// The state to draw, and the face that draws it.
struct Shared {
    tracker: Tracker,
    face: Box<dyn Face>,
    is_over: bool,
}

/// A face that is redrawn until this is dropped.
pub(super) struct Ticker {
    shared: Arc<Mutex<Shared>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts drawing.
    pub(super) fn start(tracker: Tracker, face: Box<dyn Face>) -> Ticker {
        let shared = Arc::new(Mutex::new(Shared { tracker, face, is_over: false }));
        let theirs = Arc::clone(&shared);
        let draw = move || {
            loop {
                let mut shared = locked(&theirs);
                if shared.is_over {
                    return;
                }
                shared.draw();
                drop(shared);
                std::thread::park_timeout(REFRESH);
            }
        };
        // If no thread can be created, events are still drawn as they happen.
        let thread = std::thread::Builder::new().name("screen".to_owned()).spawn(draw).ok();
        Ticker { shared, thread }
    }

    /// Takes an event and shows its effect at once.
    pub(super) fn take(&self, event: &Event) {
        let mut shared = locked(&self.shared);
        shared.tracker.take(event);
        shared.draw();
    }

    /// Prints whole lines.
    pub(super) fn print(&self, text: &str) {
        locked(&self.shared).face.print(text);
    }
}

impl Shared {
    fn draw(&mut self) {
        let now = self.tracker.now();
        self.face.draw(&now);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        let mut shared = locked(&self.shared);
        shared.is_over = true;
        shared.face.close();
        drop(shared);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A thread that panicked has nothing left to show.
            let _ = thread.join();
        }
    }
}

fn locked(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().expect("no user of the lock panics")
}
