//! Checks for reasons to doubt a run in the server's own metrics. If the server's pages lack the series,
//! there is no finding. If a relevant scrape failed, the result is an error, because the values around
//! that scrape are unknown.

use crate::rows::{Facts, Sample};
use crate::telemetry::canonical::{Canonical, canonical};

use super::finding::{Finding, before_load, is_before_load, suspect};
use super::restart;
use super::scraped::Scraped;
use super::series::Together;
use super::shared;

/// A KV cache with this usage is considered full, because the last block rarely fits.
const FULL: f64 = 0.99;
/// Minimum share of the window during which the cache must be full.
const FULL_FOR: f64 = 0.05;
/// Growth is interpolated between scrapes at the borders of the window, so less than half an event
/// counts as zero.
const ONE_EVENT: f64 = 0.5;

/// Bits of NVML's mask that do not indicate a lowered clock under load: the GPU is idle, the user set
/// the clocks, or a display determines the clock.
pub(super) const HARMLESS: u64 = 0x1 | 0x2 | 0x100;
/// A GPU at its power cap runs as configured by its owner, as most GPUs do under full load. The share of
/// the window at the cap is therefore a figure, not a reason.
const POWER_CAP: u64 = 0x4;
/// Bits of NVML's mask (`nvmlClocksEventReasons` of nvml.h) that indicate a lowered clock under load for a
/// reason other than the power cap, each with its meaning.
const THROTTLES: [(u64, &str); 5] = [
    (0x8, "hardware slowdown"),
    (0x10, "sync boost"),
    (0x20, "heat, by the driver"),
    (0x40, "heat, by the hardware"),
    (0x80, "power brake"),
];

/// Checks each reason in the samples that were scraped during a run.
pub(crate) fn judge(samples: &[Sample], facts: &Facts) -> Vec<(&'static str, Finding)> {
    if facts.telemetry.is_none() {
        return Vec::new();
    }
    let scraped = Scraped::of(samples, facts);
    vec![
        ("server_restarted", restart::judge(&scraped, facts)),
        ("server_not_idle", not_idle(&scraped, facts)),
        ("server_throttled", throttled(&scraped)),
        ("gpu_shared", shared::judge(facts)),
        ("server_preempting", preempting(&scraped)),
        ("server_kv_full", kv_full(&scraped)),
    ]
}

/// Returns the canonical series of a name.
fn series(key: &str) -> Result<&'static Canonical, String> {
    canonical(key).ok_or_else(|| format!("unknown series {key}"))
}

/// Counts the scrapes of the window at which a clock was lowered, among those at which the GPUs of the
/// page were in use.
fn throttled(scraped: &Scraped) -> Finding {
    let (mut used, mut lowered, mut bits) = (0usize, 0usize, 0);
    for (page, masks) in scraped.on_pages("gpu_throttle_reasons", series("gpu_throttle_reasons")?) {
        let utilization: Vec<(f64, f64)> = scraped
            .values("gpu_utilization")
            .filter(|(url, _)| *url == page)
            .flat_map(|(_, points)| points.clone())
            .collect();
        // Both values come from the same scrape.
        let is_idle = |at: f64| {
            let behind = utilization.partition_point(|point| point.0 < at);
            utilization.get(behind).is_some_and(|point| point.0 == at && point.1 <= 0.0)
        };
        for (_, mask) in scraped.inside(&masks)?.into_iter().filter(|(at, _)| !is_idle(*at)) {
            let found = mask as u64 & !(HARMLESS | POWER_CAP);
            (used, lowered, bits) = (used + 1, lowered + usize::from(found != 0), bits | found);
        }
    }
    if lowered == 0 {
        return Ok(None);
    }
    let known = THROTTLES.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, why)| *why);
    let other = bits & !THROTTLES.iter().fold(0, |all, (bit, _)| all | bit) != 0;
    let why: Vec<&str> = known.chain(other.then_some("another bit of the mask")).collect();
    let share = 100.0 * lowered as f64 / used as f64;
    Ok(suspect(format!(
        "a clock of the GPUs was lowered at {lowered} of {used} scrapes ({share:.1}%) at which they were used: {}; \
         look at gpu_throttle_reasons, gpu_temperature and gpu_power_watts in samples.parquet",
        why.join(", ")
    )))
}

/// Checks for preempted requests. These are computed twice, which increases their latencies.
fn preempting(scraped: &Scraped) -> Finding {
    let Some(preemptions) = scraped.series("preemptions", series("preemptions")?) else { return Ok(None) };
    let grown = preemptions.growth()?;
    if grown < ONE_EVENT {
        return Ok(None);
    }
    let grown = grown.round();
    let were = if grown == 1.0 { "request was" } else { "requests were" };
    Ok(suspect(format!(
        "{grown:.0} {were} preempted in the window and recomputed: the load exceeds the KV cache; look at \
         preemptions and kv_cache_usage in samples.parquet"
    )))
}

/// Finds the page whose cache was full for the longest time.
fn kv_full(scraped: &Scraped) -> Finding {
    let pages: Vec<u32> = scraped.values("kv_cache_usage").map(|(page, _)| page).collect();
    let alone = pages.iter().filter_map(|page| scraped.alone(*page, "kv_cache_usage"));
    let shares = alone.map(|usage| share_above(&usage, FULL)).collect::<Result<Vec<f64>, _>>()?;
    let fullest = shares.into_iter().reduce(f64::max).filter(|share| *share >= FULL_FOR);
    Ok(fullest.and_then(|share| {
        let whose = if pages.len() > 1 { " of one of the servers" } else { "" };
        suspect(format!(
            "the KV cache{whose} was at least {:.0}% full for {:.1}% of the window: requests wait for it, or are \
             preempted; look at kv_cache_usage and requests_waiting in samples.parquet",
            FULL * 100.0,
            share * 100.0
        ))
    }))
}

/// Returns the share of the window in which a value is at least `limit`, with interpolation between
/// scrapes.
fn share_above(series: &Together, limit: f64) -> Result<f64, String> {
    let course = series.course()?;
    let above = course.windows(2).map(|pair| {
        let [(from, first), (to, last)] = [pair[0], pair[1]];
        let (low, high) = (first.min(last), first.max(last));
        let share = match (low >= limit, high >= limit) {
            (true, _) => 1.0,
            (_, false) => 0.0,
            _ => (high - limit) / (high - low),
        };
        (to - from) * share
    });
    let length = course.last().zip(course.first()).map_or(0.0, |(last, first)| last.0 - first.0);
    Ok(above.sum::<f64>() / length)
}

/// Checks for requests that were running or waiting at the scrape just before the load, when the run had
/// not sent any request yet.
fn not_idle(scraped: &Scraped, facts: &Facts) -> Finding {
    // The reason `not_idle` already reports that the server was busy.
    if facts.began.as_ref().is_some_and(|began| !began.idle) {
        return Ok(None);
    }
    let mut busy = [0.0; 2];
    for (busy, key) in busy.iter_mut().zip(["requests_running", "requests_waiting"]) {
        for (page, points) in scraped.values(key) {
            match points.iter().find(|(at, _)| is_before_load(*at)) {
                Some((_, value)) => *busy += value,
                None => before_load(scraped, page)?,
            }
        }
    }
    let [running, waiting] = busy;
    let text = || {
        format!(
            "the server had {running:.0} requests running and {waiting:.0} waiting at the scrape just before the \
             load, none of them of this run; find out what else uses it, and start when it is idle"
        )
    };
    Ok(if running + waiting > 0.0 { suspect(text()) } else { None })
}

#[cfg(test)]
#[path = "reason_tests.rs"]
mod tests;
