//! Symptoms in the telemetry of servers and GPUs (`telemetry`), one function each. Missing figures are
//! never guessed, so a run without a figure provides no evidence.

use crate::analysis::Whole;
use crate::analysis::curve::{Curve, Run, Rung};

use super::evidence::{Evident, Finding};
use super::look::{at, evidence, in_flight, short};
use super::named::Names;
use super::shown::{Looked, found};

// Limits without a cited source are chosen, not measured: they have not been confirmed on a server with a
// known problem.

/// A part of a latency is reported as the cause of that latency if it is at least the share `SHARE` of the
/// latency and takes at least `LEAST_MS` milliseconds.
const SHARE: f64 = 0.25;
const LEAST_MS: f64 = 1.0;
/// The KV cache is nearly full if its mean utilization over the window is at least `KV_MEAN`, or if its
/// maximum is at least `KV_FULL`.
const KV_MEAN: f64 = 0.90;
const KV_FULL: f64 = 0.99;
/// Counters are interpolated at the borders of the window, so less than half an event counts as zero.
const ONE_EVENT: f64 = 0.5;
/// The symptom is present if clocks are lowered at this share of the scrapes or more; a smaller share is
/// treated as an exception.
const THROTTLED: f64 = 0.05;
/// If the server processes no more than this share of the client's requests in flight, the rest are
/// waiting.
const FEW: f64 = 0.5;
/// Minimum number of requests in flight at which batches can be full at all.
const CROWD: f64 = 4.0;
/// If the maximum number of running requests reaches this share of the server's declared limit, the server is
/// at the limit.
const AT_LIMIT: f64 = 0.95;

/// A symptom in one run.
struct Shown {
    is_there: bool,
    /// Strength of the symptom, used to find the load at which the symptom is strongest.
    weight: f64,
    text: String,
}

/// Checks every load of every curve, except for loads with a run that lacks the figure. A load has the
/// symptom only if all of its runs do.
fn on_curves(evident: &Evident, missing: &str, absent: &str, of: impl Fn(&Run) -> Option<Shown>) -> Finding {
    let names = Names::of(evident);
    let look = |curve: &Curve| {
        let known = |rung: &Rung| rung.runs.iter().map(&of).collect::<Option<Vec<_>>>().filter(|all| !all.is_empty());
        let rungs: Vec<(&Rung, Vec<Shown>)> =
            curve.rungs.iter().filter_map(|rung| Some((rung, known(rung)?))).collect();
        let showing = |(_, all): &&(&Rung, Vec<Shown>)| all.iter().all(|one| one.is_there);
        let weight = |(_, all): &&(&Rung, Vec<Shown>)| all.iter().map(|one| one.weight).sum::<f64>() / all.len() as f64;
        let said = |rung: &Rung, run: &Run, shown: &Shown| {
            format!("{}: at {}, {} (run {})", names.run(run), at(curve, rung), shown.text, short(run))
        };
        let count = rungs.iter().filter(showing).count();
        if let Some((rung, all)) = rungs.iter().filter(showing).max_by(|a, b| weight(a).total_cmp(&weight(b))) {
            let loads = match (count, rungs.len()) {
                (_, 1) => String::new(),
                (count, of) => format!("; seen at {count} of {of} loads, most strongly here"),
            };
            let text = format!("{}{loads}", said(rung, &rung.runs[0], &all[0]));
            return Some(Looked::Seen(evidence(&rung.runs.iter().collect::<Vec<_>>(), text)));
        }
        let some = |(rung, all): &(&Rung, Vec<Shown>)| {
            let place = all.iter().position(|one| one.is_there)?;
            let count = all.iter().filter(|one| one.is_there).count();
            let of = all.len();
            Some(Looked::NotShown(format!(
                "{}: in {count} of {of} repeats",
                said(rung, &rung.runs[place], &all[place])
            )))
        };
        let partly = rungs.iter().find_map(some);
        (!rungs.is_empty()).then(|| partly.unwrap_or(Looked::Absent))
    };
    found(evident.curves.iter().map(look), missing, || absent.to_owned())
}

/// Returns a figure of the server; `None` if the run does not have it.
pub(super) fn figure(run: &Run, name: &str) -> Option<f64> {
    run.metrics.server.iter().find(|figure| figure.name == name)?.value.as_ref().ok().copied()
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Returns the latency that is broken down into parts: TTFT, or E2E if responses are not streamed.
fn whole<'r>(run: &'r Run) -> Option<&'r Whole> {
    let named = |name: &str| run.metrics.wholes.iter().find(|whole| whole.name == name);
    named("ttft").or_else(|| named("e2e")).filter(|whole| whole.mean_ms > 0.0)
}

/// Returns a figure as a clause, such as `; 12.1 requests wait`; empty if the figure is unknown.
fn clause(run: &Run, name: &str, said: impl Fn(f64) -> String) -> String {
    figure(run, name).map(|value| format!("; {}", said(value))).unwrap_or_default()
}

pub(super) fn server_queue(evident: &Evident) -> Finding {
    let by_time = |run: &Run| {
        let whole = whole(run)?;
        let (queue, mean) = (whole.part_ms("queue")?, whole.mean_ms);
        let waiting = clause(run, "requests_waiting_mean", |waiting| format!("{waiting:.1} requests wait there"));
        let running = clause(run, "requests_running_max", |running| format!("at most {running:.0} run"));
        let text = format!(
            "{queue:.1} of the {mean:.1} ms of mean {} are spent in the server's queue ({}){waiting}{running}",
            whole.name.to_uppercase(),
            percent(queue / mean)
        );
        Some(Shown { is_there: queue >= LEAST_MS && queue >= SHARE * mean, weight: queue / mean, text })
    };
    let missing = "no run has data on the server's queue; this needs responses that report it, or `telemetry` of an \
                   engine whose page has \
                   `queue_seconds`, or `requests_waiting` and `requests_running`";
    let absent = "less than a quarter of the mean TTFT is spent in the server's queue, or less than a quarter \
                  of its requests wait";
    on_curves(evident, missing, absent, |run| by_time(run).or_else(|| waiting_there(run)))
}

/// If the time in the queue is unknown (llama.cpp), returns the average share of the server's requests that
/// wait. By Little's law, this is the share of a request's time at the server that it spends waiting.
fn waiting_there(run: &Run) -> Option<Shown> {
    let [waiting, running] = ["requests_waiting_mean", "requests_running_mean"].map(|name| figure(run, name));
    let (waiting, all) = (waiting?, waiting? + running?);
    let share = if all > 0.0 { waiting / all } else { 0.0 };
    let text = format!("{waiting:.1} of {all:.1} requests at the server wait there on average ({})", percent(share));
    Some(Shown { is_there: waiting >= ONE_EVENT && share >= SHARE, weight: share, text })
}

pub(super) fn kv_cache_short(evident: &Evident) -> Finding {
    let of = |run: &Run| {
        let (mean, most) = (figure(run, "kv_cache_usage_mean")?, figure(run, "kv_cache_usage_max")?);
        let waiting = clause(run, "requests_waiting_mean", |waiting| format!("{waiting:.1} requests wait"));
        let text = format!("the KV cache is {} full on average, {} at most{waiting}", percent(mean), percent(most));
        Some(Shown { is_there: mean >= KV_MEAN || most >= KV_FULL, weight: mean, text })
    };
    let missing = "no run has the KV cache usage; this needs `telemetry` of an engine whose page has `kv_cache_usage`";
    on_curves(evident, missing, "the KV cache is never full, and less than 90 % full on average", of)
}

pub(super) fn preempted(evident: &Evident) -> Finding {
    let of = |run: &Run| {
        let count = figure(run, "preemptions")?;
        let kv = clause(run, "kv_cache_usage_max", |most| format!("the KV cache is {} full at most", percent(most)));
        let text = format!("{count:.0} requests are preempted in the window{kv}");
        Some(Shown { is_there: count >= ONE_EVENT, weight: count, text })
    };
    let missing =
        "no run has the number of preemptions; this needs `telemetry` of an engine whose page has `preemptions`";
    on_curves(evident, missing, "no request was preempted in a window", of)
}

pub(super) fn throttled(evident: &Evident) -> Finding {
    let of = |run: &Run| {
        let share = figure(run, "gpu_throttled_share")?;
        let heat = clause(run, "gpu_temperature_max", |heat| format!("the hottest reaches {heat:.0} °C"));
        let power = clause(run, "gpu_power_watts_mean", |watts| format!("all GPUs draw {watts:.0} W on average"));
        let text = format!("a GPU's clock is lowered at {} of the scrapes{heat}{power}", percent(share));
        Some(Shown { is_there: share >= THROTTLED, weight: share, text })
    };
    let missing = "no run has the reasons for lowered clocks; this needs `telemetry` with a page of a DCGM \
                  exporter (`gpu_throttle_reasons`)";
    on_curves(evident, missing, "clocks are lowered at less than 5 % of the scrapes", of)
}

pub(super) fn few_at_a_time(evident: &Evident) -> Finding {
    let of = |run: &Run| {
        let running = figure(run, "requests_running_mean")?;
        let crowd = Some(in_flight(run)).filter(|crowd| crowd.is_finite())?;
        let most = figure(run, "requests_running_max")?;
        let waiting = clause(run, "requests_waiting_mean", |waiting| format!("{waiting:.1} wait there"));
        let limit = match evident.batch_limits.iter().find(|(id, _)| *id == run.labels.run_id) {
            None => String::new(),
            Some((_, limit)) if most >= AT_LIMIT * limit => format!("; that is the declared limit of {limit}"),
            Some((_, limit)) => format!("; the declared limit of {limit} is not reached"),
        };
        let text = format!(
            "the server works on {running:.1} requests on average, {most:.0} at most, of {crowd:.1} in \
             flight{limit}{waiting}"
        );
        Some(Shown { is_there: crowd >= CROWD && running <= FEW * crowd, weight: 1.0 - running / crowd, text })
    };
    let missing = "no run has the number of running requests; this needs `telemetry` of an engine whose page has \
        `requests_running`";
    on_curves(evident, missing, "with 4 requests in flight or more, the server works on more than half of them", of)
}

pub(super) fn outside_the_server(evident: &Evident) -> Finding {
    const PARTS: [(&str, &str); 4] = [
        ("client", "the client"),
        ("connection", "connecting"),
        ("network", "the network"),
        ("outside_server", "elsewhere outside the server"),
    ];
    let of = |run: &Run| {
        let whole = whole(run)?;
        let known: Vec<(&str, f64)> =
            PARTS.iter().filter_map(|(name, said)| Some((*said, whole.part_ms(name)?))).collect();
        whole.part_ms("outside_server")?;
        let sum: f64 = known.iter().map(|(_, ms)| ms).sum();
        let parts: Vec<String> = known.iter().map(|(said, ms)| format!("{said} {ms:.1}")).collect();
        let text = format!(
            "{sum:.1} of {:.1} ms of mean {} pass outside the server ({}): {}",
            whole.mean_ms,
            whole.name.to_uppercase(),
            percent(sum / whole.mean_ms),
            parts.join(", ")
        );
        let is_there = sum >= LEAST_MS && sum >= SHARE * whole.mean_ms;
        Some(Shown { is_there, weight: sum / whole.mean_ms, text })
    };
    let missing = "no run has the server's own time; this needs `telemetry` of an engine whose page has \
                  `ttft_seconds` or `e2e_seconds`";
    on_curves(evident, missing, "less than a quarter of the mean TTFT passes outside the server", of)
}
