//! Finds references to metrics that a sweep never has, or never has with an interval. Such a reference can
//! never be resolved, whatever is measured.

use super::checker::Checker;
use crate::metrics;
use crate::plan::model::compare::MetricName;
use crate::plan::model::objective::Slo;
use crate::plan::model::plan::Plan;
use crate::plan::model::search::Objective;
use crate::plan::model::sweep::Sweep;

impl Checker<'_> {
    /// Returns why the sweep `from` can never provide a metric, with the remedy; `None` if it may
    /// provide the metric.
    pub(super) fn never_measured(
        &self,
        plan: &Plan,
        (from, source): (&str, &Sweep),
        metric: MetricName,
    ) -> Option<(String, String)> {
        let key = metric.key;
        let is_of_start = key.starts_with("start_");
        if is_of_start != source.measures_start() {
            let (why, remedy) = match is_of_start {
                true => ("it does not measure the start of a server", "use a sweep with `measure: start`"),
                false => (
                    "it only measures the start of a server",
                    "use `start_ready`, or another sweep that measures a load",
                ),
            };
            return Some((why.to_owned(), remedy.to_owned()));
        }
        let limits_latency = |slo: &Slo| !Objective::latencies_of(slo).is_empty();
        let has_limits = plan.goodput.is_some() || plan.slo.as_ref().is_some_and(limits_latency);
        let is_given = self.is_given(&[], "slo") || self.is_given(&[], "goodput");
        if matches!(key, "goodput" | "goodput_share") && !has_limits && !is_given {
            let remedy = "add limits at the top of the plan, like goodput: { ttft: 500ms, tpot: 50ms }";
            return Some(("the plan does not define which requests are good".to_owned(), remedy.to_owned()));
        }
        let is_priced = matches!(key, "cost_per_million_output_tokens" | "tokens_per_unit_of_money");
        if let Some(endpoint) = self.unpriced(plan, source).filter(|_| is_priced) {
            let remedy = format!("add hardware: {{ price_per_hour: 31.20 }} to endpoint `{endpoint}`");
            return Some((format!("endpoint `{endpoint}` has no price"), remedy));
        }
        if source.repeats.at_most == 1 && !has_interval_of_one_run(key) {
            let why = "it runs each cell once, and a single run yields no interval of this metric that could be \
                       compared with a bound";
            let remedy = format!(
                "write `repeats: 5` in `{from}`, or use a metric for which a single run yields an interval: \
                 error_share, goodput_share, or a percentile like ttft_p99"
            );
            return Some((why.to_owned(), remedy));
        }
        None
    }
}

/// Whether a single run gives a 95 % interval for a metric. Only percentiles over requests or inter-token
/// gaps, shares of requests, and `jitter_ratio` have one.
fn has_interval_of_one_run(key: &str) -> bool {
    let is_distribution = metrics::find(key).is_some_and(|metric| metric.kind.is_distribution());
    is_distribution || matches!(key, "error_share" | "goodput_share" | "jitter_ratio")
}
