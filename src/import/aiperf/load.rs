//! Converts a phase of AIPerf (`src/aiperf/config/phases.py`) to load, window, fill and drain.

use super::leaves::At;
use crate::import::draft::Field;
use crate::import::error::ImportError;
use crate::import::job::{Lasts, Load};
use crate::import::said::Said;
use crate::import::text::{one_line, seconds};
use crate::plan::Process;
use crate::units::Decimal;

/// Maximum number of requests in flight in a plan.
const MOST_IN_FLIGHT: u64 = 100_000;
/// Maximum rate in a plan, in requests per second.
const MOST_PER_SECOND: u32 = 1_000_000;
/// The drain for a grace period of `inf`, in seconds.
const FOREVER: f64 = 3600.0;

/// The load of a phase.
pub(super) struct Asked {
    pub load: Load,
    pub lasts: Lasts,
    /// `fill` and `drain`.
    pub phases: Vec<Field>,
}

/// Returns the load of a phase. `turns` is the number of requests in a conversation; `is_trace` states
/// whether the scenario replays a trace.
pub(super) fn load(place: &str, phase: At, turns: f64, is_trace: bool) -> Result<Asked, ImportError> {
    let kind = phase.get("type").text();
    let word = kind.as_ref().map_or("concurrency", |said| said.value.trim());
    told(phase);
    let cap = in_flight(phase.get("concurrency"));
    let load = match word {
        "concurrency" | "concurrency_burst" if is_trace => Load { batch_size: cap, is_own: true, ..Load::default() },
        "concurrency" | "concurrency_burst" => {
            phase.get("type").needless("without a rate, the load is a closed loop");
            phase.get("smoothness").needless("a closed loop has no arrivals");
            let origin = "no concurrency: AIPerf's default, one request at a time";
            Load { batch_size: Some(cap.unwrap_or_else(|| Said::default(1, origin))), ..Load::default() }
        }
        "fixed_schedule" => Load { batch_size: cap, is_own: true, ..Load::default() },
        "user_centric" => {
            let users = in_flight(phase.get("users"));
            phase.get("type").differs(
                "in AIPerf, each user sends once per users / rate seconds; here, as many requests arrive in total, \
                 evenly \
                 spaced, each the next turn of the longest-waiting conversation, at most one per user at a time",
            );
            let arrivals = Some(Said::default("constant".to_owned(), origin(&kind)));
            Load { batch_size: users.or(cap), qps: vec![rate(place, phase)?], arrivals, is_own: false }
        }
        "poisson" | "constant" | "gamma" => {
            let arrivals = arrivals(word, phase, origin(&kind));
            Load { batch_size: cap, qps: vec![rate(place, phase)?], arrivals, is_own: false }
        }
        _ => {
            let origin = origin(&kind);
            let what = format!("{origin}: unknown load type `{}`", one_line(word));
            let remedy = "use concurrency, poisson, constant, gamma, user_centric or fixed_schedule";
            return Err(ImportError::shape(place, what, remedy));
        }
    };
    let phases = phases(phase, load.qps.is_empty() && !load.is_own);
    Ok(Asked { lasts: lasts(phase, turns, load.is_own), load, phases })
}

fn origin(kind: &Option<Said<String>>) -> String {
    kind.as_ref().map(|said| said.origin.clone()).unwrap_or_default()
}

/// Lists the settings that have no counterpart in the plan, and the settings that need none.
fn told(phase: At) {
    let named = "a name, without effect on results";
    ["name", "kind", "dataset"].iter().for_each(|key| phase.get(key).needless(named));
    phase.get("exclude_from_results").needless("only requests in `measure` count");
    phase.get("seamless").needless("each phase is a separate run with its own `fill`");
    let limits = "no limit on requests before their first token: `batch_size` limits all requests in flight";
    ["prefill_concurrency", "prefill_ramp"].iter().for_each(|key| phase.get(key).missing(limits));
    phase
        .get("cancellation")
        .missing("requests are never canceled on purpose; `timeouts: { request: … }` cancels late ones");
    phase
        .get("failed_request_threshold")
        .needless("an unreachable server ends the attempt; `validity: { errors }` judges runs with failures");
    for key in ["sla", "adaptive_scale"] {
        phase
            .get(key)
            .missing("`search: { qps: { from, to, within } }` of a sweep finds the highest load under an `slo`");
    }
    for key in ["auto_offset", "start_offset", "end_offset"] {
        phase
            .get(key)
            .needless("a trace's times start at its first request; `window: [FROM, TO]` of the trace selects a part");
    }
}

fn in_flight(at: At) -> Option<Said<u32>> {
    let said = at.whole()?;
    if !(1..=MOST_IN_FLIGHT).contains(&said.value) {
        at.differs(&format!("batch_size must be from 1 to {MOST_IN_FLIGHT}: the plan uses the nearest"));
    }
    let value = said.value.clamp(1, MOST_IN_FLIGHT);
    Some(said.map(|_| u32::try_from(value).unwrap_or(u32::MAX)))
}

fn rate(place: &str, phase: At) -> Result<Said<Decimal>, ImportError> {
    let at = phase.get("rate");
    let fits = |said: &Said<Decimal>| said.value.is_positive() && said.value <= Decimal::from(MOST_PER_SECOND);
    if let Some(said) = at.number().filter(fits) {
        return Ok(said);
    }
    let place = phase.place(place);
    phase.get("rate_series").missing("write it as `arrivals: { curve: [[0s, A], [60s, B]] }` of a sweep");
    let remedy = format!("write `rate:` above 0, up to {MOST_PER_SECOND}, in requests per second");
    Err(ImportError::shape(place, "this phase has no usable rate", remedy))
}

/// Returns the arrival process; `None` for Poisson.
fn arrivals(word: &str, phase: At, origin: String) -> Option<Said<String>> {
    if word != "gamma" {
        phase.get("smoothness").needless("only gamma arrivals use it");
        return (word == "constant").then(|| Said::default("constant".to_owned(), origin));
    }
    let shape = phase.get("smoothness").number()?;
    let gamma = format!("gamma burstiness {}", shape.value);
    if gamma.parse::<Process>().is_err() {
        phase.get("smoothness").missing("out of the supported range; arrivals are Poisson");
        return None;
    }
    Some(Said { value: gamma, origin: format!("{origin}, {}", shape.origin) })
}

/// Returns the duration of the measurement, as a time or as a number of requests.
fn lasts(phase: At, turns: f64, is_trace: bool) -> Lasts {
    let (requests, sessions) = (phase.get("requests"), phase.get("sessions"));
    if let Some(duration) = phase.get("duration").seconds().filter(|said| said.value > 0.0) {
        let why = "a run measures for a duration, here `duration`; `measure: { for, min_requests }` extends it";
        requests.needless(why);
        sessions.needless(why);
        return Lasts::Seconds(duration);
    }
    if is_trace {
        requests.needless("the window determines how much of the trace is replayed");
    }
    let bounded = |value: f64| (value as u64).clamp(1, 100_000_000) as u32;
    if let Some(said) = requests.whole() {
        sessions.needless("`requests` sets the number");
        let origin = format!("{} ({})", said.origin, said.value);
        return Lasts::Requests(Said { value: bounded(said.value as f64), origin });
    }
    match sessions.whole() {
        Some(said) => {
            let turned = if turns > 1.0 { format!(" of {turns} turns") } else { String::new() };
            let origin = format!("{} ({}{turned})", said.origin, said.value);
            Lasts::Requests(Said { value: bounded(said.value as f64 * turns), origin })
        }
        None => Lasts::Unsaid,
    }
}

/// Derives `fill` from a ramp and `drain` from a grace period.
fn phases(phase: At, is_closed: bool) -> Vec<Field> {
    let mut fields = Vec::new();
    let (own, other) = if is_closed { ("concurrency_ramp", "rate_ramp") } else { ("rate_ramp", "concurrency_ramp") };
    phase.get(other).needless(if is_closed { "a closed loop has no rate" } else { "the cap applies from the start" });
    let ramp = phase.get(own);
    let time = if ramp.is_map() { ramp.get("duration") } else { ramp };
    if let Some(said) = time.seconds().filter(|said| said.value > 0.0) {
        fields.push(Field::new(
            "fill",
            seconds(said.value),
            format!("{}: before the window, not within it", said.origin),
        ));
    }
    if let Some(strategy) = ramp.get("strategy").text().filter(|said| said.value != "linear") {
        ramp.get("strategy").missing(&format!("load rises linearly in `fill`, not by `{}`", one_line(&strategy.value)));
    } else {
        ramp.get("strategy").needless("load rises linearly in `fill`");
    }
    let grace = phase.get("grace_period");
    let forever = grace.text().filter(|said| ["inf", "infinity", ".inf"].contains(&said.value.as_str()));
    let grace = match forever {
        Some(said) => Some(said.map(|_| FOREVER)),
        None => grace.seconds(),
    };
    if let Some(said) = grace {
        let value = seconds(said.value.clamp(0.001, 86_400.0));
        fields.push(Field::new("drain", value, format!("{}; here the load is kept up during it", said.origin)));
    }
    fields
}

/// Returns `stabilize` with the duration of a warm-up phase; `None` if the phase has no duration.
/// The phase's other settings need no counterpart.
pub(super) fn warmup(phase: At) -> Option<Field> {
    let time = phase.get("duration").seconds().filter(|said| said.value > 0.0);
    let why = "load rises in `fill` and settles in `stabilize` before anything is measured";
    if time.is_none() {
        phase.needless(why);
    }
    phase.entries().into_iter().filter(|(key, _)| *key != "duration").for_each(|(_, at)| at.needless(why));
    time.map(|said| Field::new("stabilize", seconds(said.value), said.origin))
}
