//! What the watched page shows: the report as it was last made, and what is going on now in front of it.

use std::sync::{Arc, Mutex};

use serde_json::json;

use super::server::Pages;
use super::state::Now;
use crate::report::format::plain;
use crate::report::html::{LIVE_PLACE, LiveView, Watched, live};
use crate::store::Store;

/// The report as it was last made.
#[derive(Clone)]
struct Made {
    /// The page, with a place for what is going on.
    html: Arc<str>,
    /// Which one it is, so that a browser knows whether it has it.
    number: u64,
    /// What is wrong with the latest attempt to make it.
    trouble: Option<String>,
    /// How many of the plan's runs have results, and of how many.
    results: Option<(usize, usize)>,
}

/// The watched page.
pub(super) struct WatchedPage {
    store: Store,
    made: Mutex<Made>,
}

impl WatchedPage {
    /// Of a results folder; `first` stands there until there is a report.
    pub(super) fn new(store: Store, first: String) -> WatchedPage {
        let made = Made { html: first.into(), number: 0, trouble: None, results: None };
        WatchedPage { store, made: Mutex::new(made) }
    }

    /// A report was made, of so many runs of so many.
    pub(super) fn put(&self, watched: Watched, results: (usize, usize)) {
        let mut made = self.made.lock().expect("no user of the lock panics");
        *made = Made { html: watched.html.into(), number: made.number + 1, trouble: None, results: Some(results) };
    }

    /// No report could be made, for this reason.
    pub(super) fn lack(&self, trouble: Option<String>, results: Option<(usize, usize)>) {
        let mut made = self.made.lock().expect("no user of the lock panics");
        (made.trouble, made.results) = (trouble, results.or(made.results));
    }

    fn made(&self) -> Made {
        self.made.lock().expect("no user of the lock panics").clone()
    }

    /// The HTML of what is going on.
    fn now(&self, made: &Made) -> String {
        let folder = self.store.layout().root().display().to_string();
        let (state, is_stale, note) = match Now::of(&self.store) {
            Now::Running(state) => (Some(*state), false, None),
            Now::Stale(state) => (Some(*state), true, None),
            Now::Nothing => (None, false, None),
            Now::Unreadable(why) => (None, false, Some(why)),
        };
        let results = made.results.map(|(there, of)| format!("{there} of {of} runs of the plan have results."));
        let notes = note.into_iter().chain(made.trouble.clone()).map(|note| plain(&note)).collect();
        let view = LiveView { state, is_stale, folder: plain(&folder), results, notes };
        live(&view).unwrap_or_else(|error| plain(&error.to_string()).replace(['<', '&'], " "))
    }
}

impl Pages for WatchedPage {
    fn page(&self) -> String {
        let made = self.made();
        made.html.replacen(LIVE_PLACE, &format!("<div data-report=\"{}\">{}</div>", made.number, self.now(&made)), 1)
    }

    fn live(&self) -> String {
        let made = self.made();
        json!({ "report": made.number, "html": self.now(&made) }).to_string()
    }
}
