//! The first screen: the question, the answer with its interval and its caveats, the objective, and what was measured where.

use indexmap::IndexMap;

use super::super::naming::{Names, load_of};
use super::super::sources::{MeasuredRun, Sources};
use super::super::view::{Cell, First, Table};
use crate::analysis::comparison::{Comparison, Family, Outcome, Test};
use crate::analysis::curve::{Curve, Figure, Ordinate, Rung};
use crate::analysis::verdict::State;
use crate::plan::Slo;
use crate::report::capacity::{Answer, Configuration, cheapest, cheapest_line, doubts, objective};
use crate::report::comparison::{changed, conclusion, named};
use crate::report::curves::bracket;
use crate::report::format::{counts, digits, plain};
use crate::units::text::counted;

/// Most things that a sentence lists before it says how many more there are.
const MOST: usize = 3;

/// Most sentences behind the answer.
const MOST_MORE: usize = 8;

/// The first screen.
pub(in crate::report::html) fn first(sources: &Sources) -> First {
    let names = Names::of(sources.curves);
    let mut answers = of_objective(sources, &names);
    answers.extend(sources.comparison.map(of_comparison).unwrap_or_default());
    if answers.is_empty() {
        answers = of_loads(sources, &names);
    }
    let left = answers.len().saturating_sub(MOST_MORE + 1);
    answers.truncate(MOST_MORE + 1);
    if left > 0 {
        answers.push(format!("{} more below", counted(left, "sentence")));
    }
    let mut answers = answers.into_iter();
    let nothing = || "Nothing can be said of loads or arms: the runs are listed below.".to_owned();
    First {
        question: question(sources),
        answer: answers.next().unwrap_or_else(nothing),
        more: answers.collect(),
        caveats: caveats(sources),
        objective: sources.plan.slo.as_ref().filter(|slo| !Slo::is_empty(slo)).map(objective),
        trust: trust(sources),
        places: places(&sources.runs),
    }
}

fn question(sources: &Sources) -> Vec<String> {
    let plan = sources.plan;
    let of_plan = plan.hypothesis.as_ref().map(|text| format!("Hypothesis: {}", plain(text)));
    let of_sweeps = plan.sweeps.iter().filter_map(|(name, sweep)| {
        sweep.hypothesis.as_ref().map(|text| format!("Hypothesis of {}: {}", plain(name), plain(text)))
    });
    let stated: Vec<String> = of_plan.into_iter().chain(of_sweeps).collect();
    if !stated.is_empty() {
        return stated;
    }
    let endpoints: Vec<String> = plan.endpoints.keys().map(|name| plain(name)).collect();
    let sweeps: Vec<String> = plan.sweeps.keys().map(|name| plain(name)).collect();
    vec![format!("No hypothesis is stated. Measured: {}, in {}.", endpoints.join(", "), sweeps.join(", "))]
}

/// What the objective comes to: what is cheapest, else up to which load each configuration holds it.
fn of_objective(sources: &Sources, names: &Names) -> Vec<String> {
    let configurations = sources.configurations;
    let name = |at: usize| names.curve(configurations[at].curve);
    let mut answers = Vec::new();
    for best in cheapest(configurations, None) {
        answers.push(sentence(&cheapest_line(configurations, &best, None, &name)));
        let doubts = doubts(configurations, &best, None, &name);
        answers.extend(doubts.iter().map(|doubt| sentence(&format!("not certain: {doubt}"))));
    }
    let each: Vec<(bool, String)> =
        configurations.iter().enumerate().map(|(at, one)| (holds(one), limit_of(one, &name(at)))).collect();
    let holding = each.iter().filter(|(holds, _)| *holds).count();
    match each.as_slice() {
        [] => {}
        [(_, only)] => answers.push(sentence(only)),
        _ => {
            let of = each.len();
            let shown: Vec<&str> = each.iter().filter(|(holds, _)| *holds).map(|(_, text)| text.as_str()).collect();
            let lead = match holding {
                0 => format!("no load of any of the {of} configurations is known to meet the objective"),
                _ => format!(
                    "{holding} of {of} configurations meet the objective at a measured load: {}",
                    listed(&shown)
                ),
            };
            answers.push(sentence(&lead));
            let others = each.iter().filter(|(holds, _)| !*holds || holding > MOST);
            answers.extend(others.map(|(_, text)| sentence(text)));
        }
    }
    answers
}

fn holds(one: &Configuration) -> bool {
    match &one.answer {
        Answer::Holds { .. } => true,
        Answer::Closed(found) => found.holds.is_some(),
        Answer::Rejected(_) => false,
    }
}

/// Up to which load one configuration meets the objective.
fn limit_of(one: &Configuration, name: &str) -> String {
    let axis = one.curve.axis.name().replace('_', " ");
    match &one.answer {
        Answer::Holds { bracket: found, output, .. } => {
            format!("{name}: {}, with {}", bracket(found, &axis), with_interval("output", output, "tok/s"))
        }
        Answer::Closed(found) => format!("{name}: {}", bracket(found, &axis)),
        Answer::Rejected(why) => format!("{name}: {why}"),
    }
}

/// What a comparison comes to: for each arm and metric in how many loads which outcome.
fn of_comparison(comparison: &Comparison) -> Vec<String> {
    let mut answers: Vec<String> = comparison.families.iter().flat_map(of_family).collect();
    let tests = comparison.families.iter().map(|family| family.tests).sum::<u32>();
    let all = format!("all {} together: {}", counted(tests, "test"), conclusion(comparison));
    answers.push(sentence(&all));
    answers
}

fn of_family(family: &Family) -> Vec<String> {
    let mut arms: IndexMap<&str, IndexMap<&str, Vec<&Test>>> = IndexMap::new();
    for cell in &family.cells {
        for test in &cell.tests {
            arms.entry(&cell.arm).or_default().entry(&test.metric).or_default().push(test);
        }
    }
    let of_arm = |(arm, metrics): (&str, IndexMap<&str, Vec<&Test>>)| {
        let parts: Vec<String> =
            metrics.values().filter(|tests| !all_unknown(tests)).map(|tests| of_metric(tests)).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let what = if parts.is_empty() { "nothing could be tested".to_owned() } else { listed(&parts) };
        sentence(&format!("{} against {}: {what}", plain(arm), plain(&family.baseline)))
    };
    arms.into_iter().map(of_arm).collect()
}

fn all_unknown(tests: &[&Test]) -> bool {
    tests.iter().all(|test| test.outcome == Outcome::Unknown)
}

/// One metric of an arm over all loads.
fn of_metric(tests: &[&Test]) -> String {
    let interval = |test: &&Test| test.change.as_ref().map(changed);
    if let [test] = tests {
        let interval = interval(test).map(|text| format!(", {text}")).unwrap_or_default();
        return format!("{} {}{interval}", named(test), plain(&test.words));
    }
    let said = [
        (Outcome::Better, "better"),
        (Outcome::Worse, "worse"),
        (Outcome::Differs, "different"),
        (Outcome::NotShown, "no difference shown"),
    ];
    let of = tests.len();
    let count = |outcome: Outcome| tests.iter().filter(|test| test.outcome == outcome).count();
    let parts = said.into_iter().map(|(outcome, words)| (count(outcome), words)).filter(|(count, _)| *count > 0);
    let mut parts: Vec<String> = parts.map(|(count, words)| format!("{words} in {count} of {of} loads")).collect();
    if parts.is_empty() {
        parts.push(format!("not tested in any of {of} loads"));
    }
    let intervals: Vec<String> = tests.iter().filter_map(interval).collect();
    let intervals =
        if (1..=MOST).contains(&intervals.len()) { format!(" ({})", intervals.join("; ")) } else { String::new() };
    format!("{} {}{intervals}", named(tests[0]), parts.join(", "))
}

/// Without an objective and a comparison: what each configuration brings at its heaviest load.
fn of_loads(sources: &Sources, names: &Names) -> Vec<String> {
    let said: Vec<String> = sources.curves.iter().filter_map(|curve| heaviest(curve, &names.curve(curve))).collect();
    let lead = "the plan declares no objective and no comparison, so nothing was judged";
    match said.as_slice() {
        [] => Vec::new(),
        [first, others @ ..] => {
            let lead = sentence(&format!("{lead}; {first}"));
            std::iter::once(lead).chain(others.iter().map(|text| sentence(text))).collect()
        }
    }
}

fn heaviest(curve: &Curve, name: &str) -> Option<String> {
    let rung = curve.rungs.iter().rfind(|rung| !rung.runs.is_empty())?;
    let output = part(rung, "output_throughput", "output", "tok/s");
    let ttft = part(rung, "ttft_p50", "TTFT p50", "ms");
    let parts: Vec<String> = output.into_iter().chain(ttft).collect();
    let load = load_of(curve.axis, rung.load);
    let of = if curve.rungs.len() > 1 { format!("at {load}, its heaviest load") } else { format!("at {load}") };
    (!parts.is_empty()).then(|| format!("{name} {of}: {}", parts.join(", ")))
}

fn part(rung: &Rung, key: &str, name: &str, unit: &str) -> Option<String> {
    Some(with_interval(name, &rung.figure(Ordinate::named(key)?)?, unit))
}

fn with_interval(name: &str, figure: &Figure, unit: &str) -> String {
    let ends = figure.ends.map(|ends| format!(" (95 %: {}–{})", digits(ends.low), digits(ends.high)));
    format!("{name} {} {unit}{}", digits(figure.value), ends.unwrap_or_default())
}

/// The first few of a list, and how many more there are.
fn listed(parts: &[&str]) -> String {
    let more = match parts.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!("{}{more}", parts.iter().take(MOST).copied().collect::<Vec<_>>().join("; "))
}

/// A text as a sentence: a full stop at its end. What it begins with may be a name, and stays.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

fn trust(sources: &Sources) -> String {
    let states = counts(sources.runs.iter().map(|run| run.verdict.state.name()));
    let without = counts(sources.without.iter().map(|run| run.state));
    let all = sources.runs.len() + sources.without.len();
    let parts: Vec<String> =
        states.into_iter().chain(without).map(|(state, count)| format!("{count} {state}")).collect();
    format!("{}: {}", counted(all, "run"), parts.join(", "))
}

fn caveats(sources: &Sources) -> Vec<String> {
    let mut caveats: Vec<String> = sources.notes.iter().map(|note| plain(note)).collect();
    let of_state = |state: State| {
        let runs = sources.runs.iter().filter(move |run| run.verdict.state == state);
        counts(
            runs.flat_map(|run| &run.verdict.reasons)
                .filter(move |reason| reason.state == state)
                .map(|reason| reason.name),
        )
    };
    for (state, what) in [(State::Invalid, "invalid"), (State::Suspect, "suspect")] {
        let reasons: Vec<String> =
            of_state(state).into_iter().map(|(name, count)| format!("{name} ({count})")).collect();
        if !reasons.is_empty() {
            caveats.push(format!("Reasons why runs are {what}: {}. See Verdicts.", reasons.join(", ")));
        }
    }
    let rungs = || sources.curves.iter().flat_map(|curve| &curve.rungs);
    if rungs().next().is_some() && rungs().all(|rung| rung.runs.len() < 2) {
        caveats.push(
            "Each load rests on one run: intervals are within the run, and `repeats` would show how far runs differ."
                .to_owned(),
        );
    }
    if !sources.lints.is_empty() {
        caveats.push(format!(
            "The methodology lint says {} of the plan. See Disclosure.",
            counted(sources.lints.len(), "thing")
        ));
    }
    caveats
}

/// What was measured where: endpoints and models as they were declared, and as servers said.
fn places(runs: &[MeasuredRun]) -> Table {
    let columns = ["endpoint", "engine", "read back from the server", "model", "GPUs", "address", "runs#"];
    let mut table = Table::new("Endpoints, as declared and as found", &columns);
    let place = |run: &MeasuredRun| {
        let (spec, found) = (&run.record.spec, &run.record.environment);
        let endpoint = &spec.endpoint;
        let is_mock = endpoint.mock.is_some();
        let gpus = match (&endpoint.gpu, endpoint.gpus) {
            (Some(gpu), Some(count)) => format!("{count} × {gpu}"),
            (Some(gpu), None) => gpu.clone(),
            (None, Some(count)) => count.to_string(),
            (None, None) if is_mock => "none: the embedded mock".to_owned(),
            (None, None) => "not declared".to_owned(),
        };
        let version =
            endpoint.server.get("version").map(|version| format!(" {version} (declared)")).unwrap_or_default();
        let unsaid = if is_mock { "the embedded mock" } else { "it did not say" };
        [
            run.labels.endpoint.clone(),
            format!("{}{version}", endpoint.engine.name()),
            found.fingerprint.in_words().or_else(|| found.server.clone()).unwrap_or_else(|| unsaid.to_owned()),
            format!("{} ({})", run.labels.model, spec.model.id),
            gpus,
            found.host.clone().unwrap_or_else(|| "this machine".to_owned()),
        ]
    };
    for (place, runs) in counts(runs.iter().map(place)) {
        let texts = place.iter().map(|text| Cell::text(text));
        table.rows.push(texts.chain([Cell::count(runs as u64)]).collect());
    }
    table
}
