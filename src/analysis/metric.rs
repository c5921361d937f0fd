//! The one table of metrics: key, unit, definition, when null. Exports name their columns from it, reports their lines.

use crate::plan::Percentile;

use super::goodput::GoodputMetrics;
use super::measure::RunMetrics;
use super::quantile;
use super::stats::{Estimate, Summary, Value};

/// What a metric is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Millis,
    /// Tokens per second.
    TokensPerSecond,
    /// Requests per second.
    RequestsPerSecond,
    /// Requests, as an average.
    Requests,
    /// A share between 0 and 1.
    Share,
    /// A ratio.
    Ratio,
    /// Money, in the currency of the plan's `price_per_hour`.
    Money,
    /// Tokens.
    Tokens,
}

impl Unit {
    /// The end of a column's name; none where the key says it already.
    pub fn suffix(self) -> &'static str {
        match self {
            Unit::Millis => "_ms",
            Unit::TokensPerSecond => "_tokens_per_s",
            Unit::RequestsPerSecond => "_requests_per_s",
            Unit::Requests | Unit::Share | Unit::Ratio | Unit::Money | Unit::Tokens => "",
        }
    }

    /// Its name in the documentation of a column; empty for a ratio.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Millis => "ms",
            Unit::TokensPerSecond => "tokens/s",
            Unit::RequestsPerSecond => "requests/s",
            Unit::Requests => "requests",
            Unit::Share => "share",
            Unit::Ratio => "",
            Unit::Money => "money",
            Unit::Tokens => "tokens",
        }
    }

    /// The unit beside a printed number.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Millis => "ms",
            Unit::TokensPerSecond => "tok/s",
            Unit::RequestsPerSecond => "req/s",
            Unit::Requests => "requests",
            Unit::Tokens => "tokens",
            Unit::Share | Unit::Ratio | Unit::Money => "",
        }
    }
}

/// Metrics that need the plan: its thresholds and prices. They are in no stored file.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PlanMetrics {
    /// Whether there was a plan to read them under.
    pub given: bool,
    /// Goodput under the plan's thresholds; null without any.
    pub goodput: Option<GoodputMetrics>,
    /// Cost of a million output tokens; null without a price.
    pub cost_per_million_output_tokens: Option<f64>,
    /// Output tokens per unit of money; null without a price.
    pub tokens_per_unit_of_money: Option<f64>,
}

/// Where a metric's value lies.
#[derive(Clone, Copy)]
pub enum Get {
    /// A distribution: many columns.
    Summary(fn(&RunMetrics) -> &Summary),
    /// One number.
    Scalar(fn(&RunMetrics) -> Option<f64>),
    /// A count.
    Count(fn(&RunMetrics) -> u64),
    /// One number that needs the plan.
    Plan(fn(&PlanMetrics) -> Option<f64>),
}

/// One metric of a run.
#[derive(Clone, Copy)]
pub struct Metric {
    /// Its name everywhere.
    pub key: &'static str,
    /// What people read in reports.
    pub title: &'static str,
    /// What it is counted in.
    pub unit: Unit,
    /// What it is, in METRICS' words.
    pub definition: &'static str,
    /// When it is null; empty where never.
    pub null_when: &'static str,
    /// Where its value lies.
    pub get: Get,
}

const fn summary(words: [&'static str; 4], unit: Unit, get: fn(&RunMetrics) -> &Summary) -> Metric {
    let [key, title, definition, null_when] = words;
    Metric { key, title, unit, definition, null_when, get: Get::Summary(get) }
}

const fn scalar(words: [&'static str; 4], unit: Unit, get: fn(&RunMetrics) -> Option<f64>) -> Metric {
    let [key, title, definition, null_when] = words;
    Metric { key, title, unit, definition, null_when, get: Get::Scalar(get) }
}

const fn count(words: [&'static str; 4], get: fn(&RunMetrics) -> u64) -> Metric {
    let [key, title, definition, null_when] = words;
    Metric { key, title, unit: Unit::Requests, definition, null_when, get: Get::Count(get) }
}

const fn plan(words: [&'static str; 4], unit: Unit, get: fn(&PlanMetrics) -> Option<f64>) -> Metric {
    let [key, title, definition, null_when] = words;
    Metric { key, title, unit, definition, null_when, get: Get::Plan(get) }
}

/// Every metric of a run: definitions, source METRICS.md.
#[rustfmt::skip]
pub const METRICS: [Metric; 36] = [
    count(["requests", "requests", "requests scheduled in [measure start, measure end)", ""], |m| m.counts.requests),
    count(["completed", "completed", "requests of the window with a whole answer", ""], |m| m.counts.completed),
    count(["failed", "failed", "requests of the window without a whole answer, cut ones counted", ""], |m| m.counts.failed),
    count(["cut", "cut at drain", "requests of the window still under way at the end of drain", ""], |m| m.counts.cut),
    scalar(["error_share", "error share", "failed / all requests of the window", "no request"], Unit::Share, |m| m.counts.error_share()),
    scalar(["output_throughput", "output throughput", "tokens whose event fell inside the measure window / window length, whichever request they belong to; an event of a multi-token stream counts output tokens / events", "empty window, nothing completed, or an answer that came whole has no token count"], Unit::TokensPerSecond, |m| m.flow.output_throughput),
    scalar(["output_throughput_per_gpu", "per GPU", "output throughput / declared accelerators of the endpoint", "none declared, or nothing completed"], Unit::TokensPerSecond, |m| m.output_throughput_per_gpu),
    scalar(["prompt_throughput", "prompt throughput", "prompt tokens of requests whose first token fell inside the window / window length (not streaming: whose answer ended inside)", "the server counts no prompt tokens, or nothing completed"], Unit::TokensPerSecond, |m| m.flow.prompt_throughput),
    scalar(["request_throughput", "request throughput", "completed requests whose last token fell inside the window / window length", "empty window"], Unit::RequestsPerSecond, |m| m.flow.request_throughput),
    scalar(["derived_server_throughput", "derived throughput", "mean user throughput × batch size", "open loop, or nothing completed"], Unit::TokensPerSecond, |m| m.derived_server_throughput),
    scalar(["achieved_rate", "achieved rate", "requests sent in the window / window length", "empty window"], Unit::RequestsPerSecond, |m| m.flow.achieved_rate),
    scalar(["achieved_concurrency", "achieved concurrency", "time average over the window of requests in flight", "empty window"], Unit::Requests, |m| m.flow.achieved_concurrency),
    scalar(["tokens_per_event", "tokens per event", "output tokens / token events of completed requests of the window", "not streaming, or nothing completed"], Unit::Tokens, |m| m.tokens_per_event),
    scalar(["idle_start_ttft", "idle start TTFT", "TTFT of the run's first request, after a pause of `phases: { idle }`", "no pause, failed, or not alone"], Unit::Millis, |m| m.idle_start.ttft),
    scalar(["idle_start_e2e", "idle start E2E", "E2E latency of the run's first request, after a pause of `phases: { idle }`", "no pause, failed, or not alone"], Unit::Millis, |m| m.idle_start.e2e),
    scalar(["declared_reuse", "declared reuse", "leading prompt tokens that earlier requests of the run began with too / prompt tokens, as the server counts them where it does, else by our own count, of the requests of the window that were sent", "nothing was sent, or not known of all requests"], Unit::Share, |m| m.reuse.declared),
    scalar(["cached_share", "cached prompt tokens", "prompt tokens from the server's prefix cache / prompt tokens, by the server's count, of the requests of the window", "the server does not tell"], Unit::Share, |m| m.reuse.cached),
    scalar(["jitter_ratio", "jitter ratio", "p99(ITL) / p50(ITL): about 1 stable, 2 some stutter, over 3 noticeable pauses", "p50 is 0, or too few gaps"], Unit::Ratio, |m| m.jitter_ratio),
    scalar(["jitter_ratio_low", "jitter ratio, lower end", "lower end of the jitter ratio's 95 % bootstrap interval over requests", "below 30 requests"], Unit::Ratio, |m| m.jitter_interval?.low.exact()),
    scalar(["jitter_ratio_high", "jitter ratio, upper end", "upper end of the jitter ratio's 95 % bootstrap interval over requests", "below 30 requests"], Unit::Ratio, |m| m.jitter_interval?.high.exact()),
    plan(["goodput_share", "goodput", "requests that met every threshold of the plan's goodput (open loops: from the schedule) / all requests of the window, failures counted as misses", "no thresholds in the plan, or latencies that are not known without streaming"], Unit::Share, |p| p.goodput.map(|g| g.share)),
    plan(["goodput", "goodput rate", "requests that met every threshold of the plan's goodput (open loops: from the schedule) / window length", "no thresholds in the plan, or latencies that are not known without streaming"], Unit::RequestsPerSecond, |p| p.goodput.map(|g| g.requests_per_s)),
    plan(["cost_per_million_output_tokens", "cost per million tokens", "declared price per hour / output tokens per hour × 1 000 000", "no price, or no throughput"], Unit::Money, |p| p.cost_per_million_output_tokens),
    plan(["tokens_per_unit_of_money", "tokens per money", "output tokens per hour / declared price per hour", "no price"], Unit::Tokens, |p| p.tokens_per_unit_of_money),
    summary(["ttft", "TTFT", "first_token − sent", "nothing completed, no token, or not streaming"], Unit::Millis, |m| &m.ttft),
    summary(["ttft_from_schedule", "TTFT from schedule", "first_token − scheduled: what a user would have waited; free of coordinated omission", "nothing completed, no token, or not streaming"], Unit::Millis, |m| &m.ttft_from_schedule),
    summary(["ttfo", "TTFO", "first_output − sent: the first content or tool call, reasoning excluded", "nothing completed, no output token, or not streaming"], Unit::Millis, |m| &m.ttfo),
    summary(["e2e", "E2E", "last_token − sent (not streaming: done − sent)", "nothing completed"], Unit::Millis, |m| &m.e2e),
    summary(["e2e_from_schedule", "E2E from schedule", "last_token − scheduled (not streaming: done − scheduled)", "nothing completed"], Unit::Millis, |m| &m.e2e_from_schedule),
    summary(["tpot", "TPOT", "(last_token − first_token) / (output tokens − 1)", "nothing completed, fewer than 2 tokens or events, or not streaming"], Unit::Millis, |m| &m.tpot),
    summary(["itl", "ITL", "every gap between successive token events, pooled over the window's requests; a gap belongs to events, not tokens", "nothing completed, or fewer than 2 events"], Unit::Millis, |m| &m.itl),
    summary(["lateness", "lateness", "sent − released − connecting: the generator's own delay", "never sent"], Unit::Millis, |m| &m.lateness),
    summary(["connecting", "connecting", "DNS, TCP and TLS time of a connection opened for this request", "connection reused"], Unit::Millis, |m| &m.connecting),
    summary(["cap_wait", "cap wait", "released − scheduled", "never released"], Unit::Millis, |m| &m.cap_wait),
    summary(["user_throughput", "user throughput", "output tokens / E2E latency; contains TTFT", "failed"], Unit::TokensPerSecond, |m| &m.user_throughput),
    summary(["generation_throughput", "generation throughput", "output tokens / (E2E latency − TTFT)", "failed, or one event"], Unit::TokensPerSecond, |m| &m.generation_throughput),
];

/// The metric of a key.
pub fn find(key: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.key == key)
}

/// One number of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A count.
    Count(u64),
    /// A measured number; null where there is none.
    Float(Option<f64>),
}

/// One column of a table of runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name, the unit at the end: `ttft_p50_ms`.
    pub name: String,
    /// What it holds and when it is null.
    pub doc: String,
    field: Field,
    metric: usize,
}

/// Which number of a metric a column holds.
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
    TailRatio,
}

/// Which metrics a table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Those that need no plan: what may be stored.
    Rows,
    /// All.
    Plan,
}

impl Column {
    /// The metric's key and the percentile, where the column holds one.
    pub fn percentile(&self) -> Option<(&'static str, Percentile)> {
        match self.field {
            Field::Of(percentile) => Some((METRICS[self.metric].key, percentile)),
            _ => None,
        }
    }
}

/// The columns of every metric, in the table's order.
pub fn columns(scope: Scope) -> Vec<Column> {
    let mut columns = Vec::new();
    for (index, metric) in METRICS.iter().enumerate() {
        match metric.get {
            Get::Plan(_) if scope == Scope::Rows => {}
            Get::Summary(_) => columns.extend(fields().map(|field| column(index, field))),
            Get::Plan(_) | Get::Scalar(_) | Get::Count(_) => columns.push(column(index, Field::Itself)),
        }
    }
    columns
}

/// The fields of a distribution, in the order of their columns.
fn fields() -> impl Iterator<Item = Field> {
    let percentiles = quantile::ALL.into_iter().flat_map(|p| [Field::Of(p), Field::Low(p), Field::High(p)]);
    let tail = [Field::Max, Field::N, Field::Failures, Field::Above, Field::TailRatio];
    [Field::Mean, Field::Sd].into_iter().chain(percentiles).chain(tail)
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
        Field::TailRatio => format!("{key}_tail_ratio"),
    };
    Column { name, doc: doc(metric, field), field, metric: index }
}

fn doc(metric: &Metric, field: Field) -> String {
    let Metric { title, definition, null_when, .. } = metric;
    let planless = if matches!(metric.get, Get::Plan(_)) { "no plan given, or " } else { "" };
    match field {
        Field::Itself | Field::Mean if null_when.is_empty() => format!("{definition}."),
        Field::Itself => format!("{definition}. Null: {planless}{null_when}."),
        Field::Mean => {
            format!("Mean {title} of completed requests: {definition}. Null: no request has one ({null_when}).")
        }
        Field::Sd => format!("Standard deviation of {title}, completed requests. Null: below 2 of them."),
        Field::Of(p) => format!(
            "{} of {title}, exact, type 7. Null: below n = {}, or the rank falls among failures.",
            quantile::name(p),
            quantile::need(p)
        ),
        Field::Low(p) => {
            format!(
                "Lower end of the 95 % interval of {title} {} within the run. Null: no interval.",
                quantile::name(p)
            )
        }
        Field::High(p) => {
            format!(
                "Upper end of the 95 % interval of {title} {} within the run. Null: no interval, or among failures.",
                quantile::name(p)
            )
        }
        Field::Max => format!("Largest {title}. Null: none, or a request failed, which counts as larger than any."),
        Field::N => format!("Values of {title}, failures counted."),
        Field::Failures => format!("Failed requests: above all others in {title}."),
        Field::Above => {
            format!("Largest observed {title} or bound: a percentile among failures is above. Null: none failed.")
        }
        Field::TailRatio => format!("p99 / p50 of {title}. Null: either is null, or p50 is 0."),
    }
}

impl Column {
    /// The column's number for one run.
    pub fn read(&self, run: &RunMetrics, plan: &PlanMetrics) -> Number {
        match METRICS[self.metric].get {
            Get::Summary(get) => self.field.read(get(run)),
            Get::Scalar(get) => Number::Float(get(run)),
            Get::Count(get) => Number::Count(get(run)),
            Get::Plan(get) => Number::Float(get(plan)),
        }
    }

    /// What its numbers are counted in; empty for counts and ratios.
    pub fn unit(&self) -> &'static str {
        let metric = &METRICS[self.metric];
        match (self.field, metric.get) {
            (Field::N | Field::Failures | Field::TailRatio, _) | (_, Get::Count(_)) => "",
            _ => metric.unit.name(),
        }
    }

    /// Whether the column holds counts, never null.
    pub fn counts(&self) -> bool {
        matches!(METRICS[self.metric].get, Get::Count(_)) || matches!(self.field, Field::N | Field::Failures)
    }
}

impl Field {
    fn read(self, summary: &Summary) -> Number {
        let end =
            |estimate: Estimate, end: fn(super::Interval) -> Value| estimate.interval().and_then(|i| end(i).exact());
        Number::Float(match self {
            Field::Itself | Field::Mean => summary.mean,
            Field::Sd => summary.sd,
            Field::Of(p) => summary.percentile(p).exact(),
            Field::Low(p) => end(summary.percentile(p), |interval| interval.low),
            Field::High(p) => end(summary.percentile(p), |interval| interval.high),
            Field::Max => summary.max.and_then(Value::exact),
            Field::Above => summary.above,
            Field::TailRatio => summary.tail_ratio(),
            Field::N => return Number::Count(summary.n),
            Field::Failures => return Number::Count(summary.failures),
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
