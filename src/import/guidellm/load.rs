//! Converts `profile` to loads, each of which is one cell.
//!
//! A `sweep` measures one request at a time, then the maximum in flight, then evenly spaced rates between the
//! throughputs of these two loads, which are known only after both have run. The plan instead uses a ladder
//! with the same number of loads, which rises from one request in flight to the maximum by a constant factor.

use crate::import::draft::Field;
use crate::import::error::ImportError;
use crate::import::job::Load;
use crate::import::said::Said;
use crate::import::text::seconds;
use crate::import::tree::At;
use crate::units::Decimal;

/// Default maximum number of requests in flight.
const MOST_IN_FLIGHT: u32 = 512;
/// Default number of steps of a sweep.
const STEPS: u32 = 10;
/// The plan's maximum number of requests in flight, and its maximum rate in requests per second.
const BOUNDS: (u32, u32) = (100_000, 1_000_000);

/// Returns the loads of a profile.
pub(super) fn read(at: At, place: &str, is_trace: bool) -> Result<Vec<Load>, ImportError> {
    let profile = at.get("profile");
    let get = |key: &str| profile.and_then(|profile| profile.get(key));
    let kind = get("kind").and_then(At::text).unwrap_or_else(|| Said::default("sweep".to_owned(), "default profile"));
    if let Some(phase) = get("warmup") {
        phase.needless("load rises in `fill` and settles in `stabilize` before anything is measured");
    }
    if let Some(phase) = get("cooldown") {
        phase.needless("`drain` keeps up the load until the measured requests end");
    }
    if let Some(seed) = get("random_seed") {
        seed.needless("the plan's `seed` determines all random choices");
    }
    // In guidellm up to 0.6, the meaning of `rate` depended on the profile.
    let rates = at.get("rate");
    let several = |key: &str| values(get(key).or(rates), at, key);
    let cap = |get: Option<At>| get.and_then(At::whole).map(bounded);
    if is_trace {
        if kind.value != "replay" {
            get("kind").iter().for_each(|at| at.differs("the trace sets the send times"));
        }
        return Ok(vec![Load { is_own: true, batch_size: cap(get("max_concurrency")), ..Load::default() }]);
    }
    let closed = |said: Said<u32>| Load { batch_size: Some(bounded(said)), ..Load::default() };
    Ok(match kind.value.as_str() {
        "synchronous" => vec![closed(Said { value: 1, origin: kind.origin })],
        "concurrent" => {
            if let Some(cap) = get("max_concurrency") {
                cap.needless("`batch_size` sets the number in flight");
            }
            several("streams")?.into_iter().map(|said| closed(whole(said))).collect()
        }
        "throughput" => {
            let most = get("max_concurrency").or(rates).and_then(first).and_then(At::whole);
            let said = most.unwrap_or_else(|| Said::default(MOST_IN_FLIGHT, "guidellm's default max_concurrency"));
            get("kind").iter().for_each(|at| {
                at.differs("guidellm sends as fast as the server accepts; here this many requests are kept in flight");
            });
            vec![closed(said)]
        }
        "constant" | "async" | "poisson" => {
            let arrivals =
                (kind.value != "poisson").then(|| Said { value: "constant".to_owned(), origin: kind.origin.clone() });
            let cap = cap(get("max_concurrency"));
            let one = |said: Said<Decimal>| Load {
                batch_size: cap.clone(),
                qps: vec![said],
                arrivals: arrivals.clone(),
                is_own: false,
            };
            several("rate")?.into_iter().map(one).collect()
        }
        "sweep" => ladder(
            get("sweep_size").or(rates).and_then(first),
            get("max_concurrency"),
            get("strategy_type"),
            get("kind"),
        ),
        other => {
            let what = format!("{}: unknown profile `{other}`", kind.origin);
            let remedy = "write sweep, synchronous, concurrent, throughput, constant, poisson or replay";
            return Err(ImportError::shape(place, what, remedy));
        }
    })
}

fn first(at: At) -> Option<At> {
    at.list().into_iter().next()
}

/// Returns the values of a setting, which is one number or a list. Values per benchmark in `benchmarks` take
/// precedence.
fn values<'a>(own: Option<At<'a>>, at: At<'a>, key: &str) -> Result<Vec<Said<Decimal>>, ImportError> {
    let path = format!("profile.{key}");
    let each: Vec<At> = at
        .get("benchmarks")
        .map(At::list)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|one| one.get(&path).or_else(|| one.get("profile")?.get(key)))
        .collect();
    if let Some(own) = own.filter(|_| !each.is_empty()) {
        own.needless("the values per benchmark replace it");
    }
    let given = if each.is_empty() { own.map(At::list).unwrap_or_default() } else { each };
    let mut all: Vec<Said<Decimal>> = Vec::new();
    for one in given {
        let Some(said) = one.decimal() else { continue };
        match said.value.is_positive() && said.value <= Decimal::from(BOUNDS.1) {
            true if all.iter().all(|known| known.value != said.value) => all.push(said),
            true => one.needless("duplicate"),
            false => one.unreadable("expected a number above 0"),
        }
    }
    if all.is_empty() {
        let remedy = format!("write --profile kind=…,{key}=NUMBER, or --override profile.{key} 1,2,4");
        return Err(ImportError::shape("the profile", format!("it has no `{key}`"), remedy));
    }
    Ok(all)
}

fn whole(said: Said<Decimal>) -> Said<u32> {
    said.map(|value| (value.to_f64().round() as u32).max(1))
}

fn bounded(said: Said<u32>) -> Said<u32> {
    said.map(|value| value.clamp(1, BOUNDS.0))
}

/// Returns the loads that replace the loads of a sweep.
fn ladder(steps: Option<At>, most: Option<At>, strategy: Option<At>, kind: Option<At>) -> Vec<Load> {
    let said = steps.and_then(At::whole).filter(|said| said.value > 1);
    let steps = said.unwrap_or_else(|| Said::default(STEPS, format!("default sweep_size {STEPS}")));
    let most = most.and_then(At::whole).map(bounded);
    let most =
        most.unwrap_or_else(|| Said::default(MOST_IN_FLIGHT, format!("default max_concurrency {MOST_IN_FLIGHT}")));
    let why = "the rates between one request at a time and the maximum are only known after the run; the plan uses \
               the same number of loads, from 1 request in flight to the maximum";
    kind.iter().for_each(|at| at.differs(why));
    if let Some(strategy) = strategy {
        strategy.needless(
            "loads given as requests in flight have no arrival process; `qps` has one, with `arrivals: \
                           constant` or `poisson`",
        );
    }
    let count = steps.value.min(most.value).clamp(2, 1000);
    let mut all: Vec<u32> = (0..count)
        .map(|step| f64::from(most.value).powf(f64::from(step) / f64::from(count - 1)).round() as u32)
        .collect();
    all.dedup();
    let origin = format!("{}, {}", steps.origin, most.origin);
    all.into_iter()
        .map(|value| Load { batch_size: Some(Said { value, origin: origin.clone() }), ..Load::default() })
        .collect()
}

/// Returns `fill`, the time in which the load rises; `None` if it is not set.
pub(super) fn fill(at: At) -> Option<Field> {
    let said = at.path(&["profile", "rampup_duration"])?.seconds().filter(|said| said.value > 0.0)?;
    Some(Field::new("fill", seconds(said.value), said.origin))
}
