//! Checks of references to results of earlier sweeps: the earlier sweeps must exist, and must provide the
//! result with one value for each cell that uses it.

use super::checker::{Checker, out_of_range, steps};
use crate::metrics::Unit;
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::diagnostic::suggest;
use crate::plan::matrix::fields::TakenLoad;
use crate::plan::model::compare::MetricName;
use crate::plan::model::gate::{AskedMetric, Bound, Gate, SkipIf};
use crate::plan::model::matrix::Condition;
use crate::plan::model::plan::Plan;
use crate::plan::model::search::Objective;
use crate::plan::model::sweep::Sweep;
use crate::plan::model::table::Table;
use crate::plan::model::take::{SweepMetric, Take};
use crate::plan::text::tree::Step;

/// The error for a reference to a metric that the sweep `from` does not have, with the reason.
fn has_none(from: &str, metric: AskedMetric, why: &str, remedy: String) -> Diagnostic {
    Diagnostic::new(Code::WrongValue, format!("sweep `{from}` has no `{metric}`: {why}")).remedy(remedy)
}

/// Why the search of a sweep covers only a part of the plan's objective, with the remedy; `None` if it covers
/// the whole objective, or if there is no search.
fn searches_for_a_part(plan: &Plan, from: &str, source: &Sweep) -> Option<(String, String)> {
    let (search, slo) = source.search.as_ref().zip(plan.slo.as_ref())?;
    if search.meets.0.is_empty() || search.answers_all_of(slo) {
        return None;
    }
    let asked: Vec<&str> = search.objectives(Some(slo)).into_iter().map(Objective::name).collect();
    let limited: Vec<&str> = Objective::latencies_of(slo).into_iter().map(Objective::name).collect();
    let (asked, limited) = (asked.join(" and "), limited.join(" and "));
    let why = format!("its search only covers {asked}, but the plan's `slo` limits {limited}");
    Some((why, format!("in the search of `{from}`, write `meets: each`, or add `slo` to `meets`")))
}

impl Checker<'_> {
    /// Checks an axis value that is taken from the result of an earlier sweep, as far as this is possible
    /// without that sweep.
    pub(super) fn taken_value(&mut self, at: &[Step], axis: &str, take: &Take) {
        let Take { from, take: metric, value: _, over, uses, times } = take;
        if *axis != *metric.axis() {
            let message =
                format!("`{}` of a sweep is a value of axis `{}`, not of `{axis}`", metric.name(), metric.axis());
            let other = SweepMetric::ALL.into_iter().find(|metric| metric.axis() == axis);
            let remedy = match other {
                Some(other) => {
                    format!("write `take: {}`, or write the value on axis `{}`", other.name(), metric.axis())
                }
                None => {
                    format!("only loads can be taken from other sweeps: write the value on axis `{}`", metric.axis())
                }
            };
            return self
                .report(&[at, &steps!["take"]].concat(), Diagnostic::new(Code::AxisValue, message).remedy(remedy));
        }
        self.outside(at, "times", "a number above 0", Some(times).filter(|times| !times.is_positive()));
        if uses.is_some() && over.is_empty() {
            let message = "`use` selects one of several values, but without `over` each cell takes only one";
            let remedy = format!(
                "write, for example, `over: endpoint` to combine the values that `{from}` found for each endpoint; or \
                 remove `use`"
            );
            self.report_key(&[at, &steps!["use"]].concat(), Diagnostic::new(Code::NoEffect, message).remedy(remedy));
        }
    }

    /// Checks the references of sweeps to results of earlier sweeps. Matrices must be normalized.
    pub(super) fn questions(&mut self, plan: &Plan, sweeps: &Table<Sweep>) {
        for (name, sweep) in sweeps {
            for taken in sweep.takes() {
                let at = [&steps!["sweeps", name.as_str()][..], &taken.place].concat();
                self.take(plan, (name, sweep), &taken, &at, sweeps);
            }
            if let Some(skip) = &sweep.skip_if {
                self.skip_if(plan, (name, sweep), skip, sweeps);
            }
            if let Some(gate) = &sweep.gate {
                self.gate(plan, name, gate, sweeps);
            }
        }
    }

    fn take(
        &mut self,
        plan: &Plan,
        (name, sweep): (&str, &Sweep),
        taken: &TakenLoad,
        at: &[Step],
        sweeps: &Table<Sweep>,
    ) {
        let Take { from, take, over, .. } = taken.take;
        // A load that was put on the wrong axis has already been reported.
        if taken.axis != take.axis() {
            return;
        }
        let Some(source) = self.answering(plan, (at, "from", "take"), (name, from, (*take).into()), sweeps) else {
            return;
        };
        for (index, axis) in over.0.iter().enumerate() {
            let at = [at, &steps!["over", index]].concat();
            if *axis == *take.axis() || !source.fields().contains(&axis.as_str()) {
                let message = format!("`{from}` has no axis `{axis}` over which to combine values");
                let others = others(source, *take);
                let remedy = match suggest::nearest(axis, others.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        format!("its axes are {}", suggest::choices(others.iter().copied()).replace(" or ", " and "))
                    }
                };
                self.report(&at, Diagnostic::new(Code::UnknownAxis, message).remedy(remedy));
            }
        }
        for axis in others(source, *take).into_iter().filter(|axis| !over.0.iter().any(|over| over == axis)) {
            if !sweep.fields().contains(&axis) {
                let values = source.values(axis);
                if values.len() > 1 {
                    let message = format!(
                        "`{from}` finds a load for each of its {} values of `{axis}`, but sweep `{name}` has no such \
                         axis",
                        values.len()
                    );
                    let remedy =
                        format!("write `over: {axis}` and `use: min` in this table, or add `{axis}` to the matrix");
                    self.report(at, Diagnostic::new(Code::MissingAxis, message).remedy(remedy));
                }
                continue;
            }
            self.has_value((name, sweep), (from, source), axis, taken.when);
        }
    }

    /// Reports values of an axis that the referenced sweep does not run, and for which it therefore has no
    /// result.
    fn has_value(
        &mut self,
        (name, sweep): (&str, &Sweep),
        (from, source): (&str, &Sweep),
        axis: &str,
        when: Option<&Condition>,
    ) {
        let found = source.values(axis);
        let concerned = when.and_then(|when| when.get(axis));
        for (value, place) in sweep.written(axis) {
            if found.contains(&value) || concerned.is_some_and(|filter| !filter.matches(&value)) {
                continue;
            }
            let message = format!(
                "sweep `{name}` needs a result of `{from}` for {axis} `{value}`, but `{from}` does not run that value"
            );
            let remedy = format!("add `{value}` to axis `{axis}` of `{from}`, or remove that value here");
            let at = [&steps!["sweeps", name][..], &place].concat();
            self.report(&at, Diagnostic::new(Code::UnknownName, message).remedy(remedy));
        }
    }

    fn skip_if(&mut self, plan: &Plan, (name, sweep): (&str, &Sweep), skip: &SkipIf, sweeps: &Table<Sweep>) {
        let at = steps!["sweeps", name, "skip_if"];
        self.bounds_of_values(&at, skip.metric, ("below", skip.below), ("above", skip.above));
        if let (Some(below), Some(above)) = (skip.below, skip.above)
            && below.to_f64() > above.to_f64()
        {
            let message = format!("every value is below {below} or above {above}, so the sweep is always skipped");
            let remedy = "write the smaller number as `below`";
            self.report(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
        let question = (name, skip.sweep.as_str(), skip.metric);
        let Some(source) = self.answering(plan, (&at, "sweep", "metric"), question, sweeps) else { return };
        let is_shared = |axis: &&str| !skip.metric.is_over(axis) && sweep.fields().contains(axis);
        for axis in source.fields().into_iter().filter(is_shared) {
            self.has_value((name, sweep), (&skip.sweep, source), axis, None);
        }
    }

    fn gate(&mut self, plan: &Plan, name: &str, gate: &Gate, sweeps: &Table<Sweep>) {
        let at = steps!["sweeps", name, "gate"];
        self.bounds_of_values(&at, gate.metric, ("at_least", gate.at_least), ("at_most", gate.at_most));
        if let (Some(least), Some(most)) = (gate.at_least, gate.at_most)
            && least.to_f64() > most.to_f64()
        {
            let message = format!("no value is at least {least} and at most {most}");
            let remedy = "write the smaller number as `at_least`";
            self.report(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
        self.answering(plan, (&at, "sweep", "metric"), (name, gate.sweep.as_str(), gate.metric), sweeps);
    }

    /// Reports a `gate` or `skip_if` without a bound, and bounds that no value of the metric can have.
    fn bounds_of_values(
        &mut self,
        at: &[Step],
        metric: AskedMetric,
        low: (&str, Option<Bound>),
        high: (&str, Option<Bound>),
    ) {
        let (unit, example) = (metric.unit(), written_in(metric.unit()));
        if low.1.is_none() && high.1.is_none() && !self.is_given(at, low.0) && !self.is_given(at, high.0) {
            let message = format!("a bound is missing: neither `{}` nor `{}` is set", low.0, high.0);
            let remedy = format!("write {}: {example}, for example", low.0);
            self.report_key(at, Diagnostic::new(Code::MissingField, message).remedy(remedy));
        }
        for (word, bound) in [low, high] {
            let Some(bound) = bound else { continue };
            let at = [at, &steps![word]].concat();
            if !bound.is_in(unit) {
                let message = format!("`{metric}` is a {}, but `{bound}` is not", named(unit));
                let remedy = format!("write {word}: {example}, for example");
                self.report(&at, Diagnostic::new(Code::WrongValue, message).remedy(remedy));
            } else if !bound.is_positive() {
                self.report(&at, out_of_range(word, "a number above 0", bound));
            }
        }
    }

    /// Returns the sweep `from`, whose metric the sweep `name` reads. `None` if `from` does not exist, is the
    /// same sweep, or cannot have the metric; the error is reported unless it already was. `sweep_word` and
    /// `metric_word` are the keys of the sweep and of the metric in the table at `at`.
    fn answering<'s>(
        &mut self,
        plan: &Plan,
        (at, sweep_word, metric_word): (&[Step], &str, &str),
        (name, from, metric): (&str, &str, AskedMetric),
        sweeps: &'s Table<Sweep>,
    ) -> Option<&'s Sweep> {
        let place = [at, &steps![sweep_word]].concat();
        let known = self.declared("sweeps");
        if !known.contains(&from) {
            let others: Vec<&str> = known.iter().copied().filter(|known| *known != name).collect();
            self.unknown_name(&place, "sweep", from, &others);
            return None;
        }
        // A reference of a sweep to itself was reported as a cycle.
        let source = sweeps.get(from).filter(|_| from != name)?;
        let node = self.tree.walk(&steps!["sweeps", from]).node;
        if node.is_damaged() {
            return None;
        }
        if source.optional && sweeps.get(name).is_some_and(|asking| !asking.optional) {
            let message =
                format!("sweep `{from}` is optional, so the budget may skip it and leave `{name}` without a value");
            let remedy = format!("make `{name}` optional too, or remove `optional` from `{from}`");
            self.report(&place, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
        let metric_at = [at, &steps![metric_word]].concat();
        let is_answered = match metric {
            AskedMetric::Load(load) => self.finds_load(plan, &metric_at, (from, source), load),
            AskedMetric::Measured(name) => self.measures(plan, &metric_at, (from, source), name),
        };
        is_answered.then_some(source)
    }

    /// Whether a sweep has a measured metric; if not, reports why.
    fn measures(&mut self, plan: &Plan, metric_at: &[Step], (from, source): (&str, &Sweep), name: MetricName) -> bool {
        if source.chooses_runs() {
            let why = "which of its runs are executed depends on their results".to_owned();
            // A sweep with `optimize` does not find a highest load, so the remedy does not suggest one.
            let asked = SweepMetric::ALL.into_iter().find(|load| source.fields().contains(&load.axis()));
            let remedy = match asked.filter(|_| source.optimize.is_none()) {
                Some(load) => {
                    format!(
                        "use the sweep's {}, or another sweep that runs exactly the cells of its matrix",
                        load.name()
                    )
                }
                None => "use a sweep that runs exactly the cells of its matrix".to_owned(),
            };
            self.report(metric_at, has_none(from, AskedMetric::Measured(name), &why, remedy));
            return false;
        }
        if let Some((why, remedy)) = self.never_measured(plan, (from, source), name) {
            let message = format!("sweep `{from}` never has `{name}`: {why}");
            self.report(metric_at, Diagnostic::new(Code::WrongValue, message).remedy(remedy));
            return false;
        }
        true
    }

    /// Whether a sweep finds the highest load that `metric` describes; if not, reports why.
    fn finds_load(
        &mut self,
        plan: &Plan,
        metric_at: &[Step],
        (from, source): (&str, &Sweep),
        metric: SweepMetric,
    ) -> bool {
        let axis = metric.axis();
        // An invalid search has no loads and has already been reported.
        let has_load = SweepMetric::ALL.into_iter().any(|load| source.fields().contains(&load.axis()));
        if !has_load && self.is_given(&steps!["sweeps", from], "search") {
            return false;
        }
        let wrong = if !source.fields().contains(&axis) {
            let other = SweepMetric::ALL.into_iter().find(|other| source.fields().contains(&other.axis()));
            let remedy = match other {
                Some(other) => format!("use the sweep's {}, or another sweep", other.name()),
                None => format!("use a sweep that runs several loads: one with `search`, or with a list of `{axis}`"),
            };
            Some((format!("it has no axis `{axis}`"), remedy))
        } else if metric == SweepMetric::MaxBatchSizeUnderSlo && source.fields().contains(&"qps") {
            let remedy = format!("use the sweep's {}", SweepMetric::MaxQpsUnderSlo.name());
            Some(("because it sets a rate, its batch sizes are only caps".to_owned(), remedy))
        } else if plan.slo.is_none() && !self.is_given(&[], "slo") {
            let remedy = "add an objective at the top of the plan, like slo: { ttft: { p99: 500ms } }".to_owned();
            Some(("the plan has no `slo`".to_owned(), remedy))
        } else {
            searches_for_a_part(plan, from, source)
        };
        let Some((why, remedy)) = wrong else { return true };
        self.report(metric_at, has_none(from, metric.into(), &why, remedy));
        false
    }

    /// The place where a sweep refers to the result of `other`; `None` if it does not.
    pub(super) fn place_of_question(&self, name: &str, sweep: &Sweep, other: &str) -> Option<Vec<Step>> {
        let of_sweep = |place: &[Step]| [&steps!["sweeps", name][..], place].concat();
        let taken = sweep.takes().find(|taken| taken.take.from == other).map(|taken| taken.place);
        let skip = sweep.skip_if.iter().filter(|skip| skip.sweep == other).map(|_| steps!["skip_if", "sweep"].to_vec());
        let gate = sweep.gate.iter().filter(|gate| gate.sweep == other).map(|_| steps!["gate", "sweep"].to_vec());
        taken.into_iter().chain(skip).chain(gate).map(|place| of_sweep(&place)).next()
    }

    /// Reports comparisons in which each arm takes its own load from an earlier sweep.
    pub(super) fn loads_of_arms(&mut self, plan: &Plan) {
        for (name, sweep) in &plan.sweeps {
            let Some(compare) = plan.compared(sweep) else { continue };
            for TakenLoad { take, place, .. } in sweep.takes() {
                let has_own = |source: &Sweep| source.fields().contains(&compare.by.as_str());
                if take.over.0.contains(&compare.by) || !plan.sweeps.get(&take.from).is_some_and(has_own) {
                    continue;
                }
                let by = &compare.by;
                let message = format!(
                    "sweep `{name}` is compared by `{by}`, but each {by} takes the load that `{}` found for it, so \
                     nothing can be compared at equal load",
                    take.from
                );
                let remedy = format!(
                    "write `over: {by}` and `use: min` in this table, so that all arms get a load that each of them \
                     can sustain"
                );
                let at = [&steps!["sweeps", name.as_str()][..], &place].concat();
                self.report(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
            }
        }
    }
}

/// The axes of a sweep, except the axis of the load `metric`.
fn others(source: &Sweep, metric: SweepMetric) -> Vec<&str> {
    source.fields().into_iter().filter(|field| *field != metric.axis()).collect()
}

/// The word for a bound in this unit, such as `time`.
fn named(unit: Unit) -> &'static str {
    match unit {
        Unit::Millis => "time",
        Unit::Share => "share",
        _ => "number",
    }
}

/// An example of a bound in this unit, such as `500ms`.
fn written_in(unit: Unit) -> &'static str {
    match unit {
        Unit::Millis => "500ms",
        Unit::Share => "1%",
        _ => "2",
    }
}
