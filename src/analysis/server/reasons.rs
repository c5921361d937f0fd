//! What a server said of itself that speaks against a run. Nothing is found where its pages do not have the series; where a scrape that
//! matters failed, the error says so, for nobody knows what happened meanwhile.

use crate::rows::{Facts, Sample};
use crate::telemetry::canonical::{Canonical, canonical};

use super::finding::{Finding, before_load, is_before_load, suspect};
use super::restart;
use super::scraped::Scraped;
use super::series::Together;
use super::shared;

/// A KV cache that is used so far is full: the last block of one seldom fits.
const FULL: f64 = 0.99;
/// For such a share of the window it must be. Both are chosen, not measured.
const FULL_FOR: f64 = 0.05;
/// Growth is interpolated between scrapes at the borders: less than half an event is none.
const ONE_EVENT: f64 = 0.5;

/// Bits of NVML's mask that lower no clock under load: the GPU is idle, clocks that the user set, the clock of a display.
pub(super) const HARMLESS: u64 = 0x1 | 0x2 | 0x100;
/// A GPU at its power cap runs as its owner set it, as most do under full load: its share of the window is a figure, and no reason.
const POWER_CAP: u64 = 0x4;
/// Bits of NVML's mask (`nvmlClocksEventReasons` of nvml.h) that lower a clock under load beside the cap, and why.
const THROTTLES: [(u64, &str); 5] = [
    (0x8, "hardware slowdown"),
    (0x10, "sync boost"),
    (0x20, "heat, by the driver"),
    (0x40, "heat, by the hardware"),
    (0x80, "power brake"),
];

/// Looks for each reason in what was scraped beside a run.
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

/// The canonical series of a name.
fn series(key: &str) -> Result<&'static Canonical, String> {
    canonical(key).ok_or_else(|| format!("there is no series {key}"))
}

/// Scrapes of the window at which a clock was lowered, of those at which the GPUs of the page were used.
fn throttled(scraped: &Scraped) -> Finding {
    let (mut used, mut lowered, mut bits) = (0usize, 0usize, 0);
    for (page, masks) in scraped.on_pages("gpu_throttle_reasons", series("gpu_throttle_reasons")?) {
        let utilization: Vec<(f64, f64)> = scraped
            .values("gpu_utilization")
            .filter(|(url, _)| *url == page)
            .flat_map(|(_, points)| points.clone())
            .collect();
        // One scrape gives both values.
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

/// Requests that were put back are computed twice, which their latencies hold.
fn preempting(scraped: &Scraped) -> Finding {
    let Some(preemptions) = scraped.series("preemptions", series("preemptions")?) else { return Ok(None) };
    let grown = preemptions.growth()?;
    if grown < ONE_EVENT {
        return Ok(None);
    }
    let grown = grown.round();
    let were = if grown == 1.0 { "request was" } else { "requests were" };
    Ok(suspect(format!(
        "{grown:.0} {were} put back in the window to make room for others, and computed again: the load is more \
         than the KV cache holds; look at preemptions and kv_cache_usage in samples.parquet"
    )))
}

/// The page whose cache was full for longest.
fn kv_full(scraped: &Scraped) -> Finding {
    let pages: Vec<u32> = scraped.values("kv_cache_usage").map(|(page, _)| page).collect();
    let alone = pages.iter().filter_map(|page| scraped.alone(*page, "kv_cache_usage"));
    let shares = alone.map(|usage| share_above(&usage, FULL)).collect::<Result<Vec<f64>, _>>()?;
    let fullest = shares.into_iter().reduce(f64::max).filter(|share| *share >= FULL_FOR);
    Ok(fullest.and_then(|share| {
        let whose = if pages.len() > 1 { " of one of the servers" } else { "" };
        suspect(format!(
            "the KV cache{whose} was at least {:.0}% full for {:.1}% of the window: requests wait for it, or are \
             put back; look at kv_cache_usage and requests_waiting in samples.parquet",
            FULL * 100.0,
            share * 100.0
        ))
    }))
}

/// The share of the window in which a value is at least `limit`; between scrapes it is interpolated.
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

/// Requests that ran or waited at the scrape just before the load, when none of the run's was sent.
fn not_idle(scraped: &Scraped, facts: &Facts) -> Finding {
    // `not_idle` has said so.
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
             load, none of them of this run; look for who else uses it, and begin when it is idle"
        )
    };
    Ok(if running + waiting > 0.0 { suspect(text()) } else { None })
}

#[cfg(test)]
#[path = "reason_tests.rs"]
mod tests;
