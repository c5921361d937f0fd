//! How fast a command asks, and how often → a load.

use crate::import::arguments::Arguments;
use crate::import::error::ImportError;
use crate::import::job::Load;
use crate::import::loads::{MOST_PER_SECOND, bounded, rate, whole};
use crate::import::program::Tool;
use crate::import::said::Said;
use crate::plan::Process;
use crate::units::Decimal;

/// What both tools send when they are not told how many.
const PROMPTS: u32 = 1000;

/// The load of a command.
pub(super) fn load(place: &str, tool: Tool, arguments: &Arguments) -> Result<Load, ImportError> {
    let cap = whole(place, "max-concurrency", arguments)?.map(|said| bounded(said, arguments));
    let qps = match ramp(arguments) {
        Some(ends) => ends,
        None => rate(place, "request-rate", arguments)?.into_iter().collect(),
    };
    let batch_size = match (cap, qps.is_empty()) {
        (Some(cap), _) => Some(cap),
        (None, false) => None,
        (None, true) => Some(burst(tool, arguments)),
    };
    let arrivals = if qps.is_empty() { None } else { arrivals(arguments) };
    Ok(Load { batch_size, qps, arrivals, is_own: false })
}

/// How many requests a command sends.
pub(super) fn prompts(arguments: &Arguments) -> Said<u32> {
    let given = arguments.whole("num-prompts").filter(|said| said.value > 0);
    given.unwrap_or_else(|| Said::default(PROMPTS, format!("default --num-prompts {PROMPTS}")))
}

/// All prompts at once, as `--request-rate inf` has it where no concurrency is given.
fn burst(tool: Tool, arguments: &Arguments) -> Said<u32> {
    let prompts = prompts(arguments);
    let why = format!(
        "{} sends all prompts at the same instant and measures until the last answer; here as many are kept in flight",
        tool.name()
    );
    arguments.missing("--request-rate inf without --max-concurrency", &why);
    let origin = format!("{}, all at once", prompts.origin);
    bounded(Said { value: prompts.value, origin }, arguments)
}

/// The two ends of a ramp.
fn ramp(arguments: &Arguments) -> Option<Vec<Said<Decimal>>> {
    let strategy = arguments.text("ramp-up-strategy")?;
    let ends = ["ramp-up-start-rps", "ramp-up-end-rps"].map(|option| arguments.number::<Decimal>(option, "a number"));
    let why =
        "the rate of a run is steady once it is filled; the plan measures the two ends of the ramp, each by itself";
    arguments.missing(&strategy.origin, why);
    let mut rates: Vec<Said<Decimal>> = Vec::new();
    for end in ends.into_iter().flatten() {
        let fits = end.value.is_positive() && end.value <= Decimal::from(MOST_PER_SECOND);
        if fits && rates.iter().all(|known| known.value != end.value) {
            rates.push(end);
        }
    }
    (!rates.is_empty()).then_some(rates)
}

/// The spacing of arrivals: gamma with shape 1 is Poisson, with an endless one constant.
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
                "gaps this bursty are not sent; the plan's arrivals are Poisson's (burstiness 1)",
            );
            return None;
        }
    };
    Some(Said { value: word.to_owned(), origin: said.origin })
}
