//! Ranges: `{ from: 1, to: 256, times: 2 }` and `{ from: 5, to: 50, step: 5 }`, in exact decimals.

use serde::Serialize;

use crate::units::Decimal;

/// Maximum number of values of an axis; a larger number is probably a typo.
pub const MOST_VALUES: u128 = 10_000;

/// A range of numbers on an axis, ascending. The end is included if a step reaches it exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Range {
    from: Decimal,
    to: Decimal,
    #[serde(flatten)]
    by: By,
}

/// How a range proceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Adds the same number each time.
    Step(Decimal),
    /// Multiplies by the same factor each time.
    Times(Decimal),
}

impl Range {
    /// Creates a range that ends and whose values are all exact; otherwise returns the error, with
    /// the remedy after a colon.
    pub fn new(from: Decimal, to: Decimal, by: By) -> Result<Range, String> {
        let range = Range { from, to, by };
        if from > to {
            return Err(format!("a range from {from} to {to} has no values: write the smaller number as `from`"));
        }
        match by {
            By::Step(step) if !step.is_positive() => {
                Err(format!("a range with `step` {step} never reaches its end: write a step above 0"))
            }
            By::Times(times) if times <= Decimal::from(1) => {
                Err(format!("a range with `times` {times} never reaches its end: write a factor above 1, like 2"))
            }
            By::Times(_) if !from.is_positive() => {
                Err(format!("multiplying {from} never reaches {to}: start above 0, or use `step`"))
            }
            By::Step(_) | By::Times(_) => range.counted(),
        }
    }

    fn counted(self) -> Result<Range, String> {
        match self.count() {
            Some(count) if count <= MOST_VALUES => Ok(self),
            Some(count) => Err(format!(
                "this range has {count} values, but an axis has at most {MOST_VALUES}: write a larger step, or \
                 a nearer end"
            )),
            None => Err("the values of this range need more than 18 digits: write them out, rounded".to_owned()),
        }
    }

    /// Number of values; `None` if a value is not a decimal of at most 18 digits.
    fn count(self) -> Option<u128> {
        match self.by {
            By::Step(step) => self.from.steps_to(self.to, step).map(|steps| steps + 1),
            // Each multiplication makes the number larger, and a fractional factor also adds digits, so
            // after a few dozen steps the loop passes the end or exceeds the number of digits.
            By::Times(times) => {
                let (mut at, mut count) = (self.from, 0);
                while at <= self.to {
                    count += 1;
                    at = match at.checked_mul(times) {
                        Some(next) => next,
                        // A value beyond the end of the range need not be exact.
                        None if at.to_f64() * times.to_f64() > self.to.to_f64() * 1.000_001 => break,
                        None => return None,
                    };
                }
                Some(count)
            }
        }
    }

    /// Number of values.
    // An accepted range contains at least its first value, so `is_empty` would always be false.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(self) -> usize {
        self.count().and_then(|count| usize::try_from(count).ok()).unwrap_or_default()
    }

    /// The values, ascending.
    pub fn values(self) -> impl Iterator<Item = Decimal> {
        let next = move |at: &Decimal| match self.by {
            By::Step(step) => at.checked_add(step),
            By::Times(times) => at.checked_mul(times),
        };
        std::iter::successors(Some(self.from), next).take(self.len())
    }
}
