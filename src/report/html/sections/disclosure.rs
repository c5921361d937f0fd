//! The section with everything that is needed to repeat the measurement: hardware, models, engines, versions,
//! flags, workload, phases, samples and seeds. Missing facts are listed too.

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;

use super::super::sources::{MeasuredRun, Sources};
use super::super::view::{Block, Found, Missing, Section};
use crate::analysis::ANALYSIS;
use crate::report::cells::most_repeats;
use crate::report::format::{cut, plain};

const TITLE: &str = "Disclosure";

/// Maximum number of characters of one fact.
const LONGEST: usize = 300;

/// Fields that are never shown, because their values may contain API keys.
const HIDDEN: [&str; 4] = ["headers", "api_key", "env", "host_env"];

type Facts = Vec<(String, String)>;

/// Builds the section, or states why it is missing.
pub(crate) fn disclosure(sources: &Sources) -> Found {
    if sources.runs.is_empty() {
        return Err(Missing { title: TITLE, why: "no run has a result".to_owned() });
    }
    let mut blocks = Vec::new();
    for (name, runs) in by(&sources.runs, |run| run.labels.endpoint.clone()) {
        blocks.push(Block::Heading { text: format!("Endpoint {}", plain(&name)) });
        blocks.push(Block::Facts { facts: endpoint(sources, &name, &runs) });
    }
    for (name, runs) in by(&sources.runs, |run| run.labels.model.clone()) {
        blocks.push(Block::Heading { text: format!("Model {}", plain(&name)) });
        let declared = sources.plan.models.get(&name).map(flat).unwrap_or_default();
        let facts = if declared.is_empty() { flat(&*runs[0].record.spec.model) } else { declared };
        blocks.push(Block::Facts { facts: tidy(facts) });
    }
    for (name, runs) in by(&sources.runs, |run| run.labels.scenario.clone()) {
        blocks.push(Block::Heading { text: format!("Scenario {}", plain(&name)) });
        blocks.push(Block::Facts { facts: scenario(&runs) });
    }
    for (name, runs) in by(&sources.runs, |run| run.sweep.to_owned()) {
        blocks.push(Block::Heading { text: format!("Sweep {}", plain(&name)) });
        blocks.push(Block::Facts { facts: sweep(&runs) });
    }
    blocks.push(Block::Heading { text: "Client and time".to_owned() });
    blocks.push(Block::Facts { facts: client(sources) });
    if let Some(notes) = &sources.plan.notes {
        blocks.push(Block::Heading { text: "Notes of the plan".to_owned() });
        blocks.push(Block::Text { text: plain(notes) });
    }
    if !sources.lints.is_empty() {
        blocks.push(Block::Heading { text: "Findings of the methodology lint".to_owned() });
        blocks.push(Block::List { items: sources.lints.iter().map(|lint| plain(lint)).collect() });
    }
    let allowed = allowed(sources);
    if !allowed.is_empty() {
        blocks.push(Block::Heading { text: "Findings of the lint that the plan allows".to_owned() });
        blocks.push(Block::List { items: allowed });
    }
    Ok(Section { id: "disclosure", title: TITLE, blocks })
}

/// Lists the `allow` entries of the plan and its sweeps, with their reasons.
fn allowed(sources: &Sources) -> Vec<String> {
    let of_plan = sources.plan.allow.iter().map(|allow| (String::new(), allow));
    let of_sweeps = sources
        .plan
        .sweeps
        .iter()
        .flat_map(|(name, sweep)| sweep.allow.iter().map(move |allow| (format!(" in {}", plain(name)), allow)));
    of_plan.chain(of_sweeps).map(|(place, allow)| format!("{}{place}: {}", allow.code, plain(&allow.because))).collect()
}

/// Groups runs by `key`, in the order of each group's first run.
fn by<'s, 'a>(
    runs: &'s [MeasuredRun<'a>],
    key: impl Fn(&MeasuredRun<'a>) -> String,
) -> IndexMap<String, Vec<&'s MeasuredRun<'a>>> {
    let mut groups: IndexMap<String, Vec<&MeasuredRun>> = IndexMap::new();
    for run in runs {
        groups.entry(key(run)).or_default().push(run);
    }
    groups
}

fn endpoint(sources: &Sources, name: &str, runs: &[&MeasuredRun]) -> Facts {
    let spec = &runs[0].record.spec;
    let mut facts = vec![
        ("engine".to_owned(), spec.endpoint.engine.name().to_owned()),
        ("api".to_owned(), spec.endpoint.api.name().to_owned()),
    ];
    let declared = sources.plan.endpoints.get(name);
    let hardware = declared.and_then(|endpoint| endpoint.hardware.as_ref()).map(flat).unwrap_or_default();
    if hardware.is_empty() {
        let why = if spec.endpoint.mock.is_some() { "the embedded mock has none" } else { "not declared" };
        facts.push(("hardware".to_owned(), why.to_owned()));
    }
    facts.extend(under("hardware", hardware));
    let server = declared.map(|endpoint| flat(&endpoint.server)).unwrap_or_default();
    facts.extend(under("server, declared", server));
    facts.extend(spec.endpoint.mock.as_ref().map(|mock| under("mock", flat(mock))).unwrap_or_default());
    let launched = runs.iter().any(|run| run.record.spec.endpoint.launch.is_some());
    facts.extend(launched.then(|| ("started".to_owned(), "by the sweep (`launch` of the plan)".to_owned())));
    let http = spec
        .endpoint
        .http
        .map_or("1.1".to_owned(), |http| format!("2, at most {} streams per connection", http.streams));
    facts.push(("HTTP".to_owned(), http));
    let found = |of: &dyn Fn(&MeasuredRun) -> Option<String>| distinct(runs.iter().filter_map(|run| of(run)));
    let read_back = found(&|run| {
        let environment = &run.record.environment;
        environment.fingerprint.in_words().or_else(|| environment.server.clone())
    });
    let unsaid = || "the server did not identify itself".to_owned();
    facts.push(("read back from the server".to_owned(), read_back.unwrap_or_else(unsaid)));
    let flags = |run: &MeasuredRun| {
        let flags = &run.record.environment.fingerprint.flags;
        let flags: Vec<String> = flags.iter().map(|(flag, value)| format!("{flag} {value}")).collect();
        (!flags.is_empty()).then(|| flags.join(", "))
    };
    facts.extend(found(&flags).map(|text| ("flags read back".to_owned(), text)));
    facts.extend(found(&|run| run.record.environment.host.clone()).map(|text| ("address".to_owned(), text)));
    let trips: Vec<f64> =
        runs.iter().filter_map(|run| run.record.environment.round_trip_ns).map(|ns| ns as f64 / 1e6).collect();
    facts.extend(range(&trips, "ms").map(|text| ("round trip, measured by the probe".to_owned(), text)));
    tidy(facts)
}

fn scenario(runs: &[&MeasuredRun]) -> Facts {
    let spec = &runs[0].record.spec;
    let mut facts = flat(&spec.scenario);
    facts.extend(flat(&spec.shaping));
    let classes: Vec<String> =
        spec.mix.iter().map(|class| format!("{} (weight {})", class.name, class.weight)).collect();
    if !classes.is_empty() {
        facts.push(("classes of the mix".to_owned(), classes.join(", ")));
    }
    let others = runs.iter().any(|run| run.record.spec.scenario != spec.scenario);
    if others {
        facts.push((
            "further cells".to_owned(),
            "axes of the sweep change some of this: see the table of runs".to_owned(),
        ));
    }
    tidy(facts)
}

fn sweep(runs: &[&MeasuredRun]) -> Facts {
    let spec = &runs[0].record.spec;
    let requests: Vec<f64> = runs.iter().map(|run| run.metrics.counts.requests as f64).collect();
    let windows: Vec<f64> = runs.iter().filter_map(|run| run.metrics.flow.seconds).collect();
    let repeats = most_repeats(runs.iter().map(|run| &run.record.spec));
    let mut facts = vec![
        ("fill".to_owned(), spec.phases.fill.to_string()),
        ("stabilize".to_owned(), spec.phases.stabilize.to_string()),
    ];
    facts.extend(under("measure", flat(&spec.phases.measure)));
    facts.extend(under("drain", flat(&spec.phases.drain)));
    facts.extend(range(&windows, "s").map(|text| ("actual window".to_owned(), text)));
    facts.extend(range(&requests, "").map(|text| ("requests of a run's window".to_owned(), text)));
    facts.push(("repeats".to_owned(), repeats.to_string()));
    facts.push(("seed".to_owned(), spec.seed.0.to_string()));
    facts.push(("connections".to_owned(), spec.connections.name().to_owned()));
    if let crate::expand::Load::Open { arrivals, .. } = &spec.load {
        facts.extend(under("arrivals", flat(arrivals)));
    }
    tidy(facts)
}

fn client(sources: &Sources) -> Facts {
    let environment = |run: &MeasuredRun| run.record.environment.clone();
    let of = |of: &dyn Fn(crate::rows::Environment) -> Option<String>| {
        distinct(sources.runs.iter().filter_map(|run| of(environment(run)))).unwrap_or_else(|| "unknown".to_owned())
    };
    let started = sources.runs.iter().map(|run| run.record.started).min();
    let ended = sources.runs.iter().map(|run| run.record.ended).max();
    let between = started.zip(ended).map(|(from, to)| format!("{:.19}Z to {:.19}Z", from.to_string(), to.to_string()));
    tidy(vec![
        ("measured".to_owned(), between.unwrap_or_default()),
        ("machine".to_owned(), of(&|found| Some(found.client_host))),
        ("system".to_owned(), of(&|found| Some(found.client_os))),
        ("processor".to_owned(), of(&|found| found.client_cpu)),
        ("cores".to_owned(), of(&|found| Some(found.client_cores.to_string()))),
        ("sweepline version of the measurement".to_owned(), of(&|found| Some(found.sweepline))),
        ("analysis version".to_owned(), ANALYSIS.to_string()),
    ])
}

/// Formats the range of values from the minimum to the maximum; `None` if there are none.
fn range(values: &[f64], unit: &str) -> Option<String> {
    let least = values.iter().copied().reduce(f64::min)?;
    let most = values.iter().copied().reduce(f64::max)?;
    let one = |value: f64| if value.fract() == 0.0 { value.to_string() } else { crate::report::format::digits(value) };
    let text = if one(least) == one(most) { one(least) } else { format!("{} to {}", one(least), one(most)) };
    Some(format!("{text} {unit}").trim_end().to_owned())
}

/// Joins the distinct texts; `None` if there are none.
fn distinct(texts: impl Iterator<Item = String>) -> Option<String> {
    let all: indexmap::IndexSet<String> = texts.collect();
    (!all.is_empty()).then(|| all.into_iter().collect::<Vec<_>>().join("; "))
}

fn under(name: &str, facts: Facts) -> Facts {
    facts.into_iter().map(|(key, value)| (format!("{name}: {key}"), value)).collect()
}

fn tidy(facts: Facts) -> Facts {
    facts.into_iter().map(|(name, value)| (plain(&name), cut(&value, LONGEST))).collect()
}

/// Flattens a value to one line per leaf. Empty values, and fields that may contain API keys, are omitted.
fn flat(value: &impl Serialize) -> Facts {
    let mut facts = Vec::new();
    if let Ok(value) = serde_json::to_value(value) {
        walk("", &value, &mut facts);
    }
    facts
}

fn walk(name: &str, value: &Value, facts: &mut Facts) {
    let own = || if name.is_empty() { "is".to_owned() } else { name.replace('_', " ") };
    match value {
        Value::Null => {}
        Value::Object(entries) => {
            for (key, value) in entries.iter().filter(|(key, _)| !HIDDEN.contains(&key.as_str())) {
                let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                walk(&name, value, facts);
            }
        }
        Value::Array(items) if items.is_empty() => {}
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            facts.push((own(), items.iter().map(words).collect::<Vec<_>>().join(", ")));
        }
        Value::Array(_) => facts.push((own(), value.to_string())),
        leaf => facts.push((own(), words(leaf))),
    }
}

fn words(leaf: &Value) -> String {
    match leaf {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    }
}
