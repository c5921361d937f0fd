//! Converts `constraints` to the window and the condition that ends a ladder of loads.

use crate::import::draft::Field;
use crate::import::job::{Lasts, Load};
use crate::import::said::Said;
use crate::import::tree::At;

/// Returns the constraints of these kinds.
fn of_kind<'a>(at: At<'a>, kinds: &[&str]) -> Vec<At<'a>> {
    let all = at.get("constraints").map(At::list).unwrap_or_default();
    all.into_iter()
        .filter(|one| one.get("kind").is_some_and(|kind| kind.peek().word().is_some_and(|kind| kinds.contains(&kind))))
        .collect()
}

/// Returns the value of the first constraint of a kind; if the value differs per benchmark, the smallest
/// value.
fn value<'a>(at: At<'a>, kind: &str, key: &str) -> Option<At<'a>> {
    let one = of_kind(at, &[kind]).into_iter().next()?;
    one.get("kind")?.text();
    let value = of_benchmarks(at, kind, key).or_else(|| one.get(key))?;
    if !value.is_list() {
        return Some(value);
    }
    fewest(value.list())
}

/// Returns the smallest of the values per benchmark, because all loads of a sweep share one window.
fn fewest(all: Vec<At>) -> Option<At> {
    let number = |at: &At| at.peek().json().as_f64().unwrap_or(f64::MAX);
    let least = all.iter().copied().min_by(|a, b| number(a).total_cmp(&number(b)))?;
    let why = "all loads of a sweep share one window, here with the smallest of these values; a separate sweep has \
               its own \
               `phases` next to its matrix";
    all.iter().filter(|one| number(one) != number(&least)).for_each(|one| one.differs(why));
    for one in &all {
        one.take();
    }
    Some(least)
}

/// Returns the smallest of the values per benchmark (`benchmarks`), which replace a constraint's value.
fn of_benchmarks<'a>(at: At<'a>, kind: &str, key: &str) -> Option<At<'a>> {
    let constraints = at.get("constraints").map(At::list).unwrap_or_default();
    let is_kind = |one: &At| one.get("kind").is_some_and(|word| word.peek().word() == Some(kind));
    let path = format!("constraints[{}].{key}", constraints.iter().position(is_kind)?);
    let benchmarks = at.get("benchmarks").map(At::list).unwrap_or_default();
    fewest(benchmarks.iter().filter_map(|one| one.get(&path)).collect())
}

/// Returns the duration of each measurement. guidellm ends a benchmark when the first of its constraints is
/// met.
pub(super) fn read(at: At, is_trace: bool) -> Lasts {
    let time = value(at, "max_duration", "seconds").and_then(At::seconds).filter(|said| said.value > 0.0);
    let count = value(at, "max_requests", "count").and_then(At::decimal).filter(|said| said.value.is_positive());
    for one in at.get("benchmarks").map(At::list).unwrap_or_default() {
        for (key, value) in one.entries() {
            if key.starts_with("constraint") && !value.peek().is_taken() {
                value.missing(
                    "all loads of a sweep share one window; a separate sweep has its own `phases`, next to its matrix",
                );
            }
        }
    }
    let count = count.map(|said| said.map(|count| (count.to_f64() as u32).max(1)));
    match (time, count) {
        (Some(time), Some(count)) => Lasts::First(time, count),
        (Some(time), None) => Lasts::Seconds(time),
        (None, Some(count)) => Lasts::Requests(count),
        (None, None) if is_trace => Lasts::Unsaid,
        (None, None) => Lasts::Requests(Said::default(1000, "no constraint: guidellm runs to the end of its data")),
    }
}

/// Returns `stop`, the condition that ends a ladder of rising loads early; `None` if there is no such
/// condition.
pub(super) fn stop(at: At, loads: &[Load]) -> Option<Field> {
    let is_ladder = loads.len() > 1;
    let is_open = loads.iter().any(|load| !load.qps.is_empty());
    let mut stop = None;
    for one in of_kind(at, &["over_saturation"]) {
        let is_off = one
            .get("mode")
            .is_some_and(|mode| ["monitor", "false", "off"].contains(&mode.json().as_str().unwrap_or_default()));
        if is_off {
            one.needless("every run reports whether the server kept up");
        } else if is_ladder && is_open {
            stop = Some(Field::new("stop", "saturated", one.take().origin()));
        } else if is_open {
            one.needless("a run is marked `saturated` if the server falls behind");
        } else {
            one.needless("with a fixed number in flight, requests come no faster than the server responds");
        }
    }
    for one in of_kind(at, &["max_errors", "max_error_rate", "max_global_error_rate"]) {
        if is_ladder && stop.is_none() {
            one.differs(
                "a run with too many errors is invalid under the plan's `validity`, and no heavier load is \
                         tried after it",
            );
            stop = Some(Field::new("stop", "errors", one.origin()));
        } else {
            one.differs("a run with too many errors is invalid under the plan's `validity`, but runs to its end");
        }
    }
    stop
}
