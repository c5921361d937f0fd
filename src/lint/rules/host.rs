//! Rules about disturbances of a measurement: a server that logs, a client on the same host, or a generator
//! at its limit.

use super::super::finding::{Finding, Scope};
use super::super::view::{Rung, SweepView, View};
use super::equal::facts;
use super::rate_above;
use crate::analysis::calibration::Pressure;
use crate::expand::Load;
use crate::plan::model::site::{is_loopback, is_one_host, leads_elsewhere};
use crate::plan::{Endpoint, Engine, Scalar};
use crate::workload::lengths::expected;

/// Flags that log every request when enabled.
const LOUD: [&str; 7] =
    ["enable_log_requests", "log_requests", "enable_log_outputs", "verbose", "log_verbose", "debug", "access_log"];
/// Flags that set the log level.
const LEVELS: [&str; 7] =
    ["log_level", "uvicorn_log_level", "vllm_logging_level", "logging_level", "rust_log", "log_level_http", "loglevel"];

/// M016: a server logs more than necessary.
pub(crate) fn verbose_logs(name: &str, endpoint: &Endpoint) -> Option<Finding> {
    let (what, remedy) = loud(endpoint)?;
    let message = format!("the server logs heavily during the measurement: {what}");
    Some(Finding::of(Scope::Endpoint(name.to_owned()), &["server"], message, remedy))
}

/// Returns the reason why a server logs more than necessary, and the remedy; `None` if it does not.
fn loud(endpoint: &Endpoint) -> Option<(String, String)> {
    let facts = facts(endpoint);
    let is_on = |value: &Scalar| matches!(value, Scalar::Bool(true)) || value.to_string() == "1";
    let quiet = || "restart the server without this setting, and remove the setting from the plan".to_owned();
    let lower = "restart the server with log level `warning`, and write this level in the plan".to_owned();
    for (name, value) in &facts {
        let level = value.to_string().to_lowercase();
        if LEVELS.contains(&name.as_str()) && ["debug", "trace", "verbose", "all"].contains(&level.as_str()) {
            return Some((format!("{name} is {level}"), lower));
        }
        if LOUD.contains(&name.as_str()) && is_on(value) {
            return Some((format!("{name} is on"), quiet()));
        }
        if name == "disable_log_requests" && !is_on(value) {
            return Some((format!("{name} is off"), "restart the server with --disable-log-requests".to_owned()));
        }
    }
    let silenced = facts.iter().any(|(name, _)| name == "disable_log_requests");
    let version = facts.iter().find_map(|(name, value)| match value {
        // A version written as a number is ignored, because 0.10 and 0.1 are equal as numbers.
        Scalar::Text(text) if name == "version" => Some(text.clone()),
        _ => None,
    })?;
    (endpoint.engine == Engine::Vllm && !silenced && is_before(&version, (0, 10))).then(|| {
        let what = "vLLM before 0.10 logs every request unless request logs are disabled".to_owned();
        (
            what,
            "restart the server with --disable-log-requests, and write `flags: { disable_log_requests: true }`"
                .to_owned(),
        )
    })
}

/// Whether a version like 0.9.2 or v0.9.2 is below the given major and minor version.
fn is_before(version: &str, (major, minor): (u32, u32)) -> bool {
    let mut parts = version.trim_start_matches('v').split('.').map_while(|part| part.parse::<u32>().ok());
    parts.next().zip(parts.next()).is_some_and(|found| found < (major, minor))
}

/// M017: the server's address is this host, and the plan does not declare that this is intended.
pub(crate) fn one_host(name: &str, endpoint: &Endpoint) -> Option<Finding> {
    let url = endpoint.url.as_deref()?;
    let host = reqwest::Url::parse(url).ok()?.host_str()?.trim_matches(['[', ']']).to_owned();
    let network = endpoint.hardware.as_ref().and_then(|hardware| hardware.network.as_deref());
    let message = format!("client and server share one host ({host}) and compete for its cores and memory");
    let remedy = "measure from another host, or declare the shared host with `hardware: { network: loopback }` \
                  (for a tunnel: `network: tunnel`)";
    let says_so = |network: &str| is_one_host(network) || leads_elsewhere(network);
    let is_unsaid = is_loopback(&host) && !network.is_some_and(says_so);
    is_unsaid.then(|| Finding::of(Scope::Endpoint(name.to_owned()), &["url"], message, remedy))
}

/// M033: a metrics page is on a different host than the endpoint, and the engine is unknown, so it cannot be
/// verified that the page belongs to the endpoint.
pub(crate) fn foreign_metrics(name: &str, endpoint: &Endpoint) -> Option<Finding> {
    let telemetry = endpoint.telemetry.as_ref().filter(|_| endpoint.engine == Engine::Openai)?;
    let host = |url: &str| reqwest::Url::parse(url).ok().and_then(|url| Some(url.host_str()?.to_owned()));
    let own = host(endpoint.url.as_deref()?)?;
    let is_foreign = |page: &&str| host(page).is_some_and(|host| host != own);
    let page = telemetry.pages().into_iter().find(is_foreign)?;
    let message = format!(
        "`{page}` is on a different host than the endpoint, and the plan does not name the engine, so nothing shows \
         that the page belongs to this server"
    );
    let remedy =
        "name the engine and scrape the server's own metrics with `prometheus: [on, …]`, or accept this with `allow`";
    Some(Finding::of(Scope::Endpoint(name.to_owned()), &["telemetry"], message, remedy.to_owned()))
}

/// M018: a load exceeds what this host sustained in its last calibration.
pub(crate) fn beyond_calibration(view: &View, sweep: &SweepView) -> Option<Finding> {
    let calibrated = view.calibrated?;
    let (least, _) = sweep.tokens("output_tokens", |scenario| expected(&scenario.content).output as u32);
    let built = calibrated
        .held
        .iter()
        .filter(|held| held.engine == sweep.engine && held.opens_connections == sweep.opens_connections);
    let held: Vec<&Pressure> = built.map(|held| &held.pressure).collect();
    let tokens = if events_are_known(sweep) { least } else { 0 };
    let (_, per_arrival) = sweep.requests_per_arrival();
    let shown = |rung: &Rung| held.iter().any(|held| pressure(rung, tokens, per_arrival).is_within(held));
    let level = |rung: &Rung| match &rung.load {
        Load::Closed { batch_size } => f64::from(*batch_size),
        Load::Open { .. } => peak(rung),
    };
    let worst = sweep.rungs.iter().filter(|rung| !shown(rung)).max_by(|a, b| level(a).total_cmp(&level(b)))?;
    let most = |of: fn(&Pressure) -> f64| held.iter().map(|held| of(held)).fold(0.0, f64::max);
    let (what, flag) = match &worst.load {
        Load::Closed { batch_size } => {
            (format!("{:.0} in flight", most(|held| held.in_flight)), format!("--batch-size {batch_size}"))
        }
        Load::Open { qps, arrivals, .. } => {
            let rate = arrivals.profile.as_ref().map_or_else(|| qps.to_string(), |_| rate_above(peak(worst)));
            (format!("{:.0} requests per second", most(|held| held.requests_per_second)), format!("--qps {rate}"))
        }
    };
    Some(sweep.finding(
        worst.at.clone(),
        format!(
            "`{}` exceeds the highest load that this host sustained in its last calibration: {what}",
            worst.written()
        ),
        format!(
            "run `sweepline calibrate {flag} --output-tokens {}`, and lower the load if the calibration shows that \
                 this host cannot sustain it",
            least.max(1)
        ),
    ))
}

/// Whether responses have the requested length and arrive token by token, so that the rate of requests also
/// determines the rate of events.
fn events_are_known(sweep: &SweepView) -> bool {
    let takes =
        |(_, endpoint): &(&str, &Endpoint)| endpoint.engine.takes_ignore_eos() && endpoint.api.has("ignore_eos");
    sweep.streams && sweep.endpoints.iter().all(takes)
}

/// The highest rate of an open loop, which the generator must sustain.
fn peak(rung: &Rung) -> f64 {
    rung.course().map_or(0.0, |course| course.peak())
}

/// The known part of the load that a run puts on the generator: the requests in flight of a closed loop,
/// or the arrivals and tokens of an open loop. Unknown parts are 0, so they never exceed a calibration.
fn pressure(rung: &Rung, output_tokens: u32, per_arrival: u32) -> Pressure {
    match &rung.load {
        Load::Closed { batch_size } => {
            Pressure { in_flight: f64::from(*batch_size), requests_per_second: 0.0, events_per_second: 0.0 }
        }
        Load::Open { .. } => {
            let rate = peak(rung) * f64::from(per_arrival);
            let events = rate * f64::from(output_tokens);
            Pressure { in_flight: 0.0, requests_per_second: rate, events_per_second: events }
        }
    }
}
