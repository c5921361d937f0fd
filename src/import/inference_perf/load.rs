//! `load` of inference-perf: stages at a rate or with a number of requests in flight, a sweep up to
//! saturation, or a trace.

use crate::import::draft::Field;
use crate::import::error::ImportError;
use crate::import::job::{Lasts, Load};
use crate::import::said::Said;
use crate::import::text::one_line;
use crate::import::tree::At;
use crate::units::Decimal;

/// Maximum number of requests in flight in a plan.
const MOST_IN_FLIGHT: u32 = 100_000;
/// Maximum rate in a plan, in requests per second.
const MOST_PER_SECOND: u32 = 1_000_000;
/// Number of rates in a ladder that ends at saturation.
const LADDER: u32 = 11;

/// All stages.
pub(super) struct Stages {
    pub stages: Vec<Stage>,
    /// Fields next to the matrix.
    pub fields: Vec<Field>,
    /// The duration of the longest stage in seconds, and the rate of that stage.
    pub longest: f64,
    /// Whether a trace sets the send times.
    pub is_trace: bool,
}

/// One stage.
pub(super) struct Stage {
    pub load: Load,
    pub lasts: Lasts,
    pub line: usize,
}

/// Returns the stages of a configuration.
pub(super) fn load(file: &str, root: At) -> Result<Stages, ImportError> {
    let Some(at) = root.get("load") else {
        return Err(ImportError::shape(file, "`load` is missing", "write load.stages"));
    };
    let kind = at.get("type").and_then(At::text).unwrap_or_else(|| Said::default("constant".to_owned(), "default"));
    match kind.value.as_str() {
        "constant" | "poisson" => open(file, at, &kind),
        "concurrent" => closed(file, at),
        "trace_replay" => trace(at),
        other => {
            let what = format!("unknown load type `{}`", one_line(other));
            let remedy = "conversations of a data set come closest: `data` with `base: D`, and a `batch_size`";
            Err(at.wrong(file, &what, remedy))
        }
    }
}

fn open(file: &str, at: At, kind: &Said<String>) -> Result<Stages, ImportError> {
    let arrivals = (kind.value == "constant").then(|| kind.clone());
    let cap = cap(at);
    let shared = Load { batch_size: cap, qps: Vec::new(), arrivals, is_own: false };
    if let Some(sweep) = at.get("sweep") {
        if let Some(stages) = at.get("stages") {
            stages.needless("the sweep makes the stages");
        }
        return Ok(saturation(sweep, shared));
    }
    let mut stages = Vec::new();
    let mut longest = 0.0_f64;
    for stage in listed(file, at)? {
        let rate = stage.get("rate").and_then(At::decimal);
        let fits = |said: &Said<Decimal>| said.value.is_positive() && said.value <= Decimal::from(MOST_PER_SECOND);
        let rate = rate.filter(fits).ok_or_else(|| {
            stage.wrong(file, "this stage has no usable rate", "write `rate:` above 0, in requests per second")
        })?;
        let lasts = stage
            .get("duration")
            .and_then(At::seconds)
            .filter(|said| said.value > 0.0)
            .ok_or_else(|| stage.wrong(file, "this stage has no duration", "write `duration:` in seconds"))?;
        longest = longest.max(lasts.value * rate.value.to_f64());
        for key in ["num_requests", "concurrency_level"] {
            if let Some(at) = stage.get(key) {
                at.needless("a stage at a rate lasts its duration");
            }
        }
        let load = Load { qps: vec![rate], ..shared.clone() };
        stages.push(Stage { load, lasts: Lasts::Seconds(lasts), line: stage.line() });
    }
    Ok(Stages { stages, fields: Vec::new(), longest, is_trace: false })
}

fn listed<'a>(file: &str, at: At<'a>) -> Result<Vec<At<'a>>, ImportError> {
    let all = at.get("stages").map_or_else(Vec::new, At::list);
    let remedy = "write `stages: [{ rate: 1, duration: 30 }]`";
    if all.is_empty() { Err(at.wrong(file, "it has no stages", remedy)) } else { Ok(all) }
}

/// Returns the cap on requests in flight for all workers together, if both numbers are given.
fn cap(at: At) -> Option<Said<u32>> {
    let (workers, each) = (at.get("num_workers")?, at.get("worker_max_concurrency")?);
    let (workers, each) = (workers.whole()?, each.whole()?);
    let value = workers.value.checked_mul(each.value).filter(|cap| (1..=MOST_IN_FLIGHT).contains(cap))?;
    Some(Said { value, origin: format!("{} × {}", workers.origin, each.origin) })
}

/// Converts a sweep up to saturation: rates double until requests arrive faster than the server
/// completes them.
fn saturation(sweep: At, shared: Load) -> Stages {
    let why = "inference-perf floods the server first and then measures rates up to its throughput; here, rates double \
               up to the first one that saturates the server";
    sweep.differs(why);
    let lasts = sweep.get("stage_duration").and_then(At::seconds).filter(|said| said.value > 0.0);
    let lasts = lasts.unwrap_or_else(|| Said::default(180.0, "default of inference-perf"));
    let rates = (0..LADDER).map(|power| {
        let origin = format!("{}: up to saturation", sweep.origin());
        Said { value: Decimal::from(1_u32 << power), origin }
    });
    let load = Load { qps: rates.collect(), ..shared };
    let longest = lasts.value;
    let stages = vec![Stage { load, lasts: Lasts::Seconds(lasts), line: sweep.line() }];
    let fields = vec![Field::new("stop", "saturated", sweep.origin())];
    Stages { stages, fields, longest, is_trace: false }
}

fn closed(file: &str, at: At) -> Result<Stages, ImportError> {
    let mut stages = Vec::new();
    let mut longest = 0.0_f64;
    for stage in listed(file, at)? {
        let level = stage.get("concurrency_level").and_then(At::whole).filter(|said| said.value > 0);
        let level = level.ok_or_else(|| {
            stage.wrong(file, "this stage has no concurrency_level", "write a whole number of requests in flight")
        })?;
        if level.value > MOST_IN_FLIGHT
            && let Some(at) = stage.get("concurrency_level")
        {
            at.differs(&format!("batch_size must be at most {MOST_IN_FLIGHT}: the plan uses that"));
        }
        let requests = stage.get("num_requests").and_then(At::whole).filter(|said| said.value > 0);
        let requests = requests.map(|said| Said { origin: format!("{} ({})", said.origin, said.value), ..said });
        longest = longest.max(requests.as_ref().map_or(0.0, |said| f64::from(said.value)));
        for key in ["rate", "duration"] {
            if let Some(at) = stage.get(key) {
                at.needless("a closed loop has no rate");
            }
        }
        let level = level.map(|level| level.min(MOST_IN_FLIGHT));
        let load = Load { batch_size: Some(level), ..Load::default() };
        stages.push(Stage { load, lasts: requests.map_or(Lasts::Unsaid, Lasts::Requests), line: stage.line() });
    }
    Ok(Stages { stages, fields: Vec::new(), longest, is_trace: false })
}

fn trace(at: At) -> Result<Stages, ImportError> {
    // The trace uses the same file as the data.
    if let Some(trace) = at.get("trace") {
        trace.needless("`data.trace` names the replayed file");
    }
    let first = at.get("stages").map_or_else(Vec::new, At::list);
    let mut lasts = Lasts::Unsaid;
    for (number, stage) in first.iter().enumerate() {
        if let Some(rate) = stage.get("rate") {
            rate.needless("the trace sets the send times");
        }
        match stage.get("duration").filter(|_| number == 0).and_then(At::seconds) {
            Some(said) if said.value > 0.0 => lasts = Lasts::Seconds(said),
            _ => {}
        }
    }
    let stage = Stage { load: Load { batch_size: cap(at), is_own: true, ..Load::default() }, lasts, line: at.line() };
    Ok(Stages { stages: vec![stage], fields: Vec::new(), longest: 0.0, is_trace: true })
}
