//! The contents of the watched page: the live state, with the latest report below it.

use std::sync::{Arc, Mutex};

use serde_json::json;

use super::server::Pages;
use super::state::Now;
use crate::report::format::plain;
use crate::report::html::{LIVE_PLACE, LiveView, Watched, live};
use crate::store::Store;

/// The latest report.
#[derive(Clone)]
struct Made {
    /// The page, with a placeholder for the live state.
    html: Arc<str>,
    /// The number of the report, by which a browser recognizes a newer version.
    number: u64,
    /// The error of the latest attempt to create the report; `None` if there was none.
    trouble: Option<String>,
    /// The number of the plan's runs that have results, and the number of all runs of the plan; `None`
    /// before the first read.
    results: Option<(usize, usize)>,
}

/// The watched page.
pub(super) struct WatchedPage {
    store: Store,
    made: Mutex<Made>,
}

impl WatchedPage {
    /// Creates the page for a results folder; `first` is shown until there is a report.
    pub(super) fn new(store: Store, first: String) -> WatchedPage {
        let made = Made { html: first.into(), number: 0, trouble: None, results: None };
        WatchedPage { store, made: Mutex::new(made) }
    }

    /// Publishes a new report; `results` are the number of runs with results and the number of all runs.
    pub(super) fn put(&self, watched: Watched, results: (usize, usize)) {
        let mut made = self.made.lock().expect("no user of the lock panics");
        *made = Made { html: watched.html.into(), number: made.number + 1, trouble: None, results: Some(results) };
    }

    /// Records why no report could be created (`None` if there is nothing to report yet), and the numbers of
    /// runs, if they are known.
    pub(super) fn lack(&self, trouble: Option<String>, results: Option<(usize, usize)>) {
        let mut made = self.made.lock().expect("no user of the lock panics");
        (made.trouble, made.results) = (trouble, results.or(made.results));
    }

    fn made(&self) -> Made {
        self.made.lock().expect("no user of the lock panics").clone()
    }

    /// Returns the HTML of the live state.
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
