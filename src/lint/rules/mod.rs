//! The rules. Each rule is one function that takes a plan and returns findings.

pub(super) mod budget;
pub(super) mod cache;
pub(super) mod compare;
pub(super) mod differ;
pub(crate) mod disclosure;
pub(super) mod equal;
pub(super) mod flags;
pub(super) mod host;
pub(super) mod ladder;
pub(super) mod lengths;
pub(super) mod load;
pub(super) mod phases;
pub(super) mod repeats;
pub(super) mod samples;
pub(super) mod search;
pub(super) mod sides;
pub(super) mod spread;
pub(super) mod starts;
pub(super) mod used;

use crate::units::Nanos;

/// Joins words, as in `a`, `a and b` or `a, b and c`.
fn listed<T: AsRef<str>>(words: &[T]) -> String {
    match words {
        [] => String::new(),
        [only] => only.as_ref().to_owned(),
        [rest @ .., last] => {
            let rest: Vec<&str> = rest.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", rest.join(", "), last.as_ref())
        }
    }
}

/// Joins names, each in backticks.
fn quoted<T: AsRef<str>>(names: &[T]) -> String {
    listed(&names.iter().map(|name| format!("`{}`", name.as_ref())).collect::<Vec<_>>())
}

/// The time that `requests` take at a rate (per second), rounded up to whole seconds, minutes or hours.
fn time_for(requests: f64, rate: f64) -> Nanos {
    let seconds = (requests / rate).ceil();
    // Times above ten minutes are rounded up to whole minutes, and times above two hours to whole hours.
    let unit =
        [(7_200.0, 3_600.0), (600.0, 60.0)].into_iter().find(|(from, _)| seconds > *from).map_or(1.0, |(_, unit)| unit);
    Nanos::from_secs(((seconds / unit).ceil() * unit).min(1e9) as u64)
}

/// A rate rounded up to two significant digits, as written in a plan: 3.1, 74, 1200.
fn rate_above(rate: f64) -> String {
    let digits = rate.max(1e-6).log10().floor() as i32;
    let unit = 10f64.powi(digits - 1);
    // A float with two significant digits needs at most `1 - digits` decimals.
    let rounded = (rate / unit - 1e-9).ceil() * unit;
    let decimals = usize::try_from(1 - digits).unwrap_or(0);
    let text = format!("{rounded:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Formats an expected count as a whole number, rounded down so that it is never shown as the required
/// number.
fn count(expected: f64) -> String {
    format!("{}", expected.floor().min(1e15) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_what_a_person_would_type() {
        assert_eq!(
            [3.0667, 3.1, 9.99, 73.6, 1_240.0, 0.0412].map(rate_above),
            ["3.1", "3.1", "10", "74", "1300", "0.042"]
        );
        let times = [(368.0, 10.0), (368.0, 1.0), (368.0, 0.5), (368.0, 0.01)];
        assert_eq!(times.map(|(n, rate)| time_for(n, rate).to_string()), ["37s", "368s", "13m", "11h"]);
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(quoted(&["a", "b", "c"]), "`a`, `b` and `c`");
        assert_eq!(count(119.9), "119");
    }
}
