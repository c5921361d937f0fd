//! The figures of a rung: each is computed over the rung's runs and has an interval with its basis.
//!
//! With one run, the interval covers only the variation within that run; with several runs, it also
//! includes the variation between runs.

use crate::analysis::Value;
use crate::analysis::binomial;
use crate::analysis::metric::{self, Get, Metric};
use crate::analysis::replicates::{Ends, IntervalKind, OverRuns};
use crate::analysis::worth::Evidence;
use crate::plan::{MetricName, Percentile, Slo};
use crate::units::Nanos;

use super::run::Run;

/// One figure of a curve and its source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ordinate {
    /// The name of the figure in tables, without unit.
    pub name: &'static str,
    /// Key of the metric in closed loops.
    closed: &'static str,
    /// Key of the metric in open loops.
    open: &'static str,
    /// The percentile; `None` for a run metric, or for the mean of a request metric.
    pub percentile: Option<Percentile>,
}

const fn of(name: &'static str) -> Ordinate {
    Ordinate { name, closed: name, open: name, percentile: None }
}

const fn at(name: &'static str, key: &'static str, percentile: Percentile) -> Ordinate {
    Ordinate { name, closed: key, open: key, percentile: Some(percentile) }
}

const fn due(name: &'static str, keys: [&'static str; 2], percentile: Percentile) -> Ordinate {
    Ordinate { name, closed: keys[0], open: keys[1], percentile: Some(percentile) }
}

const TTFT: [&str; 2] = ["ttft", "ttft_from_schedule"];
const E2E: [&str; 2] = ["e2e", "e2e_from_schedule"];

/// Every figure of a rung. In open loops, latencies are measured from the schedule.
pub static FIGURES: [Ordinate; 20] = [
    of("request_throughput"),
    of("output_throughput"),
    of("output_throughput_per_gpu"),
    of("achieved_rate"),
    of("achieved_concurrency"),
    Ordinate { name: "user_throughput_mean", closed: "user_throughput", open: "user_throughput", percentile: None },
    due("ttft_p50", TTFT, Percentile::P50),
    due("ttft_p95", TTFT, Percentile::P95),
    due("ttft_p99", TTFT, Percentile::P99),
    at("tpot_p50", "tpot", Percentile::P50),
    at("tpot_p99", "tpot", Percentile::P99),
    at("itl_p99", "itl", Percentile::P99),
    of("jitter_ratio"),
    at("lateness_p99", "lateness", Percentile::P99),
    due("e2e_p50", E2E, Percentile::P50),
    due("e2e_p95", E2E, Percentile::P95),
    due("e2e_p99", E2E, Percentile::P99),
    of("error_share"),
    of("goodput_share"),
    of("cost_per_million_output_tokens"),
];

/// Percentiles that an objective may limit and that are not in [`FIGURES`].
static FURTHER: [Ordinate; 15] = [
    due("ttft_p75", TTFT, Percentile::P75),
    due("ttft_p90", TTFT, Percentile::P90),
    due("ttft_p999", TTFT, Percentile::P999),
    at("tpot_p75", "tpot", Percentile::P75),
    at("tpot_p90", "tpot", Percentile::P90),
    at("tpot_p95", "tpot", Percentile::P95),
    at("tpot_p999", "tpot", Percentile::P999),
    at("itl_p50", "itl", Percentile::P50),
    at("itl_p75", "itl", Percentile::P75),
    at("itl_p90", "itl", Percentile::P90),
    at("itl_p95", "itl", Percentile::P95),
    at("itl_p999", "itl", Percentile::P999),
    due("e2e_p75", E2E, Percentile::P75),
    due("e2e_p90", E2E, Percentile::P90),
    due("e2e_p999", E2E, Percentile::P999),
];

/// One figure of a rung.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// The value of the figure: that of the only run, or the mean over several runs (geometric if
    /// the metric is a time, a rate or money).
    pub value: f64,
    /// The 95 % interval of the figure; `None` if none can be computed.
    pub ends: Option<Ends>,
    /// The values of the runs if there are exactly two, the lower value first. An interval from two
    /// values is almost meaningless, so reports show these instead. `None` otherwise, and for metrics
    /// that are numbers of requests.
    pub pair: Option<[f64; 2]>,
    /// Whether the percentile is computed from few samples in any of the runs.
    pub few_samples: bool,
}

impl Figure {
    /// Returns the range of the figure's error bar: its interval or, for two runs, the range between the two
    /// values.
    pub fn span(&self) -> Option<[f64; 2]> {
        self.pair.or(self.ends.map(|ends| [ends.low, ends.high]))
    }
}

impl Ordinate {
    /// Returns the objective's limit on this figure; `None` if the figure is not a percentile of a
    /// latency, or if the objective does not limit it.
    pub fn limit(&self, slo: &Slo) -> Option<Nanos> {
        let Slo { ttft, itl, tpot, e2e, cost_per_million: _ } = slo;
        let of = [("ttft", ttft), ("itl", itl), ("tpot", tpot), ("e2e", e2e)];
        let is_of = |key: &str| self.name.strip_prefix(key).is_some_and(|rest| rest.starts_with('_'));
        let (_, limits) = of.into_iter().find(|(key, _)| is_of(key))?;
        limits.get(&self.percentile?).copied()
    }

    /// Returns the figure of that name; `None` if there is none.
    pub fn named(name: &str) -> Option<&'static Ordinate> {
        FIGURES.iter().chain(&FURTHER).find(|reading| reading.name == name)
    }

    /// Returns all percentiles that the objective limits.
    pub fn limited(slo: Option<&Slo>) -> Vec<&'static Ordinate> {
        let is_limited = |reading: &&Ordinate| slo.is_some_and(|slo| reading.limit(slo).is_some());
        FIGURES.iter().chain(&FURTHER).filter(is_limited).collect()
    }

    /// Returns the figure of a metric, given its name in plans. The metric need not be one of
    /// [`FIGURES`]. For a request metric without a percentile, returns the median.
    pub fn of_metric(name: MetricName) -> Ordinate {
        Ordinate { name: name.key, closed: name.key, open: name.key, percentile: name.or_median().percentile }
    }

    /// Returns the table heading of the figure: `TTFT p95`.
    pub fn heading(&self) -> String {
        let name = self.name.split('_').next().unwrap_or_default().to_uppercase();
        self.percentile.map_or_else(|| name.clone(), |percentile| format!("{name} {}", percentile.name()))
    }

    /// Returns the entry in the metric table for the metric that the figure shows in open or closed loops.
    pub fn metric(&self, is_open: bool) -> &'static Metric {
        metric::find(if is_open { self.open } else { self.closed }).expect("figures are metrics of the table")
    }

    /// Returns the value of the figure in one run, with the interval within this run.
    fn read(&self, run: &Run) -> Option<Figure> {
        let metric = self.metric(run.labels.qps.is_some());
        let bare = |value| Figure { value, ends: None, pair: None, few_samples: false };
        let of_whole = |value| of_share(metric, std::slice::from_ref(run)).unwrap_or_else(|| bare(value));
        let summary = match metric::get(metric) {
            Get::Scalar(_) if metric.key == JITTER => return jitter(run),
            Get::Scalar(get) => return get(run.metrics).map(of_whole),
            Get::Plan(get) => return get(run.plan_metrics).map(of_whole),
            Get::Count(get) => return Some(bare(get(run.metrics) as f64)),
            Get::Summary(get) => get(run.metrics),
        };
        let Some(percentile) = self.percentile else { return summary.mean.map(bare) };
        let estimate = summary.percentile(percentile);
        let kind = match metric.key {
            "itl" => IntervalKind::GapsByRequests,
            _ => IntervalKind::OrderStatistic,
        };
        let ends = estimate
            .interval()
            .and_then(|interval| Some(Ends { low: interval.low_number()?, high: interval.high_number()?, kind }));
        Some(Figure { value: estimate.exact()?, ends, pair: None, few_samples: estimate.few_samples() })
    }

    /// Returns the value of the figure in one run, or its lower bound if the percentile lies among
    /// failed requests; `None` if there is only an upper bound, or too few values.
    fn value_or_bound(&self, run: &Run) -> Option<f64> {
        let Get::Summary(get) = metric::get(self.metric(run.labels.qps.is_some())) else { return None };
        match get(run.metrics).percentile(self.percentile?).value()? {
            Value::Exact(value) | Value::AtLeast(value) => Some(value),
            Value::AtMost(_) | Value::Failed => None,
        }
    }

    /// Returns the number of values of a run if they are too few for the percentile.
    fn too_few(&self, run: &Run) -> Option<u64> {
        if self.name == JITTER {
            return run.metrics.itl.percentile(Percentile::P99).too_few();
        }
        let Get::Summary(get) = metric::get(self.metric(run.labels.qps.is_some())) else { return None };
        get(run.metrics).percentile(self.percentile?).too_few()
    }
}

/// The ratio of two percentiles of the gaps between tokens. Like a percentile, it has an interval, and a
/// mark if there are few gaps.
const JITTER: &str = "jitter_ratio";

fn jitter(run: &Run) -> Option<Figure> {
    let metrics = run.metrics;
    let ends = || {
        let interval = metrics.jitter_interval?;
        Some(Ends { low: interval.low_number()?, high: interval.high_number()?, kind: IntervalKind::GapsByRequests })
    };
    let few_samples = metrics.itl.percentile(Percentile::P99).few_samples();
    Some(Figure { value: metrics.jitter_ratio?, ends: ends(), pair: None, few_samples })
}

/// Computes a figure over the repeats of a rung; `None` without runs, or if one of them lacks the
/// figure, because a mean over the others would favor the better runs.
pub(super) fn over(runs: &[Run], reading: &Ordinate) -> Option<Figure> {
    let read: Vec<Figure> = runs.iter().map(|run| reading.read(run)).collect::<Option<_>>()?;
    if let [figure] = read[..] {
        return Some(figure);
    }
    let metric = reading.metric(runs.first()?.labels.qps.is_some());
    let values: Vec<f64> = read.iter().map(|figure| figure.value).collect();
    let over = OverRuns::of(metric, &values);
    let few_samples = read.iter().any(|figure| figure.few_samples);
    let pair = match values[..] {
        [a, b] => Some([a.min(b), a.max(b)]),
        _ => None,
    };
    of_share(metric, runs).or_else(|| Some(Figure { value: over.mean?, ends: over.ends, pair, few_samples }))
}

/// Returns the lower bound, over the repeats of a rung, of a percentile that lies among failed requests
/// in at least one run; `None` if the percentile is a number or is unknown.
pub(super) fn at_least(runs: &[Run], reading: &Ordinate) -> Option<f64> {
    if runs.iter().all(|run| reading.read(run).is_some()) {
        return None;
    }
    let bounds: Vec<f64> = runs.iter().map(|run| reading.value_or_bound(run)).collect::<Option<_>>()?;
    OverRuns::of(reading.metric(runs.first()?.labels.qps.is_some()), &bounds).mean
}

/// Computes a share over the requests of all runs together, with an interval based on their effective
/// number. `None` if the metric is not a share or a run lacks it. The result differs from the mean of
/// the runs' shares, which may lie outside the interval.
fn of_share(metric: &Metric, runs: &[Run]) -> Option<Figure> {
    let others = |run: &Run| match metric.key {
        "error_share" => run.metrics.error_evidence,
        "goodput_share" => run.plan_metrics.goodput.map(|goodput| goodput.missing),
        _ => None,
    };
    let together = Evidence::together(&runs.iter().map(others).collect::<Option<Vec<_>>>()?)?;
    let [low, high] = binomial::share_interval(together.worth.requests, together.share());
    let kind = IntervalKind::ShareOfRequests;
    let (value, ends) = match metric.key {
        "goodput_share" => (1.0 - together.share(), Ends { low: 1.0 - high, high: 1.0 - low, kind }),
        _ => (together.share(), Ends { low, high, kind }),
    };
    Some(Figure { value, ends: Some(ends), pair: None, few_samples: false })
}

/// Returns the number of values in the run that has the fewest values, if these are too few for the
/// percentile.
pub(super) fn too_few(runs: &[Run], reading: &Ordinate) -> Option<u64> {
    runs.iter().filter_map(|run| reading.too_few(run)).min()
}
