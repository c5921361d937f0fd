//! Parses rates and numbers of requests in flight from options.

use super::arguments::Arguments;
use super::error::ImportError;
use super::said::Said;
use crate::units::Decimal;

/// The maximum number of requests in flight in a plan.
pub(super) const MOST_IN_FLIGHT: u32 = 100_000;
/// The maximum rate in a plan, in requests per second.
pub(super) const MOST_PER_SECOND: u32 = 1_000_000;

/// Limits a number of requests in flight to the range that a plan allows. Zero is noted as invalid, which
/// makes the import fail.
pub(super) fn bounded(said: Said<u32>, arguments: &Arguments) -> Said<u32> {
    if said.value == 0 {
        arguments.notes.wrong(&said.origin, "nothing is sent without a request in flight", arguments.line);
    } else if !(1..=MOST_IN_FLIGHT).contains(&said.value) {
        arguments.differs(
            &said.origin,
            &format!("batch_size must be from 1 to {MOST_IN_FLIGHT}: the nearest value is used"),
        );
    }
    said.map(|value| value.clamp(1, MOST_IN_FLIGHT))
}

/// Returns the rate that an option sets; `None` if the option is not given, or the rate is
/// infinite.
pub(super) fn rate(place: &str, option: &str, arguments: &Arguments) -> Result<Option<Said<Decimal>>, ImportError> {
    let Some(said) = arguments.needed(place, option)? else { return Ok(None) };
    if ["inf", "infinity", "+inf"].contains(&said.value.to_ascii_lowercase().as_str()) {
        return Ok(None);
    }
    let rate = said.value.parse::<Decimal>().ok();
    let Some(rate) = rate.filter(|rate| rate.is_positive() && *rate <= Decimal::from(MOST_PER_SECOND)) else {
        let what = format!("{} is not a rate", said.origin);
        let remedy = format!("write a number above 0, up to {MOST_PER_SECOND}, or inf");
        return Err(ImportError::shape(place, what, remedy));
    };
    Ok(Some(Said { value: rate, origin: said.origin }))
}

/// Returns the number of requests in flight that an option sets; `None` if the option is not given.
pub(super) fn whole(place: &str, option: &str, arguments: &Arguments) -> Result<Option<Said<u32>>, ImportError> {
    let Some(said) = arguments.needed(place, option)? else { return Ok(None) };
    match said.value.trim().parse() {
        Ok(value) => Ok(Some(Said { value, origin: said.origin })),
        // In parameter files, the value `None` means that the option is not set.
        Err(_) if said.value == "None" => Ok(None),
        Err(_) => {
            let what = format!("{} is not a number of requests", said.origin);
            let remedy = format!("write a whole number from 1 to {MOST_IN_FLIGHT}");
            Err(ImportError::shape(place, what, remedy))
        }
    }
}
