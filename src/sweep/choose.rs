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
    /// What a million output tokens cost in the dearest run; none where that is not known of each.
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
    /// The highest load that is not too much, and the lowest that is, as far as they are known.
    pub between: (Option<f64>, Option<f64>),
    /// How it ended.
    pub end: Option<Ended>,
    /// Whether the load that a search calls too much was shown to miss, and did not only look so.
    is_miss_shown: bool,
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

    /// What a search found, in a sentence without its end.
    fn said(&self, outcome: &Outcome, unit: &str) -> String {
        let missed = outcome.misses.map(|load| match self.is_miss_shown {
            true => format!("{load} misses it"),
            false => format!("a run at {load} missed it, which is not shown"),
        });
        let mut said = match (outcome.found, outcome.end, missed) {
            (Some(found), _, Some(missed)) => format!("{found} {unit} meets the objective, {missed}"),
            (Some(found), End::AboveRange, None) => {
                format!("{found} {unit} meets the objective, the heaviest load of the range")
            }
            (Some(found), _, None) => format!("{found} {unit} meets the objective, and no heavier run missed it"),
            (None, End::BelowRange, _) => {
                let missed = outcome.misses.map(|load| format!(": {load} {unit} misses it")).unwrap_or_default();
                format!("no load of the range meets the objective{missed}")
            }
            (None, End::Unconfirmed, _) => "no load was confirmed: the long runs missed the objective".to_owned(),
            (None, End::OutOfProbes, _) => "not found in as many runs as it may take".to_owned(),
            (None, ..) => "no load is shown to meet the objective".to_owned(),
        };
        for caveat in &outcome.caveats {
            said.push_str(&format!("; {caveat}"));
        }
        said
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
            (Some(Ended::Search(outcome)), _) => write!(f, "{}; {runs}", self.said(outcome, unit)),
            (Some(Ended::WholeLadder), _) => write!(f, "no load was too much; {runs}"),
            (Some(Ended::Cut { load, why, pruned: 0 }), _) => write!(f, "{load} {unit} {why}; {runs}"),
            (Some(Ended::Cut { load, why, pruned }), _) => {
                let loads = if *pruned == 1 {
                    "one heavier load was".to_owned()
                } else {
                    format!("{pruned} heavier loads were")
                };
                write!(f, "{load} {unit} {why}, so {loads} left out; {runs}")
            }
            (None, (Some(low), Some(high))) => write!(f, "between {low} and {high} {unit}, {runs} so far"),
            (None, (Some(low), None)) => write!(f, "above {low} {unit}, {runs} so far"),
            (None, (None, Some(high))) => write!(f, "below {high} {unit}, {runs} so far"),
            (None, (None, None)) => write!(f, "{runs} so far"),
        }
    }
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
    let misses = end.as_ref().and_then(|outcome| outcome.misses);
    let is_shown = |probe: &Probe| Some(probe.load) == misses && probe.answer == Some(Answer::Misses);
    let is_miss_shown = probes.iter().any(is_shown);
    Chosen { finished, next, between: (standing.low, standing.high), end: end.map(Ended::Search), is_miss_shown, axis }
}

/// A search that asks for one run of a load more than there are: its runs do not agree.
fn out_of_runs(standing: Standing) -> Outcome {
    let caveats = standing.low.map(|load| Caveat::Unconfirmed { load }).into_iter().collect();
    Outcome { found: None, misses: standing.high, end: End::OutOfProbes, caveats }
}

fn ladder_next(pool: &Pool, (axis, stop): (&'static str, StopRule), judge: &dyn Judge) -> Chosen {
    let mut chosen =
        Chosen { finished: Vec::new(), next: None, between: (None, None), end: None, is_miss_shown: false, axis };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expand::expand;
    use crate::plan::{Format, parse};

    /// The pools of a plan whose only sweep says this of its loads.
    fn pools(loads: serde_json::Value) -> Vec<Pool> {
        let mut sweep = serde_json::json!({ "matrix": { "endpoint": "e", "model": "m" } });
        sweep.as_object_mut().unwrap().extend(loads.as_object().unwrap().clone());
        let plan = serde_json::json!({
            "sweepline": 1, "name": "t", "endpoints": { "e": { "engine": "mock" } }, "models": { "m": { "id": "x" } },
            "slo": { "ttft": { "p90": "50ms" } }, "sweeps": { "s": sweep },
        });
        let plan = parse("plan.yaml".as_ref(), &plan.to_string(), Format::Yaml).expect("a plan").plan;
        expand(&plan).expect("expands").pools
    }

    /// What the search may ask for, and what the plan holds ready for it, are made in two places and must be the same to the bit.
    #[test]
    fn the_loads_of_a_search_are_those_that_it_asks_for() {
        for (axis, from, to, within) in [
            ("qps", 1.0, 200.0, "5%"),
            ("qps", 0.3, 7.5, "2%"),
            ("qps", 12.5, 900.0, "1%"),
            ("batch_size", 1.0, 256.0, "10%"),
        ] {
            let search = serde_json::json!({ "search": { axis: { "from": from, "to": to, "within": within } } });
            let pools = pools(search);
            let Chooses::Search { axis, within, confirm } = &pools[0].chooses else { panic!("a search") };
            let question = question(&pools[0], (axis, *within, confirm.is_some()));
            assert_eq!(pools[0].loads(), search::Grid::of(&question).loads());
        }
    }

    /// Runs that say what a server with this knee says, as far as they are there.
    struct Knee {
        knee: f64,
        there: std::cell::Cell<usize>,
    }

    impl Judge for Knee {
        fn is_finished(&self, _: &PlannedRun) -> bool {
            self.there.replace(self.there.get().saturating_sub(1)) > 0
        }

        fn said(&self, runs: &[&PlannedRun]) -> Said {
            let load = runs[0].spec.load.qps().expect("an open loop").to_f64();
            let answer = if load <= self.knee { Answer::Holds } else { Answer::Misses };
            let pressure = Some(load / self.knee);
            Said { answer: Some(answer), is_saturated: false, is_failed: false, cost: None, pressure, requests: 5_000 }
        }
    }

    #[test]
    fn a_search_asks_for_the_same_runs_wherever_it_was_cut() {
        let pools = pools(serde_json::json!({ "search": { "qps": { "from": 1, "to": 100 } } }));
        let of = |there| choose(&pools[0], &Knee { knee: 30.0, there: std::cell::Cell::new(there) });
        let whole = of(usize::MAX);
        let Some(Ended::Search(outcome)) = &whole.end else { panic!("it ended: {whole:?}") };
        assert!(outcome.found.is_some_and(|found| (28.5..=31.5).contains(&found)), "{outcome:?}");
        for there in 0..whole.finished.len() {
            let cut = of(there);
            assert_eq!((&cut.finished[..], cut.next), (&whole.finished[..there], Some(whole.finished[there])));
        }
    }

    #[test]
    fn a_ladder_rises_and_ends_behind_what_is_shown() {
        let pools = pools(serde_json::json!({
            "matrix": { "endpoint": "e", "model": "m", "qps": [40, 10, 20, 80] }, "stop": "slo_missed", "repeats": 2,
        }));
        let whole = choose(&pools[0], &Knee { knee: 30.0, there: std::cell::Cell::new(usize::MAX) });
        let loads: Vec<f64> = whole.finished.iter().map(|at| pools[0].members[*at].load).collect();
        assert_eq!(loads, [10.0, 10.0, 20.0, 20.0, 40.0, 40.0]);
        assert_eq!(whole.end, Some(Ended::Cut { load: 40.0, why: "misses the objective", pruned: 1 }));
        assert_eq!(whole.to_string(), "40 qps misses the objective, so one heavier load was left out; 6 runs");
    }
}
