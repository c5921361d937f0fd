//! The wording of a test's outcome.

use std::fmt;

use super::{Found, Observed, Outcome, Quantity, Test};
use crate::analysis::metric::Unit;
use crate::analysis::paired::power;
use crate::analysis::replicates::Scale;
use crate::units::text::counted;

/// Describes the outcome of a settled test; `see` is the size of the difference that the recommended
/// number of repeats should show.
pub(super) fn of(test: &Test, see: f64) -> String {
    match (&test.found, test.outcome) {
        (Found::Nothing(why), _) => format!("n/a: {why}"),
        (Found::Same(0.0), _) => "equal in every repeat".to_owned(),
        (Found::Same(difference), _) => {
            format!("{} in every repeat: no variation to test against", moved(&test.quantity, *difference))
        }
        (Found::Few(deviation), _) => {
            let repeats = counted(test.repeats_needed.unwrap_or_default(), "repeat");
            // A single repeat shows nothing of how repeats vary, so the number is only what is generally advised.
            let decide = match deviation {
                Some(_) => format!("{repeats} would suffice"),
                None => format!("{repeats} advised"),
            };
            format!("{}, not proven; {decide}", seen_in(&test.quantity, test.observed, "repeat"))
        }
        (Found::Tested(_), Outcome::NotShown) => {
            let among = test.p.filter(|p| *p <= power::LEVEL).map_or("", |_| ", adjusted for other tests,");
            let would = test.detectable.map(|least| seen(test, least)).unwrap_or_default();
            let more = match test.repeats_needed {
                Some(repeats) => format!("; {repeats} repeats would detect {}", allowed(see)),
                None => String::new(),
            };
            format!("no difference shown{among} at this power (would detect {would}{more})")
        }
        (Found::Tested(t), _) => moved(&test.quantity, t.mean),
    }
}

/// Describes a difference: `slower by 3.1 %`, `higher by 0.4 points`.
pub(super) fn moved(quantity: &Quantity, difference: f64) -> String {
    let by = if quantity.scale == Scale::Log { difference.exp_m1().abs() } else { difference.abs() };
    format!("{} by {}", word(quantity, difference > 0.0), size(quantity, by, ""))
}

fn word(quantity: &Quantity, is_higher: bool) -> &'static str {
    match (quantity.measured_in == Unit::Millis, is_higher) {
        (true, true) => "slower",
        (true, false) => "faster",
        (false, true) => "higher",
        (false, false) => "lower",
    }
}

/// Describes what was observed: `slower in 2 of 2 repeats`. `of_what` is the singular noun for what
/// `observed` counts.
pub(super) fn seen_in(quantity: &Quantity, observed: Observed, of_what: &str) -> String {
    let Observed { higher, lower, equal } = observed;
    let of = counted(higher + lower + equal, of_what);
    match (higher, lower) {
        (0, 0) => format!("equal in {equal} of {of}"),
        (higher, lower) if higher >= lower => format!("{} in {higher} of {of}", word(quantity, true)),
        (_, lower) => format!("{} in {lower} of {of}", word(quantity, false)),
    }
}

/// Formats the smallest difference that would have been detected. For runs that differ widely, the difference
/// is a factor; a factor above a thousand is not stated exactly. Differences below a thousandth of a percent
/// are not stated exactly either.
fn seen(test: &Test, least: f64) -> String {
    match least {
        least if test.quantity.scale != Scale::Log => size(&test.quantity, least, "≥ "),
        least if least > 1e3 => "> 1000×".to_owned(),
        least if least >= 1.0 => format!("≥ {}×", short(1.0 + least)),
        least if least < 1e-5 => "any above 0.001 %".to_owned(),
        least => size(&test.quantity, least, "≥ "),
    }
}

/// Formats the size of a difference: a percentage for a ratio, points for shares. `before` precedes the
/// number.
pub(super) fn size(quantity: &Quantity, by: f64, before: &str) -> String {
    match (quantity.scale, quantity.measured_in) {
        (Scale::Log, _) => format!("{before}{}", percent(by)),
        (Scale::Plain, Unit::Share) => format!("{before}{} points", short(by * 100.0)),
        (Scale::Plain, _) => format!("{before}{} {}", short(by), quantity.unit),
    }
}

/// Formats a share as a percentage: `3.1 %`, `0.042 %`, `140 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", short(share * 100.0))
}

/// Formats a share as the user wrote it, without spurious digits: `2 %`, `0.5 %`.
pub fn allowed(share: f64) -> String {
    format!("{} %", Trimmed(share * 100.0))
}

/// Formats a difference of shares in points: `6.3`, `-0.12`.
pub(super) fn points(share: f64) -> String {
    short(share * 100.0)
}

/// A number that is displayed without meaningless digits: `5`, `2.5`.
struct Trimmed(f64);

impl fmt::Display for Trimmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ten digits are enough; any more are floating-point noise.
        let rounded = format!("{:.9e}", self.0).parse::<f64>().unwrap_or(self.0);
        write!(f, "{rounded}")
    }
}

/// Formats two significant digits; prints whole numbers in full.
fn short(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        below if below < 9.95 => (1 - below.log10().floor() as i32).clamp(0, 6) as usize,
        _ => 0,
    };
    format!("{value:.decimals$}")
}
