//! Identifies the launch of a server by the start times of its processes, if its pages report them.

use super::restart::{START, is_counter};
use super::scraped::Scraped;

/// Returns the start times of the server's processes, in seconds since 1970, as text that is the same for all runs of one
/// launch. `None` unless every page with counters of the server's work reports a start time.
pub(super) fn started(scraped: &Scraped) -> Option<String> {
    let mut pages: Vec<u32> = scraped
        .names()
        .filter(|name| is_counter(name))
        .flat_map(|name| scraped.values(name).map(|(page, _)| page))
        .collect();
    pages.sort_unstable();
    pages.dedup();
    let of_page = |page: u32| {
        let (_, points) = scraped.values(START).find(|(own, _)| *own == page)?;
        points.last().map(|(_, seconds)| format!("{seconds:.0}"))
    };
    let times: Vec<String> = pages.into_iter().map(of_page).collect::<Option<_>>()?;
    (!times.is_empty()).then(|| times.join(" "))
}
