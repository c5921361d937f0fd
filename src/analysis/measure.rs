//! Every metric of one run that does not depend on the plan.

use crate::rows::{Facts, Measured, Only, Replay};

use super::binomial;
use super::dispersion::FailureCount;
use super::failures::Failures;
use super::finish_reasons::FinishReasons;
use super::flow::Flow;
use super::gaps::{Events, Gaps};
use super::idle::IdleStart;
use super::length_failures::LengthFailures;
use super::queue::Queue;
use super::request::{Metric, Request, sample, summarize};
use super::reuse::Reuse;
use super::saturation;
use super::server::{ServerFigure, Whole};
use super::stats::{Interval, Summary};
use super::window::{self, Counts};
use super::worth::{Evidence, Turns};

/// Every metric of one run that does not depend on the plan. Times are in milliseconds. `docs/METRICS.md`
/// defines each metric, and the module `metric` contains the descriptions.
#[derive(Debug, Clone, PartialEq)]
pub struct RunMetrics {
    /// How the requests of the window ended.
    pub counts: Counts,
    /// How failed requests ended, with their messages.
    pub failures: Failures,
    /// Why the server ended the completed responses.
    pub finish_reasons: FinishReasons,
    /// Failures by the requested length, if the run sends `ignore_eos`.
    pub length_failures: LengthFailures,
    /// Failure counts for comparisons, with a measure of how bursty the failures are. The evidence on
    /// the failed share of this run is `error_evidence`.
    pub failures_compared: FailureCount,
    /// Time to first token from sending.
    pub ttft: Summary,
    /// Time to first token from the schedule.
    pub ttft_from_schedule: Summary,
    /// Time to first output from sending.
    pub ttfo: Summary,
    /// End-to-end latency from sending.
    pub e2e: Summary,
    /// End-to-end latency from the schedule.
    pub e2e_from_schedule: Summary,
    /// Time per output token.
    pub tpot: Summary,
    /// Gaps between token events, pooled; their effective number is computed by request.
    pub itl: Summary,
    /// The generator's own delay.
    pub lateness: Summary,
    /// Time to open connections.
    pub connecting: Summary,
    /// Time spent waiting for the in-flight cap.
    pub(crate) cap_wait: Summary,
    /// Tokens per second seen by a user, including the first token.
    pub user_throughput: Summary,
    /// Tokens per second of one stream after its first token.
    pub generation_throughput: Summary,
    /// Rates over the window.
    pub flow: Flow,
    /// The evidence that the window's requests provide on the failed share, which is the basis of its
    /// interval; `None` without requests. Comparisons of arms use `failures_compared`.
    pub(crate) error_evidence: Option<Evidence>,
    /// Whether the server kept up with the arrivals; `None` for a closed loop, and if the window has no
    /// length.
    pub saturation: Option<saturation::Evidence>,
    /// Mean user throughput × batch size. `None` for open loops, and with think times, because then not
    /// all slots are active.
    pub derived_server_throughput: Option<f64>,
    /// p99(ITL) / p50(ITL).
    pub jitter_ratio: Option<f64>,
    /// Interval of the jitter ratio, computed from the intervals of p99 and p50.
    pub(crate) jitter_interval: Option<Interval>,
    /// Latencies of the first request after a pause.
    pub idle_start: IdleStart,
    /// Time from the server's start until it was ready, and until its first response, in milliseconds;
    /// `None` if the run did not measure these times.
    pub start: Option<[f64; 2]>,
    /// Prefix cache hits and the declared reuse.
    pub reuse: Reuse,
    /// Output tokens per token event.
    pub tokens_per_event: Option<f64>,
    /// Output throughput per declared accelerator.
    pub output_throughput_per_gpu: Option<f64>,
    /// Server metrics over the window; empty if nothing was scraped, and for a part of a run.
    pub server: Vec<ServerFigure>,
    /// How the time of the run's requests is divided; empty if nothing was scraped, and for a part of a
    /// run.
    pub wholes: Vec<Whole>,
}

/// Measures one run: `rows` are its requests of every phase. If no request of the window completed,
/// there is no latency and no token throughput, because the times and tokens of failures do not count.
pub fn measure(rows: &[Measured], through: (&Events, &Gaps), facts: &Facts) -> RunMetrics {
    measure_part(rows, through, facts, Queue::of(rows, facts))
}

/// Measures a part of the requests of a run as if they were a separate run. Omits the metrics that depend on
/// the batch size, because all requests of the run share the slots of the batch.
pub(super) fn measure_taken<R: Replay + ?Sized>(
    run: &R,
    takes: impl Fn(&Measured) -> bool,
    facts: &Facts,
) -> Result<RunMetrics, R::Error> {
    let facts = Facts { batch_size: None, ..facts.clone() };
    let own = Only::new(run, takes);
    let events = Events::of(&own, &facts, &[])?;
    let queue = Queue::of(run.rows(), &facts);
    let gaps = Gaps::of_part(&own, &facts, &events, queue.turns)?;
    Ok(measure_part(own.rows(), (&events, &gaps), &facts, queue))
}

/// Measures some requests of a run as if they were the whole run; `queue` is the queue of the whole run.
pub(crate) fn measure_part(
    rows: &[Measured],
    (events, gaps): (&Events, &Gaps),
    facts: &Facts,
    queue: Queue,
) -> RunMetrics {
    let counts = Counts::of(rows, facts);
    // A run that measures a start sends a single request. This is not a load, so the run has no latencies or
    // rates.
    let any = counts.completed > 0 && facts.start.is_none();
    let members = window::in_order(rows, facts);
    let requests = || members.iter().map(|row| window::request(row, facts));
    let of_all = |metric| summarize(requests(), metric, queue.turns);
    let of = |metric| if any { of_all(metric) } else { nothing() };
    let flow = Flow::of(rows, events, facts);
    let flow = match any {
        true => flow,
        false if facts.start.is_some() => Flow::default(),
        false => Flow { output_throughput: None, prompt_throughput: None, ..flow },
    };
    let start = facts.start.as_ref().map(|start| [start.ready_ns, start.first_answer_ns].map(|ns| ns as f64 / 1e6));
    let user_throughput = of(Metric::UserThroughput);
    RunMetrics {
        counts,
        failures: Failures::of(rows, facts),
        finish_reasons: FinishReasons::of(rows, facts),
        length_failures: LengthFailures::of(rows, facts),
        failures_compared: FailureCount::of(rows, facts),
        ttft: of(Metric::Ttft),
        ttft_from_schedule: of(Metric::TtftFromSchedule),
        ttfo: of(Metric::Ttfo),
        e2e: of(Metric::E2e),
        e2e_from_schedule: of(Metric::E2eFromSchedule),
        tpot: of(Metric::Tpot),
        itl: if any { gaps.itl.clone() } else { nothing() },
        lateness: of_all(Metric::Lateness),
        connecting: of_all(Metric::Connecting),
        cap_wait: of_all(Metric::CapWait),
        generation_throughput: of(Metric::GenerationThroughput),
        derived_server_throughput: derived(&user_throughput, facts),
        user_throughput,
        jitter_ratio: gaps.jitter.filter(|_| any),
        jitter_interval: gaps.jitter_interval.filter(|_| any),
        idle_start: IdleStart::of(rows, facts),
        start,
        reuse: Reuse::of(rows, facts),
        tokens_per_event: window::tokens_per_event(rows, facts),
        output_throughput_per_gpu: per_gpu(flow.output_throughput, facts),
        server: Vec::new(),
        wholes: Vec::new(),
        flow,
        error_evidence: error_evidence(requests(), queue.turns),
        saturation: queue.saturation,
    }
}

/// Returns how many requests failed, and the effective number of independent requests. The effective number
/// is the smaller of two estimates: one from the times of the failures, because errors may come in bursts,
/// and one from the dependence of latencies, because without errors only the latencies provide evidence.
pub(super) fn error_evidence<'a>(
    requests: impl Iterator<Item = Request<'a>> + Clone,
    turns: Turns,
) -> Option<Evidence> {
    /// The effective number is computed for a claim about a share of this size.
    const TAIL: f64 = 0.01;
    let (latencies, _) = sample(requests.clone(), Metric::E2eFromSchedule, turns);
    // A response without tokens is complete but has no latency.
    let n = requests.count() as u64;
    (latencies.n() > 0).then(|| Evidence { n, ..latencies.evidence(f64::MAX, TAIL) })
}

impl RunMetrics {
    /// Returns the 95 % interval of the error share, based on the effective number of independent
    /// requests in the window; `None` without requests.
    pub(crate) fn error_share_interval(&self) -> Option<[f64; 2]> {
        self.error_evidence
            .map(|Evidence { worth, .. }| worth.requests)
            .zip(self.counts.error_share())
            .map(|(worth, share)| binomial::share_interval(worth, share))
    }
}

/// Returns the distribution of a latency that no request has.
fn nothing() -> Summary {
    Summary::of(Vec::new(), 0, None)
}

fn derived(user_throughput: &Summary, facts: &Facts) -> Option<f64> {
    let batch_size = facts.batch_size.filter(|_| !facts.open_loop && !facts.thinks)?;
    Some(user_throughput.mean? * f64::from(batch_size))
}

fn per_gpu(throughput: Option<f64>, facts: &Facts) -> Option<f64> {
    Some(throughput? / f64::from(facts.gpus.filter(|gpus| *gpus > 0)?))
}

/// Returns the cost of a million output tokens, given the price per hour of the whole endpoint; `None`
/// if there is no throughput.
pub fn cost_per_million_output_tokens(output_throughput: Option<f64>, price_per_hour: f64) -> Option<f64> {
    let per_hour = output_throughput.filter(|throughput| *throughput > 0.0)? * 3600.0;
    Some(price_per_hour / per_hour * 1e6)
}

/// Returns the output tokens per unit of money; `None` if the price is 0.
pub fn tokens_per_unit_of_money(output_throughput: Option<f64>, price_per_hour: f64) -> Option<f64> {
    let per_hour = output_throughput? * 3600.0;
    (price_per_hour > 0.0).then(|| per_hour / price_per_hour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_price_over_tokens() {
        // 1 000 tokens/s are 3.6 million an hour: at a price of 36 per hour, a million tokens cost 10.
        assert_eq!(cost_per_million_output_tokens(Some(1000.0), 36.0), Some(10.0));
        assert_eq!(tokens_per_unit_of_money(Some(1000.0), 36.0), Some(100_000.0));
        assert_eq!(cost_per_million_output_tokens(Some(0.0), 36.0), None);
        assert_eq!(cost_per_million_output_tokens(None, 36.0), None);
        assert_eq!(tokens_per_unit_of_money(Some(1000.0), 0.0), None);
    }
}
