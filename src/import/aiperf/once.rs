//! Converts AIPerf's settings that apply to all runs: seed, repeats, pauses, limits, output.

use super::leaves::At;
use super::lengths::short;
use crate::import::draft::Field;
use crate::import::said::Said;
use crate::import::text::{one_line, seconds};

/// Plan-wide settings: fields with the names of their sections.
pub(super) type Once = Vec<(&'static str, Field)>;

/// Returns the goodput limits, the request timeout, the pause between runs, and the seed.
pub(super) fn once(root: At, body: At, sweep: At) -> Once {
    let mut once = Vec::new();
    if let Some(seed) = root.get("random_seed").whole() {
        once.push(("seed", Field::new("seed", seed.value.to_string(), seed.origin)));
    }
    once.extend(goodput(body.get("slos")).into_iter().map(|field| ("goodput", field)));
    if let Some(said) = body.get("endpoint").get("timeout").seconds() {
        let value = if said.value > 0.0 { said.value.max(0.001) } else { 86_400.0 };
        once.push(("timeouts", Field::new("request", seconds(value), said.origin)));
    }
    let pauses = [root.get("multi_run").get("cooldown_seconds"), sweep.get("cooldown_seconds")];
    let pauses: Vec<Said<f64>> = pauses.into_iter().filter_map(At::seconds).filter(|said| said.value > 0.0).collect();
    let longest = pauses.iter().max_by(|a, b| a.value.total_cmp(&b.value));
    if let Some(longest) = longest {
        let origin = pauses.iter().map(|said| said.origin.as_str()).collect::<Vec<_>>().join(", ");
        once.push(("between", Field::new("cooldown", seconds(longest.value), origin)));
    }
    sweep.get("sla_filters").missing("`slo` limits percentiles of a run, and `stop: slo_missed` ends a ladder");
    sweep.get("post_process").needless("`curves`, `capacity` and `compare` read the results");
    told(root, body);
    once
}

/// Lists the settings that have no counterpart in the plan, and the settings that need none.
fn told(root: At, body: At) {
    root.get("schema_version").needless("a plan has `sweepline: 1`");
    root.get("no_sweep_table").needless("`run --progress` sets the display");
    root.get("plot").needless("`report` and `curves --plot` draw plots; `export --rows requests` has the data");
    body.get("artifacts")
        .needless("every run is stored, one row per request, under `--results DIR`; `export` and `report` show them");
    let stored = "`export` writes results for other tools";
    for key in ["otel", "mlflow", "wandb"] {
        body.get(key).missing(&format!(
            "nothing is sent to other services during runs; {stored}, `--metrics-addr` serves live metrics"
        ));
    }
    body.get("accuracy").missing("responses are not graded; `record: { text: true }` stores them");
    body.get("runtime").needless("`engine: { threads: N, workers: N }` of a sweep configures the client");
    body.get("logging").needless("`run --progress` sets the display");
    body.get("network_latency")
        .needless("latencies are reported as measured; `near: true` of an endpoint states that it is close");
    body.get("server_profiler")
        .missing("`hooks: { before_run: { request: … } }` of the endpoint starts it, `after_run` ends it");
    let reset = body.get("reset_kv_cache");
    for key in ["path", "timeout_seconds"] {
        reset.get(key).needless("`reset: prefix_cache` uses the right address for each engine");
    }
}

/// Converts the limits of a request. AIPerf's inter-token latency is the mean over a request, which
/// sweepline calls TPOT; AIPerf's output throughput per user is its reciprocal.
fn goodput(slos: At) -> Vec<Field> {
    let mut tpot: Option<Said<f64>> = None;
    let mut fields = Vec::new();
    for (metric, at) in slos.entries() {
        let Some(said) = at.float().filter(|said| said.value > 0.0 && said.value < 1e12) else { continue };
        match metric {
            "time_to_first_token" => fields.push(limit("ttft", said)),
            "request_latency" => fields.push(limit("e2e", said)),
            "inter_token_latency" => tpot = Some(tighter(tpot, said)),
            "output_token_throughput_per_user" | "tokens_per_second" => {
                tpot = Some(tighter(tpot, said.map(|per_second| 1000.0 / per_second)));
            }
            _ => at.missing("`goodput` limits a request's ttft, tpot and e2e"),
        }
    }
    fields.extend(tpot.map(|said| limit("tpot", said)));
    fields
}

/// Returns the lower of two limits.
fn tighter(known: Option<Said<f64>>, said: Said<f64>) -> Said<f64> {
    match known {
        None => said,
        Some(known) => {
            let [a, b] = [known.value, said.value].map(short);
            let origin = format!("{} ({a} ms), {} ({b} ms): the stricter one", known.origin, said.origin);
            Said { value: known.value.min(said.value), origin }
        }
    }
}

/// Converts a limit in milliseconds to a field, rounded to whole microseconds. The resolution of a plan is
/// nanoseconds.
fn limit(key: &str, said: Said<f64>) -> Field {
    let micros = (said.value * 1000.0).round().max(1.0) as u64;
    let value = if micros.is_multiple_of(1000) { format!("{}ms", micros / 1000) } else { format!("{micros}us") };
    Field::new(key, value, said.origin)
}

/// Returns `repeats`, the number of runs per cell; `None` if each cell runs once.
pub(super) fn repeats(root: At) -> Option<Field> {
    let runs = root.get("multi_run");
    runs.get("set_consistent_seed").needless("all cells of a repeat get the same requests");
    runs.get("vary_seed_per_trial").needless("each repeat draws its own requests, the same for all cells");
    runs.get("disable_warmup_after_first").needless("every run fills and stabilizes before it measures");
    let level = runs.get("confidence_level");
    match level.float() {
        Some(said) if (said.value - 0.95).abs() > 1e-9 => level.differs("confidence intervals have a level of 95 %"),
        _ => level.needless("confidence intervals have a level of 95 %"),
    }
    let most = runs.get("num_runs").whole();
    let convergence = runs.get("convergence");
    let most_runs = most.as_ref().map_or(1, |said| said.value.clamp(1, 1000));
    if let Some(metric) = convergence.get("metric").text().filter(|_| most_runs > 2) {
        return Some(until(convergence, &metric, most_runs, &most));
    }
    convergence.needless("one run per cell has no spread");
    if most.as_ref().is_some_and(|said| said.value <= 1) {
        runs.get("num_runs").needless("each cell runs once");
    }
    let said = most.filter(|said| said.value > 1)?;
    Some(Field::new("repeats", said.value.clamp(1, 1000).to_string(), said.origin))
}

fn until(convergence: At, metric: &Said<String>, most: u64, said: &Option<Said<u64>>) -> Field {
    let stat = convergence.get("stat").text().map(|said| said.value).unwrap_or_else(|| "avg".to_owned());
    let percentile = ["p50", "p90", "p95", "p99"].into_iter().find(|known| *known == stat);
    let name = match metric.value.as_str() {
        "time_to_first_token" => Some("ttft"),
        "inter_token_latency" => Some("tpot"),
        "request_latency" => Some("e2e"),
        "output_token_throughput" => Some("output_throughput"),
        _ => None,
    };
    let metrics = match (name, percentile) {
        (Some("output_throughput"), _) => ", metrics: [output_throughput]".to_owned(),
        (Some(name), Some(percentile)) => format!(", metrics: [{name}_{percentile}]"),
        (Some(name), None) => format!(", metrics: [{name}]"),
        (None, _) => {
            convergence
                .get("metric")
                .differs("here, the metrics of the plan's `slo` and output throughput must converge");
            String::new()
        }
    };
    // AIPerf's threshold applies to the full width of the interval, sweepline's to half the width.
    let threshold = convergence.get("threshold").float().map_or(0.1, |said| said.value);
    if let Some(mode) = convergence.get("mode").text().filter(|said| said.value != "ci_width") {
        convergence.get("mode").differs(&format!("here, the mean's interval decides, not `{}`", one_line(&mode.value)));
    }
    let share = short((threshold * 50.0).clamp(0.1, 50.0));
    let origin =
        said.as_ref().map_or_else(|| metric.origin.clone(), |said| format!("{}, {}", said.origin, metric.origin));
    Field::new("repeats", format!("{{ until: {share}%, at_most: {most}{metrics} }}"), origin)
}
