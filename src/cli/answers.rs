//! Metrics and verdicts of committed runs, computed each time a run is read.

use std::collections::HashMap;

use indexmap::IndexSet;

use super::given_up::{GivenUpRuns, as_planned};
use super::judgements::{Judged, Judgements};
use super::left_out::LeftOut;
use super::mixed_servers::Servers;
use super::summary_cache::Memory;
use crate::analysis::calibration::Pressure;
use crate::analysis::measure::{cost_per_million_output_tokens, tokens_per_unit_of_money};
use crate::analysis::server;
use crate::analysis::slo::{self, Answer, SloTest};
use crate::analysis::verdict::State;
use crate::analysis::{
    Events, Failures, Gaps, MeanTokens, OfClass, PlanMetrics, Pulse, RunMetrics, Stalls, Summary, Thresholds, Verdict,
    classes, curve, goodput, judge, measure, quantile,
};
use crate::cli::colour::Colour;
use crate::cli::failure::Failure;
use crate::cli::output;
use crate::cli::shown_rows::Shown;
use crate::expand::launch::declared;
use crate::expand::{Course, Load, PlannedRun, RunId};
use crate::plan::{Percentile, Plan, Validity};
use crate::report::format::{NO_MESSAGE, cut, fill, plain, value};
use crate::report::progress::Headline;
use crate::report::{Line, few_once, repeats, results};
use crate::rows::{Facts, Measured, Replay, RowsError, RunLabels, RunReader, Sample};
use crate::store::{RunRecord, Store, StoreError};
use crate::sweep::calibrate::Loaded;
use crate::sweep::event::{RunView, planned_name};

/// A committed run with the metrics and the verdict that were computed from its files.
pub(crate) struct Answered {
    /// The labels of the run. If the run was looked up for a plan, they contain the plan's names.
    pub labels: RunLabels,
    /// The metrics of the run.
    pub metrics: RunMetrics,
    /// The run's verdict under the plan's thresholds.
    pub verdict: Verdict,
    /// The metrics of the run that depend on the plan.
    pub(crate) plan_metrics: PlanMetrics,
    /// The plan's objective, limit by limit, tested on this run.
    pub slo: Vec<SloTest>,
    /// The metrics of each class of a mix, in the order of the mix.
    pub classes: Vec<OfClass>,
    /// Mean lengths of the run's requests, in tokens.
    pub tokens: MeanTokens,
    /// The load over time; `None` if nothing was sent.
    pub(crate) pulse: Option<Pulse>,
    /// The launch of the server that the run was measured on, as its pages tell it; `None` if they do not.
    pub(crate) launch: Option<String>,
    /// Whether the cost of the run's output tokens is within the objective's limit; `None` if the objective
    /// does not limit the cost.
    pub cost: Option<Answer>,
}

impl Answered {
    /// Returns the run as a point of a curve.
    pub(crate) fn on_curve<'a>(&'a self, sweep: &'a str) -> curve::Run<'a> {
        curve::Run {
            sweep,
            labels: &self.labels,
            metrics: &self.metrics,
            plan_metrics: &self.plan_metrics,
            verdict: &self.verdict,
            saturation: self.metrics.saturation,
            slo: &self.slo,
            cost: self.cost,
            tokens: self.tokens,
        }
    }

    /// Returns the facts about this run that a table of many runs needs.
    pub(super) fn judged(&self) -> Judged {
        Judged { state: self.verdict.state, pressure: Pressure::of_metrics(&self.metrics) }
    }

    /// Returns the run's rows in a table: one for the run itself and one for each class of a mix.
    pub(super) fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let line = Line { labels: &self.labels, class: None, metrics: &self.metrics, verdict: &self.verdict };
        let of_class =
            self.classes.iter().map(move |one| Line { class: Some(&one.class), metrics: &one.metrics, ..line });
        std::iter::once(line).chain(of_class)
    }
}

/// Reads a committed run and computes its metrics and verdict with the thresholds of `plan`; without a
/// plan, with the default thresholds of docs/METRICS.md.
pub(super) fn read(store: &Store, record: &RunRecord, plan: Option<&Plan>) -> Result<Answered, StoreError> {
    let (run, facts) = (store.read(record)?, &record.facts);
    let validity = plan.map_or_else(Validity::default, |plan| plan.validity);
    let slo = plan.and_then(|plan| plan.slo.as_ref());
    let events = Events::of(&run, facts, &slo::gap_limits(slo))?;
    let gaps = Gaps::of(&run, facts, &events)?;
    let rows = run.rows();
    let mut metrics = measure(rows, (&events, &gaps), facts);
    let samples = if facts.telemetry.is_some() { store.read_samples(record)? } else { Vec::new() };
    scraped(&samples, facts, &run, &mut metrics)?;
    let launch = server::launch(&samples, facts);
    let verdict = judge((rows, &samples), &events, facts, &validity, slo);
    let plan_metrics = plan.map_or_else(PlanMetrics::default, |plan| under_plan(plan, record, rows, &metrics));
    let limit = slo.and_then(|slo| slo.cost_per_million);
    let cost = limit.map(|limit| slo::cost(plan_metrics.cost_per_million_output_tokens, limit.to_f64()));
    let slo = slo.map_or_else(Vec::new, |slo| slo::test(rows, (&events, &gaps), facts, slo));
    let thresholds = plan.map_or_else(Thresholds::default, thresholds);
    let classes = classes(&run, facts, &thresholds, record.spec.mix.iter().map(|class| class.name.to_string()))?;
    let tokens = MeanTokens::of(rows, facts);
    let pulse = Pulse::of(rows, &events, facts);
    let labels = record.labels();
    Ok(Answered { labels, metrics, verdict, plan_metrics, slo, classes, tokens, pulse, launch, cost })
}

/// If the server's own metrics were scraped during a run, adds them to `metrics`, together with a breakdown
/// of the time that requests took.
fn scraped(samples: &[Sample], facts: &Facts, run: &RunReader, metrics: &mut RunMetrics) -> Result<(), RowsError> {
    let tokens = metrics.flow.output_throughput.map(|rate| rate * facts.windows.measure_secs());
    metrics.server = server::figures(samples, facts, tokens, metrics.reuse.declared);
    metrics.wholes = server::wholes(samples, run.rows(), facts, || Stalls::of(run, facts))?;
    Ok(())
}

fn thresholds(plan: &Plan) -> Thresholds {
    Thresholds::of(plan.goodput.as_ref(), plan.slo.as_ref())
}

fn under_plan(plan: &Plan, record: &RunRecord, rows: &[Measured], metrics: &RunMetrics) -> PlanMetrics {
    let endpoint = plan.endpoints.get(&record.spec.endpoint.name);
    let price =
        endpoint.and_then(|endpoint| declared(endpoint, record.spec.labels.axes.iter()).hardware.cost_per_hour());
    let throughput = metrics.flow.output_throughput;
    PlanMetrics {
        given: true,
        goodput: goodput(rows, &record.facts, &thresholds(plan)),
        cost_per_million_output_tokens: price.and_then(|price| cost_per_million_output_tokens(throughput, price)),
        tokens_per_unit_of_money: price.and_then(|price| tokens_per_unit_of_money(throughput, price)),
    }
}

/// Whether a committed run's verdict is invalid under the plan. A run that cannot be read does not count
/// as invalid here. Samples are not read, because scraped figures never make a run invalid.
pub(crate) fn is_invalid(store: &Store, record: &RunRecord, plan: &Plan) -> bool {
    let verdict = || -> Result<Verdict, StoreError> {
        let (run, facts) = (store.read(record)?, &record.facts);
        let events = Events::of(&run, facts, &[])?;
        Ok(judge((run.rows(), &[]), &events, facts, &plan.validity, plan.slo.as_ref()))
    };
    verdict().is_ok_and(|verdict| verdict.state == State::Invalid)
}

/// Returns the committed run that corresponds to a planned run, with the plan's names; `None` if the planned
/// run is not committed. A damaged or unreadable run is an error.
pub(super) fn answer(
    store: &Store,
    run: &PlannedRun,
    plan: &Plan,
) -> Result<Option<(RunRecord, Answered)>, StoreError> {
    let Some(record) = usable(store, run)? else { return Ok(None) };
    let mut answered = read(store, &record, Some(plan))?;
    answered.labels = as_planned(answered.labels, run);
    // Classes of a mix are matched by position, because their names may have changed since the run.
    for (class, named) in answered.classes.iter_mut().zip(&run.spec.mix) {
        class.class = named.name.to_string();
    }
    Ok(Some((record, answered)))
}

/// Returns the record of a planned run; `None` if it is not committed. A damaged or unreadable run is an
/// error.
fn usable(store: &Store, run: &PlannedRun) -> Result<Option<RunRecord>, StoreError> {
    let Some(listed) = store.run(&run.id.short())? else { return Ok(None) };
    listed.unusable().map_or(Ok(listed.record), Err)
}

/// Returns the verdict of a planned run; `None` if the run is not committed. If the verdict is cached, the
/// rows of the run are not read. A damaged or unreadable run is an error.
fn judged(
    store: &Store,
    run: &PlannedRun,
    plan: &Plan,
    known: &mut Judgements,
) -> Result<Option<(RunRecord, Judged)>, StoreError> {
    let Some(record) = usable(store, run)? else { return Ok(None) };
    // The key is computed before the rows are read, so that rows that change in the meantime do not get
    // this verdict.
    let key = known.key(&record);
    if let Some(judged) = key.and_then(|key| known.get(key)) {
        return Ok(Some((record, judged)));
    }
    let judged = read(store, &record, Some(plan))?.judged();
    key.into_iter().for_each(|key| known.keep(key, judged));
    Ok(Some((record, judged)))
}

/// Returns a run that was just committed, with its record; `None` if its files cannot be read.
pub(super) fn committed(store: &Store, id: &RunId, plan: &Plan) -> Option<(RunRecord, Answered)> {
    let listed = store.run(&id.short()).ok().flatten().filter(|listed| listed.unusable().is_none());
    let record = listed?.record?;
    let answered = read(store, &record, Some(plan)).ok()?;
    Some((record, answered))
}

/// Returns a run's headline figures, which accompany the event that reports its commit.
pub(super) fn headline(answered: &Answered) -> Headline {
    let (metrics, verdict) = (&answered.metrics, &answered.verdict);
    let at = |summary: &Summary, percentile| summary.percentile(percentile).exact();
    Headline {
        verdict: verdict.state.name(),
        reasons: verdict.reasons.iter().map(|reason| reason.name).collect(),
        requests: metrics.counts.requests,
        failed: metrics.counts.failed,
        ttft_p50_ms: at(&metrics.ttft, Percentile::P50),
        ttft_p99_ms: at(&metrics.ttft, Percentile::P99),
        tpot_p50_ms: at(&metrics.tpot, Percentile::P50),
        output_throughput_tokens_per_s: metrics.flow.output_throughput,
    }
}

/// Returns a run's headline figures in one line, for the progress of a sweep. If the run could not be read,
/// the line is just `committed`.
pub(super) fn one_line(answered: Option<&Answered>) -> String {
    let Some(answered) = answered else { return "committed".to_owned() };
    let metrics = &answered.metrics;
    if let Some([ready, first]) = metrics.start.map(|times| times.map(|ms| ms / 1e3)) {
        return format!("ready after {ready:.2} s, first response after {first:.2} s · {}", answered.verdict);
    }
    let mut parts = vec![format!("{} requests", metrics.counts.requests)];
    parts.extend(errors(metrics));
    parts.extend(if metrics.ttft.n > 0 { latency("TTFT", &metrics.ttft) } else { latency("E2E", &metrics.e2e) });
    if let Some(throughput) = metrics.flow.output_throughput {
        parts.push(format!("{throughput:.0} tok/s"));
    }
    parts.push(answered.verdict.to_string());
    // If a queue grows without bound, a longer window does not help.
    let is_saturated = answered.verdict.labels.iter().any(|label| label.name == "saturated");
    parts.extend(match answered.slo.as_slice() {
        [] => None,
        tests => match slo::answer(tests) {
            Answer::Misses => Some(objective_missed(tests)),
            Answer::Undecided if !is_saturated => Some(objective_undecided(tests)),
            Answer::Undecided | Answer::Holds => None,
        },
    });
    parts.join(" · ")
}

/// Returns a note on the limit that a run misses by the most.
fn objective_missed(tests: &[SloTest]) -> String {
    let missed = tests.iter().filter(|test| test.answer == Answer::Misses);
    let worst = missed.max_by(|a, b| a.strain().total_cmp(&b.strain()));
    format!("misses the objective{}", worst.map(|test| format!(" ({})", above(test))).unwrap_or_default())
}

/// Returns a note if a run leaves the objective undecided. The note states what was observed and that it is not
/// proven, and what would decide the limit that it names.
fn objective_undecided(tests: &[SloTest]) -> String {
    let open = || tests.iter().filter(|test| test.answer == Answer::Undecided);
    // The limit that was observed to be missed, or else the one that came closest to it.
    let worst = open().filter(|test| test.n > 0).max_by(|a, b| a.strain().total_cmp(&b.strain()));
    match worst.and_then(|test| Some((test, test.observed()?))) {
        Some((test, observed)) => {
            let for_it = if open().count() > 1 { " for it" } else { "" };
            format!("objective {observed}, not proven ({}; {}{for_it})", above(test), test.would_decide())
        }
        None => "objective undecided: no request has the limited metric".to_owned(),
    }
}

/// Describes the requests above a limit: `ttft p95 ≤ 60ms: 12 of 212 above`.
fn above(test: &SloTest) -> String {
    format!("{}: {} of {} above", test.name(), test.above, test.n)
}

/// Maximum number of characters of a server's message in a run's line.
const LONGEST_SAID: usize = 100;

/// Returns the number of failed requests, their outcomes, and the message of the most frequent outcome that
/// has one; `None` if no request failed.
fn errors(metrics: &RunMetrics) -> Option<String> {
    let counts = metrics.counts;
    let Failures(failures) = &metrics.failures;
    let kinds = match failures.as_slice() {
        [] => return None,
        [only] => only.outcome.to_string(),
        _ => metrics.failures.kinds(),
    };
    let failed = if counts.completed == 0 { "all failed".to_owned() } else { format!("{} failed", counts.failed) };
    let said = metrics.failures.message().map(|text| format!("\"{}\"", cut(text, LONGEST_SAID)));
    let said = match said {
        None => format!(" {NO_MESSAGE}"),
        Some(said) if counts.failed > 1 => format!(", first: {said}"),
        Some(said) => format!(" {said}"),
    };
    Some(format!("{failed}: {kinds}{said}"))
}

/// Returns the median of a latency and the highest percentile that the sample size supports; `None` if
/// there are too few samples for a median.
fn latency(name: &str, summary: &Summary) -> Option<String> {
    let median = value(summary.percentile(Percentile::P50).value()?);
    let highest = summary.highest().filter(|highest| *highest != Percentile::P50);
    let tail = highest.map(|highest| (quantile::name(highest), summary.percentile(highest)));
    let few = if tail.is_some_and(|(_, tail)| tail.few_samples()) { " (few samples)" } else { "" };
    let tail = tail.and_then(|(name, tail)| Some(format!(", {name} {}", value(tail.value()?)))).unwrap_or_default();
    Some(format!("{name} p50 {median}{tail} ms{few}"))
}

/// Prints the table of results for the committed runs among `runs`, without duplicates. Reuses the cached
/// table if none of its inputs has changed. Runs that cannot be read are added to `left_out`.
pub(crate) fn print_table(
    store: &Store,
    plan: &Plan,
    runs: &[&PlannedRun],
    (colour, left_out): (Colour, &LeftOut),
) -> Result<Shown, Failure> {
    let mut seen = std::collections::HashSet::new();
    let mut runs = in_plan_order(plan, runs);
    let cells = cells(&runs);
    runs.retain(|run| seen.insert(run.id));
    let colour = colour.on(&std::io::stdout());
    let memory = Memory::of(store, plan, &runs, colour);
    let given_up = given_up(store, plan, (&runs, left_out));
    if let Some(remembered) = memory.as_ref().filter(|_| !left_out.any()).and_then(Memory::recall) {
        output::print_fitted(&(remembered.text + &given_up))?;
        return Ok(remembered.shown);
    }
    let (text, shown) = table(store, plan, (&runs, &cells), (colour, left_out));
    output::print_fitted(&(text.clone() + &given_up))?;
    if let Some(memory) = memory.filter(|_| shown.first.is_some() && !left_out.any()) {
        memory.keep(&text, &shown);
    }
    Ok(shown)
}

/// Maximum number of runs in a table. The figures of more runs would not fit in memory, and their table
/// would not fit on a screen.
const MOST_IN_TABLE: usize = 10_000;
/// Maximum number of given-up runs listed below a table.
const MOST_GIVEN_UP: usize = 20;

/// Returns the text about given-up runs. It is printed below a table, because these runs have no row in the
/// table.
fn given_up(store: &Store, plan: &Plan, (runs, left_out): (&[&PlannedRun], &LeftOut)) -> String {
    let known = GivenUpRuns::of(store, Some(plan), left_out);
    let has_result = |run: &PlannedRun| {
        let listed = store.run(&run.id.short()).ok().flatten();
        listed.is_some_and(|listed| listed.unusable().is_none())
    };
    let found = runs.iter().filter_map(|run| Some((*run, known.get(run)?))).filter(|(run, _)| !has_result(run));
    let lines: Vec<String> = found
        .map(|(run, found)| {
            let said = cut(&found.given_up.spoiled.in_one_line(), LONGEST_SAID);
            fill(" ", 4, &format!("{}: {}: {said}", plain(&planned_name(run)), found.given_up))
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    let more = match lines.len().saturating_sub(MOST_GIVEN_UP) {
        0 => String::new(),
        more => format!("  and {more} more\n"),
    };
    let shown: String = lines.into_iter().take(MOST_GIVEN_UP).collect();
    format!("\nno result; retried only with --redo given-up:\n{shown}{more}")
}

/// Returns, for each cell, the ids of its runs, one for each repeat. A run that several sweeps share belongs
/// to one cell of each of these sweeps. Cells with the same runs are merged. `runs` must be in plan order.
fn cells(runs: &[&PlannedRun]) -> Vec<Vec<RunId>> {
    let is_one = |a: &PlannedRun, b: &PlannedRun| a.sweep == b.sweep && a.cell.rank() == b.cell.rank();
    let cells = runs.chunk_by(|a, b| is_one(a, b)).map(|cell| cell.iter().map(|run| run.id).collect());
    cells.collect::<IndexSet<Vec<RunId>>>().into_iter().collect()
}

type Runs<'a> = (&'a [&'a PlannedRun], &'a [Vec<RunId>]);

/// Returns whether a plan has too many runs for a table. Tests can lower the limit, but only in builds with
/// debug assertions.
pub(super) fn are_many(runs: usize) -> bool {
    let chosen = || std::env::var("SWEEPLINE_MOST_IN_TABLE").ok()?.parse().ok();
    runs > if cfg!(debug_assertions) { chosen().unwrap_or(MOST_IN_TABLE) } else { MOST_IN_TABLE }
}

/// Collects the facts and notes that accompany a table, run by run.
#[derive(Default)]
struct Gathered {
    shown: Shown,
    servers: Servers,
    suspect: Option<String>,
}

impl Gathered {
    fn add(&mut self, run: &PlannedRun, record: &RunRecord, judged: Judged) {
        let Judged { state, pressure } = judged;
        self.shown.loaded.extend(loaded(RunView::new(0, run).name, record, pressure));
        self.servers.add(record);
        self.shown.first.get_or_insert_with(|| record.id.clone());
        match state {
            State::Invalid => self.shown.invalid.push(record.id.clone()),
            State::Suspect => drop(self.suspect.get_or_insert_with(|| record.id.clone())),
            State::Valid => {}
        }
    }

    /// Returns the text of the table with the notes on servers, and the facts about its runs.
    fn finish(mut self, text: String) -> (String, Shown) {
        self.shown.doubtful = self.shown.invalid.first().cloned().or(self.suspect);
        let mut text = few_once(&text);
        text.extend(self.servers.notes().iter().map(|note| format!("\n{}", fill("", 2, note))));
        (text, self.shown)
    }
}

/// Returns a table of the committed runs among `runs`, followed by a table that aggregates the repeats of
/// each cell. Also returns facts about these runs.
fn table(store: &Store, plan: &Plan, (runs, cells): Runs, (colour, left_out): (bool, &LeftOut)) -> (String, Shown) {
    if are_many(runs.len()) {
        return count_only(store, plan, (runs, left_out));
    }
    let (mut answers, mut gathered) = (Vec::new(), Gathered::default());
    for run in runs {
        let Some((record, answered)) = left_out.take(answer(store, run, plan)).flatten() else { continue };
        gathered.add(run, &record, answered.judged());
        answers.push(answered);
    }
    let lines: Vec<Line> = answers.iter().flat_map(Answered::lines).collect();
    let mut text = if lines.is_empty() { String::new() } else { format!("\n{}", results(&lines, colour)) };
    let of_runs: HashMap<&str, Line> = answers
        .iter()
        .filter_map(|answered| Some((answered.labels.run_id.as_str(), answered.lines().next()?)))
        .collect();
    let line = |id: &RunId| of_runs.get(id.to_string().as_str()).copied();
    let cells: Vec<Vec<Line>> = cells.iter().map(|ids| ids.iter().filter_map(line).collect()).collect();
    text.extend(repeats(&cells).map(|table| format!("\n{table}")));
    gathered.finish(text)
}

/// Returns the text that replaces the table if there are too many runs for one, and the facts about these
/// runs.
fn count_only(store: &Store, plan: &Plan, (runs, left_out): (&[&PlannedRun], &LeftOut)) -> (String, Shown) {
    let (mut known, mut gathered) = (Judgements::of(store, plan), Gathered::default());
    for run in runs {
        if let Some((record, judged)) = left_out.take(judged(store, run, plan, &mut known)).flatten() {
            gathered.add(run, &record, judged);
        }
    }
    known.tidy();
    let text = match &gathered.shown.first {
        None => String::new(),
        Some(_) => format!(
            "\n{} runs; a table has at most {MOST_IN_TABLE}; `list` and `export` show all, `--only` selects some\n",
            runs.len()
        ),
    };
    gathered.finish(text)
}

/// Returns the load that a run put on the generator; `None` if its rows do not record it.
pub(super) fn loaded(name: String, record: &RunRecord, pressure: Option<Pressure>) -> Option<Loaded> {
    let pressure = pressure?;
    let spec = &record.spec;
    let peak = Course::new(&spec.load, &spec.phases).map(|course| course.peak());
    // If a rate profile changes the rate, averages over the window are lower than the peak load on the
    // generator.
    let above =
        peak.zip(record.facts.window_qps).map_or(1.0, |(peak, mean)| if mean > 0.0 { peak / mean } else { 1.0 });
    Some(Loaded {
        name,
        pressure: pressure.times(above),
        engine: record.spec.engine,
        http: record.spec.endpoint.http,
        connections: record.spec.connections,
        open: matches!(record.spec.load, Load::Open { .. }),
    })
}

/// Returns the runs in the order in which the plan lists their values, not in the shuffled order of
/// execution.
pub(crate) fn in_plan_order<'a>(plan: &Plan, runs: &[&'a PlannedRun]) -> Vec<&'a PlannedRun> {
    let mut sorted = runs.to_vec();
    let place = |run: &'a PlannedRun| (plan.sweeps.get_index_of(&*run.sweep), run.cell.rank(), run.repeat);
    sorted.sort_by(|a, b| place(a).cmp(&place(b)));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_of_few_requests_says_so() {
        let line = |n: u32| latency("TTFT", &Summary::of((1..=n).map(f64::from).collect(), 0, None));
        assert_eq!(line(5), None);
        assert_eq!(line(367).as_deref(), Some("TTFT p50 184, p95 349 ms"));
        assert_eq!(line(999).as_deref(), Some("TTFT p50 500, p99 989 ms (few samples)"));
        assert_eq!(line(1_000).as_deref(), Some("TTFT p50 500, p99 990 ms"));
    }
}
