//! Which runs of searches and ladders are asked for, decided from what lies in the results folder.

use std::cell::RefCell;
use std::collections::HashMap;

use super::answers::{self, Answered};
use super::given_up::GivenUpRuns;
use super::left_out::LeftOut;
use crate::analysis::curve::{GivenUpRun as GivenUpPoint, Point, Rung};
use crate::analysis::metric::{self, Get};
use crate::analysis::slo::SloTest;
use crate::analysis::stats::Value;
use crate::expand::{PlannedRun, Pool, RunId};
use crate::plan::Plan;
use crate::plan::model::search::Objective;
use crate::store::Store;
use crate::sweep::choose::{Chosen, Judge, Said, choose};

/// Decides over a results folder. What was read of a committed run is kept; a run without a result is looked for each time.
pub(super) struct Chooser<'a> {
    store: &'a Store,
    plan: &'a Plan,
    known: RefCell<HashMap<RunId, Answered>>,
    given_up: RefCell<GivenUpRuns>,
}

impl<'a> Chooser<'a> {
    /// Over the results in `store`, judged under `plan`.
    pub(super) fn new(store: &'a Store, plan: &'a Plan) -> Chooser<'a> {
        let chooser = Chooser { store, plan, known: RefCell::default(), given_up: RefCell::default() };
        chooser.look_again();
        chooser
    }

    /// Looks anew which runs were given up.
    fn look_again(&self) {
        *self.given_up.borrow_mut() = GivenUpRuns::of(self.store, Some(self.plan), &LeftOut::default());
    }

    /// How a pool stands.
    pub(super) fn choose(&self, pool: &Pool) -> Chosen {
        self.look_again();
        choose(pool, self)
    }
}

impl Judge for Chooser<'_> {
    fn is_finished(&self, run: &PlannedRun) -> bool {
        if self.known.borrow().contains_key(&run.id) {
            return true;
        }
        // One that is damaged or cannot be read is asked for again; what becomes of it `resume` decides.
        match answers::answer(self.store, run, self.plan) {
            Ok(Some((_, answered))) => {
                self.known.borrow_mut().insert(run.id, answered);
                true
            }
            Ok(None) | Err(_) => self.given_up.borrow().get(run).is_some(),
        }
    }

    fn said(&self, runs: &[&PlannedRun], of: Objective) -> Said {
        let (known, given_up) = (self.known.borrow(), self.given_up.borrow());
        let abandoned: Vec<_> =
            runs.iter().filter(|run| !known.contains_key(&run.id)).filter_map(|run| given_up.get(run)).collect();
        let labels: Vec<_> = abandoned.iter().map(|found| found.labels()).collect();
        let answered: Vec<(&str, &Answered)> =
            runs.iter().filter_map(|run| Some((&*run.sweep, known.get(&run.id)?))).collect();
        let measured = answered.iter().map(|(sweep, answered)| Point::Measured(answered.on_curve(sweep)));
        let lost = abandoned.iter().zip(&labels).map(|(found, labels)| {
            let sweep = &*runs[0].sweep;
            Point::GivenUp(GivenUpPoint {
                sweep,
                labels,
                given_up: &found.given_up,
                objective: self.plan.slo.is_some(),
            })
        });
        let rung = Rung::of(0.0, measured.chain(lost));
        let costs: Option<Vec<f64>> =
            rung.runs.iter().map(|run| run.plan_metrics.cost_per_million_output_tokens).collect();
        let judged = rung.judged();
        let limit = self.plan.slo.as_ref().and_then(|slo| slo.cost_per_million);
        let is_cost = of == Objective::CostPerMillion;
        let over_limit = |answered: &Answered| {
            Some(answered.plan_metrics.cost_per_million_output_tokens? / limit?.to_f64()).filter(|_| is_cost)
        };
        let pressures = answered.iter().filter_map(|(_, answered)| match is_cost {
            true => over_limit(answered),
            false => pressure(answered, of),
        });
        Said {
            answer: match is_cost {
                true => judged.and_then(|judged| judged.cost),
                false => judged.and_then(|_| rung.serves(|limit| of.has(limit.metric))),
            },
            is_saturated: rung.is_saturated(),
            is_failed: rung.has_failed() || rung.is_rejected(),
            cost: costs.and_then(|costs| costs.into_iter().reduce(f64::max)),
            pressure: pressures.reduce(f64::max),
            requests: answered.iter().map(|(_, answered)| answered.metrics.counts.requests).sum(),
        }
    }
}

/// The observed percentile over its limit, the largest over the limits of an objective.
fn pressure(answered: &Answered, objective: Objective) -> Option<f64> {
    let of = |test: &SloTest| {
        let Get::Summary(get) = metric::get(metric::find(test.metric)?) else { return None };
        let observed = match get(&answered.metrics).percentile(test.percentile).value()? {
            Value::Exact(observed) => observed,
            Value::AtLeast(_) | Value::Failed => f64::INFINITY,
            Value::AtMost(_) => return None,
        };
        Some(observed / test.limit.millis())
    };
    answered.slo.iter().filter(|test| objective.has(test.metric)).filter_map(of).reduce(f64::max)
}
