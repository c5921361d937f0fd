//! Reads the metrics of `crate::metrics` from a run, and defines their columns in tables of runs.

use std::borrow::Cow;

use crate::metrics::{Kind, Of};
pub use crate::metrics::{METRICS, Metric, Unit, find};
use crate::plan::Percentile;

use super::goodput::GoodputMetrics;
use super::measure::RunMetrics;
use super::quantile;
use super::stats::{Estimate, Summary, Value};

/// Metrics that depend on the plan's thresholds and prices. They are not stored in any file.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PlanMetrics {
    /// Whether a plan was given.
    pub given: bool,
    /// Goodput under the plan's thresholds; `None` if there are none.
    pub goodput: Option<GoodputMetrics>,
    /// Cost of a million output tokens; `None` without a price.
    pub cost_per_million_output_tokens: Option<f64>,
    /// Output tokens per unit of money; `None` without a price.
    pub tokens_per_unit_of_money: Option<f64>,
}

/// How to read a metric's value.
#[derive(Clone, Copy)]
pub enum Get {
    /// A distribution, which has several columns.
    Summary(fn(&RunMetrics) -> &Summary),
    /// One number.
    Scalar(fn(&RunMetrics) -> Option<f64>),
    /// A count.
    Count(fn(&RunMetrics) -> u64),
    /// One number that depends on the plan.
    Plan(fn(&PlanMetrics) -> Option<f64>),
}

/// The accessors of the metrics, in the order of [`METRICS`].
const READINGS: [(&str, Get); METRICS.len()] = [
    ("requests", Get::Count(|m| m.counts.requests)),
    ("completed", Get::Count(|m| m.counts.completed)),
    ("failed", Get::Count(|m| m.counts.failed)),
    ("cut", Get::Count(|m| m.counts.cut)),
    ("error_share", Get::Scalar(|m| m.counts.error_share())),
    ("error_share_low", Get::Scalar(|m| m.error_share_interval().map(|[low, _]| low))),
    ("error_share_high", Get::Scalar(|m| m.error_share_interval().map(|[_, high]| high))),
    ("output_throughput", Get::Scalar(|m| m.flow.output_throughput)),
    ("output_throughput_per_gpu", Get::Scalar(|m| m.output_throughput_per_gpu)),
    ("prompt_throughput", Get::Scalar(|m| m.flow.prompt_throughput)),
    ("request_throughput", Get::Scalar(|m| m.flow.request_throughput)),
    ("derived_server_throughput", Get::Scalar(|m| m.derived_server_throughput)),
    ("achieved_rate", Get::Scalar(|m| m.flow.achieved_rate)),
    ("arrived_rate", Get::Scalar(|m| m.flow.arrived_rate)),
    ("achieved_concurrency", Get::Scalar(|m| m.flow.achieved_concurrency)),
    ("tokens_per_event", Get::Scalar(|m| m.tokens_per_event)),
    ("idle_start_ttft", Get::Scalar(|m| m.idle_start.ttft)),
    ("idle_start_e2e", Get::Scalar(|m| m.idle_start.e2e)),
    ("start_ready", Get::Scalar(|m| m.start.map(|[ready, _]| ready))),
    ("start_first_answer", Get::Scalar(|m| m.start.map(|[_, first]| first))),
    ("declared_reuse", Get::Scalar(|m| m.reuse.declared)),
    ("cached_share", Get::Scalar(|m| m.reuse.cached)),
    ("jitter_ratio", Get::Scalar(|m| m.jitter_ratio)),
    ("jitter_ratio_low", Get::Scalar(|m| m.jitter_interval?.low_number())),
    ("jitter_ratio_high", Get::Scalar(|m| m.jitter_interval?.high_number())),
    ("goodput_share", Get::Plan(|p| p.goodput.map(|g| g.share))),
    ("goodput", Get::Plan(|p| p.goodput.map(|g| g.requests_per_s))),
    ("cost_per_million_output_tokens", Get::Plan(|p| p.cost_per_million_output_tokens)),
    ("tokens_per_unit_of_money", Get::Plan(|p| p.tokens_per_unit_of_money)),
    ("ttft", Get::Summary(|m| &m.ttft)),
    ("ttft_from_schedule", Get::Summary(|m| &m.ttft_from_schedule)),
    ("ttfo", Get::Summary(|m| &m.ttfo)),
    ("e2e", Get::Summary(|m| &m.e2e)),
    ("e2e_from_schedule", Get::Summary(|m| &m.e2e_from_schedule)),
    ("tpot", Get::Summary(|m| &m.tpot)),
    ("itl", Get::Summary(|m| &m.itl)),
    ("lateness", Get::Summary(|m| &m.lateness)),
    ("connecting", Get::Summary(|m| &m.connecting)),
    ("cap_wait", Get::Summary(|m| &m.cap_wait)),
    ("user_throughput", Get::Summary(|m| &m.user_throughput)),
    ("generation_throughput", Get::Summary(|m| &m.generation_throughput)),
];

/// If a reading is missing or out of order, the code does not compile.
const _: () = {
    let mut at = 0;
    while at < METRICS.len() {
        assert!(
            are_same(METRICS[at].key.as_bytes(), READINGS[at].0.as_bytes()),
            "readings are in the order of METRICS"
        );
        at += 1;
    }
};

const fn are_same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// Returns how to read a metric's value.
pub fn get(metric: &Metric) -> Get {
    let (_, get) = READINGS.iter().find(|(key, _)| *key == metric.key).expect("every metric has a reading");
    *get
}

/// One number of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A count.
    Count(u64),
    /// A measured number; `None` if it is missing.
    Float(Option<f64>),
}

/// One column of a table of runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The name of the column, with the unit at the end: `ttft_p50_ms`.
    pub name: String,
    /// A description of the column's contents.
    pub doc: String,
    /// When the column is null; empty if it never is.
    pub null: String,
    field: Field,
    metric: usize,
}

/// Which number of a metric the column contains.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Field {
    Itself,
    Mean,
    Sd,
    Of(Percentile),
    Low(Percentile),
    High(Percentile),
    Max,
    N,
    Failures,
    Above,
    Below,
    TailRatio,
    Streams,
    Effective(Percentile),
}

/// Which metrics a table contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Metrics that do not depend on the plan, which may be stored.
    Rows,
    /// All metrics.
    Plan,
}

impl Column {
    /// Returns the description of the column and when it is null, as one text.
    pub fn described(&self) -> String {
        match self.null.as_str() {
            "" => self.doc.clone(),
            null => format!("{} Null: {null}.", self.doc),
        }
    }

    /// Returns the metric's key and the percentile, if the column has one.
    pub fn percentile(&self) -> Option<(&'static str, Percentile)> {
        match self.field {
            Field::Of(percentile) => Some((METRICS[self.metric].key, percentile)),
            _ => None,
        }
    }
}

/// Returns the columns of every metric, in the table's order.
pub fn columns(scope: Scope) -> Vec<Column> {
    let mut columns = Vec::new();
    for (index, metric) in METRICS.iter().enumerate() {
        match metric.kind {
            Kind::OfPlan if scope == Scope::Rows => {}
            Kind::Distribution { .. } => columns.extend(fields(metric).into_iter().map(|field| column(index, field))),
            Kind::OfPlan | Kind::Single | Kind::Count => columns.push(column(index, Field::Itself)),
        }
    }
    columns
}

/// Returns the fields of a distribution, in the order of their columns.
fn fields(metric: &Metric) -> Vec<Field> {
    let percentiles = quantile::ALL.into_iter().flat_map(|p| [Field::Of(p), Field::Low(p), Field::High(p)]);
    let mut fields = vec![Field::Mean, Field::Sd];
    fields.extend(percentiles);
    fields.extend([Field::Max, Field::N, Field::Failures, Field::Above]);
    fields.extend(metric.is_rate().then_some(Field::Below));
    fields.push(Field::TailRatio);
    if matches!(metric.kind, Kind::Distribution { of: Of::Gaps, .. }) {
        fields.push(Field::Streams);
        fields.extend(quantile::ALL.map(Field::Effective));
    }
    fields
}

fn column(index: usize, field: Field) -> Column {
    let metric = &METRICS[index];
    let (key, unit) = (metric.key, metric.unit.suffix());
    let percentile = quantile::column;
    let name = match field {
        Field::Itself => format!("{key}{unit}"),
        Field::Mean => format!("{key}_mean{unit}"),
        Field::Sd => format!("{key}_sd{unit}"),
        Field::Of(p) => format!("{key}_{}{unit}", percentile(p)),
        Field::Low(p) => format!("{key}_{}_low{unit}", percentile(p)),
        Field::High(p) => format!("{key}_{}_high{unit}", percentile(p)),
        Field::Max => format!("{key}_max{unit}"),
        Field::N => format!("{key}_n"),
        Field::Failures => format!("{key}_failures"),
        Field::Above => format!("{key}_above{unit}"),
        Field::Below => format!("{key}_below{unit}"),
        Field::TailRatio => format!("{key}_tail_ratio"),
        Field::Streams => format!("{key}_streams"),
        Field::Effective(p) => format!("{key}_{}_effective_n", percentile(p)),
    };
    let (doc, null) = meaning(metric, field);
    Column { name, doc, null, field, metric: index }
}

/// Returns the contents of a column, and when it is null.
fn meaning(metric: &Metric, field: Field) -> (String, String) {
    let Metric { title, definition, null_when, .. } = metric;
    if let Some((doc, null)) = meaning_of_rate(metric, field) {
        return (doc, null.into_owned());
    }
    let is_of_gaps = matches!(metric.kind, Kind::Distribution { of: Of::Gaps, .. });
    let planless = if metric.kind == Kind::OfPlan { "no plan given, or " } else { "" };
    let (doc, null) = match field {
        Field::Itself | Field::Mean if null_when.is_empty() => (format!("{definition}."), ""),
        Field::Itself => return (format!("{definition}."), format!("{planless}{null_when}")),
        Field::Mean => {
            let doc = format!("Mean {title} of completed requests: {definition}.");
            return (doc, format!("no request has one ({null_when})"));
        }
        Field::Sd => (format!("Standard deviation of {title}, completed requests."), "fewer than 2 completed requests"),
        Field::Of(p) => {
            let need = quantile::need(p);
            let null = match is_of_gaps {
                true => format!("fewer than 30 requests have gaps, or their worth is below n = {need}"),
                false => format!("below n = {need}, or the rank falls among failures"),
            };
            return (format!("{} of {title} (exact quantile, type 7).", quantile::name(p)), null);
        }
        Field::Low(p) => (end_of_interval("Lower", title, p), "no interval, or no lower end"),
        Field::High(p) => {
            (end_of_interval("Upper", title, p), "no interval, no upper end, or an upper end among failures")
        }
        Field::Max => (format!("Largest {title}."), "none, or a request failed, which counts as larger than any value"),
        Field::N => (format!("Values of {title}, including failures."), ""),
        Field::Failures => (format!("Failed requests, which rank above all others in {title}."), ""),
        Field::Above => (
            format!("Largest observed {title} or bound: percentiles that fall among failures are above it."),
            "none failed",
        ),
        Field::Below => (format!("Smallest observed {title}."), "always"),
        Field::TailRatio => (format!("p99 / p50 of {title}."), "either is null, or p50 is 0"),
        Field::Streams => (format!("Requests that have {title}."), ""),
        Field::Effective(p) => {
            let doc = format!(
                "Number of independent values that would carry as much information on {} of {title}: number of values \
                 / design effect, because values of one request are correlated. Shown as worth in `show`.",
                quantile::name(p)
            );
            (doc, "")
        }
    };
    (doc, null.to_owned())
}

/// Describes the column of a rate, and when the column is null; `None` if the metric is not a rate, or if the
/// text for other metrics applies. For rates, lower is worse: failures rank below all values, and pN is the
/// rate that N % of the requests reach or exceed.
fn meaning_of_rate(metric: &Metric, field: Field) -> Option<(String, Cow<'static, str>)> {
    let title = metric.title;
    let (doc, null) = match field {
        _ if !metric.is_rate() => return None,
        Field::Of(p) => {
            let share = quantile::permille(p) as f64 / 10.0;
            let name = quantile::name(p);
            let doc = format!(
                "{name} of {title}: the rate that {share} % of requests reached or exceeded (exact quantile, type 7)."
            );
            return Some((doc, format!("below n = {}, or the rank falls among failures", quantile::need(p)).into()));
        }
        Field::Low(p) => (end_of_interval("Lower", title, p), "no interval, or among failures"),
        Field::High(p) => (end_of_interval("Upper", title, p), "no interval, or among failures"),
        Field::Max => (format!("Largest {title}."), "none"),
        Field::Failures => (format!("Failed requests, which rank below all others in {title}."), ""),
        Field::Above => (format!("Lower bound of a {title} percentile among failures."), "always: failures are below"),
        Field::Below => {
            (format!("Smallest observed {title}: percentiles that fall among failures are below it."), "none failed")
        }
        _ => return None,
    };
    Some((doc, null.into()))
}

fn end_of_interval(end: &str, title: &str, p: Percentile) -> String {
    format!("{end} end of the 95 % interval of {title} {} within the run.", quantile::name(p))
}

impl Column {
    /// Returns the column's number for one run.
    pub fn read(&self, run: &RunMetrics, plan: &PlanMetrics) -> Number {
        match READINGS[self.metric].1 {
            Get::Summary(get) => self.field.read(get(run)),
            Get::Scalar(get) => Number::Float(get(run)),
            Get::Count(get) => Number::Count(get(run)),
            Get::Plan(get) => Number::Float(get(plan)),
        }
    }

    /// Returns the unit of the column's numbers; empty for counts and ratios.
    pub fn unit(&self) -> &'static str {
        let metric = &METRICS[self.metric];
        match (self.field, metric.kind) {
            (Field::N | Field::Failures | Field::TailRatio, _) | (_, Kind::Count) => "",
            (Field::Streams | Field::Effective(_), _) => "",
            _ => metric.unit.name(),
        }
    }

    /// Returns whether the column contains counts, which are never null.
    pub fn counts(&self) -> bool {
        let is_count = matches!(self.field, Field::N | Field::Failures | Field::Streams | Field::Effective(_));
        METRICS[self.metric].kind == Kind::Count || is_count
    }
}

impl Field {
    fn read(self, summary: &Summary) -> Number {
        let end =
            |estimate: Estimate, end: fn(&super::Interval) -> Option<f64>| estimate.interval().and_then(|i| end(&i));
        Number::Float(match self {
            Field::Itself | Field::Mean => summary.mean,
            Field::Sd => summary.sd,
            Field::Of(p) => summary.percentile(p).exact(),
            Field::Low(p) => end(summary.percentile(p), super::Interval::low_number),
            Field::High(p) => end(summary.percentile(p), super::Interval::high_number),
            Field::Max => summary.max.and_then(Value::exact),
            Field::Above => summary.above,
            Field::Below => summary.below,
            Field::TailRatio => summary.tail_ratio(),
            Field::N => return Number::Count(summary.n),
            Field::Failures => return Number::Count(summary.failures),
            Field::Streams => return Number::Count(summary.clusters.map_or(0, |of| of.requests)),
            Field::Effective(p) => return Number::Count(summary.clusters.map_or(0, |of| of.effective[p as usize])),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_carry_units() {
        let columns = columns(Scope::Plan);
        let names: BTreeSet<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names.len(), columns.len());
        let expected = [
            "ttft_p50_ms",
            "e2e_p999_ms",
            "ttft_p99_low_ms",
            "output_throughput_tokens_per_s",
            "goodput_share",
            "goodput_requests_per_s",
            "request_throughput_requests_per_s",
            "requests",
            "ttft_n",
            "error_share",
        ];
        assert!(expected.iter().all(|name| names.contains(name)));
        assert!(columns.iter().all(|column| !column.doc.is_empty()));
    }

    #[test]
    fn what_is_stored_needs_no_plan() {
        let names: Vec<String> = columns(Scope::Rows).into_iter().map(|column| column.name).collect();
        assert!(!names.iter().any(|name| name.contains("goodput") || name.contains("cost")));
    }
}
