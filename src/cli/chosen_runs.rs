//! Which runs searches and ladders request, and which repeats are no longer needed, decided from the
//! results folder.

use std::cell::RefCell;
use std::collections::HashMap;

use super::answers::{self, Answered};
use super::given_up::GivenUpRuns;
use super::left_out::LeftOut;
use crate::analysis::comparison::{RunValue, read};
use crate::analysis::curve::{GivenUpRun as GivenUpPoint, Ordinate, Point, Rung};
use crate::analysis::halving::Says as TrialSays;
use crate::analysis::metric::{self, Get};
use crate::analysis::quantile;
use crate::analysis::search::Short;
use crate::analysis::slo::{Answer, SloTest};
use crate::analysis::stats::{Estimate, Value};
use crate::analysis::verdict::State;
use crate::expand::{PlannedRun, Pool, RunId, Says, Series};
use crate::plan::model::search::Objective;
use crate::plan::{Aim, MetricName, Plan};
use crate::store::Store;
use crate::sweep::choose::{Chosen, Judge, Longer, Said, ServerStarted, Tried, choose};
use crate::sweep::endings::{CellStanding, Evidence, stand, tests};
use crate::sweep::found::Findings;

/// Decides, from a results folder, which runs are requested. Committed runs are read once and cached; a run
/// without a result is looked up each time.
pub(super) struct Chooser<'a> {
    store: &'a Store,
    plan: &'a Plan,
    known: RefCell<HashMap<RunId, Answered>>,
    starts: RefCell<HashMap<RunId, ServerStarted>>,
    given_up: RefCell<GivenUpRuns>,
}

impl<'a> Chooser<'a> {
    /// Creates a chooser that uses the results in `store` and judges them under `plan`.
    pub(super) fn new(store: &'a Store, plan: &'a Plan) -> Chooser<'a> {
        let chooser = Chooser {
            store,
            plan,
            known: RefCell::default(),
            starts: RefCell::default(),
            given_up: RefCell::default(),
        };
        chooser.look_again();
        chooser
    }

    /// Reads the list of given-up runs again.
    pub(super) fn look_again(&self) {
        *self.given_up.borrow_mut() = GivenUpRuns::of(self.store, Some(self.plan), &LeftOut::default());
    }

    /// Returns the state of a pool: the runs that it has requested, and the run that it requests next.
    pub(super) fn choose(&self, pool: &Pool) -> Chosen {
        self.look_again();
        choose(pool, self)
    }

    /// Returns the state of the cells of a series. `all` are the series of the plan, including this one; runs
    /// for which `is_open` returns true have yet to be measured.
    pub(super) fn stand(
        &self,
        series: &Series,
        all: &[Series],
        is_open: &dyn Fn(&PlannedRun) -> bool,
    ) -> Vec<CellStanding> {
        stand(series, tests(all, series), &Without { chooser: self, is_open })
    }

    /// Combines the finished runs of one load into a rung, and applies `make` to the rung.
    pub(super) fn with_rung<T>(&self, runs: &[&PlannedRun], make: impl FnOnce(&Rung) -> T) -> T {
        let (known, given_up) = (self.known.borrow(), self.given_up.borrow());
        let abandoned: Vec<_> =
            runs.iter().filter(|run| !known.contains_key(&run.id)).filter_map(|run| given_up.get(run)).collect();
        let labels: Vec<_> = abandoned.iter().map(|found| found.labels()).collect();
        let answered: Vec<(&str, &Answered)> =
            runs.iter().filter_map(|run| Some((&*run.sweep, known.get(&run.id)?))).collect();
        let measured = answered.iter().map(|(sweep, answered)| Point::Measured(answered.on_curve(sweep)));
        let objective = self.plan.slo.is_some();
        let lost = abandoned.iter().zip(&labels).map(|(found, labels)| {
            let sweep = &*runs[0].sweep;
            Point::GivenUp(GivenUpPoint { sweep, labels, given_up: &found.given_up, objective })
        });
        make(&Rung::of(0.0, measured.chain(lost)))
    }
}

/// A results folder in which some runs will be measured again. Until then, their results are ignored.
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

impl Findings for Chooser<'_> {
    fn measured(&self, runs: &[&PlannedRun], name: MetricName) -> Says {
        let ordinate = Ordinate::of_metric(name);
        self.with_rung(runs, |rung| {
            let count = rung.runs.len();
            let figure = match name.key {
                "error_share" => rung.error_share(),
                _ => rung.figure(&ordinate),
            };
            if let Some(figure) = figure {
                let ends = figure.ends.map(|ends| [ends.low, ends.high]);
                return Says::Measured { value: figure.value, ends, runs: count };
            }
            // The percentile falls among failed requests, so only a lower bound is known.
            if let Some(bound) = rung.at_least(&ordinate) {
                return Says::Measured { value: bound, ends: Some([bound, f64::INFINITY]), runs: count };
            }
            let of_run = rung.runs.iter().find_map(|run| match read(name, run.metrics, run.plan_metrics) {
                RunValue::Missing(why) => Some(why),
                _ => None,
            });
            let without =
                || rung.why_given_up().or_else(|| rung.why_left_out()).unwrap_or_else(|| "no run is valid".to_owned());
            Says::Nothing(format!("no {name}: {}", of_run.unwrap_or_else(without)))
        })
    }
}

impl Judge for Chooser<'_> {
    fn tried(&self, run: &PlannedRun, aim: Aim) -> Tried {
        let start = self.starts.borrow().get(&run.id).cloned();
        let without = |says, why| Tried { says, why: Some(why), start: start.clone() };
        let known = self.known.borrow();
        let Some(answered) = known.get(&run.id) else {
            let given_up = self.given_up.borrow();
            let why = given_up.get(run).map_or("no result".to_owned(), |found| found.given_up.to_string());
            return without(TrialSays::NotToChoose, why);
        };
        let verdict = &answered.verdict;
        if verdict.state == State::Invalid {
            let why = format!("invalid: {}", verdict.invalid().collect::<Vec<_>>().join(", "));
            let says = if verdict.is_of_client() { TrialSays::Nothing } else { TrialSays::NotToChoose };
            return without(says, why);
        }
        match aimed(answered, aim) {
            Some((value, deviation)) => Tried { says: TrialSays::Value { value, deviation }, why: None, start },
            None => without(TrialSays::NotToChoose, format!("no {} was measured", aim.name())),
        }
    }

    fn is_finished(&self, run: &PlannedRun) -> bool {
        if self.known.borrow().contains_key(&run.id) {
            return true;
        }
        // If a result is damaged or unreadable, its run is requested again; `resume` decides what happens to
        // the result.
        match answers::answer(self.store, run, self.plan) {
            Ok(Some((record, answered))) => {
                let start = record
                    .environment
                    .server_start
                    .as_ref()
                    .map(|start| ServerStarted { at: start.at.clone(), seconds: start.first_answer_ns as f64 / 1e9 });
                self.starts.borrow_mut().extend(start.map(|start| (run.id, start)));
                self.known.borrow_mut().insert(run.id, answered);
                true
            }
            Ok(None) | Err(_) => self.given_up.borrow().get(run).is_some(),
        }
    }

    fn said(&self, runs: &[&PlannedRun], of: Objective) -> Said {
        let is_cost = of == Objective::CostPerMillion;
        let rung = |rung: &Rung| {
            let costs: Option<Vec<f64>> =
                rung.runs.iter().map(|run| run.plan_metrics.cost_per_million_output_tokens).collect();
            let judged = rung.judged();
            Said {
                answer: match is_cost {
                    true => judged.and_then(|judged| judged.cost),
                    false => judged.and_then(|_| rung.serves(|limit| of.has(limit.metric))),
                },
                is_saturated: rung.is_saturated(),
                is_failed: rung.has_failed() || rung.is_rejected(),
                cost: costs.and_then(|costs| costs.into_iter().reduce(f64::max)),
                pressure: None,
                requests: 0,
                short: None,
                met: match is_cost {
                    true => judged.and_then(|judged| judged.cost).map(|cost| cost == Answer::Holds),
                    false => judged.and_then(|_| rung.met(|limit| of.has(limit.metric))),
                },
                needs: longer(rung, of).filter(|_| !is_cost),
            }
        };
        let said = self.with_rung(runs, rung);
        let known = self.known.borrow();
        let answered = || runs.iter().filter_map(|run| known.get(&run.id));
        let limit = self.plan.slo.as_ref().and_then(|slo| slo.cost_per_million);
        let over_limit =
            |answered: &Answered| Some(answered.plan_metrics.cost_per_million_output_tokens? / limit?.to_f64());
        let pressures = answered().filter_map(|answered| match is_cost {
            true => over_limit(answered),
            false => pressure(answered, of),
        });
        Said {
            pressure: pressures.reduce(f64::max),
            requests: answered().map(|answered| answered.metrics.counts.requests).sum(),
            short: answered().filter_map(|answered| short(answered, of)).min_by_key(|short| short.requests),
            ..said
        }
    }
}

/// Returns how much longer the runs of a load must be to show whether the load meets an objective.
fn longer(rung: &Rung, of: Objective) -> Option<Longer> {
    let times = rung.grows(|limit| of.has(limit.metric))?;
    Some(Longer { times, seconds: rung.more_seconds(|limit| of.has(limit.metric))? })
}

/// Returns the value for which the settings of a run's server are optimized, and the standard deviation of
/// that value; `None` if the value is unknown.
fn aimed(answered: &Answered, aim: Aim) -> Option<(f64, f64)> {
    let metrics = &answered.plan_metrics;
    match aim {
        Aim::Goodput => {
            let goodput = metrics.goodput.as_ref()?;
            let (missing, rate) = (goodput.missing, goodput.missing.n as f64 / answered.metrics.flow.seconds?);
            // One request that misses the objective and one that meets it are added, so that an observed
            // share of 0 or 1 does not yield a deviation of 0.
            let share = (missing.above as f64 + 1.0) / (missing.n as f64 + 2.0);
            let of_share = (share * (1.0 - share) / missing.worth.requests.max(1.0)).sqrt() * rate;
            // In an open loop, the arrivals are the same for all settings, so the rate adds no deviation. In
            // a closed loop, the server determines the rate.
            let is_open = answered.labels.qps.is_some();
            let value = goodput.share * rate;
            let of_rate = if is_open { 0.0 } else { value * unevenness(answered) };
            Some((value, of_share.hypot(of_rate)))
        }
        Aim::OutputThroughput => {
            let value = answered.metrics.flow.output_throughput?;
            Some((value, value * unevenness(answered)))
        }
        Aim::CostPerMillion => {
            let value = metrics.cost_per_million_output_tokens?;
            Some((value, value * unevenness(answered)))
        }
    }
}

/// Number of parts into which a window is divided to compare their mean throughput.
const PARTS: usize = 8;

/// Returns the standard deviation of a run's mean throughput as a share of that mean, estimated from the
/// means of parts of the window; 0 if the parts are too short.
fn unevenness(answered: &Answered) -> f64 {
    let of_window = answered.pulse.as_ref().and_then(|pulse| {
        let [from, to] = pulse.window;
        pulse.tokens_per_s.as_ref()?.get(from + 1..to.saturating_sub(1))
    });
    let Some(rates) = of_window.filter(|rates| rates.len() >= 2 * PARTS) else { return 0.0 };
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    let parts: Vec<f64> = rates.chunks_exact(rates.len() / PARTS).map(mean).collect();
    let whole = mean(&parts);
    let variance = parts.iter().map(|part| (part - whole).powi(2)).sum::<f64>() / (parts.len() - 1) as f64;
    if whole > 0.0 { (variance / parts.len() as f64).sqrt() / whole } else { 0.0 }
}

/// Returns the highest percentile of an objective for which a run has too few requests; `None` if the run
/// has enough requests for each.
fn short(answered: &Answered, objective: Objective) -> Option<Short> {
    let of = |test: &SloTest| {
        let Get::Summary(get) = metric::get(metric::find(test.metric)?) else { return None };
        let percentile = test.percentile;
        let (decides, needs) = (quantile::need_to_decide(percentile), quantile::need(percentile));
        match get(&answered.metrics).percentile(percentile) {
            // A run that could decide, but whose percentile is unknown, is repeated; both need a longer window.
            Estimate::NotEnough { n, .. } if n < decides => Some(Short { percentile, requests: n, needs }),
            Estimate::NotEnough { .. } | Estimate::Is { .. } => None,
        }
    };
    let limits = answered.slo.iter().filter(|test| objective.has(test.metric));
    limits.filter_map(of).max_by_key(|short| short.percentile)
}

/// Returns the largest ratio of an observed percentile to its limit, over the limits of an objective;
/// `None` if no percentile is known.
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
