//! Redraws a display (a [`Face`]) a few times per second on a separate thread, so neither the engine nor the
//! sweep waits for a terminal.

use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use super::face::Face;
use super::tracker::Tracker;
use crate::sweep::event::Event;

const REFRESH: Duration = Duration::from_millis(250);

/// The state to draw, and the display that draws it.
struct Shared {
    tracker: Tracker,
    face: Box<dyn Face>,
    is_over: bool,
}

/// Redraws a display until the ticker is dropped.
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
        // If the thread cannot be created, the display is redrawn only when an event happens.
        let thread = std::thread::Builder::new().name("screen".to_owned()).spawn(draw).ok();
        Ticker { shared, thread }
    }

    /// Updates the state with an event and redraws the display at once.
    pub(super) fn take(&self, event: &Event) {
        let mut shared = locked(&self.shared);
        shared.tracker.take(event);
        shared.draw();
    }

    /// Prints whole lines on the display.
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
            // If the thread panicked, nothing is left to do.
            let _ = thread.join();
        }
    }
}

fn locked(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().expect("no user of the lock panics")
}
