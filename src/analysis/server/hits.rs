//! A server's prefix cache hits over a whole run, from its metrics.

use crate::rows::{Facts, Sample};

use super::finding::before_load;
use super::restart::falls;
use super::scraped::Scraped;

/// Returns tokens found / tokens looked up, from the scrape before the load to the scrape after it, so
/// that the counters cover every request of the run. `None` if no page has both counters; an error
/// states why the share is unknown.
pub(crate) fn share(samples: &[Sample], facts: &Facts) -> Option<Result<f64, String>> {
    facts.telemetry.as_ref()?;
    let scraped = Scraped::of(samples, facts);
    let queries = grown(&scraped, "prefix_cache_queries")?;
    let hits = grown(&scraped, "prefix_cache_hits")?;
    Some(ratio(hits, queries, grown(&scraped, "preemptions")))
}

fn ratio(
    hits: Result<f64, String>,
    queries: Result<f64, String>,
    preemptions: Option<Result<f64, String>>,
) -> Result<f64, String> {
    // Preempted requests are looked up again and find their own blocks.
    if preemptions.transpose()?.is_some_and(|preemptions| preemptions > 0.0) {
        return Err("requests were preempted, and their prompts were looked up again".to_owned());
    }
    match (hits?, queries?) {
        (_, 0.0) => Err("nothing was looked up".to_owned()),
        (hits, queries) => Ok(hits / queries),
    }
}

/// Returns how much a counter grew over the whole run, on all pages that have it.
fn grown(scraped: &Scraped, name: &str) -> Option<Result<f64, String>> {
    let grown = scraped.values(name).map(|(page, points)| {
        let before = points.iter().rfind(|(at, _)| *at <= 0.0).map(|point| point.1);
        let first = before.map_or_else(|| before_load(scraped, page).map(|()| 0.0), Ok)?;
        let (at, last) = points.last().copied().unwrap_or_default();
        if let Some((_, why)) = scraped.failed(page).iter().find(|(failed, _)| *failed > at) {
            return Err(format!("the scrape after the load failed ({why})"));
        }
        if falls(points) {
            return Err("the counter fell: the server was restarted".to_owned());
        }
        Ok(last - first)
    });
    grown.reduce(|all, one| Ok(all? + one?))
}
