//! Determines the findings of sweeps that later sweeps use: for each cell, the highest load that meets the
//! objective, or the value of a metric. No clock and no random numbers are used, so the same results lead
//! to the same findings.

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};

use crate::analysis::curve::{Bracket, Judged};
use crate::analysis::highest::Highest;
use crate::analysis::search::{Caveat, End, Outcome};
use crate::analysis::slo::Answer;
use crate::expand::{Cell, Expansion, Finding, Known, Longer, PlannedRun, Pool, RunId, Says, SearchFigures, Waits};
use crate::plan::model::search::Objective;
use crate::plan::{AskedMetric, MetricName, Plan, Scalar, Sweep, SweepMetric};
use crate::units::Decimal;

use super::choose::{Chosen, Ended, Judge, Needs};

/// The axes of a cell with their values. If the finding is a load, the axis of the load is omitted.
type Key = Vec<(String, String)>;

/// Access to the finished runs of one cell.
pub trait Findings: Judge {
    /// Returns the value of a metric over all valid runs: [`Says::Measured`], or [`Says::Nothing`] with the
    /// reason why there is no value.
    fn measured(&self, runs: &[&PlannedRun], name: MetricName) -> Says;
}

/// Returns the findings of the sweeps of `plan` that other sweeps use. `chosen` contains the states of the
/// pools of `expansion`.
pub fn found(plan: &Plan, expansion: &Expansion, chosen: &[Chosen], judge: &dyn Findings) -> Known {
    let questions: IndexSet<(&str, AskedMetric)> = plan.sweeps.values().flat_map(Sweep::asks).collect();
    let of_question = |(sweep, metric): (&str, AskedMetric)| {
        let answers = Answers { plan, sweep, metric, judge };
        answers.of(expansion, chosen)
    };
    Known { findings: questions.into_iter().flat_map(of_question).collect() }
}

/// Determines the findings of one sweep for one metric.
struct Answers<'a> {
    plan: &'a Plan,
    sweep: &'a str,
    metric: AskedMetric,
    judge: &'a dyn Findings,
}

/// The runs of all cells with the same [`Key`].
#[derive(Default)]
struct Part<'a> {
    pool: Option<(&'a Pool, &'a Chosen)>,
    runs: Vec<&'a PlannedRun>,
    /// If some loads have no runs yet: their state, and the reason why they have none.
    pending: Option<(Waits, &'a str)>,
}

impl Answers<'_> {
    fn of(&self, expansion: &Expansion, chosen: &[Chosen]) -> Vec<Finding> {
        let mut parts: IndexMap<Key, Part> = IndexMap::new();
        for (pool, chosen) in expansion.pools.iter().zip(chosen).filter(|(pool, _)| *pool.sweep == *self.sweep) {
            if let Some(first) = pool.members.first() {
                parts.entry(self.key(&first.run.cell)).or_default().pool = Some((pool, chosen));
            }
        }
        for run in expansion.runs.iter().filter(|run| *run.sweep == *self.sweep) {
            parts.entry(self.key(&run.cell)).or_default().runs.push(run);
        }
        for pending in expansion.pending.iter().filter(|pending| *pending.sweep == *self.sweep) {
            let part = parts.entry(self.key(&pending.cell)).or_default();
            part.pending.get_or_insert((pending.state, &pending.why));
        }
        parts.into_iter().map(|(cell, part)| self.finding(cell, &part)).collect()
    }

    fn key(&self, cell: &Cell) -> Key {
        let is_kept = |axis: &str| match self.metric {
            AskedMetric::Load(load) => axis != load.axis(),
            AskedMetric::Measured(_) => true,
        };
        let others = cell.iter().filter(|(axis, _)| is_kept(axis));
        others.map(|(axis, value)| (axis.to_owned(), value.to_string())).collect()
    }

    fn finding(&self, cell: Key, part: &Part) -> Finding {
        let (says, runs, search) = match (part.pending, part.pool) {
            (Some((Waits::Pending, why)), _) => (Says::Open(why.to_owned()), Vec::new(), None),
            (Some((_, why)), _) => (Says::Nothing(format!("it was not run: {why}")), Vec::new(), None),
            (None, Some((pool, chosen))) => {
                let runs = chosen.finished.iter().map(|at| &pool.members[*at].run).collect::<Vec<_>>();
                let says = match &chosen.end {
                    None => Says::Open(chosen.to_string()),
                    Some(Ended::Search(first)) => {
                        of_search(chosen.of_whole_objective().unwrap_or(first), pool, |load| {
                            self.is_shown(load, pool, chosen)
                        })
                    }
                    Some(Ended::WholeLadder | Ended::Cut { .. }) => self.of_runs(&runs),
                    Some(Ended::Settings(_)) => Says::Nothing("it searches for settings, not for a load".to_owned()),
                };
                (says, ids(&runs), figures(chosen))
            }
            (None, None) => {
                let is_there = |run: &&&PlannedRun| self.judge.is_finished(run);
                let there = part.runs.iter().filter(is_there).count();
                let says = match part.runs.len() {
                    all if there < all => Says::Open(format!("{there} of {all} runs are finished")),
                    _ => self.of_runs(&part.runs),
                };
                (says, ids(&part.runs), None)
            }
        };
        Finding { sweep: Arc::from(self.sweep), metric: self.metric, cell, says, runs, search }
    }

    /// Returns the finding from finished runs.
    fn of_runs(&self, runs: &[&PlannedRun]) -> Says {
        match self.metric {
            AskedMetric::Load(load) => self.of_loads(load, runs),
            AskedMetric::Measured(name) => self.judge.measured(runs, name),
        }
    }

    /// Returns the finding from finished runs at several loads: the highest load that is shown to meet the
    /// objective and is lower than the first load that is shown to miss it.
    fn of_loads(&self, metric: SweepMetric, runs: &[&PlannedRun]) -> Says {
        let mut loads: BTreeMap<Decimal, Vec<&PlannedRun>> = BTreeMap::new();
        for run in runs {
            if let Some(Scalar::Number(load)) = run.cell.get(metric.axis()) {
                loads.entry(*load).or_default().push(run);
            }
        }
        let judged: Vec<Judged> = loads.iter().map(|(load, runs)| self.judged(*load, runs)).collect();
        let bracket = Bracket::of(&judged);
        let of = |number: f64| loads.keys().copied().find(|load| load.to_f64() == number);
        if let (Some(misses), Some(holds)) = (bracket.misses, bracket.out_of_order.last()) {
            return Says::Nothing(format!(
                "the answer is in doubt: {misses} misses the objective and {holds} meets it"
            ));
        }
        let is_open =
            [&bracket.undecided, &bracket.too_dear, &bracket.unknown].into_iter().any(|loads| !loads.is_empty());
        match (bracket.holds.and_then(of), bracket.misses, loads.keys().next()) {
            (Some(load), misses, _) => {
                Says::Load { load, surely: Some(load), is_least: misses.is_none(), caveats: Vec::new() }
            }
            (None, Some(_), Some(lightest)) if !is_open => Says::Below(*lightest),
            _ => Says::Nothing(nothing_shown(&bracket)),
        }
    }

    /// Whether all runs of a search at one load together show that the load meets the objective.
    fn is_shown(&self, load: f64, pool: &Pool, chosen: &Chosen) -> bool {
        let runs = chosen.runs_at(load, pool);
        !runs.is_empty() && self.judge.said(&runs, Objective::Slo).answer == Some(Answer::Holds)
    }

    fn judged(&self, load: Decimal, runs: &[&PlannedRun]) -> Judged {
        let said = self.judge.said(runs, Objective::Slo);
        let limit = self.plan.slo.as_ref().and_then(|slo| slo.cost_per_million);
        let cost = limit.map(|limit| match said.cost {
            Some(cost) if cost <= limit.to_f64() => Answer::Holds,
            Some(_) => Answer::Misses,
            None => Answer::Undecided,
        });
        Judged { load: load.to_f64(), arrived_rate: None, serves: said.answer, cost }
    }
}

/// Returns the message that no load is shown to meet the objective, with the reasons and the remedies.
fn nothing_shown(found: &Bracket) -> String {
    let list = |loads: &[f64]| loads.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
    let parts = [
        (&found.undecided, "undecided at", "prolong `measure`"),
        (&found.unknown, "no valid run at", "see why with `show`, then `run --redo invalid`"),
        (&found.too_dear, "too expensive at", "run heavier loads"),
    ];
    let parts = parts.into_iter().filter(|(loads, ..)| !loads.is_empty());
    let parts: Vec<String> = parts.map(|(loads, what, remedy)| format!("{what} {} ({remedy})", list(loads))).collect();
    let of = if parts.is_empty() { String::new() } else { format!(": {}", parts.join("; ")) };
    format!("no load is shown to meet the objective{of}")
}

fn ids(runs: &[&PlannedRun]) -> Vec<RunId> {
    runs.iter().map(|run| run.id).collect()
}

/// Returns what the runs of a finished search show; `None` for other pools, and if the result is in doubt.
fn figures(chosen: &Chosen) -> Option<SearchFigures> {
    let Some(Ended::Search(first)) = &chosen.end else { return None };
    let outcome = chosen.of_whole_objective().unwrap_or(first);
    if matches!(outcome.end, End::NotMonotone | End::Drifting | End::Unsteady) {
        return None;
    }
    let Highest { shown, observed, misses, .. } = chosen.highest;
    let of = |load: Option<f64>| load.and_then(decimal);
    let longer = |needs: &Needs| {
        let Needs { load, met, seconds, confirm } = *needs;
        Some(Longer { load: decimal(load)?, met, seconds, confirm })
    };
    let needs = chosen.needs.iter().filter_map(longer).collect();
    let is_short = outcome.end == End::TooFewRequests;
    Some(SearchFigures { shown: of(shown), observed: of(observed), misses: of(misses), needs, is_short })
}

/// Returns the caveats of a search, except that its load is not shown, which [`SearchFigures`] state.
fn caveats(outcome: &Outcome) -> Vec<String> {
    let is_of_figures = |caveat: &&Caveat| matches!(caveat, Caveat::NotShown { .. });
    outcome.caveats.iter().filter(|caveat| !is_of_figures(caveat)).map(ToString::to_string).collect()
}

/// Returns a load as it is written in a plan: the shortest decimal representation of a load on the grid is the
/// number in the plan.
fn decimal(load: f64) -> Option<Decimal> {
    load.to_string().parse().ok()
}

/// Returns the finding from a finished search. A doubtful answer is not used, because the later sweep would
/// measure an arbitrary load.
fn of_search(outcome: &Outcome, pool: &Pool, is_shown: impl Fn(f64) -> bool) -> Says {
    let nothing = |why: &str| Says::Nothing(why.to_owned());
    let doubt = || Says::Nothing(format!("the answer is in doubt: {}", caveats(outcome).join("; ")));
    // The resolution of a search is two steps of the grid, and the error of a search exceeds its resolution
    // in at most 5 % of cases.
    let below = |load: f64| {
        let loads = pool.loads();
        let at = loads.iter().position(|other| *other == load)?;
        Some(loads[at.checked_sub(2)?])
    };
    let surely = |load: f64| if is_shown(load) { Some(load) } else { below(load) };
    match outcome.end {
        End::Found | End::AboveRange => match outcome.found.and_then(decimal) {
            Some(load) => Says::Load {
                load,
                surely: outcome.found.and_then(surely).and_then(decimal),
                is_least: outcome.end == End::AboveRange,
                caveats: caveats(outcome),
            },
            None => nothing("no load was found"),
        },
        End::BelowRange => match pool.loads().first().copied().and_then(decimal) {
            Some(lightest) => Says::Below(lightest),
            None => nothing("no load of the range meets the objective"),
        },
        End::NotMonotone | End::Drifting | End::Unsteady => doubt(),
        End::Unconfirmed => nothing("no load was confirmed by its long run"),
        End::OutOfProbes => nothing("not found within the run limit of the search"),
        End::TooFewRequests => {
            Says::Nothing(outcome.caveats.first().map_or("no run is conclusive".to_owned(), ToString::to_string))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::halving;
    use crate::expand::expand;
    use crate::plan::Aim;
    use crate::plan::{Format, ResolvedPlan, parse};
    use crate::sweep::choose::{Said, Tried, choose};

    /// Simulates a server that meets the objective at loads up to `knee`. Runs at loads up to `there` are
    /// finished.
    struct Knee {
        knee: f64,
        there: f64,
    }

    impl Judge for Knee {
        fn is_finished(&self, run: &PlannedRun) -> bool {
            run.spec.load.qps().is_some_and(|load| load.to_f64() <= self.there)
        }

        fn tried(&self, _: &PlannedRun, _: Aim) -> Tried {
            Tried { says: halving::Says::Nothing, why: None, start: None }
        }

        fn said(&self, runs: &[&PlannedRun], _: Objective) -> Said {
            let load = runs[0].spec.load.qps().expect("an open loop").to_f64();
            let answer = if load <= self.knee { Answer::Holds } else { Answer::Misses };
            let pressure = Some(load / self.knee);
            Said {
                answer: Some(answer),
                is_saturated: false,
                is_failed: false,
                cost: None,
                pressure,
                requests: 5_000,
                short: None,
                met: Some(answer == Answer::Holds),
                needs: None,
            }
        }
    }

    impl Findings for Knee {
        fn measured(&self, runs: &[&PlannedRun], _: MetricName) -> Says {
            Says::Measured { value: self.knee, ends: None, runs: runs.len() }
        }
    }

    /// Returns a plan with this sweep `limit`, whose result another sweep uses.
    fn plan(limit: serde_json::Value) -> ResolvedPlan {
        let taken = serde_json::json!({ "from": "limit", "take": "max_qps_under_slo" });
        let plan = serde_json::json!({
            "sweepline": 1, "name": "t", "endpoints": { "e": { "engine": "mock" } }, "models": { "m": { "id": "x" } },
            "slo": { "ttft": { "p90": "50ms" } },
            "sweeps": { "limit": limit, "later": { "matrix": { "qps": taken } } },
        });
        parse("plan.yaml".as_ref(), &plan.to_string(), Format::Yaml).unwrap_or_else(|errors| panic!("{errors}")).plan
    }

    fn says(limit: serde_json::Value, judge: &Knee) -> Says {
        let plan = plan(limit);
        let expansion = expand(&plan).expect("expands");
        let chosen: Vec<Chosen> = expansion.pools.iter().map(|pool| choose(pool, judge)).collect();
        let known = found(&plan, &expansion, &chosen, judge);
        let [finding] = &known.findings[..] else { panic!("expected one cell: {known:?}") };
        assert_eq!(finding.title(), "limit: e · m · B1");
        finding.says.clone()
    }

    fn load(load: &str, is_least: bool) -> Says {
        let load = load.parse().expect("a number");
        Says::Load { load, surely: Some(load), is_least, caveats: Vec::new() }
    }

    #[test]
    fn a_list_of_loads_answers_with_the_highest_that_is_shown_to_meet_the_objective() {
        let list = || serde_json::json!({ "matrix": { "qps": [10, 20, 40] }, "repeats": 2 });
        let of = |knee, there| says(list(), &Knee { knee, there });
        assert_eq!(of(30.0, 100.0), load("20", false));
        assert_eq!(of(90.0, 100.0), load("40", true), "the heaviest is a lower bound");
        assert_eq!(of(5.0, 100.0), Says::Below("10".parse().expect("a number")));
        assert_eq!(of(30.0, 20.0), Says::Open("4 of 6 runs are finished".to_owned()));
    }

    #[test]
    fn a_ladder_answers_once_it_has_ended() {
        let ladder = || serde_json::json!({ "matrix": { "qps": [10, 20, 40, 80] }, "stop": "slo_missed" });
        let of = |knee, there| says(ladder(), &Knee { knee, there });
        assert_eq!(of(30.0, 40.0), load("20", false), "80 was skipped");
        assert_eq!(of(30.0, 20.0), Says::Open("above 20 qps, 2 runs so far".to_owned()));
        assert_eq!(of(90.0, 100.0), load("80", true));
    }

    #[test]
    fn a_search_answers_with_what_it_found_and_with_nothing_where_that_is_in_doubt() {
        let search = || serde_json::json!({ "matrix": { "scenario": "B1" }, "search": { "qps": { "from": 5, "to": 50 }, "confirm": "0s" } });
        let of = |knee| says(search(), &Knee { knee, there: 1_000.0 });
        let Says::Load { load: found, is_least: false, .. } = of(30.0) else {
            panic!("expected a load: {:?}", of(30.0))
        };
        assert!((28.0..=31.5).contains(&found.to_f64()), "{found}");
        assert_eq!(of(2.0), Says::Below("5".parse().expect("a number")));
        assert!(matches!(of(500.0), Says::Load { is_least: true, .. }), "{:?}", of(500.0));
        let pools = expand(&plan(search())).expect("expands").pools;
        // If the runs do not show that the found load meets the objective, the load two steps below it
        // surely does.
        let loads = pools[0].loads();
        let outcome = |found| Outcome { found: Some(found), misses: None, end: End::Found, caveats: Vec::new() };
        let surely = |found: f64, shown: bool| match of_search(&outcome(found), &pools[0], |_| shown) {
            Says::Load { surely, .. } => surely.map(Decimal::to_f64),
            other => panic!("{other:?}"),
        };
        assert_eq!((surely(loads[9], true), surely(loads[9], false)), (Some(loads[9]), Some(loads[7])));
        assert!(loads[9] / loads[7] >= 1.04 && surely(loads[1], false).is_none());
        for end in
            [End::NotMonotone, End::Drifting, End::Unsteady, End::Unconfirmed, End::OutOfProbes, End::TooFewRequests]
        {
            let outcome = Outcome { found: Some(20.0), misses: Some(21.0), end, caveats: Vec::new() };
            assert!(matches!(of_search(&outcome, &pools[0], |_| true), Says::Nothing(_)), "{end:?}");
        }
    }
}
