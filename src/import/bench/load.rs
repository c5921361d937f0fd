//! Converts a command's request rate and number of requests to a load.

use crate::import::arguments::Arguments;
use crate::import::error::ImportError;
use crate::import::job::Load;
use crate::import::loads::{MOST_PER_SECOND, bounded, rate, whole};
use crate::import::program::Tool;
use crate::import::said::Said;
use crate::import::text::seconds;
use crate::plan::Process;
use crate::units::Decimal;

/// The default number of prompts of `vllm bench serve` and `benchmark_serving.py`.
const PROMPTS: u32 = 1000;

/// Returns the load of a command.
pub(super) fn load(place: &str, tool: Tool, arguments: &Arguments) -> Result<Load, ImportError> {
    let cap = whole(place, "max-concurrency", arguments)?.map(|said| bounded(said, arguments));
    if let Some(ramp) = Ramp::of(arguments) {
        if let Some(said) = rate(place, "request-rate", arguments)? {
            let what =
                format!("{} with --ramp-up-strategy: vLLM refuses it, because the ramp sets the rate", said.origin);
            return Err(ImportError::shape(place, what, "remove one of them"));
        }
        let arrivals = Some(ramp.arrivals(arrivals(arguments).as_ref()));
        return Ok(Load { batch_size: cap, qps: Vec::new(), arrivals, is_own: true });
    }
    if let Some(strategy) = arguments.text("ramp-up-strategy") {
        let what = format!(
            "{}: a ramp is linear or exponential, has --ramp-up-start-rps and --ramp-up-end-rps of at least 0.01, and \
             has a duration",
            strategy.origin
        );
        return Err(ImportError::shape(place, what, "fix it, or remove it to use the rate of --request-rate"));
    }
    let qps: Vec<Said<Decimal>> = rate(place, "request-rate", arguments)?.into_iter().collect();
    let batch_size = match (cap, qps.is_empty()) {
        (Some(cap), _) => Some(cap),
        (None, false) => None,
        (None, true) => Some(burst(tool, arguments)),
    };
    let arrivals = if qps.is_empty() { None } else { arrivals(arguments) };
    Ok(Load { batch_size, qps, arrivals, is_own: false })
}

/// Returns the number of requests of a command.
pub(super) fn prompts(arguments: &Arguments) -> Said<u32> {
    let given = arguments.whole("num-prompts").filter(|said| said.value > 0);
    given.unwrap_or_else(|| Said::default(PROMPTS, format!("default --num-prompts {PROMPTS}")))
}

/// Returns the number of requests in flight for a command that sends all prompts at once, which has
/// `--request-rate inf` and no `--max-concurrency`.
fn burst(tool: Tool, arguments: &Arguments) -> Said<u32> {
    let prompts = prompts(arguments);
    let why = format!(
        "{} sends all prompts at the same instant and measures until the last response; here that number is kept in \
         flight",
        tool.name()
    );
    arguments.differs("--request-rate inf without --max-concurrency", &why);
    let origin = format!("{}, all at once", prompts.origin);
    bounded(Said { value: prompts.value, origin }, arguments)
}

/// Returns the load of a trace, which has its own arrivals. Without `--self-timed`, vLLM uses only the
/// lengths of the trace, and sends requests at the given rate.
pub(super) fn of_trace(load: Load, arguments: &Arguments) -> Load {
    match arguments.flag("self-timed") {
        None => {
            let why = "without --self-timed vLLM sends the requests of the trace at its own rate; the plan replays \
                the trace's arrivals";
            arguments.differs("--dataset-name timed_trace", why);
        }
        Some(_) => {
            arguments.text("request-rate");
        }
    }
    let cap = arguments.text("max-concurrency").and(load.batch_size);
    Load { batch_size: cap, qps: Vec::new(), arrivals: None, is_own: true }
}

/// A ramp: the rate changes from one value to another over the course of the requests.
struct Ramp {
    start: f64,
    end: f64,
    /// Whether the rate changes by a constant factor per request, rather than by a constant step.
    is_exponential: bool,
    requests: f64,
    origin: String,
}

/// The longest ramp, in seconds: a year.
const LONGEST: f64 = 31_536_000.0;
/// Number of points between the two ends of the curve that approximates a ramp.
const BETWEEN: u32 = 7;

impl Ramp {
    /// Returns the ramp of a command; `None` if the command has no ramp, or one that a plan cannot express.
    fn of(arguments: &Arguments) -> Option<Ramp> {
        let strategy = arguments.text("ramp-up-strategy")?;
        let [start, end] =
            ["ramp-up-start-rps", "ramp-up-end-rps"].map(|option| arguments.number::<f64>(option, "a number"));
        let origin = |end: &Option<Said<f64>>| end.as_ref().map(|said| said.origin.clone()).unwrap_or_default();
        let origin = format!("{}, {}, {}", strategy.origin, origin(&start), origin(&end));
        let fits = |said: Option<Said<f64>>| {
            said.map(|said| said.value).filter(|rate| (0.01..=f64::from(MOST_PER_SECOND)).contains(rate))
        };
        let is_exponential = match strategy.value.as_str() {
            "linear" => false,
            "exponential" => true,
            _ => return None,
        };
        let (start, end) = (fits(start)?, fits(end)?);
        let ramp = Ramp { start, end, is_exponential, requests: f64::from(prompts(arguments).value), origin };
        // A ramp that is shorter than a millisecond has only one point, so it does not count as a
        // ramp.
        (ramp.points().len() > 1 && ramp.time(1.0) < LONGEST).then_some(ramp)
    }

    /// Returns the rate after a share of the requests has been sent, in requests per second.
    fn rate(&self, share: f64) -> f64 {
        match self.is_exponential {
            true => self.start * (self.end / self.start).powf(share),
            false => self.start + (self.end - self.start) * share,
        }
    }

    /// Returns the time at which a share of the requests has been sent, in seconds. This is the sum of the
    /// gaps between these requests, computed as an integral.
    fn time(&self, share: f64) -> f64 {
        let ratio = (self.end / self.start).ln();
        let each = match self.is_exponential {
            _ if ratio.abs() < 1e-9 => share / self.start,
            true => (1.0 - (-ratio * share).exp()) / (ratio * self.start),
            false => (self.rate(share) / self.start).ln() / (self.end - self.start),
        };
        each * self.requests
    }

    /// Returns the points of the ramp: times in milliseconds, and the rates at these times. Points of the
    /// same millisecond are merged.
    fn points(&self) -> Vec<(u64, f64)> {
        let mut points: Vec<(u64, f64)> = Vec::new();
        for at in 0..=BETWEEN + 1 {
            let share = f64::from(at) / f64::from(BETWEEN + 1);
            let millis = (self.time(share) * 1000.0).round() as u64;
            match points.last_mut().filter(|last| last.0 == millis) {
                Some(last) => last.1 = self.rate(share),
                None => points.push((millis, self.rate(share))),
            }
        }
        points
    }

    /// Returns the ramp as `arrivals` of a sweep.
    fn arrivals(&self, process: Option<&Said<String>>) -> Said<String> {
        let point = |(millis, rate): (u64, f64)| format!("[{}, {}]", seconds(millis as f64 / 1000.0), rounded(rate));
        let points: Vec<String> = self.points().into_iter().map(point).collect();
        let process_field = process.map(|said| format!(", process: {}", said.value)).unwrap_or_default();
        let process_origin = process.map(|said| format!(", {}", said.origin)).unwrap_or_default();
        Said {
            value: format!("{{ curve: [{}]{process_field} }}", points.join(", ")),
            origin: format!("{}{process_origin}: the rate follows the number of requests sent", self.origin),
        }
    }
}

/// Formats a rate with at most three decimals.
fn rounded(rate: f64) -> String {
    let text = format!("{rate:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the duration of a command's ramp, in seconds; `None` if the command has no ramp.
pub(super) fn ramp_time(arguments: &Arguments) -> Option<Said<f64>> {
    let ramp = Ramp::of(arguments)?;
    let origin = format!("{}: as long as the ramp", prompts(arguments).origin);
    Some(Said { value: ramp.time(1.0).ceil().max(1.0), origin })
}

/// Returns the arrival process; `None` if the command does not set it. Gamma with shape 1 is Poisson, gamma
/// with infinite shape is constant.
fn arrivals(arguments: &Arguments) -> Option<Said<String>> {
    let said = arguments.text("burstiness")?;
    let gamma = format!("gamma burstiness {}", said.value.trim());
    let word = match said.value.parse::<f64>() {
        Ok(1.0) => "poisson",
        Ok(f64::INFINITY) => "constant",
        _ if gamma.parse::<Process>().is_ok() => &gamma,
        _ => {
            arguments.missing(
                &said.origin,
                "arrivals this bursty are not supported; the plan's arrivals are Poisson (burstiness 1)",
            );
            return None;
        }
    };
    Some(Said { value: word.to_owned(), origin: said.origin })
}
