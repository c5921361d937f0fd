//! Checks whether the process behind a page changed between the beginning and the end of a run.

use crate::rows::Facts;
use crate::telemetry::canonical::{Kind, canonical};

use super::finding::{Finding, suspect};
use super::scraped::{Points, Scraped};

/// The source of the metrics that a server reports about its own work.
const SERVER: &str = "server";
/// Name of the series with the start time of the server's process.
pub(super) const START: &str = "process_start_time";
/// Start times that differ by less than this many seconds belong to the same process; the difference is
/// due to rounding.
const SAME: f64 = 1.0;

/// Checks whether a counter fell, or the start time of the process changed, between the scrape before the
/// load and the scrape after it.
pub(super) fn judge(scraped: &Scraped, facts: &Facts) -> Finding {
    let counters: Vec<&str> = scraped.names().filter(|name| is_counter(name)).collect();
    let mut pages: Vec<u32> = Vec::new();
    for name in &counters {
        for (page, points) in scraped.values(name) {
            if let Some([before, after]) = step(points, |before, after| after < before) {
                return Ok(suspect(fell(name, &shown(facts, page), [before, after])));
            }
            pages.push(page);
        }
    }
    // A page with figures of GPUs or of the host belongs to the process of its exporter.
    for (page, points) in scraped.values(START).filter(|(page, _)| pages.contains(page)) {
        if let Some([before, after]) = step(points, |before, after| (after - before).abs() >= SAME) {
            return Ok(suspect(started(&shown(facts, page), [before, after])));
        }
    }
    if facts.telemetry.as_ref().is_some_and(|telemetry| telemetry.counted.restarted) {
        let text = "a counter of the server fell during the run: it was restarted, or several servers respond";
        return Ok(suspect(text.to_owned()));
    }
    pages.sort_unstable();
    pages.dedup();
    let tells = |page: &u32| scraped.values(START).any(|(url, _)| url == *page);
    let gap = pages.iter().filter(|page| !tells(page)).find_map(|page| scraped.failed(*page).first());
    match gap {
        Some((_, why)) => {
            Err(format!("a scrape failed ({why}), and the page does not report when the server was started"))
        }
        None => Ok(None),
    }
}

/// Returns whether a counter fell.
pub(super) fn falls(points: &Points) -> bool {
    step(points, |before, after| after < before).is_some()
}

/// Returns whether the samples of this name count work of the server. For a histogram, this is true only of
/// its count.
pub(super) fn is_counter(name: &str) -> bool {
    let of = |key: &str, kind| canonical(key).is_some_and(|series| series.source == SERVER && series.kind == kind);
    of(name, Kind::Counter) || name.strip_suffix(".count").is_some_and(|key| of(key, Kind::Histogram))
}

/// Returns the first two consecutive points whose values satisfy a condition; `None` if there are none.
fn step(points: &Points, is_step: impl Fn(f64, f64) -> bool) -> Option<[(f64, f64); 2]> {
    let mut points = points.clone();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.windows(2).find(|pair| is_step(pair[0].1, pair[1].1)).map(|pair| [pair[0], pair[1]])
}

fn fell(name: &str, page: &str, [before, after]: [(f64, f64); 2]) -> String {
    let of = name.trim_end_matches(".count");
    let what = if of == name { of.to_owned() } else { format!("the count of {of}") };
    format!(
        "{what}{page} fell from {:.0} to {:.0} between {:.1} s and {:.1} s of the run: the server was restarted, \
         or several servers respond at this address; look at the server's log",
        before.1, after.1, before.0, after.0
    )
}

fn started(page: &str, [before, after]: [(f64, f64); 2]) -> String {
    let apart = after.1 - before.1;
    let other = if apart > 0.0 { "later" } else { "earlier" };
    format!(
        "a process{page} that was started {:.0} s {other} responded from {:.1} s of the run on: the server \
         was restarted, or several servers respond at this address; look at the server's log",
        apart.abs(),
        after.0
    )
}

/// Returns ` of http://…` if there are several pages.
fn shown(facts: &Facts, page: u32) -> String {
    let urls = facts.telemetry.as_ref().map(|telemetry| telemetry.urls.as_slice()).unwrap_or_default();
    urls.get(page as usize).filter(|_| urls.len() > 1).map(|url| format!(" of {url}")).unwrap_or_default()
}
