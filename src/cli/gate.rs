//! `run --gate` determines whether the results meet the plan's objective, and whether any arm is worse
//! than its baseline.

use std::collections::HashSet;

use indexmap::IndexMap;

use super::answers::{self, Answered};
use super::given_up::{self, GivenUpRuns};
use super::left_out::LeftOut;
use super::workspace::Workspace;
use crate::analysis::comparison::{self, Comparison, Missed};
use crate::analysis::curve::{GivenUpRun, Point, Rung};
use crate::analysis::saturation::State as Saturation;
use crate::analysis::slo::Answer;
use crate::cli::compare;
use crate::cli::failure::Failure;
use crate::expand::{GateAnswer, GateState, Pending, PlannedRun, gate_states};
use crate::plan::{Plan, Sweep};
use crate::report::format::{digits, plain};
use crate::rows::{GivenUp, RunLabels};
use crate::store::Store;
use crate::sweep::event::planned_cell;

/// The result of `run --gate`.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Failures, one line for each.
    pub missed: Vec<String>,
    /// Questions about the SLO that are undecided, and what would decide them, one line for each.
    pub undecided: Vec<String>,
    /// Repeats that are excluded because of a disturbance, one line for each cell.
    pub excluded: Vec<String>,
    /// Why the plan's comparison has no result: nothing could be tested, or results are not shown to be
    /// within a margin; `None` if there is a result, or no comparison.
    pub(crate) untested: Option<String>,
    /// The plan's comparison; `None` if it declares none.
    pub(crate) comparison: Option<Comparison>,
    /// The state of the gates of the plan's sweeps, in the plan's order.
    pub(crate) gates: Vec<GateState>,
}

/// Rejects a gate that cannot fail.
pub(super) fn is_one(plan: &Plan) -> Result<(), Failure> {
    let compares =
        plan.compare.is_some() || plan.sweeps.values().any(|sweep| sweep.compare.is_some() || sweep.gate.is_some());
    let holds_loads = plan.slo.is_some() && plan.sweeps.values().any(|sweep| !sweep.chooses_runs());
    if holds_loads || compares {
        return Ok(());
    }
    if plan.slo.is_some() {
        let text = "--gate: searches and ladders go up to a load that misses the objective, so nothing in this plan \
                    can fail; write gate: { sweep: …, metric: max_qps_under_slo, at_least: … } in a sweep after them";
        return Err(Failure::Usage(text.to_owned()));
    }
    let text = "--gate: the plan has no objective and no comparison; add slo: { ttft: { p99: 500ms } } or \
                compare: { by: …, baseline: … } to it";
    Err(Failure::Usage(text.to_owned()))
}

/// Tests the cells of the committed runs among `runs` against the plan's SLO, each cell with all of its
/// repeats, and the plan's arms against their baselines. Loads that a search or ladder chose are not tested,
/// because searches and ladders go up to a load that misses the SLO. Invalid runs are ignored, unless they
/// are invalid because too many of their requests failed at the server. A run that was given up because the
/// server does not sustain its load counts as a miss. The result also includes the gates of all sweeps that
/// have runs in `runs` or waiting cells.
pub(super) fn check(
    workspace: &Workspace,
    store: &Store,
    (runs, waiting): (&[&PlannedRun], &[Pending]),
    left_out: &LeftOut,
) -> Gate {
    let plan = workspace.plan();
    let mut gate = Gate::default();
    if plan.slo.is_some() {
        let is_promised = |run: &&&PlannedRun| !plan.sweeps.get(&*run.sweep).is_some_and(Sweep::chooses_runs);
        let promised_runs: Vec<&PlannedRun> = runs.iter().filter(is_promised).copied().collect();
        for cell in Cell::all(workspace, store, &promised_runs, left_out) {
            promised(&mut gate, plan, &cell);
        }
    }
    let compared = compare::declared(plan, &workspace.expansion, store, left_out);
    match compared.as_ref().map(|compared| &compared.gate) {
        Some(comparison::Gate::Fails { missed, undecided }) => {
            gate.missed.extend(missed.iter().map(worse));
            gate.untested.clone_from(undecided);
        }
        Some(comparison::Gate::Unanswered { why }) => gate.untested = Some(why.clone()),
        Some(comparison::Gate::Passes) | None => {}
    }
    gate.comparison = compared;
    let is_asked =
        |sweep: &str| runs.iter().any(|run| *run.sweep == *sweep) || waiting.iter().any(|cell| *cell.sweep == *sweep);
    gate.gates = gate_states(plan, &workspace.known);
    gate.gates.retain(|gate| is_asked(&gate.sweep));
    gate
}

/// Returns a failed comparison as text: `load: llama · chat · 5 qps: sglang against vllm: ttft_p50 slower
/// by 3.1 %`.
fn worse(Missed { sweep, cell, arm, baseline, what }: &Missed) -> String {
    let [sweep, cell, arm, baseline] = [sweep, cell, arm, baseline].map(|name| plain(name));
    format!("{sweep}: {cell}: {arm} against {baseline}: {what}")
}

/// The measured and the given-up runs of one cell.
struct Cell<'a> {
    sweep: &'a str,
    name: String,
    measured: Vec<Answered>,
    given_up: Vec<(RunLabels, GivenUp)>,
}

impl<'a> Cell<'a> {
    /// Returns the cells of all `runs` without duplicates; a run that several sweeps share belongs to the
    /// first of these sweeps.
    fn all(workspace: &Workspace, store: &Store, runs: &[&'a PlannedRun], left_out: &LeftOut) -> Vec<Cell<'a>> {
        let plan = workspace.plan();
        let known = GivenUpRuns::of(store, Some(plan), left_out);
        let (mut cells, mut seen) = (IndexMap::new(), HashSet::new());
        for run in answers::in_plan_order(plan, runs).into_iter().filter(|run| seen.insert(run.id)) {
            let cell: &mut Cell = cells.entry((&*run.sweep, run.cell.rank().to_vec())).or_insert_with(|| Cell {
                sweep: &run.sweep,
                name: plain(&planned_cell(run)),
                measured: Vec::new(),
                given_up: Vec::new(),
            });
            match left_out.take(answers::answer(store, run, plan)).flatten() {
                Some((_, answered)) => cell.measured.push(answered),
                None => cell
                    .given_up
                    .extend(known.get(run).map(|found| (given_up::labels(found, run), found.given_up.clone()))),
            }
        }
        cells.into_values().collect()
    }

    /// Returns the cell's runs as a rung, even if the load is not on a ladder.
    fn rung(&self) -> Rung<'_> {
        let measured = self.measured.iter().map(|answered| Point::Measured(answered.on_curve(self.sweep)));
        let given_up = self.given_up.iter().map(|(labels, given_up)| {
            Point::GivenUp(GivenUpRun { sweep: self.sweep, labels, given_up, objective: true })
        });
        Rung::of(0.0, measured.chain(given_up))
    }
}

/// Tests one cell against the SLO over all of its repeats, as `curves` and `capacity` do.
fn promised(gate: &mut Gate, plan: &Plan, cell: &Cell) {
    let (rung, name) = (cell.rung(), &cell.name);
    let misses = |given_up: &GivenUp| format!("{name}: {given_up}: the server does not sustain the load");
    let is_a_miss = |(_, given_up): &&(RunLabels, GivenUp)| given_up.is_a_miss();
    gate.missed.extend(cell.given_up.iter().filter(is_a_miss).map(|(_, given_up)| misses(given_up)));
    if rung.has_failed() {
        gate.missed.push(format!("{name}: the server failed so many requests that a run is invalid"));
    }
    for limit in rung.limits() {
        match limit.answer {
            Answer::Misses => {
                let count = format!("{} of {} are above it", limit.evidence.above, limit.evidence.n);
                gate.missed.push(format!("{name}: {} is missed: {count}", limit.name()));
            }
            // If a queue grows without bound, a longer window does not help.
            Answer::Undecided if rung.is_saturated() => {}
            Answer::Undecided => gate.undecided.push(format!("{name}: {}: {}", limit.name(), limit.undecided(true))),
            Answer::Holds => {}
        }
    }
    match (rung.state(), rung.saturation()) {
        (Some(Saturation::Saturated), Some(evidence)) => {
            let (completed, [low, high]) = evidence.completion_rate();
            let came = digits(evidence.rate());
            let [completed, low, high] = [completed, low, high].map(digits);
            gate.missed.push(format!(
                "{name}: saturated: {came} requests/s arrived, {completed} were completed (95 %: {low} to {high})"
            ));
        }
        (Some(Saturation::NotShown), _) => {
            let decides = rung.would_show_keeping_up().unwrap_or("no request arrived".to_owned());
            gate.undecided.push(format!("{name}: whether the server keeps up: {decides}"));
        }
        _ => {}
    }
    gate.undecided.extend(why_nothing_counts(&rung).map(|why| format!("{name}: {why}")));
    gate.excluded.extend(rung.why_excluded().map(|why| format!("{name}: {why}")));
    priced(gate, plan, &rung, name);
}

/// Returns why nothing is known about a cell; `None` if at least one run can be tested, or if the other runs
/// show that the server misses the SLO.
fn why_nothing_counts(rung: &Rung) -> Option<String> {
    if !rung.runs.is_empty() || rung.has_failed() || rung.is_rejected() {
        return None;
    }
    let invalid = rung.why_left_out().map(|why| format!("no valid run: {why}"));
    let given_up = rung.why_given_up().map(|why| format!("given up: {why}"));
    let excluded = rung.why_excluded().map(|_| "no repeat counts".to_owned());
    let reasons: Vec<String> = [excluded, invalid, given_up].into_iter().flatten().collect();
    Some(if reasons.is_empty() { "no run has a result".to_owned() } else { reasons.join("; ") })
}

/// Tests the cost of a cell's output tokens against the SLO, if the SLO limits the cost.
fn priced(gate: &mut Gate, plan: &Plan, rung: &Rung, name: &str) {
    let Some(limit) = plan.slo.as_ref().and_then(|slo| slo.cost_per_million).map(|limit| limit.to_f64()) else {
        return;
    };
    let costs: Vec<f64> = rung.runs.iter().filter_map(|run| run.plan_metrics.cost_per_million_output_tokens).collect();
    let highest = costs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match rung.judged().and_then(|judged| judged.cost) {
        Some(Answer::Misses) => {
            gate.missed.push(format!("{name}: a million output tokens cost {highest:.2}, above {limit}"));
        }
        Some(Answer::Undecided) => {
            gate.undecided.push(format!(
                "{name}: cost_per_million ≤ {limit}: unknown, or repeats lie on both sides of the limit"
            ));
        }
        Some(Answer::Holds) | None => {}
    }
}

impl Gate {
    /// Returns the report for people; `is_complete` is true if nothing is missing, invalid or
    /// undecided.
    pub(super) fn told(&self, is_complete: bool) -> String {
        let listed = |lines: &[String]| lines.iter().map(|line| format!("\n  {line}")).collect::<String>();
        let saying_no = self.gates_that_say(GateAnswer::No);
        let missed = [&saying_no[..], &self.missed].concat();
        // The headline states why nothing was tested if nothing failed.
        let untested: Vec<String> = self.untested.clone().filter(|_| !missed.is_empty()).into_iter().collect();
        let open = self.undecided.len() + self.open_gates().len() + untested.len();
        let undecided = match open {
            0 => String::new(),
            1 => "; 1 question is undecided".to_owned(),
            count => format!("; {count} questions are undecided"),
        };
        let head = match (missed.len(), &self.untested) {
            (0, Some(why)) => format!("gate: no answer: {why}{undecided}"),
            (0, None) if is_complete => "gate: passed".to_owned(),
            (0, None) => format!("gate: nothing failed{undecided}"),
            (count, _) => format!("gate: {count} failed{undecided}"),
        };
        let undecided = [&self.open_gates()[..], &self.undecided, &untested].concat();
        let met = self.gates_that_say(GateAnswer::Yes);
        let parts =
            [("undecided", undecided), ("excluded", self.excluded.clone()), ("conditions met", met)].into_iter();
        let parts = parts.filter(|(_, lines)| !lines.is_empty());
        let parts: String = parts.map(|(what, lines)| format!("\n{what}{}", listed(&lines))).collect();
        format!("{head}{}{parts}", listed(&missed))
    }

    /// Returns a line for each value that has this answer in a gate of the plan's sweeps: `gate of
    /// \`release\`: limit: …: 24 qps, at least 20: yes`.
    fn gates_that_say(&self, answer: GateAnswer) -> Vec<String> {
        let of = |gate: &GateState| {
            let values = gate.values.iter().filter(|value| value.answer == answer);
            let said = values.map(|value| value.words()).collect::<Vec<_>>();
            let is_empty = gate.values.is_empty() && gate.answer == answer;
            let nothing = is_empty.then(|| "the sweep that it refers to found nothing".to_owned());
            let line = |said| plain(&format!("gate of `{}`: {said}, {}: {}", gate.sweep, gate.bound, answer.words()));
            said.into_iter().chain(nothing).map(line).collect::<Vec<_>>()
        };
        self.gates.iter().flat_map(of).collect()
    }

    /// Returns the lines of gates without an answer.
    fn open_gates(&self) -> Vec<String> {
        [GateAnswer::Undecided, GateAnswer::Pending]
            .into_iter()
            .flat_map(|answer| self.gates_that_say(answer))
            .collect()
    }

    /// Whether a question about the SLO is undecided, or the plan's comparison has no result.
    pub(crate) fn is_undecided(&self) -> bool {
        self.untested.is_some() || !self.undecided.is_empty()
    }
}
