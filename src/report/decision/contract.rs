//! Renders the question of a decision, and the conditions of the measurements on which the decision is based.

use indexmap::IndexMap;

use super::evidence::{Evidence, MeasuredRun};
use super::markdown::{code, inert, list, quote, table};
use crate::analysis::curve::Axis;
use crate::expand::{Load, RunSpec};
use crate::report::capacity::objective;
use crate::report::cells::most_repeats;
use crate::report::format::counts;

pub(super) fn text(evidence: &Evidence) -> String {
    let mut out = "## Question\n\n".to_owned();
    out.push_str(&question(evidence));
    out.push_str("\n## Contract\n\n");
    out.push_str(&list(&terms(evidence)));
    out.push_str("\nServers and clients, as declared and as read back:\n\n");
    out.push_str(&places(&evidence.runs));
    out.push_str("\nWorkload and load, as measured:\n\n");
    out.push_str(&workloads(evidence));
    out
}

fn question(evidence: &Evidence) -> String {
    let plan = evidence.plan;
    let mut out = plan.hypothesis.as_ref().map(|text| quote(text)).unwrap_or_default();
    for (name, sweep) in &plan.sweeps {
        if let Some(text) = &sweep.hypothesis {
            out.push_str(&format!("\nSweep {}:\n\n{}", code(name), quote(text)));
        }
    }
    if out.is_empty() { "The plan states no hypothesis.\n".to_owned() } else { out.trim_start().to_owned() }
}

fn terms(evidence: &Evidence) -> Vec<String> {
    let limits = evidence.objective().map(|slo| inert(&objective(slo)));
    let mut terms = vec![
        format!("Objective: {}", limits.unwrap_or_else(|| "none declared".to_owned())),
        format!("Plan: {} in {}, SHA-256 `{}`", code(&evidence.plan.name), code(&evidence.file), evidence.sha256),
    ];
    let set = evidence.set.iter().map(|path| code(path)).collect::<Vec<_>>().join(", ");
    if !set.is_empty() {
        terms.push(format!("Set on the command line (`--set`), values not repeated here: {set}"));
    }
    if !evidence.chosen.is_empty() {
        terms.push(format!("Of the plan's runs, those of {}", code(evidence.chosen.trim())));
    }
    let started = evidence.runs.iter().map(|run| run.record.started).min();
    let ended = evidence.runs.iter().map(|run| run.record.ended).max();
    if let Some((from, to)) = started.zip(ended) {
        terms.push(format!("Measured: {:.19}Z to {:.19}Z", from.to_string(), to.to_string()));
    }
    let versions = counts(evidence.runs.iter().map(|run| run.record.environment.sweepline.clone()));
    let versions: Vec<String> = versions.keys().map(|version| inert(version)).collect();
    terms.push(format!("Measured by sweepline {}", versions.join(", ")));
    terms
}

fn places(runs: &[MeasuredRun]) -> String {
    let headings = ["endpoint", "engine", "read back from the server", "model", "GPUs", "address", "runs#"];
    let place = |run: &MeasuredRun| {
        let (spec, found) = (&run.record.spec, &run.record.environment);
        let endpoint = &spec.endpoint;
        let is_mock = endpoint.mock.is_some();
        let gpus = match (&endpoint.gpu, endpoint.gpus) {
            (Some(gpu), Some(count)) => format!("{count} × {}", inert(gpu)),
            (Some(gpu), None) => inert(gpu),
            (None, Some(count)) => count.to_string(),
            (None, None) if is_mock => "none: the embedded mock".to_owned(),
            (None, None) => "not declared".to_owned(),
        };
        let version =
            endpoint.server.get("version").map(|version| format!(" {} (declared)", inert(&version.to_string())));
        let unsaid = if is_mock { "the embedded mock" } else { "not reported" };
        let read_back = found.fingerprint.in_words().or_else(|| found.server.clone());
        [
            code(&endpoint.name),
            format!("{}{}", endpoint.engine.name(), version.unwrap_or_default()),
            read_back.map_or_else(|| unsaid.to_owned(), |text| inert(&text)),
            format!("{} ({})", code(&spec.labels.model), inert(&spec.model.id)),
            gpus,
            found.host.as_ref().filter(|_| !is_mock).map_or_else(|| "this machine".to_owned(), |host| code(host)),
        ]
    };
    let rows = counts(runs.iter().map(place)).into_iter();
    let rows: Vec<Vec<String>> =
        rows.map(|(cells, runs)| cells.into_iter().chain([runs.to_string()]).collect()).collect();
    table(&headings, &rows)
}

/// What the runs of one sweep sent for one scenario: the workload and the loads.
#[derive(Default)]
struct Sent<'a> {
    loads: Vec<(Axis, f64)>,
    arrivals: Vec<String>,
    phases: Vec<String>,
    seeds: Vec<String>,
    runs: Vec<&'a RunSpec>,
    tokens: Vec<String>,
}

fn workloads(evidence: &Evidence) -> String {
    let mut all: IndexMap<(&str, &str), Sent> = IndexMap::new();
    for run in &evidence.runs {
        let spec = &run.record.spec;
        let sent = all.entry((run.sweep, &spec.labels.scenario)).or_default();
        let (load, arrivals) = match &spec.load {
            Load::Closed { batch_size } => ((Axis::BatchSize, f64::from(*batch_size)), None),
            Load::Open { qps, arrivals, .. } => ((Axis::Qps, qps.to_f64()), Some(arrivals.label())),
        };
        add(&mut sent.loads, load);
        arrivals.into_iter().for_each(|label| add(&mut sent.arrivals, inert(&label)));
        let phases = &spec.phases;
        let phases = format!("{} / {} / {}", phases.fill, phases.stabilize, phases.measure.duration);
        add(&mut sent.phases, phases);
        add(&mut sent.seeds, spec.seed.0.to_string());
        sent.runs.push(spec);
        add(&mut sent.tokens, tokens(spec));
    }
    let headings = [
        "sweep",
        "scenario",
        "prompt / output tokens, as declared",
        "load",
        "arrivals",
        "fill / stabilize / measure, as planned",
        "repeats#",
        "seed",
    ];
    let row = |((sweep, scenario), mut sent): ((&str, &str), Sent)| {
        sent.loads.sort_by(|a, b| a.1.total_cmp(&b.1));
        let loads: Vec<String> = sent.loads.iter().map(|(_, load)| load.to_string()).collect();
        let axis = sent.loads.first().map_or("", |(axis, _)| axis.name()).replace('_', " ");
        let or_closed = |texts: Vec<String>| if texts.is_empty() { "closed loop".to_owned() } else { texts.join(", ") };
        vec![
            code(sweep),
            code(scenario),
            sent.tokens.join(", "),
            format!("{axis} {}", loads.join(", ")),
            or_closed(sent.arrivals),
            sent.phases.join(", "),
            most_repeats(sent.runs).to_string(),
            sent.seeds.join(", "),
        ]
    };
    table(&headings, &all.into_iter().map(row).collect::<Vec<_>>())
}

/// Describes the requested prompt and output lengths: as two numbers, or as their source if lengths vary.
fn tokens(spec: &RunSpec) -> String {
    let content = &spec.scenario;
    match () {
        () if !spec.mix.is_empty() => format!("a mix of {} classes", spec.mix.len()),
        () if content.data.is_some() => "from a data set".to_owned(),
        () if content.trace.is_some() => "from a trace".to_owned(),
        () if content.lengths.is_some() => "drawn from declared lengths".to_owned(),
        () => format!("{} / {}", content.prompt_tokens, content.output_tokens),
    }
}

fn add<T: PartialEq>(all: &mut Vec<T>, one: T) {
    if !all.contains(&one) {
        all.push(one);
    }
}
