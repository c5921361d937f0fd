//! Detects requests that were late because their contents had not been generated yet.

use crate::rows::{Facts, Measured};

use super::request::Metric;
use super::window;

/// Minimum share of their lateness that late requests must have waited for contents for this to be
/// named as the cause.
const MOST_OF_IT: f64 = 0.5;

/// Reports that contents came too late, if the requests of the window that were more than `allowed` ms
/// late mostly waited for contents.
pub(super) fn cause(rows: &[Measured], facts: &Facts, allowed: f64) -> Option<String> {
    let (mut late, mut waited) = (0.0, 0.0);
    for row in window::members(rows, facts) {
        let lateness = window::request(row, facts).observe(Metric::Lateness).value();
        let Some(lateness) = lateness.filter(|lateness| *lateness > allowed) else { continue };
        late += lateness;
        waited += row.content_wait_ns().map_or(0.0, |nanos| nanos as f64 / 1e6).min(lateness);
    }
    let making = ["content", "script"].into_iter().filter_map(|name| facts.observed.as_ref()?.thread(name));
    let busy = making.map(|thread| thread.cpu_ns).max();
    let busy = busy.zip(facts.observed.as_ref()).map_or(String::new(), |(cpu, observed)| {
        format!(" (by a thread that used {:.0}% of a core)", observed.share(cpu) * 100.0)
    });
    let text = || format!("for {:.0}% of that time their contents were not yet generated{busy}", waited / late * 100.0);
    (late > 0.0 && waited >= MOST_OF_IT * late).then(text)
}
