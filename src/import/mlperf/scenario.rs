//! Converts one scenario of LoadGen to a sweep.

use super::settings::{Said, Settings};
use crate::import::draft::{Field, Section, Sweep};
use crate::import::text::seconds;
use crate::units::Decimal;

/// Maximum number of requests in flight in a plan.
const MOST_IN_FLIGHT: f64 = 100_000.0;
/// Maximum rate in a plan, in requests per second.
const MOST_PER_SECOND: f64 = 1_000_000.0;
/// The shortest window, in seconds. A shorter window has too few requests for tail percentiles, and leaves
/// servers too little time to reach a steady state.
const SHORTEST: f64 = 60.0;
/// The longest window, in seconds.
const LONGEST: f64 = 31_536_000.0;
/// Factor by which LoadGen's Offline query exceeds the minimum duration.
const SLACK: f64 = 1.1;
/// LoadGen's default `min_query_count`.
const QUERIES: f64 = 100.0;
/// The percentiles that an objective supports.
const PERCENTILES: [(f64, &str); 6] =
    [(50.0, "p50"), (75.0, "p75"), (90.0, "p90"), (95.0, "p95"), (99.0, "p99"), (99.9, "p99.9")];
/// The minimum of a search's upper bound, in requests per second.
const SEARCHED_TO: f64 = 1000.0;
/// The highest rate at which a search can start, in requests per second.
const SEARCHED_FROM: f64 = 100_000.0;

/// A converted scenario.
pub(super) struct Made {
    /// The sweep of the scenario. Its matrix does not yet contain the axes that name entries, such as
    /// `endpoint`.
    pub(super) sweep: Sweep,
    /// The plan's objective.
    pub(super) slo: Option<Section>,
}

/// Returns the sweep of a scenario.
pub(super) fn made(settings: &Settings, scenario: &str, name: &str) -> Made {
    let mut window = Window::of(settings, scenario);
    if scenario == "Offline" {
        window.count = Some(samples(settings, &window));
    }
    let (axis, slo) = match scenario {
        "Server" => server(settings),
        "Offline" => (offline(settings, &window), None),
        "MultiStream" => (multi_stream(settings), None),
        _ => (single_stream(settings), None),
    };
    let is_searched = scenario == "Server"
        && mode(settings, scenario, slo.is_some() && axis.rate.is_some_and(|rate| rate < SEARCHED_FROM));
    let mut fields = Vec::new();
    let (matrix, rate) = match (is_searched, axis) {
        (true, axis) => {
            fields.push(search(&axis));
            (Vec::new(), axis.rate)
        }
        (false, axis) => (vec![axis.field], axis.rate),
    };
    let measure = window.field(settings, scenario, rate);
    fields.push(Field::new("phases", format!("{{ measure: {} }}", measure.value), measure.origin));
    let sweep = Sweep { name: name.to_owned(), origin: format!("the scenario {scenario}"), matrix, fields };
    Made { sweep, slo }
}

/// The load of a scenario as an axis, and its rate in requests per second; the rate is `None` if it is
/// unknown.
struct Axis {
    field: Field,
    rate: Option<f64>,
}

/// The settings of a measurement window: `min_duration` and `max_duration` in milliseconds, and
/// `min_query_count`.
struct Window {
    time: Option<Said>,
    count: Option<Said>,
    most: Option<Said>,
}

/// Converts the Server scenario: Poisson arrivals at a rate, with latency limits.
fn server(settings: &Settings) -> (Axis, Option<Section>) {
    let said = settings.value("Server", "target_qps");
    let mut said = said.unwrap_or_else(|| Said {
        value: 1.0,
        text: "1".to_owned(),
        origin: "LoadGen's default".to_owned(),
        line: 0,
    });
    if !(0.001..=MOST_PER_SECOND).contains(&said.value) {
        settings.missing(&said, "qps must be from 0.001 to 1000000: the plan uses the nearest");
        said.value = said.value.clamp(0.001, MOST_PER_SECOND);
        said.text = said.value.to_string();
    }
    let rate = rounded(&said);
    for (name, why) in [
        (
            "max_async_queries",
            "LoadGen abandons a run with more in flight; here, the run continues, and the server's queue shows in \
             its latencies",
        ),
        ("coalesce_queries", "late requests are sent individually"),
    ] {
        if let Some(said) = settings.said("Server", name) {
            match said.value {
                0.0 => settings.needless(&said, "sweepline behaves in the same way"),
                _ => settings.missing(&said, why),
            }
        }
    }
    let field = Field::new("qps", format!("[{rate}]"), format!("{}; Poisson arrivals, as in LoadGen", said.origin));
    (Axis { field, rate: Some(said.value) }, slo(settings))
}

/// Returns a rate in a plan's notation.
fn rounded(said: &Said) -> String {
    let exact = said.text.parse::<Decimal>().ok().filter(|rate| rate.is_positive());
    exact.map_or_else(
        || format!("{:.6}", said.value).trim_end_matches('0').trim_end_matches('.').to_owned(),
        |rate| rate.to_string(),
    )
}

/// Returns the latency limits that decide whether a run of Server is valid; `None` if there are none.
fn slo(settings: &Settings) -> Option<Section> {
    let percentile = percentile(settings);
    let limit = |name: &str, key: &str| {
        let said = settings.value("Server", name)?;
        (said.value > 0.0).then(|| {
            let origin = format!("{}, {}", said.origin, percentile.1);
            Field::new(key, format!("{{ {}: {} }}", percentile.0, millis(said.value)), origin)
        })
    };
    let of_tokens = settings.value("Server", "use_token_latencies").is_some_and(|said| said.value == 1.0);
    let fields: Vec<Field> = match of_tokens {
        true => {
            if let Some(said) = settings.said("Server", "target_latency") {
                settings.needless(&said, "`use_token_latencies` replaces it by token latencies");
            }
            [("ttft_latency", "ttft"), ("tpot_latency", "tpot")]
                .iter()
                .filter_map(|(name, key)| limit(name, key))
                .collect()
        }
        false => {
            for name in ["ttft_latency", "tpot_latency"] {
                if let Some(said) = settings.said("Server", name) {
                    settings.missing(&said, "LoadGen reads it only with `use_token_latencies = 1`");
                }
            }
            limit("target_latency", "e2e").into_iter().collect()
        }
    };
    let notes = vec![
        "A Server run is valid if these hold. They apply to the whole plan, but decide nothing at the \
                      loads of other scenarios."
            .to_owned(),
    ];
    (!fields.is_empty()).then_some(Section { key: "slo", notes, fields, ..Section::default() })
}

/// Returns the percentile of the objective, and its origin.
fn percentile(settings: &Settings) -> (&'static str, String) {
    let Some(said) = settings.value("Server", "target_latency_percentile") else {
        return ("p99", "LoadGen's default, the 99th percentile".to_owned());
    };
    match PERCENTILES.iter().find(|(value, _)| (*value - said.value).abs() < 1e-9) {
        Some((_, name)) => (name, said.origin),
        None => {
            settings.missing(&said, "an objective supports p50, p75, p90, p95, p99 or p99.9: the plan uses p99");
            ("p99", said.origin)
        }
    }
}

fn millis(value: f64) -> String {
    let micros = (value.clamp(0.001, LONGEST) * 1000.0).round() as u64;
    if micros.is_multiple_of(1000) { format!("{}ms", micros / 1000) } else { format!("{micros}us") }
}

/// Returns the number of samples in Offline's single query: at least `min_query_count`, and a tenth
/// more than `min_duration` needs at `target_qps` (`loadgen/test_settings_internal.cc`, `kSlack`).
fn samples(settings: &Settings, window: &Window) -> Said {
    let least = window.count.clone().unwrap_or_else(|| Said {
        value: QUERIES,
        text: QUERIES.to_string(),
        origin: format!("LoadGen's default, min_query_count = {QUERIES}"),
        line: 0,
    });
    let is_same = ["performance_issue_same", "performance_issue_unique"]
        .iter()
        .any(|name| settings.value("Offline", name).is_some_and(|said| said.value != 0.0));
    let time = window.time.as_ref().map_or(10_000.0, |said| said.value.max(0.0)) / 1000.0;
    let rate = settings.value("Offline", "target_qps").filter(|said| said.value > 0.0 && !is_same);
    let sized = rate.map(|rate| ((SLACK * time * rate.value).trunc(), rate)).filter(|(value, _)| *value > least.value);
    let Some((value, rate)) = sized else {
        if let Some(said) = settings.said("Offline", "target_qps") {
            settings.needless(
                &said,
                "it sizes LoadGen's single query, and `min_query_count` requires at least as many samples",
            );
        }
        return least;
    };
    let of_time =
        window.time.as_ref().map_or_else(|| "LoadGen's default of 10 s".to_owned(), |said| said.origin.clone());
    let origin = format!("{SLACK} × {} × {of_time}, LoadGen's query", rate.origin);
    Said { value, text: value.to_string(), origin, line: rate.line.max(least.line) }
}

/// Converts Offline to a load with as many requests in flight as Offline's single query has samples.
fn offline(settings: &Settings, window: &Window) -> Axis {
    let rate = settings.value("Offline", "target_qps").filter(|said| said.value > 0.0);
    not_used(settings, "Offline", "target_latency_percentile", "LoadGen does not use it: the result is a throughput");
    not_used(settings, "Offline", "target_latency", "LoadGen does not use it: the result is a throughput");
    if let Some(said) = settings.said("Offline", "max_async_queries") {
        settings.needless(&said, "LoadGen does not use it: there is one query, entirely in flight");
    }
    let count = window.count.as_ref();
    let value = count.map_or(QUERIES, |said| said.value).clamp(1.0, MOST_IN_FLIGHT).trunc();
    if let Some(said) = count.filter(|said| said.value > MOST_IN_FLIGHT) {
        settings.differs(said, "batch_size must be at most 100000: the plan uses this maximum");
    }
    let said = count.cloned().unwrap_or_else(|| Said {
        value: QUERIES,
        text: QUERIES.to_string(),
        origin: format!("LoadGen's default, min_query_count = {QUERIES}"),
        line: 0,
    });
    settings.differs(
        &said,
        "Offline sends all samples at once and measures to the last response; here, the same number is kept in flight",
    );
    let origin = format!("{}: all samples of the query at once", said.origin);
    Axis { field: Field::new("batch_size", format!("[{value}]"), origin), rate: rate.map(|said| said.value) }
}

/// Converts MultiStream, in which each query follows the last sample of the previous one.
fn multi_stream(settings: &Settings) -> Axis {
    let said = settings.value("MultiStream", "samples_per_query");
    let value = said.as_ref().map_or(8.0, |said| said.value).clamp(1.0, MOST_IN_FLIGHT).trunc();
    not_used(settings, "MultiStream", "target_latency", "it only sets the number of queries that LoadGen prepares");
    not_used(settings, "MultiStream", "target_latency_percentile", "results contain all percentiles");
    if let Some(said) = &said {
        let why = "in LoadGen, each query waits for the previous query's slowest sample; here, each request follows \
                   the \
                   previous one";
        settings.differs(said, why);
    }
    let origin = said.map_or_else(|| "LoadGen's default".to_owned(), |said| said.origin);
    Axis { field: Field::new("batch_size", format!("[{value}]"), origin), rate: None }
}

/// Converts SingleStream, which sends one request after another.
fn single_stream(settings: &Settings) -> Axis {
    not_used(settings, "SingleStream", "target_latency", "it only sets the number of queries that LoadGen prepares");
    not_used(settings, "SingleStream", "target_latency_percentile", "results contain all percentiles");
    Axis { field: Field::new("batch_size", "[1]", "SingleStream: one request after another"), rate: None }
}

fn not_used(settings: &Settings, scenario: &str, name: &str, why: &str) {
    if let Some(said) = settings.said(scenario, name) {
        settings.needless(&said, why);
    }
}

/// Whether the mode of the scenario is a search for the highest rate. Other modes are listed.
fn mode(settings: &Settings, scenario: &str, can_search: bool) -> bool {
    let Some(said) = settings.said(scenario, "mode") else { return false };
    let accuracy = "accuracy is not measured";
    match said.value as i64 {
        2 => settings.needless(&said, "PerformanceOnly: sweepline also measures only performance"),
        3 if scenario == "Server" && can_search => return true,
        3 if scenario == "Server" => {
            settings.missing(&said, "FindPeakPerformance needs a latency limit: write an `slo` and a `search`")
        }
        3 => settings.missing(&said, "FindPeakPerformance is only for Server"),
        0 => settings.missing(&said, &format!("SubmissionRun: {accuracy}, only its performance run")),
        1 => settings.missing(&said, &format!("AccuracyOnly: {accuracy}; the plan measures performance")),
        _ => settings.missing(&said, "unknown mode in LoadGen"),
    }
    false
}

/// Returns the search of FindPeakPerformance, which starts at the target rate.
fn search(axis: &Axis) -> Field {
    let from = axis.field.value.trim_matches(['[', ']']);
    let to = axis.rate.map_or(SEARCHED_TO, |rate| (rate * 10.0).clamp(SEARCHED_TO, MOST_PER_SECOND)).trunc();
    let origin = format!("mode = 3, FindPeakPerformance, from {}", axis.field.origin);
    Field::new("search", format!("{{ qps: {{ from: {from}, to: {to}, within: 5% }}, meets: slo }}"), origin)
}

impl Window {
    fn of(settings: &Settings, scenario: &str) -> Window {
        let whole = |name: &str| settings.value(scenario, name);
        Window { time: whole("min_duration"), count: whole("min_query_count"), most: whole("max_duration") }
    }

    /// Returns `measure`. As in LoadGen, a run measures until the minimum time has passed and the minimum
    /// number of requests has been sent.
    fn field(&self, settings: &Settings, scenario: &str, rate: Option<f64>) -> Field {
        if let Some(said) = settings.said(scenario, "max_query_count") {
            match said.value {
                0.0 => settings.needless(&said, "0 means unlimited, as in sweepline"),
                _ => settings.missing(&said, "a window ends after a time: `at_most` of `measure` bounds it"),
            }
        }
        if scenario != "Server" {
            mode(settings, scenario, false);
        }
        let said = |said: &Option<Said>, otherwise: f64| said.as_ref().map_or(otherwise, |said| said.value.max(0.0));
        let most = self.most.as_ref().filter(|said| said.value > 0.0).map(|said| said.value / 1000.0);
        let asked = said(&self.time, 10_000.0) / 1000.0;
        let time = asked.max(SHORTEST).min(most.unwrap_or(LONGEST)).clamp(0.001, LONGEST);
        let count = said(&self.count, QUERIES).clamp(1.0, f64::from(u32::MAX)).trunc();
        // The time that the requests need at this rate, plus a tenth because arrivals vary.
        let needed = rate.map(|rate| (count / rate * 1.1).ceil().min(LONGEST)).filter(|needed| *needed > 5.0 * time);
        let at_most = most.map(|most| most.max(time)).or(needed);
        let at_most = at_most.map_or_else(String::new, |most| format!(", at_most: {}", seconds(most)));
        let mut origin: Vec<String> =
            [&self.time, &self.count, &self.most].into_iter().flatten().map(|said| said.origin.clone()).collect();
        if self.count.is_none() {
            origin.push(format!("LoadGen's default, min_query_count = {QUERIES}"));
        }
        if asked < time {
            origin.push("at least 60s here".to_owned());
        }
        Field::new(
            "measure",
            format!("{{ for: {}, min_requests: {count}{at_most} }}", seconds(time)),
            origin.join("; "),
        )
    }
}
