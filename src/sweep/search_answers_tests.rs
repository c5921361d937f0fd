//! Every combination of results of a small search: what its text, its figures, the gates on it and the loads taken
//! from it say never contradicts.

use crate::analysis::halving;
use crate::analysis::slo::Answer;
use crate::expand::{GateAnswer, GateState, Known, PlannedRun, Says, expand, expand_with, gate_states};
use crate::plan::model::search::Objective;
use crate::plan::{Aim, Format, MetricName, ResolvedPlan, parse};
use crate::sweep::choose::{Chosen, Ended, Judge, Said, Tried, choose};
use crate::sweep::found::{Findings, found};

/// What one run shows.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Run {
    Holds,
    Misses,
    SeemsToHold,
    SeemsToMiss,
    Invalid,
}

const RUNS: [Run; 5] = [Run::Holds, Run::Misses, Run::SeemsToHold, Run::SeemsToMiss, Run::Invalid];

/// A server whose ordinary and long runs at each load, counted from 1, have these results.
#[derive(Debug)]
struct Script {
    loads: Vec<[Run; 2]>,
    confirm: u64,
}

impl Script {
    fn of(&self, run: &PlannedRun) -> Run {
        let load: usize = run.cell["batch_size"].to_string().parse().expect("a whole number");
        let is_long = run.spec.phases.measure.duration.0 == self.confirm;
        self.loads[load - 1][usize::from(is_long)]
    }
}

impl Judge for Script {
    fn is_finished(&self, run: &PlannedRun) -> bool {
        *run.sweep == *"limit"
    }

    fn tried(&self, _: &PlannedRun, _: Aim) -> Tried {
        Tried { says: halving::Says::Nothing, why: None, start: None }
    }

    fn said(&self, runs: &[&PlannedRun], _: Objective) -> Said {
        let valid: Vec<Run> = runs.iter().map(|run| self.of(run)).filter(|run| *run != Run::Invalid).collect();
        let count = |run: Run| valid.iter().filter(|one| **one == run).count();
        let (answer, met) = match () {
            () if valid.is_empty() => (None, None),
            () if count(Run::Misses) > 0 => (Some(Answer::Misses), Some(false)),
            () if count(Run::Holds) > count(Run::SeemsToMiss) => (Some(Answer::Holds), Some(true)),
            () => (Some(Answer::Undecided), Some(count(Run::SeemsToHold) >= count(Run::SeemsToMiss))),
        };
        let pressure = valid.iter().map(|run| match run {
            Run::Holds => 0.8,
            Run::SeemsToHold => 0.98,
            Run::SeemsToMiss => 1.04,
            Run::Misses | Run::Invalid => 1.5,
        });
        Said {
            answer,
            is_saturated: false,
            is_failed: false,
            cost: None,
            pressure: pressure.reduce(f64::max),
            requests: 1_000 * valid.len() as u64,
            short: None,
            met,
            needs: None,
        }
    }
}

impl Findings for Script {
    fn measured(&self, _: &[&PlannedRun], _: MetricName) -> Says {
        unreachable!("only loads are asked for")
    }
}

/// Returns a plan with a search over the loads from 1 to `to`, a gate at each of them, and a sweep that takes the
/// load that is shown.
fn plan(to: usize) -> ResolvedPlan {
    let search = serde_json::json!({ "batch_size": { "from": 1, "to": to, "within": "50%" }, "confirm": "60s" });
    let shown = serde_json::json!({ "from": "limit", "take": "max_batch_size_under_slo", "value": "shown" });
    let mut sweeps = serde_json::json!({
        "limit": { "matrix": { "scenario": "B1" }, "search": search },
        "taken": { "matrix": { "batch_size": shown } },
    });
    for bound in 1..=to {
        let gate = serde_json::json!({ "sweep": "limit", "metric": "max_batch_size_under_slo", "at_least": bound });
        sweeps[format!("g{bound}")] = serde_json::json!({ "matrix": { "batch_size": 100 + bound }, "gate": gate });
    }
    let plan = serde_json::json!({
        "sweepline": 1, "name": "t", "endpoints": { "e": { "engine": "mock" } }, "models": { "m": { "id": "x" } },
        "phases": { "measure": "10s" }, "slo": { "ttft": { "p90": "50ms" } }, "sweeps": sweeps,
    });
    parse("plan.yaml".as_ref(), &plan.to_string(), Format::Yaml).unwrap_or_else(|errors| panic!("{errors}")).plan
}

/// Returns the load that follows a word in the state of a search: the 3 of `shown 3 in flight`.
fn told(standing: &str, word: &str) -> Option<f64> {
    standing.split(&format!("{word} ")).nth(1)?.split(' ').next()?.trim_end_matches([',', ';']).parse().ok()
}

/// Checks one combination; returns the answers of its gates.
fn check(plan: &ResolvedPlan, script: &Script) -> Vec<GateAnswer> {
    let expansion = expand(plan).expect("expands");
    let chosen: Vec<Chosen> = expansion.pools.iter().map(|pool| choose(pool, script)).collect();
    let [one] = &chosen[..] else { panic!("{script:?}") };
    let said = one.to_string();
    let highest = one.highest;
    assert!(highest.shown <= highest.observed, "{script:?}: {said}");
    assert_eq!(highest, one.parts[0].highest, "{script:?}: {said}");
    assert!(highest.misses.is_none_or(|misses| highest.observed < Some(misses)), "{script:?}: {said}");
    // The text has the same figures, whatever the outcome is.
    assert_eq!(told(&said, "shown"), highest.shown, "{script:?}: {said}");
    assert_eq!(told(&said, "observed"), highest.observed, "{script:?}: {said}");
    let Some(Ended::Search(outcome)) = &one.end else { panic!("{script:?}: {said}") };
    let known: Known = found(plan, &expansion, &chosen, script);
    let finding = &known.findings[0];
    // A load that is taken is the one that was found.
    if let Says::Load { load, .. } = &finding.says {
        assert_eq!(Some(load.to_f64()), outcome.found, "{script:?}: {said}");
    }
    let states = gate_states(plan, &known);
    let bound = |state: &GateState| -> f64 { state.sweep[1..].parse().expect("a bound") };
    for state in &states {
        let (bound, answer) = (bound(state), state.answer);
        assert!(answer != GateAnswer::Yes || highest.shown >= Some(bound), "{script:?}: {said}: {state:?}");
        let misses = highest.misses.is_some_and(|misses| misses <= bound);
        assert!(answer != GateAnswer::No || misses, "{script:?}: {said}: {state:?}");
        if finding.search.is_some() {
            assert_eq!(answer == GateAnswer::Yes, highest.shown >= Some(bound), "{script:?}: {said}: {state:?}");
            assert_eq!(answer == GateAnswer::No, misses, "{script:?}: {said}: {state:?}");
        }
        // What a gate prints has the same figures.
        let value = &state.values[0];
        if let Some(told_value) = &value.value {
            assert_eq!(told(told_value, "shown"), highest.shown, "{script:?}: {value:?}");
            assert_eq!(told(told_value, "observed"), highest.observed, "{script:?}: {value:?}");
        }
    }
    let next = expand_with(plan, &known).expect("expands");
    let taken = next.runs.iter().find(|run| *run.sweep == *"taken");
    let taken = taken.map(|run| run.cell["batch_size"].to_string().parse().expect("a load"));
    let usable = highest.shown.filter(|_| finding.search.is_some());
    assert_eq!(taken, usable, "{script:?}: {said}: {:?}", next.pending);
    states.iter().map(|state| state.answer).collect()
}

/// Checks combinations that `result` makes of a number and a load, and returns how often gates gave each answer. Every
/// seventh combination; the measured suite (`SWEEPLINE_WHOLE=1`) checks each.
fn check_all(to: usize, count: usize, result: impl Fn(usize, usize) -> [Run; 2]) -> [usize; 3] {
    let plan = plan(to);
    let mut answers = [0; 3];
    let step = if std::env::var("SWEEPLINE_WHOLE").is_ok_and(|whole| whole == "1") { 1 } else { 7 };
    for number in (0..count).step_by(step) {
        let loads = (0..to).map(|load| result(number, load)).collect();
        for answer in check(&plan, &Script { loads, confirm: 60_000_000_000 }) {
            match answer {
                GateAnswer::Yes => answers[0] += 1,
                GateAnswer::No => answers[1] += 1,
                GateAnswer::Undecided => answers[2] += 1,
                GateAnswer::Pending => panic!("the search is over"),
            }
        }
    }
    answers
}

#[test]
fn no_combination_of_results_makes_a_search_contradict_itself() {
    // Two loads with every result of ordinary and long runs.
    let digit = |number: usize, place: usize| RUNS[number / RUNS.len().pow(place as u32) % RUNS.len()];
    let both = |number: usize, load: usize| [digit(number, 2 * load), digit(number, 2 * load + 1)];
    let answers = check_all(2, RUNS.len().pow(4), both);
    assert!(answers.iter().all(|count| *count > 5), "{answers:?}");
    // Four loads with every result, the same for all runs of a load.
    let alike = |number: usize, load: usize| [digit(number, load); 2];
    let answers = check_all(4, RUNS.len().pow(4), alike);
    assert!(answers.iter().all(|count| *count > 5), "{answers:?}");
}
