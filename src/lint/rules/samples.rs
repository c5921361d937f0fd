//! Runs with too few requests for what is asked of them.

use super::super::expect::Expect;
use super::super::view::{Rung, SweepView, View, steps};
use super::super::{Finding, Scope};
use super::{count, rate_above, time_for};
use crate::analysis::quantile;
use crate::expand::Load;
use crate::plan::{Percentile, Plan, Step};

/// The percentile that is meant where a plan names none.
const DEFAULT: Percentile = Percentile::P99;

/// M005: fewer requests than the highest percentile that is asked for needs for its interval.
pub fn few_requests(view: &View) -> Vec<Finding> {
    let promised = promised(view.plan);
    let finding = |sweep: &SweepView| {
        let compared =
            sweep.compare.iter().flat_map(|compare| &compare.metrics.0).filter_map(|metric| metric.percentile);
        let percentile = compared.chain(promised.iter().map(|(percentile, _)| *percentile)).max().unwrap_or(DEFAULT);
        let need = quantile::need(percentile) as f64;
        // Of a promise that cannot even be decided another rule speaks.
        let decided = match promised.iter().any(|(promised, _)| *promised == percentile) {
            true => quantile::need_to_decide(percentile) as f64,
            false => 0.0,
        };
        let short = Short::of(sweep, |expected| (decided..need).contains(&expected))?;
        Some(Finding {
            scope: Scope::Sweep(sweep.name.to_owned()),
            at: short.rung.at.clone(),
            message: format!("{} needs {need} requests, {}", percentile.name(), short.says()),
            remedy: short.remedy(need),
        })
    };
    view.sweeps.iter().filter_map(finding).collect()
}

/// M019: a service level objective about a percentile that cannot be decided.
pub fn undecidable_slo(view: &View) -> Vec<Finding> {
    // Of several about one percentile the first.
    let Some((percentile, at)) = promised(view.plan).into_iter().rev().max_by_key(|(percentile, _)| *percentile) else {
        return Vec::new();
    };
    let need = quantile::need_to_decide(percentile) as f64;
    let metric = at[1].to_string();
    let finding = |sweep: &SweepView| {
        let short = Short::of(sweep, |expected| expected < need)?;
        Some(Finding {
            scope: Scope::Sweep(sweep.name.to_owned()),
            at: at.clone(),
            message: format!(
                "whether {metric} {} holds takes {need} requests to decide, {}",
                percentile.name(),
                short.says()
            ),
            // Enough for its interval too.
            remedy: short.remedy(quantile::need(percentile) as f64),
        })
    };
    view.sweeps.iter().filter_map(finding).collect()
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

/// The rungs of a sweep that expect too few requests.
struct Short<'v> {
    /// The one that expects fewest.
    rung: &'v Rung,
    expect: Expect,
    /// How many there are, of how many.
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

    /// "`qps: 1` expects 120 in 120s; 2 of 5 loads expect too few".
    fn says(&self) -> String {
        let measure = self.rung.phases.measure;
        let window = measure.at_most.unwrap_or(measure.duration);
        let others = match self.counts {
            (1, _) => String::new(),
            (some, all) if some == all => format!("; all {all} loads expect too few"),
            (some, all) => format!("; {some} of {all} loads expect too few"),
        };
        let expected = count(self.expect.measured(self.rung));
        format!("`{}` expects {expected} in {window}{}{others}", self.rung.written(), self.expect.assumption(self.rung))
    }

    /// What makes them enough.
    fn remedy(&self, need: f64) -> String {
        let duration = self.rung.phases.measure.duration;
        let time = time_for(need, self.expect.rate(self.rung)).max(duration);
        match self.rung.load {
            Load::Open { .. } => {
                let rate = rate_above(need / duration.secs());
                format!("write phases: {{ measure: {time} }}, or qps of {rate} and more")
            }
            // How long it takes is an assumption, so the window is told what it is for.
            Load::Closed { .. } => {
                // Twice the time, because the server may be slower than assumed.
                let at_most = time_for(2.0 * need, self.expect.rate(self.rung)).max(duration);
                format!("write phases: {{ measure: {{ for: {duration}, min_requests: {need}, at_most: {at_most} }} }}")
            }
        }
    }
}
