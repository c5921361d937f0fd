//! `run --gate`: does what was measured keep what the plan promises, and is no arm worse than its baseline?

use std::collections::HashSet;

use crate::analysis::comparison::{Comparison, Outcome};
use crate::analysis::slo::{self, Answer};
use crate::analysis::verdict::State;
use crate::expand::PlannedRun;
use crate::plan::Plan;
use crate::report::format::plain;
use crate::rows::GivenUp;
use crate::store::Store;
use crate::sweep::event::planned_name;

use super::answers::{self, Answered};
use super::given_up::GivenUpRuns;
use super::left_out::LeftOut;
use super::workspace::Workspace;
use super::{Failure, compare};

/// What a gate found.
#[derive(Debug, Default)]
pub struct Gate {
    /// What misses, a line each.
    pub missed: Vec<String>,
    /// Limits of the SLO that too few requests decide.
    pub undecided: usize,
    /// Why nothing of what the plan compares could be tested; none where something was, and where it compares nothing.
    pub untested: Option<String>,
}

/// Refuses a gate that nothing can miss.
pub fn is_one(plan: &Plan) -> Result<(), Failure> {
    let compares = plan.compare.is_some() || plan.sweeps.values().any(|sweep| sweep.compare.is_some());
    if plan.slo.is_some() || compares {
        return Ok(());
    }
    let text = "--gate: the plan promises nothing; write slo: { ttft: { p99: 500ms } } or compare: { by: …, baseline: … } in it";
    Err(Failure::Usage(text.to_owned()))
}

/// Holds the committed ones of `runs` against the plan's SLO, and the plan's arms against their baselines. Invalid runs say
/// nothing: of those the exit code tells already. A run that was given up because the server does not meet its load misses.
pub fn check(workspace: &Workspace, store: &Store, runs: &[&PlannedRun], left_out: &LeftOut) -> Gate {
    let plan = workspace.plan();
    let (mut gate, mut seen) = (Gate::default(), HashSet::new());
    if plan.slo.is_some() {
        let given_up = GivenUpRuns::of(store, left_out);
        for run in runs.iter().filter(|run| seen.insert(run.id)) {
            match left_out.take(answers::answer(store, run, plan)).flatten() {
                Some((_, answered)) if answered.verdict.state != State::Invalid => {
                    promised(&mut gate, plan, run, &answered)
                }
                Some(_) => {}
                None => gate.missed.extend(given_up.get(run).and_then(|found| missed_by(run, &found.given_up))),
            }
        }
    }
    let compared = compare::declared(plan, &workspace.expansion, store, left_out);
    gate.untested = compared.as_ref().and_then(Comparison::untested);
    for family in compared.iter().flat_map(|all| &all.families) {
        for cell in &family.cells {
            let worse = cell.tests.iter().filter(|test| test.outcome == Outcome::Worse);
            gate.missed.extend(worse.map(|test| {
                let (sweep, name, arm) = (plain(&cell.sweep), plain(&cell.name), plain(&cell.arm));
                format!("{sweep}: {name}: {arm} against {}: {} {}", plain(&family.baseline), test.metric, test.words)
            }));
        }
    }
    gate
}

/// What a run that was given up misses; none where that says nothing of its load.
fn missed_by(run: &PlannedRun, given_up: &GivenUp) -> Option<String> {
    let name = plain(&planned_name(run));
    given_up.is_a_miss().then(|| format!("{name}: {given_up}: the server does not meet the load"))
}

/// One run against the SLO.
fn promised(gate: &mut Gate, plan: &Plan, run: &PlannedRun, answered: &Answered) {
    let name = plain(&planned_name(run));
    for test in &answered.slo {
        match test.answer {
            Answer::Misses => {
                let (metric, percentile) = (test.metric, test.percentile.name());
                let count = format!("{} of {} are above it", test.above, test.n);
                gate.missed.push(format!("{name}: {metric} {percentile} ≤ {} is missed: {count}", test.limit));
            }
            Answer::Undecided => gate.undecided += 1,
            Answer::Holds => {}
        }
    }
    let limit = plan.slo.as_ref().and_then(|slo| slo.cost_per_million).map(|limit| limit.to_f64());
    let cost = answered.plan_metrics.cost_per_million_output_tokens;
    if let (Some(limit), Some(cost)) = (limit, cost)
        && slo::cost(Some(cost), limit) == Answer::Misses
    {
        gate.missed.push(format!("{name}: a million output tokens cost {cost:.2}, above {limit}"));
    }
}

impl Gate {
    /// What it says, for people.
    pub fn told(&self) -> String {
        let undecided = match self.undecided {
            0 => String::new(),
            1 => "; 1 limit of the SLO is undecided".to_owned(),
            count => format!("; {count} limits of the SLO are undecided"),
        };
        match (self.missed.len(), &self.untested) {
            (0, Some(why)) => format!("gate: no answer: {why}{undecided}"),
            (0, None) => format!("gate: nothing is missed{undecided}"),
            (count, _) => format!("gate: {count} missed{undecided}\n  {}", self.missed.join("\n  ")),
        }
    }
}
