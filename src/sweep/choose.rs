//! Which run of a pool comes next: what a search or a ladder asks for, decided from what was measured. No clock and no random numbers:
//! a sweep that is resumed replays its decisions from the rows, and decides the same.

use std::fmt;

use crate::analysis::search::{self, Caveat, End, Next, Outcome, Probe, Question, Standing};
use crate::analysis::slo::Answer;
use crate::expand::{Chooses, PlannedRun, Pool};
use crate::plan::StopRule;

/// What finished runs of one load say together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Said {
    /// Whether the load meets the objective; none where no run of it says anything.
    pub answer: Option<Answer>,
    /// Whether more came than the server answered.
    pub is_saturated: bool,
    /// Whether so many requests failed that a run is invalid, or a run was given up because the server rejects the load.
    pub is_failed: bool,
    /// Whether a million output tokens cost no more than asked; none where that is not known.
    pub cost: Option<f64>,
    /// The observed percentile over its limit, the largest over the limits; infinite where it lies among failures.
    pub pressure: Option<f64>,
    /// Requests of their windows.
    pub requests: u64,
}

/// What is known of finished runs.
pub trait Judge {
    /// Whether the run has ended for good: with a result, or given up.
    fn is_finished(&self, run: &PlannedRun) -> bool;
    /// What these finished runs, of one load, say together.
    fn said(&self, runs: &[&PlannedRun]) -> Said;
}

/// How a pool stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// Finished members, by position in the pool, in the order in which they were asked for.
    pub finished: Vec<usize>,
    /// The member that is asked for next; none at the end.
    pub next: Option<usize>,
    /// The lowest load that is too much, and the highest that is not, as far as they are known.
    pub between: (Option<f64>, Option<f64>),
    /// How it ended.
    pub end: Option<Ended>,
    axis: &'static str,
}

/// How a pool ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// A search.
    Search(Outcome),
    /// A ladder whose loads all ran.
    WholeLadder,
    /// A ladder that was cut: behind this load, for this reason. So many loads were left out.
    Cut {
        /// The last load that ran.
        load: f64,
        /// What was shown of it.
        why: &'static str,
        /// How many heavier loads are left out.
        pruned: usize,
    },
}

impl Chosen {
    /// The members that are there or asked for, by position in the pool.
    pub fn members(&self) -> Vec<usize> {
        self.finished.iter().copied().chain(self.next).collect()
    }

    fn unit(&self) -> &'static str {
        if self.axis == "qps" { "qps" } else { "in flight" }
    }
}

/// Where it stands, in a few words: `between 24 and 28 qps, 6 runs so far`.
impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = self.unit();
        let runs = match self.finished.len() {
            1 => "1 run".to_owned(),
            runs => format!("{runs} runs"),
        };
        match (&self.end, self.between) {
            (Some(Ended::Search(outcome)), _) => write!(f, "{}; {runs}", said(outcome, unit)),
            (Some(Ended::WholeLadder), _) => write!(f, "no load was too much; {runs}"),
            (Some(Ended::Cut { load, why, pruned: 0 }), _) => write!(f, "{load} {unit} {why}; {runs}"),
            (Some(Ended::Cut { load, why, pruned }), _) => {
                let loads =
                    if *pruned == 1 { "one heavier load".to_owned() } else { format!("{pruned} heavier loads") };
                write!(f, "{load} {unit} {why}, so {loads} were left out; {runs}")
            }
            (None, (Some(low), Some(high))) => write!(f, "between {low} and {high} {unit}, {runs} so far"),
            (None, (Some(low), None)) => write!(f, "above {low} {unit}, {runs} so far"),
            (None, (None, Some(high))) => write!(f, "below {high} {unit}, {runs} so far"),
            (None, (None, None)) => write!(f, "{runs} so far"),
        }
    }
}

/// What a search found, in a sentence without its end.
fn said(outcome: &Outcome, unit: &str) -> String {
    let mut said = match (outcome.found, outcome.misses) {
        (Some(found), Some(misses)) => format!("{found} {unit} meets the objective, {misses} misses it"),
        (Some(found), None) => format!("{found} {unit} meets the objective, the heaviest load of the range"),
        (None, Some(misses)) => format!("no load of the range meets the objective: {misses} {unit} misses it"),
        (None, None) => "no load is shown to meet the objective".to_owned(),
    };
    for caveat in &outcome.caveats {
        said.push_str(&format!("; {caveat}"));
    }
    said
}

/// Which member of a pool comes next, by what is known of those that have ended.
pub fn choose(pool: &Pool, judge: &dyn Judge) -> Chosen {
    match &pool.chooses {
        Chooses::Search { axis, within, confirm } => search_next(pool, (axis, *within, confirm.is_some()), judge),
        Chooses::Ladder { axis, stop } => ladder_next(pool, (axis, *stop), judge),
    }
}

/// How many runs a pool takes at most, whatever is measured.
pub fn most_runs(pool: &Pool) -> usize {
    match &pool.chooses {
        Chooses::Search { axis, within, confirm } => {
            search::most_probes(&question(pool, (axis, *within, confirm.is_some()))).min(pool.members.len())
        }
        Chooses::Ladder { .. } => pool.members.len(),
    }
}

fn question(pool: &Pool, (axis, within, confirm): (&'static str, f64, bool)) -> Question {
    let loads = pool.loads();
    let (from, to) = (loads.first().copied().unwrap_or(1.0), loads.last().copied().unwrap_or(1.0));
    Question { from, to, within, whole: axis == "batch_size", confirm }
}

fn search_next(pool: &Pool, (axis, within, confirm): (&'static str, f64, bool), judge: &dyn Judge) -> Chosen {
    let question = question(pool, (axis, within, confirm));
    let (mut probes, mut finished) = (Vec::new(), Vec::new());
    let (next, end) = loop {
        let (load, repeat, confirms) = match search::next(&question, &probes) {
            Next::Ended(outcome) => break (None, Some(outcome)),
            Next::Probe { load, repeat } => (load, repeat, false),
            Next::Confirm { load, repeat } => (load, repeat, true),
        };
        let Some(at) = pool.find(load, repeat, confirms) else {
            break (None, Some(out_of_runs(search::standing(&question, &probes))));
        };
        if !judge.is_finished(&pool.members[at].run) {
            break (Some(at), None);
        }
        let said = judge.said(&[&pool.members[at].run]);
        let Said { answer, pressure, requests, .. } = said;
        probes.push(Probe { load, confirms, answer, pressure, requests });
        finished.push(at);
    };
    let standing = search::standing(&question, &probes);
    Chosen { finished, next, between: (standing.low, standing.high), end: end.map(Ended::Search), axis }
}

/// A search that asks for one run of a load more than there are: its runs do not agree.
fn out_of_runs(standing: Standing) -> Outcome {
    let caveats = standing.low.map(|load| Caveat::Unconfirmed { load }).into_iter().collect();
    Outcome { found: None, misses: standing.high, end: End::OutOfProbes, caveats }
}

fn ladder_next(pool: &Pool, (axis, stop): (&'static str, StopRule), judge: &dyn Judge) -> Chosen {
    let mut chosen = Chosen { finished: Vec::new(), next: None, between: (None, None), end: None, axis };
    let loads = pool.loads();
    for (rung, load) in loads.iter().enumerate() {
        let members = pool.members.iter().enumerate().filter(|(_, member)| member.load == *load);
        let members: Vec<usize> = members.map(|(at, _)| at).collect();
        let open = members.iter().copied().find(|at| !judge.is_finished(&pool.members[*at].run));
        chosen.finished.extend(members.iter().copied().filter(|at| judge.is_finished(&pool.members[*at].run)));
        if let Some(open) = open {
            chosen.next = Some(open);
            return chosen;
        }
        let runs: Vec<&PlannedRun> = members.iter().map(|at| &pool.members[*at].run).collect();
        if let Some(why) = is_the_last(stop, &judge.said(&runs)) {
            chosen.between.1 = Some(*load);
            chosen.end = Some(Ended::Cut { load: *load, why, pruned: loads.len() - rung - 1 });
            return chosen;
        }
        chosen.between.0 = Some(*load);
    }
    chosen.end = Some(Ended::WholeLadder);
    chosen
}

/// Why a load is the last of its ladder; none where nothing of the kind is shown.
fn is_the_last(stop: StopRule, said: &Said) -> Option<&'static str> {
    match stop {
        StopRule::SloMissed => (said.answer == Some(Answer::Misses)).then_some("misses the objective"),
        StopRule::Saturated => said.is_saturated.then_some("is more than the server answers"),
        StopRule::Errors => said.is_failed.then_some("fails too many requests"),
        StopRule::CostPerMillion(limit) => {
            said.cost.is_some_and(|cost| cost <= limit.to_f64()).then_some("is cheap enough")
        }
    }
}
