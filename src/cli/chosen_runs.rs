//! Which runs of searches and ladders are asked for, and which repeats are needed no more, decided from what lies in the results folder.

use std::cell::RefCell;
use std::collections::HashMap;

use super::answers::{self, Answered};
use super::given_up::GivenUpRuns;
use super::left_out::LeftOut;
use crate::analysis::comparison::{RunValue, read};
use crate::analysis::curve::{GivenUpRun as GivenUpPoint, Point, Rung};
use crate::analysis::metric::{self, Get};
use crate::analysis::slo::SloTest;
use crate::analysis::stats::Value;
use crate::analysis::verdict::State;
use crate::expand::{PlannedRun, Pool, RunId, Series};
use crate::plan::{MetricName, Plan};
use crate::store::Store;
use crate::sweep::choose::{Chosen, Judge, Said, choose};
use crate::sweep::endings::{CellStanding, Evidence, stand, tests};

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
    pub(super) fn look_again(&self) {
        *self.given_up.borrow_mut() = GivenUpRuns::of(self.store, Some(self.plan), &LeftOut::default());
    }

    /// How a pool stands.
    pub(super) fn choose(&self, pool: &Pool) -> Chosen {
        self.look_again();
        choose(pool, self)
    }

    /// How the cells of a series stand, one of `all`; what `is_open` says of is yet to be measured.
    pub(super) fn stand(
        &self,
        series: &Series,
        all: &[Series],
        is_open: &dyn Fn(&PlannedRun) -> bool,
    ) -> Vec<CellStanding> {
        stand(series, tests(all, series), &Without { chooser: self, is_open })
    }
}

/// A results folder of which some runs are to be measured again: until then they say nothing.
struct Without<'a> {
    chooser: &'a Chooser<'a>,
    is_open: &'a dyn Fn(&PlannedRun) -> bool,
}

impl Evidence for Without<'_> {
    fn is_finished(&self, run: &PlannedRun) -> bool {
        !(self.is_open)(run) && self.chooser.is_finished(run)
    }

    fn value(&self, run: &PlannedRun, name: MetricName) -> Option<RunValue> {
        let known = self.chooser.known.borrow();
        let answered = known.get(&run.id).filter(|answered| answered.verdict.state != State::Invalid)?;
        Some(read(name, &answered.metrics, &answered.plan_metrics))
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

    fn said(&self, runs: &[&PlannedRun]) -> Said {
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
        Said {
            answer: rung.judged().and_then(|judged| judged.serves),
            is_saturated: rung.is_saturated(),
            is_failed: rung.has_failed() || rung.is_rejected(),
            cost: costs.and_then(|costs| costs.into_iter().reduce(f64::max)),
            pressure: answered.iter().filter_map(|(_, answered)| pressure(answered)).reduce(f64::max),
            requests: answered.iter().map(|(_, answered)| answered.metrics.counts.requests).sum(),
        }
    }
}

/// The observed percentile over its limit, the largest over the limits of the objective.
fn pressure(answered: &Answered) -> Option<f64> {
    let of = |test: &SloTest| {
        let Get::Summary(get) = metric::get(metric::find(test.metric)?) else { return None };
        let observed = match get(&answered.metrics).percentile(test.percentile).value()? {
            Value::Exact(observed) => observed,
            Value::AtLeast(_) | Value::Failed => f64::INFINITY,
            Value::AtMost(_) => return None,
        };
        Some(observed / test.limit.millis())
    };
    answered.slo.iter().filter_map(of).reduce(f64::max)
}
