//! Converts the rate and number of a `sglang.bench_serving` command's requests to a load.

use crate::import::arguments::Arguments;
use crate::import::error::ImportError;
use crate::import::job::Load;
use crate::import::loads::{MOST_IN_FLIGHT, bounded, rate, whole};
use crate::import::said::Said;
use crate::units::Decimal;

/// The tool's default number of prompts.
const PROMPTS: u32 = 1000;
/// A limit that is higher than the number of rates in any range.
const MOST_RATES: usize = 1000;

/// Returns the number of requests of a command.
pub(super) fn prompts(arguments: &Arguments) -> Said<u32> {
    let given = arguments.whole("num-prompts").filter(|said| said.value > 0);
    given.unwrap_or_else(|| Said::default(PROMPTS, format!("default --num-prompts {PROMPTS}")))
}

/// Returns the load of a command: requests per second with Poisson arrivals, or requests in flight.
pub(super) fn load(place: &str, arguments: &Arguments, prompts: &Said<u32>) -> Result<Load, ImportError> {
    let cap = cap(place, arguments)?;
    let qps = match range(place, arguments)? {
        Some(rates) => rates,
        None => rate(place, "request-rate", arguments)?.into_iter().collect(),
    };
    let batch_size = match (cap, qps.is_empty()) {
        (None, true) => Some(burst(prompts, arguments)),
        (cap, _) => cap,
    };
    Ok(Load { batch_size, qps, ..Load::default() })
}

/// Returns the maximum number of requests in flight.
pub(super) fn cap(place: &str, arguments: &Arguments) -> Result<Option<Said<u32>>, ImportError> {
    Ok(whole(place, "max-concurrency", arguments)?.map(|said| bounded(said, arguments)))
}

/// All prompts at once, which is the tool's default.
fn burst(prompts: &Said<u32>, arguments: &Arguments) -> Said<u32> {
    let why = "sglang.bench_serving sends all prompts at the same instant and measures until the last response; here \
               that number is kept in flight";
    arguments.differs("--request-rate inf without --max-concurrency", why);
    Said { value: prompts.value.clamp(1, MOST_IN_FLIGHT), origin: format!("{}, all at once", prompts.origin) }
}

/// Returns the rates of `--multi --request-rate-range 2,34,2`: from, to (exclusive), step; or a list.
fn range(place: &str, arguments: &Arguments) -> Result<Option<Vec<Said<Decimal>>>, ImportError> {
    let (multi, said) = (arguments.flag("multi"), arguments.text("request-rate-range"));
    if multi.is_none() {
        if let Some(said) = said {
            arguments.needless(&said.origin, "it has no effect without --multi");
        }
        return Ok(None);
    }
    let said =
        said.unwrap_or_else(|| Said::default("2,34,2".to_owned(), "--multi, default --request-rate-range 2,34,2"));
    let numbers: Option<Vec<u32>> = said.value.split(',').map(|part| part.trim().parse().ok()).collect();
    let rates: Vec<u32> = match numbers.as_deref() {
        Some(&[from, to, step]) if step > 0 => (from..to).step_by(step as usize).take(MOST_RATES).collect(),
        Some(numbers) if numbers.len() != 3 => numbers.to_vec(),
        _ => Vec::new(),
    };
    let rates: Vec<u32> = rates.into_iter().filter(|rate| *rate > 0).collect();
    if rates.is_empty() {
        let what = format!("{} is not a range of rates", said.origin);
        return Err(ImportError::shape(place, what, "write --request-rate-range FROM,TO,STEP or a list of rates"));
    }
    Ok(Some(rates.into_iter().map(|rate| Said { value: Decimal::from(rate), origin: said.origin.clone() }).collect()))
}
