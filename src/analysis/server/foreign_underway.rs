//! Compares a server's count of requests at each scrape of a run with the number of the client's
//! requests that it can have completed by then. At the end of a run, it is unknown which of the
//! truncated requests the server has completed. At earlier scrapes, it is known that it had not
//! completed them yet.

use std::collections::BTreeMap;

use crate::rows::{Facts, Measured, Outcome, Sample};

use super::foreign_room::{may_be_answered, room};

/// The end of a response reaches the client at most this long after the server has counted the request.
const ON_THE_WAY_NS: u64 = 500_000_000;
const COUNTER: &str = "requests_succeeded";

/// Returns the server's and the client's counts at the scrape at which the server is furthest ahead;
/// `None` if it is never further ahead than allowed.
pub(super) fn most(rows: &[Measured], samples: &[Sample], facts: &Facts) -> Option<[f64; 2]> {
    let probes = facts.telemetry.as_ref()?.probes as f64;
    let mut earliest: Vec<u64> = rows.iter().filter_map(|row| earliest(row, facts)).collect();
    earliest.sort_unstable();
    let answered = rows.iter().filter(|row| row.outcome.is_ok()).count() as f64;
    let room = room(answered) + probes;
    let by_scrape = counts(samples).into_iter().map(|(at, counted)| {
        let client = earliest.partition_point(|instant| *instant <= at.saturating_add(ON_THE_WAY_NS));
        [counted, client as f64]
    });
    by_scrape
        .filter(|[counted, client]| *counted > client + room)
        .max_by(|a, b| (a[0] - a[1]).total_cmp(&(b[0] - b[1])))
}

/// Returns the earliest time at which the server may have completed a request, not including the
/// response's transit time; `None` if it cannot have completed it.
fn earliest(row: &Measured, facts: &Facts) -> Option<u64> {
    if row.outcome.is_ok() {
        return row.done_ns();
    }
    // A failed request may have been completed long before the client gave it up.
    let sent = row.sent_ns().filter(|_| may_be_answered(row))?;
    let is_cut = row.outcome == Outcome::CutAtDrain;
    // A request that still receives tokens is not complete. A stream that stalls may have lost its end.
    Some(match row.last_token_ns() {
        Some(last) if is_cut => last,
        None if is_cut => facts.windows.end_ns,
        _ => sent,
    })
}

/// Returns, for the end of each scrape, how many requests all pages together have counted since the
/// first scrape. If a page was not read at an instant, its last count is used, which is never too high.
fn counts(samples: &[Sample]) -> Vec<(u64, f64)> {
    let of_page = |sample: &Sample| Some((sample.at_ns, sample.url?));
    let seconds: BTreeMap<(u64, u32), f64> = samples
        .iter()
        .filter(|sample| sample.source == "scrape" && sample.name == "scrape_duration_seconds")
        .filter_map(|sample| Some((of_page(sample)?, sample.value)))
        .collect();
    let mut begun: BTreeMap<u32, f64> = BTreeMap::new();
    // At the first scrape of a page, the counter may not exist yet; it is then 0.
    let mut first: BTreeMap<u32, u64> = BTreeMap::new();
    for (at, url) in seconds.keys() {
        let earliest = first.entry(*url).or_insert(*at);
        *earliest = (*earliest).min(*at);
    }
    let mut readings: Vec<(u64, u32, f64)> = samples
        .iter()
        .filter(|sample| sample.source == "server" && sample.name == COUNTER)
        .filter_map(|sample| Some((sample.at_ns, sample.url?, sample.value)))
        .collect();
    readings.sort_unstable_by_key(|(at, url, _)| (*at, *url));
    let mut now: BTreeMap<u32, f64> = BTreeMap::new();
    let mut counts = Vec::with_capacity(readings.len());
    for (at, url, value) in readings {
        let is_first = first.get(&url).is_none_or(|first| *first >= at);
        let base = *begun.entry(url).or_insert(if is_first { value } else { 0.0 });
        now.insert(url, value - base);
        // The timestamp of samples is the middle of their scrape.
        let half = seconds.get(&(at, url)).map_or(0, |seconds| (seconds * 5e8) as u64);
        counts.push((at + half, now.values().sum()));
    }
    counts
}

#[cfg(test)]
#[path = "foreign_underway_tests.rs"]
mod tests;
