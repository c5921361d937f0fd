//! The first screen of the page: the question, the answer with its interval and its caveats, the objective,
//! and the endpoints.

use indexmap::IndexMap;

use super::super::naming::{Names, load_of};
use super::super::sources::{MeasuredRun, Sources};
use super::super::view::{Cell, First, Table};
use super::caveats::caveats;
use crate::analysis::comparison::{Comparison, Family, Outcome, Pooled, Test};
use crate::analysis::curve::{Axis, Curve, Figure, Ordinate, Rung};
use crate::analysis::quantile;
use crate::analysis::saturation::State as Saturation;
use crate::analysis::verdict::State;
use crate::plan::Slo;
use crate::report::Trail;
use crate::report::capacity::{cheapest, cheapest_line, doubts, objective};
use crate::report::comparison::{changed, conclusion, named};
use crate::report::configuration::{Answer, Configuration};
use crate::report::curves::{highest, undecided_at};
use crate::report::format::{counts, digits, plain};
use crate::report::spread;
use crate::units::text::counted;

/// Maximum number of items that a sentence lists before it states the number of further items.
const MOST: usize = 3;

/// Maximum number of sentences that follow the first sentence of the answer.
const MOST_MORE: usize = 8;

/// Builds the first screen of the page.
pub(crate) fn first(sources: &Sources) -> First {
    let names = Names::of(sources.curves);
    let mut answers = of_searches(sources);
    answers.extend(of_objective(sources, &names));
    // What is claimed about the arms is never left out.
    let claims = sources.comparison.map(|one| one.answers.clone()).unwrap_or_default();
    let room = (MOST_MORE + 1).saturating_sub(claims.len()).max(1);
    let mut left = answers.len().saturating_sub(room);
    answers.truncate(room);
    answers.extend(claims);
    let details = sources.comparison.map(of_comparison).unwrap_or_default();
    let room = (MOST_MORE + 1).saturating_sub(answers.len());
    left += details.len().saturating_sub(room);
    answers.extend(details.into_iter().take(room));
    if answers.is_empty() {
        answers = of_loads(sources, &names);
        left = answers.len().saturating_sub(MOST_MORE + 1);
        answers.truncate(MOST_MORE + 1);
    }
    if left > 0 {
        answers.push(format!("{} more below", counted(left, "sentence")));
    }
    let mut answers = answers.into_iter();
    let has_starts = sources.runs.iter().any(|run| run.metrics.start.is_some());
    let nothing = || match has_starts {
        true => {
            "Startup times of servers are under Runs, in the table of starts; no load has been measured.".to_owned()
        }
        false => {
            "No run counts, so there is nothing to report about loads or arms. All runs are listed below.".to_owned()
        }
    };
    First {
        question: question(sources),
        beside: beside(sources),
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
    vec![format!("No hypothesis is stated. The plan has {}, in {}.", endpoints.join(", "), sweeps.join(", "))]
}

/// Returns the note between a hypothesis and the answer, which tells readers to compare the hypothesis with
/// the measurements; `None` without a hypothesis.
fn beside(sources: &Sources) -> Option<&'static str> {
    let plan = sources.plan;
    let is_stated = plan.hypothesis.is_some() || plan.sweeps.values().any(|sweep| sweep.hypothesis.is_some());
    is_stated.then_some("The program does not test a hypothesis in prose: compare it with the measurements.")
}

/// Returns the results of searches, each followed by its note as a separate sentence.
fn of_searches(sources: &Sources) -> Vec<String> {
    let searches = sources.trails.iter().filter(|trail| trail.chooses != "ladder" && trail.state != "pending");
    let of = |trail: &Trail| {
        let (found, rest) = trail.headline();
        let found = sentence(&plain(&format!("{}: {found}", trail.title())));
        std::iter::once(found).chain(rest.map(|rest| sentence(&capital(&plain(rest)))))
    };
    searches.take(MOST).flat_map(of).collect()
}

/// Describes the results for the objective: the cheapest configurations, and the load up to which each
/// configuration meets the objective.
fn of_objective(sources: &Sources, names: &Names) -> Vec<String> {
    let configurations = sources.configurations;
    let name = |at: usize| names.curve(configurations[at].curve);
    let limit = |at: usize| limit_of(&configurations[at], &name(at));
    // The results of searches come first, and are not repeated.
    let (searched, all): (Vec<usize>, Vec<usize>) =
        (0..configurations.len()).partition(|at| configurations[*at].curve.search.is_some());
    if let ([only], true) = (&all[..], searched.is_empty()) {
        let only = *only;
        let undecided = undecided(&configurations[only], &name(only));
        return std::iter::once(sentence(&limit(only))).chain(undecided).collect();
    }
    let mut answers = Vec::new();
    let mut said = Vec::new();
    for best in cheapest(configurations, None) {
        let limits: Vec<String> = match best[..] {
            [only] => vec![format!("it {}", limit_text(&configurations[only]))],
            _ => best.iter().map(|at| limit(*at)).collect(),
        };
        let line = capital(&cheapest_line(configurations, &best, None, &name));
        answers.push(sentence(&format!("{line}; {}", limits.join("; "))));
        let doubts = doubts(configurations, &best, None, &name);
        answers.extend(doubts.iter().map(|doubt| sentence(&format!("Not certain: {doubt}"))));
        said.extend(best);
    }
    let holding: Vec<usize> = all.iter().copied().filter(|at| holds(&configurations[*at])).collect();
    let of = all.len();
    match (said.is_empty(), holding.len()) {
        // The limit of a single one follows.
        (_, 0) if of > 1 => {
            let other = if searched.is_empty() { "" } else { "other " };
            answers.push(format!("No load of any of the {of} {other}configurations is shown to meet the objective."))
        }
        (true, count @ 1..) => {
            let limits: Vec<String> = holding.iter().take(MOST).map(|at| limit(*at)).collect();
            let more = if count > MOST { format!("; and {} more", count - MOST) } else { String::new() };
            let meet = if count == 1 { "meets" } else { "meet" };
            let limits = limits.join("; ");
            let lead =
                format!("{count} of {of} configurations {meet} the objective at a measured load: {limits}{more}");
            answers.push(sentence(&lead));
            said.extend(holding.iter().take(MOST));
        }
        _ => {}
    }
    let is_priced = |at: &&usize| matches!(configurations[**at].answer, Answer::Holds { .. });
    let others = all.iter().chain(searched.iter().filter(is_priced));
    answers.extend(others.filter(|at| !said.contains(at)).map(|at| sentence(&limit(*at))));
    answers.extend(all.iter().filter_map(|at| undecided(&configurations[*at], &name(*at))));
    answers
}

fn holds(one: &Configuration) -> bool {
    match &one.answer {
        Answer::Holds { .. } => true,
        Answer::Closed(found) => found.holds.is_some(),
        Answer::Rejected(_) => false,
    }
}

/// Describes up to which load the configuration `name` meets the objective.
fn limit_of(one: &Configuration, name: &str) -> String {
    format!("{name}: {}", limit_text(one))
}

fn limit_text(one: &Configuration) -> String {
    let axis = one.curve.axis.name().replace('_', " ");
    let found = || highest(one.curve, &axis).unwrap_or_default();
    match &one.answer {
        Answer::Holds { bracket, output, .. } => {
            let output = with_interval("output", output, "tok/s");
            let at = bracket.holds.map(|holds| format!(" at {axis} {holds}")).unwrap_or_default();
            match one.curve.search {
                // The results of searches come first.
                Some(_) => format!("{output}{at}"),
                None => format!("{}; {output}{at}", found()),
            }
        }
        Answer::Closed(_) => found(),
        Answer::Rejected(why) => why.clone(),
    }
}

/// Considers the lightest undecided load above the highest load that meets the objective, and describes why
/// it is undecided. This load matters because it could raise the result. `None` if there is no such load.
fn undecided(one: &Configuration, name: &str) -> Option<String> {
    let (Answer::Holds { bracket: found, .. } | Answer::Closed(found)) = &one.answer else { return None };
    let curve = one.curve;
    let above = |load: &&f64| found.holds.is_none_or(|holds| **load > holds);
    let rung = found.undecided.iter().find(above).and_then(|load| curve.rung(*load));
    let said = rung.map(|rung| (rung.load, undecided_at(rung, false))).filter(|(_, why)| !why.is_empty());
    let axis = curve.axis.name().replace('_', " ");
    said.map(|(load, why)| sentence(&format!("{name}, undecided at {axis} {load}: {}", why.join("; "))))
}

/// Describes the results of a comparison in more detail than its answers: the number of loads with each
/// outcome for each arm and metric, and the conclusion over all tests.
fn of_comparison(comparison: &Comparison) -> Vec<String> {
    let mut answers: Vec<String> = comparison.families.iter().flat_map(of_family).collect();
    let members: u32 = comparison.families.iter().map(Family::members).sum();
    let all = match comparison.families.iter().all(Family::is_untested) {
        true => format!("No test was possible: {}", conclusion(comparison)),
        false => format!("All {} together: {}", counted(members, "test"), conclusion(comparison)),
    };
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
        let over_cells = |metric: &str| {
            let is_its = |one: &&Pooled| one.arm == arm && one.metric == metric;
            family.pooled.iter().find(is_its).map_or(String::new(), |one| format!("; on average {}", one.words))
        };
        let told = metrics.iter().filter(|(_, tests)| !all_unknown(tests));
        let parts: Vec<String> =
            told.map(|(metric, tests)| format!("{}{}", of_metric(tests), over_cells(metric))).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let what = if parts.is_empty() { "nothing could be tested".to_owned() } else { listed(&parts) };
        sentence(&format!("{} against {}: {what}", plain(arm), plain(&family.baseline)))
    };
    arms.into_iter().map(of_arm).collect()
}

fn all_unknown(tests: &[&Test]) -> bool {
    tests.iter().all(|test| test.outcome == Outcome::Unknown)
}

/// Describes the results for one metric of an arm over all loads.
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
        (Outcome::Constant, "the same in every repeat"),
        (Outcome::Refused, "too few repeats to tell"),
        (Outcome::Unknown, "n/a"),
    ];
    let of = tests.len();
    let count = |outcome: Outcome| tests.iter().filter(|test| test.outcome == outcome).count();
    let parts = said.into_iter().map(|(outcome, words)| (count(outcome), words)).filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, words)| format!("{words} in {count} of {of} loads")).collect();
    let intervals: Vec<String> = tests.iter().filter_map(interval).collect();
    let intervals =
        if (1..=MOST).contains(&intervals.len()) { format!(" ({})", intervals.join("; ")) } else { String::new() };
    format!("{} {}{intervals}", named(tests[0]), parts.join(", "))
}

/// Describes each configuration at its heaviest load. Used if there is neither an objective nor a comparison.
fn of_loads(sources: &Sources, names: &Names) -> Vec<String> {
    let said: Vec<String> = sources.curves.iter().filter_map(|curve| heaviest(curve, &names.curve(curve))).collect();
    let lead = "The plan declares no objective and no comparison, so nothing was judged; at the heaviest load whose runs \
                are not invalid,";
    match said.as_slice() {
        [] => Vec::new(),
        [first, others @ ..] => {
            let lead = sentence(&format!("{lead} {first}"));
            std::iter::once(lead).chain(others.iter().map(|text| sentence(text))).collect()
        }
    }
}

fn heaviest(curve: &Curve, name: &str) -> Option<String> {
    let rung = curve.rungs.iter().rfind(|rung| !rung.runs.is_empty())?;
    let parts = ["output_throughput", "ttft_p50"].into_iter().filter_map(|key| part(curve.axis, rung, key));
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| format!("{name}, {}: {}", load_of(curve.axis, rung.load), parts.join(", ")))
}

fn part(axis: Axis, rung: &Rung, key: &str) -> Option<String> {
    let reading = Ordinate::named(key)?;
    let metric = reading.metric(axis == Axis::Qps);
    let percentile = reading.percentile.map(|percentile| format!(" {}", quantile::name(percentile)));
    let name = format!("{}{}", metric.title, percentile.unwrap_or_default());
    Some(with_interval(&name, &rung.figure(reading)?, metric.unit.symbol()))
}

fn with_interval(name: &str, figure: &Figure, unit: &str) -> String {
    let spread = spread::in_sentence(figure).map(|spread| format!(" ({spread})"));
    format!("{name} {} {unit}{}", digits(figure.value), spread.unwrap_or_default())
}

/// Joins the first items of a list, and states the number of further items.
fn listed(parts: &[&str]) -> String {
    let more = match parts.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!("{}{more}", parts.iter().take(MOST).copied().collect::<Vec<_>>().join("; "))
}

/// Adds a full stop to a text, unless it already ends a sentence. The first word is not capitalized, because
/// it may be a name.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// Capitalizes the first letter of a sentence, which must not start with a name.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Counts the runs in each state. Also states in how many of them the server was saturated or not shown to
/// keep up, because a valid run may measure an overloaded server.
fn trust(sources: &Sources) -> String {
    let states = counts(sources.runs.iter().map(|run| run.verdict.state));
    let without = counts(sources.without.iter().map(|run| run.state));
    let all = sources.runs.len() + sources.without.len();
    let of_state = |state: State| {
        let runs = sources.runs.iter().filter(|run| run.verdict.state == state);
        let kept: Vec<Saturation> = runs.filter_map(|run| run.metrics.saturation).map(|one| one.state()).collect();
        let count = |state: Saturation| kept.iter().filter(|one| **one == state).count();
        let parts = [
            (count(Saturation::Saturated), "with a saturated server"),
            (count(Saturation::NotShown), "not shown to keep up"),
        ];
        let parts: Vec<String> =
            parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
    };
    let measured = states.into_iter().map(|(state, count)| format!("{count} {}{}", state.name(), of_state(state)));
    let parts: Vec<String> =
        measured.chain(without.into_iter().map(|(state, count)| format!("{count} {state}"))).collect();
    format!("{}: {}", counted(all, "run"), parts.join(", "))
}

/// Returns a table of endpoints and models, as declared and as reported by servers.
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
        let unsaid = if is_mock { "the embedded mock" } else { "not reported" };
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
