//! The parts for single runs: each contains the labels, the verdict with all reasons, the main figures, and a
//! drawing of the run over time. The size of the page is limited, so the runs of most interest come first.

use std::collections::HashSet;

use serde::Serialize;

use super::super::chart::{PhaseEnds, Strip, Values, WIDE_STRIPS, strips};
use super::super::naming::{content, load, short};
use super::super::sources::{MeasuredRun, RunWithout, Sources};
use super::super::view::{Cell, Link, Table, tone};
use crate::analysis::metric::{self, Get};
use crate::analysis::verdict::State;
use crate::analysis::{Estimate, Pulse, Summary, quantile};
use crate::metrics::{METRICS, Metric};
use crate::plan::Percentile;
use crate::report::format::{cut, digits, plain, said, value};
use crate::report::words;
use crate::units::Nanos;

/// Maximum number of characters of a reason, and of a failed request's message.
const LONGEST: usize = 400;

/// The metrics with a distribution that a part shows, by key.
const DISTRIBUTIONS: [&str; 6] = ["ttft", "ttft_from_schedule", "tpot", "itl", "e2e", "e2e_from_schedule"];

/// The percentiles of each distribution that a part shows.
const PERCENTILES: [Percentile; 4] = [Percentile::P50, Percentile::P90, Percentile::P99, Percentile::P999];

/// The metrics with a single value that a part shows, by key.
const SINGLES: [&str; 8] = [
    "output_throughput",
    "request_throughput",
    "achieved_rate",
    "achieved_concurrency",
    "error_share",
    "jitter_ratio",
    "start_ready",
    "start_first_answer",
];

/// The part for one run, in the form that the template expects.
#[derive(Debug, Serialize)]
pub(crate) struct RunPart {
    /// The anchor that links point to.
    pub(crate) anchor: String,
    /// The beginning of the run's id, as in tables.
    pub(crate) short: String,
    /// The name of the run.
    name: String,
    /// The state of the run.
    state: Cell,
    /// Facts about the run.
    facts: Vec<(&'static str, String)>,
    /// Reasons to doubt the run, labels, and checks that were not possible.
    reasons: Vec<String>,
    /// The distributions of latencies; `None` without a result.
    distributions: Option<Table>,
    /// The metrics with a single value; `None` if there are none.
    singles: Option<Table>,
    /// The server's own metrics over the window; `None` if nothing was scraped.
    server: Option<Table>,
    /// How the time of the run's requests was spent; `None` if unknown.
    parts: Option<Table>,
    /// The run over time; `None` if it was not recorded.
    drawing: Option<Strips>,
    /// The command that shows everything about the run.
    show: String,
}

/// The drawing of a run over time.
#[derive(Debug, Serialize)]
struct Strips {
    width: u32,
    height: u32,
    inside: String,
    title: String,
    caption: String,
    seconds: String,
    /// The latency metric in the lowest strip, with a link to its definition.
    metric: Option<Link>,
    /// The values that are drawn, as numbers.
    numbers: Numbers,
}

/// The numbers behind the strips.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Numbers {
    /// A table, and the hover text of each part of the time, from left to right.
    Table { table: Table, marks: Vec<Mark> },
    /// Lines of comma-separated values with a header, which take a tenth of the space of a table. The page's
    /// script converts them to a table and hover texts on demand; without the script, the lines are shown as
    /// they are.
    Lines { caption: String, lines: String },
}

/// A hover text with its horizontal range.
#[derive(Debug, Serialize)]
struct Mark {
    x: u32,
    width: u32,
    text: String,
}

/// Maximum number of runs on a page that gives each run a table of all parts of its time, which takes about
/// 20 KB. With more runs, the parts of the time are longer, and their numbers are plain lines.
const MOST_TABLED: usize = 60;

/// Number of parts of the time that are merged into one on a page with many runs.
const OF_MANY_RUNS: usize = 3;

/// Builds the parts for all runs that have a result or a reason for not having one, with the runs of most
/// interest first: invalid, suspect and given-up runs, then runs with extreme values, and then the rest in
/// the order of the plan.
pub(crate) fn parts(sources: &Sources) -> Vec<RunPart> {
    let mut seen = HashSet::new();
    let runs: Vec<&MeasuredRun> = sources.runs.iter().filter(|run| seen.insert(run.record.id.as_str())).collect();
    let mut seen = HashSet::new();
    let without = sources.without.iter().filter(|run| run.state != "not measured");
    let without: Vec<&RunWithout> = without.filter(|run| seen.insert(run.labels.run_id.as_str())).collect();
    let extremes = extremes(&runs);
    let rank = |at: usize| match runs[at].verdict.state {
        State::Invalid => 0,
        State::Suspect => 1,
        State::Valid if extremes.contains(&at) => 2,
        State::Valid => 3,
    };
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_key(|at| (rank(*at), *at));
    let doubtful = order.iter().take_while(|at| rank(**at) < 2).count();
    let is_one_of_many = runs.len() > MOST_TABLED;
    let of = |at: &usize| measured(runs[*at], sources, is_one_of_many);
    let (first, rest) = order.split_at(doubtful);
    let lacking = without.into_iter().map(|run| lacking(run, sources));
    first.iter().map(of).chain(lacking).chain(rest.iter().map(of)).collect()
}

/// Returns the keys of the metrics that are drawn over time, so that the page defines them.
pub(crate) fn keys_drawn<'s>(sources: &'s Sources) -> impl Iterator<Item = &'static str> + 's {
    let pulses = sources.runs.iter().filter_map(|run| run.pulse);
    pulses.filter_map(|pulse| Some(find(latency(pulse)?.0)?.key))
}

/// A function that returns a figure of a run, or `None` if the run does not have this figure.
type Reading<'r> = &'r dyn Fn(&MeasuredRun) -> Option<f64>;

/// Returns the indices of the runs with the lowest and the highest values of the figures that readers
/// compare.
fn extremes(runs: &[&MeasuredRun]) -> HashSet<usize> {
    let half = |summary: &Summary| summary.percentile(Percentile::P50).exact();
    let readings: [Reading; 4] = [
        &|run| half(&run.metrics.ttft),
        &|run| half(&run.metrics.tpot),
        &|run| run.metrics.flow.output_throughput,
        &|run| Some(run.metrics.counts.failed as f64).filter(|failed| *failed > 0.0),
    ];
    let mut found = HashSet::new();
    for reading in readings {
        let known = || runs.iter().enumerate().filter_map(|(at, run)| Some((at, reading(run)?)));
        found.extend(known().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at));
        found.extend(known().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at));
    }
    found
}

fn anchor(id: &str) -> String {
    format!("run-{}", id.chars().take(16).collect::<String>())
}

fn show(id: &str, sources: &Sources) -> String {
    format!("{} {}", sources.show, short(id))
}

fn measured(run: &MeasuredRun, sources: &Sources, is_one_of_many: bool) -> RunPart {
    let (labels, metrics, record, verdict) = (run.labels, run.metrics, run.record, run.verdict);
    let counts = metrics.counts;
    let when = |at: crate::store::Moment| at.0.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    let mut facts = vec![
        ("run", format!("{}, attempt {}", plain(&record.id), record.attempt)),
        ("measured", format!("{} to {}", when(record.started), when(record.ended))),
        (
            "requests",
            format!(
                "{} in the window: {} completed, {} failed, {} of them cut at drain",
                counts.requests, counts.completed, counts.failed, counts.cut
            ),
        ),
    ];
    let failures = metrics.failures.0.iter().map(|one| {
        format!("{} {}{}", one.count, one.outcome, cut(&said(one.message.as_deref(), one.count > 1), LONGEST))
    });
    let failures = failures.collect::<Vec<_>>().join("; ");
    let hooks = record.facts.hooks.iter().map(|hook| cut(&hook.to_string(), LONGEST)).collect::<Vec<_>>().join("; ");
    let idle = record.facts.idle_ns.map(|ns| Nanos(ns).to_string()).unwrap_or_default();
    let start = record.environment.server_start.as_ref();
    let start = start.map(|start| format!("ready after {} s", digits(start.ready_ns as f64 / 1e9))).unwrap_or_default();
    let finish_reasons = plain(&metrics.finish_reasons.kinds()).to_string();
    let more = [
        ("failures", failures),
        ("finish reasons", finish_reasons),
        ("hooks", hooks),
        ("idle for", idle),
        ("server start", start),
    ];
    facts.extend(more.into_iter().filter(|(_, text)| !text.is_empty()));
    let reasons = verdict.reasons.iter().chain(&verdict.labels);
    let reasons = reasons.map(|one| format!("{} ({}): {}", one.name, one.state.name(), cut(&one.text, LONGEST)));
    let unchecked = verdict.not_checked.iter().map(|(name, why)| format!("not checked: {name}: {}", cut(why, LONGEST)));
    RunPart {
        anchor: anchor(&labels.run_id),
        short: short(&labels.run_id),
        name: name(run),
        state: Cell::toned(verdict.state.name(), tone(verdict.state.name())),
        facts,
        reasons: reasons.chain(unchecked).collect(),
        distributions: distributions(run),
        singles: singles(run),
        server: of_server(run),
        parts: of_time(run),
        drawing: run.pulse.map(|pulse| match is_one_of_many {
            true => drawing(run, &pulse.in_longer_parts(OF_MANY_RUNS), lines),
            false => drawing(run, pulse, table),
        }),
        show: show(&labels.run_id, sources),
    }
}

fn name(run: &MeasuredRun) -> String {
    let labels = run.labels;
    let what = match run.metrics.start {
        Some(_) => "start".to_owned(),
        None => load(labels),
    };
    let parts = [plain(&labels.endpoint), plain(&labels.model), content(labels), what];
    format!("{} · repeat {}", parts.join(" · "), labels.repeat)
}

/// Builds the part for a run without a result, with the reason why it has none.
fn lacking(run: &RunWithout, sources: &Sources) -> RunPart {
    let labels = &run.labels;
    let parts = [plain(&labels.endpoint), plain(&labels.model), content(labels), load(labels)];
    RunPart {
        anchor: anchor(&labels.run_id),
        short: short(&labels.run_id),
        name: format!("{} · repeat {}", parts.join(" · "), labels.repeat),
        state: Cell::toned(run.state, tone(run.state)),
        facts: vec![("run", plain(&labels.run_id))],
        reasons: vec![cut(&run.reason, 4 * LONGEST)],
        distributions: None,
        singles: None,
        server: None,
        parts: None,
        drawing: None,
        show: format!("sweepline why --plan {} {}", sources.plan_typed, short(&labels.run_id)),
    }
}

fn find(key: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.key == key)
}

fn distributions(run: &MeasuredRun) -> Option<Table> {
    let mut table =
        Table::new("Over the window's requests", &["metric", "n#", "mean#", "p50#", "p90#", "p99#", "p99.9#", "max#"]);
    for key in DISTRIBUTIONS {
        // In a closed loop, the latency from the schedule equals the latency from the send.
        if key.ends_with("_from_schedule") && !run.record.facts.open_loop {
            continue;
        }
        let Some(metric) = find(key) else { continue };
        let Get::Summary(get) = metric::get(metric) else { continue };
        let summary = get(run.metrics);
        if summary.n == 0 {
            continue;
        }
        let mut row = vec![
            Cell::text(&format!("{key}{}", metric.unit.suffix())),
            Cell::count(summary.n),
            Cell::number(summary.mean),
        ];
        row.extend(PERCENTILES.map(|percentile| percentile_cell(summary, percentile)));
        row.push(match summary.max {
            Some(most) => most.exact().map_or_else(|| Cell::text(&value(most)), |most| Cell::number(Some(most))),
            None => Cell::number(None),
        });
        table.rows.push(row);
    }
    debug_assert_eq!(PERCENTILES.map(quantile::name), ["p50", "p90", "p99", "p99.9"]);
    (!table.rows.is_empty()).then_some(table)
}

fn percentile_cell(summary: &Summary, percentile: Percentile) -> Cell {
    let estimate = summary.percentile(percentile);
    match (estimate.exact(), estimate) {
        (Some(exact), _) => Cell::marked(exact, estimate.few_samples()),
        (None, Estimate::Is { value: among_failures, .. }) => Cell::text(&value(among_failures)),
        (None, Estimate::NotEnough { .. }) => Cell::number(None),
    }
}

fn singles(run: &MeasuredRun) -> Option<Table> {
    let mut table = Table::new("Of the whole run", &["metric", "value#"]);
    for key in SINGLES {
        let Some(metric) = find(key) else { continue };
        let Get::Scalar(get) = metric::get(metric) else { continue };
        if let Some(found) = get(run.metrics) {
            table.rows.push(vec![Cell::text(&format!("{key}{}", metric.unit.suffix())), Cell::number(Some(found))]);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

fn of_server(run: &MeasuredRun) -> Option<Table> {
    let mut table =
        Table::new("The server in the window, by its own metrics", &["figure", "value#", "unit", "n/a because"]);
    for figure in &run.metrics.server {
        let why = figure.value.as_ref().err().map(|why| cut(why, LONGEST));
        table.rows.push(vec![
            Cell::text(&figure.name),
            Cell::number(figure.value.as_ref().ok().copied()),
            Cell::text(figure.unit.symbol()),
            Cell::text(&why.unwrap_or_default()),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

fn of_time(run: &MeasuredRun) -> Option<Table> {
    let caption = "Where the time went: parts of the means of requests that ended in the window";
    let mut table = Table::new(caption, &["part", "TTFT, ms#", "E2E, ms#", "n/a because"]);
    let longest = run.metrics.wholes.iter().max_by_key(|whole| whole.parts.len())?;
    let of = |name: &str| run.metrics.wholes.iter().find(|whole| whole.name == name);
    for part in &longest.parts {
        let cell = |name: &str| match of(name).filter(|whole| whole.parts.iter().any(|one| one.name == part.name)) {
            Some(whole) => Cell::number(whole.part_ms(part.name)),
            None => Cell::default(),
        };
        let why = part.ms.as_ref().err().map(|why| cut(why, LONGEST)).unwrap_or_default();
        table.rows.push(vec![Cell::text(&words(part.name)), cell("ttft"), cell("e2e"), Cell::text(&why)]);
    }
    let mean = |name: &str| of(name).map_or_else(Cell::default, |whole| Cell::number(Some(whole.mean_ms)));
    table.rows.push(vec![Cell::text("from the schedule"), mean("ttft"), mean("e2e"), Cell::default()]);
    Some(table)
}

/// A function that converts the values of each part of the time to numbers.
type Write = fn(&Pulse, Option<Latency>) -> Numbers;

fn drawing(run: &MeasuredRun, pulse: &Pulse, numbers: Write) -> Strips {
    let windows = run.record.facts.windows;
    let end = windows.end_ns.max(1) as f64;
    let ends = [windows.stabilize_ns, windows.measure_start_ns, windows.measure_end_ns].map(|at| at as f64 / end);
    let up_to = |values: &Values| digits(values.most());
    let mut all = vec![Values::Line(&pulse.in_flight)];
    let mut titles = vec![format!("requests in flight, 0 to {}", up_to(&all[0]))];
    if let Some(tokens) = pulse.tokens_per_s.as_ref().filter(|tokens| tokens.iter().any(|tokens| *tokens > 0.0)) {
        let values = Values::Line(tokens);
        titles.push(format!("output tokens received per second, 0 to {}", up_to(&values)));
        all.push(values);
    }
    let latency = latency(pulse);
    let mut finding = vec![format!("at most {} in flight", up_to(&all[0]))];
    finding.extend(all.get(1).map(|tokens| format!("{} tok/s", up_to(tokens))));
    if let Some((_, name, ends)) = latency {
        let values = Values::Band(ends);
        titles.push(format!("{name} by sending time, ms, 0 to {}", up_to(&values)));
        finding.push(format!("{name} {} ms", up_to(&values)));
        all.push(values);
    }
    let drawn: Vec<Strip> = titles.into_iter().zip(all).map(|(title, values)| Strip { title, values }).collect();
    let (inside, height) = strips(&PhaseEnds { ends }, &drawn, &pulse.failed);
    let failed: u64 = pulse.failed.iter().sum();
    let failures = match failed {
        0 => "No request of any phase failed.".to_owned(),
        1 => "1 request failed; a red mark shows when it ended.".to_owned(),
        failed => format!("{failed} requests of all phases failed; red marks show when they ended."),
    };
    let phases = [
        ("fill", 0, windows.stabilize_ns),
        ("stabilize", windows.stabilize_ns, windows.measure_start_ns),
        ("measure", windows.measure_start_ns, windows.measure_end_ns),
        ("drain", windows.measure_end_ns, windows.end_ns),
    ];
    let phases = phases.into_iter().map(|(name, from, to)| (name, to.saturating_sub(from))).filter(|(_, ns)| *ns > 0);
    let phases =
        phases.map(|(name, ns)| format!("{name} {} s", digits(ns as f64 / 1e9))).collect::<Vec<_>>().join(", ");
    Strips {
        width: WIDE_STRIPS,
        height,
        inside,
        title: format!("Over time: {}", finding.join(", ")),
        metric: latency.and_then(|(key, name, _)| Some(Link { key: find(key)?.key, title: name })),
        numbers: numbers(pulse, latency),
        caption: format!(
            "{phases}; the window is shaded. {} parts of {} s: for latencies, the minimum and the maximum of each \
             part are drawn; for the rest, its mean. {failures}",
            pulse.in_flight.len(),
            digits(pulse.part_s),
        ),
        seconds: digits(end / 1e9),
    }
}

/// A latency: its metric key, its name, and its minimum and maximum in each part of the time.
type Latency<'p> = (&'static str, &'static str, &'p [Option<[f64; 2]>]);

/// Returns the latency that is drawn: TTFT, or E2E if there are no values of TTFT.
fn latency(pulse: &Pulse) -> Option<Latency<'_>> {
    let both: [Latency; 2] = [("ttft", "TTFT", &pulse.ttft_ms), ("e2e", "E2E", &pulse.e2e_ms)];
    both.into_iter().find(|(_, _, ends)| ends.iter().any(Option::is_some))
}

/// Returns the headings for the numbers of each part of the time.
fn heads(latency: Option<Latency>) -> [String; 7] {
    let name = latency.map_or("TTFT", |(_, name, _)| name);
    let (least, most) = (format!("shortest {name}, ms"), format!("longest {name}, ms"));
    ["from, s", "in flight", "sent/s", "tokens/s", &least, &most, "failed"].map(str::to_owned)
}

/// Returns the numbers of one part of the time, in the order of [`heads`]; `None` for missing numbers.
fn part_numbers(pulse: &Pulse, latency: Option<Latency>, part: usize) -> [Option<f64>; 7] {
    let ends = latency.and_then(|(_, _, ends)| ends[part]);
    [
        Some(pulse.part_s * part as f64),
        Some(pulse.in_flight[part]),
        Some(pulse.sent_per_s[part]),
        pulse.tokens_per_s.as_ref().map(|tokens| tokens[part]),
        ends.map(|[least, _]| least),
        ends.map(|[_, most]| most),
        Some(pulse.failed[part] as f64),
    ]
}

/// Returns the caption of the numbers, which states the length of each part of the time.
fn caption(pulse: &Pulse) -> String {
    format!("Parts of {} s", digits(pulse.part_s))
}

/// Writes the numbers as lines of comma-separated values.
fn lines(pulse: &Pulse, latency: Option<Latency>) -> Numbers {
    let line = |part| {
        let mut numbers = part_numbers(pulse, latency, part).map(|number| number.map(four_digits).unwrap_or_default());
        numbers[6] = pulse.failed[part].to_string();
        numbers.join(",")
    };
    // A comma in a heading would split the heading into two.
    let heads = heads(latency).map(|head| head.replace(", ", " ")).join(",");
    let lines = std::iter::once(heads).chain((0..pulse.in_flight.len()).map(line));
    Numbers::Lines { caption: caption(pulse), lines: lines.collect::<Vec<_>>().join("\n") }
}

/// Formats a number with four significant digits. This is more than a strip shows, and as much as fits on a
/// page with many runs.
fn four_digits(value: f64) -> String {
    let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    rounded.to_string()
}

/// Writes the numbers as a table with hover texts.
fn table(pulse: &Pulse, latency: Option<Latency>) -> Numbers {
    let name = latency.map_or("TTFT", |(_, name, _)| name);
    let columns = heads(latency).map(|head| format!("{head}#"));
    let mut table = Table::new(caption(pulse), &columns.each_ref().map(String::as_str));
    let parts = pulse.in_flight.len();
    let width = WIDE_STRIPS / u32::try_from(parts).unwrap_or(1).max(1);
    let mut marks = Vec::new();
    for part in 0..parts {
        let numbers = part_numbers(pulse, latency, part);
        let mut row = numbers.map(Cell::number).to_vec();
        row[6] = Cell::count(pulse.failed[part]);
        table.rows.push(row);
        let [from, in_flight, _, tokens, least, most, _] = numbers.map(|number| number.map(digits));
        let parts = [
            from.zip(in_flight).map(|(from, in_flight)| format!("from {from} s: {in_flight} in flight")),
            tokens.map(|tokens| format!("{tokens} tok/s")),
            least.zip(most).map(|(least, most)| format!("{name} {least} to {most} ms")),
            Some(pulse.failed[part]).filter(|failed| *failed > 0).map(|failed| format!("{failed} failed")),
        ];
        let text = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        marks.push(Mark { x: width * u32::try_from(part).unwrap_or(0), width, text });
    }
    Numbers::Table { table, marks }
}
