//! Rules about runs with too few requests for the requested percentiles.

use super::super::expect::Expect;
use super::super::finding::Finding;
use super::super::view::{Rung, SweepView, View, steps};
use super::{count, rate_above, time_for};
use crate::analysis::{comparison, quantile};
use crate::expand::Load;
use crate::metrics::{self, Kind, Of};
use crate::plan::{AskedMetric, MetricName, Percentile, Plan, Step};
use crate::units::Nanos;

/// The percentile that is assumed if a plan names none.
const DEFAULT: Percentile = Percentile::P99;

/// M005: there are fewer requests than the highest requested percentile needs for its interval.
pub(crate) fn few_requests(view: &View, sweep: &SweepView) -> Option<Finding> {
    let promised = promised(view.plan);
    let percentile = percentile(view, sweep);
    let need = quantile::need(percentile) as f64;
    // If every load with too few requests cannot even be decided, M019 reports them all.
    let decided = match promised.iter().any(|(promised, _)| *promised == percentile) {
        true => quantile::need_to_decide(percentile) as f64,
        false => 0.0,
    };
    Short::of(sweep, |expected| (decided..need).contains(&expected))?;
    let short = Short::of(sweep, |expected| expected < need)?;
    Some(sweep.finding(
        short.rung.at.clone(),
        format!("{} needs {need} requests, but {}", percentile.name(), short.says()),
        remedy(view, sweep),
    ))
}

/// M019: a service level objective limits a percentile that cannot be decided with so few requests.
pub(crate) fn undecidable_slo(view: &View, sweep: &SweepView) -> Option<Finding> {
    // If several limits apply to the highest percentile, the first of them is reported.
    let (percentile, at) = promised(view.plan).into_iter().rev().max_by_key(|(percentile, _)| *percentile)?;
    let need = quantile::need_to_decide(percentile) as f64;
    let metric = at[1].to_string();
    let short = Short::of(sweep, |expected| expected < need)?;
    let ends = match sweep.sweep.search {
        Some(_) => {
            "; a search begins at its lightest load, and ends without a result if its runs are too short to decide \
             whether the objective is met"
        }
        None => "",
    };
    Some(sweep.finding(
        at,
        format!(
            "{metric} {} needs at least {need} requests to be shown to hold, but {}{ends}",
            percentile.name(),
            short.says()
        ),
        remedy(view, sweep),
    ))
}

/// M032: a `gate` or `skip_if` tests a percentile for which the runs of the tested sweep will have too
/// few requests.
pub(crate) fn undecidable_gate(view: &View, sweep: &SweepView) -> Option<Finding> {
    let gate = sweep.sweep.gate.iter().map(|gate| ("gate", &gate.sweep, gate.metric));
    let skip = sweep.sweep.skip_if.iter().map(|skip| ("skip_if", &skip.sweep, skip.metric));
    gate.chain(skip).find_map(|(word, asked, metric)| {
        let AskedMetric::Measured(name) = metric else { return None };
        let need = needed(name)? as f64;
        let source = view.sweeps.iter().find(|source| source.name == asked)?;
        let short = Short::of(source, |expected| expected < need)?;
        let message = format!("`{name}` of sweep `{asked}` needs {need} requests in a run, but {}", short.says());
        Some(sweep.finding(
            steps!["sweeps", sweep.name, word, "metric"],
            message,
            windows([(source, need)].into_iter()),
        ))
    })
}

/// Minimum number of requests in a run for the metric's percentile (its median if it names none) and the
/// interval of the percentile; `None` if the metric is not a distribution.
fn needed(name: MetricName) -> Option<u64> {
    match metrics::find(name.key)?.kind {
        Kind::Distribution { of: Of::Requests, .. } => Some(quantile::need(name.or_median().percentile?)),
        Kind::Distribution { of: Of::Gaps, fewest_requests, .. } => Some(fewest_requests),
        Kind::Count | Kind::Single | Kind::OfPlan => None,
    }
}

/// The percentiles that the plan's `slo` limits, each with its path.
fn promised(plan: &Plan) -> Vec<(Percentile, Vec<Step>)> {
    let Some(slo) = &plan.slo else { return Vec::new() };
    let metrics = [("ttft", &slo.ttft), ("itl", &slo.itl), ("tpot", &slo.tpot), ("e2e", &slo.e2e)];
    let limits = |(metric, limits): (&'static str, &indexmap::IndexMap<Percentile, _>)| {
        let limit = |percentile: &Percentile| (*percentile, steps!["slo", metric, percentile.name()]);
        limits.keys().map(limit).collect::<Vec<_>>()
    };
    metrics.into_iter().flat_map(limits).collect()
}

/// The rungs of a sweep for which too few requests are expected.
struct Short<'v> {
    /// The rung with the fewest expected requests.
    rung: &'v Rung,
    expect: Expect,
    /// The number of rungs with too few requests, and the number of all rungs.
    counts: (usize, usize),
}

impl<'v> Short<'v> {
    fn of(sweep: &'v SweepView, is_short: impl Fn(f64) -> bool) -> Option<Short<'v>> {
        let expect = Expect::of(sweep);
        let measured = |rung: &&Rung| expect.measured(rung);
        let short: Vec<&Rung> = sweep.rungs.iter().filter(|rung| is_short(measured(rung))).collect();
        let rung = short.iter().min_by(|a, b| measured(a).total_cmp(&measured(b))).copied()?;
        let counts = (short.len(), sweep.rungs.len());
        Some(Short { rung, expect, counts })
    }

    /// Formats the shortage, as in "only 120 are expected at `qps: 1` in 2m; too few requests are
    /// expected at 2 of 5 loads".
    fn says(&self) -> String {
        let measure = self.rung.phases.measure;
        let window = measure.at_most.unwrap_or(measure.duration).spoken();
        let others = match self.counts {
            (1, _) => String::new(),
            (some, all) if some == all => format!("; too few are expected at each of the {all} loads"),
            (some, all) => format!("; too few requests are expected at {some} of {all} loads"),
        };
        let expected = count(self.expect.measured(self.rung));
        format!(
            "only {expected} are expected at `{}` in {window}{}{others}",
            self.rung.written(),
            self.expect.assumption(self.rung)
        )
    }
}

/// The remedy that gives the runs of a sweep enough requests for its percentile and for the percentiles of
/// all sweeps with the same `measure`. M005 and M019 give the same remedy, and applying it resolves both.
fn remedy(view: &View, sweep: &SweepView) -> String {
    let own = |sweep: &SweepView| sweep.sweep.phases.measure.is_some();
    let together = |other: &&SweepView| other.name == sweep.name || (!own(sweep) && !own(other));
    windows(view.sweeps.iter().filter(together).map(|one| (one, quantile::need(percentile(view, one)) as f64)))
}

/// The remedy that gives the runs of each sweep in `sweeps` the number of requests that is paired with it.
fn windows<'v, 'p: 'v>(sweeps: impl Iterator<Item = (&'v SweepView<'p>, f64)>) -> String {
    let (mut duration, mut time, mut at_most) = (Nanos::from_secs(0), Nanos::from_secs(0), Nanos::from_secs(0));
    let (mut most, mut is_closed) = (0.0_f64, false);
    for (one, need) in sweeps {
        let expect = Expect::of(one);
        for rung in one.rungs.iter().filter(|rung| expect.measured(rung) < need) {
            let rate = expect.rate(rung);
            let closed = matches!(rung.load, Load::Closed { .. });
            duration = duration.max(rung.phases.measure.duration);
            time = time.max(time_for(need, rate));
            // A closed loop gets twice the time, because the server may be slower than assumed.
            at_most = at_most.max(time_for(if closed { 2.0 * need } else { need }, rate));
            (most, is_closed) = (most.max(need), is_closed || closed);
        }
    }
    let (time, at_most) = (time.max(duration), at_most.max(duration));
    if is_closed {
        // The duration is an assumption, so the window also gets the number of requests that it must
        // contain.
        return format!(
            "write `phases: {{ measure: {{ for: {duration}, min_requests: {most}, at_most: {at_most} }} }}`"
        );
    }
    format!("write `phases: {{ measure: {time} }}`, or `qps: {}`, or more", rate_above(most / duration.secs()))
}

/// The highest percentile that the plan's `slo` and the sweep's `compare` use, including the percentiles
/// that `compare` reads by default.
fn percentile(view: &View, sweep: &SweepView) -> Percentile {
    let is_open = sweep.rungs.iter().any(|rung| matches!(rung.load, Load::Open { .. }));
    let compared = sweep.compare.iter().flat_map(|compare| comparison::expand(&compare.metrics.0, is_open));
    let compared = compared.filter_map(|metric| metric.percentile);
    let promised = promised(view.plan);
    compared.chain(promised.iter().map(|(percentile, _)| *percentile)).max().unwrap_or(DEFAULT)
}
