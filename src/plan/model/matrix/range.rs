//! Ranges: `{ from: 1, to: 256, times: 2 }` and `{ from: 5, to: 50, step: 5 }`, in exact decimals.

use serde::Serialize;

use crate::units::Decimal;

/// More values than this are no axis, but a slip of the pen.
pub const MOST_VALUES: u128 = 10_000;

/// Several numbers of an axis, from the least up; the end belongs to them where a step meets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Range {
    from: Decimal,
    to: Decimal,
    #[serde(flatten)]
    by: By,
}

/// How a range goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The same number is added each time.
    Step(Decimal),
    /// By the same number it is multiplied each time.
    Times(Decimal),
}

impl Range {
    /// A range that ends and whose every value is exact; else what is wrong, and after a colon what to write.
    pub fn new(from: Decimal, to: Decimal, by: By) -> Result<Range, String> {
        let range = Range { from, to, by };
        if from > to {
            return Err(format!("a range from {from} to {to} has no values: write the smaller number as `from`"));
        }
        match by {
            By::Step(step) if !step.is_positive() => {
                Err(format!("a range with `step` {step} never gets to its end: write a step above 0"))
            }
            By::Times(times) if times <= Decimal::from(1) => {
                Err(format!("a range with `times` {times} never gets to its end: write a factor above 1, like 2"))
            }
            By::Times(_) if !from.is_positive() => {
                Err(format!("multiplying {from} never gets to {to}: begin above 0, or write `step`"))
            }
            By::Step(_) | By::Times(_) => range.counted(),
        }
    }

    fn counted(self) -> Result<Range, String> {
        match self.count() {
            Some(count) if count <= MOST_VALUES => Ok(self),
            Some(count) => Err(format!(
                "this range has {count} values, and an axis at most {MOST_VALUES}: write a larger step, or a nearer end"
            )),
            None => Err("the values of this range need more than 18 digits: write them out, rounded".to_owned()),
        }
    }

    /// How many values there are; `None` where one of them is no decimal of 18 digits.
    fn count(self) -> Option<u128> {
        match self.by {
            By::Step(step) => self.from.steps_to(self.to, step).map(|steps| steps + 1),
            // Each factor makes the number longer or larger: it ends, or runs out of digits, after some dozens.
            By::Times(times) => {
                let (mut at, mut count) = (self.from, 0);
                while at <= self.to {
                    count += 1;
                    at = match at.checked_mul(times) {
                        Some(next) => next,
                        // What is past every end needs no digits.
                        None if at.to_f64() * times.to_f64() > self.to.to_f64() * 1.000_001 => break,
                        None => return None,
                    };
                }
                Some(count)
            }
        }
    }

    /// How many values there are.
    // A range that was accepted holds its first value: `is_empty` would have one answer.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(self) -> usize {
        self.count().and_then(|count| usize::try_from(count).ok()).unwrap_or_default()
    }

    /// The values, the least first.
    pub fn values(self) -> impl Iterator<Item = Decimal> {
        let next = move |at: &Decimal| match self.by {
            By::Step(step) => at.checked_add(step),
            By::Times(times) => at.checked_mul(times),
        };
        std::iter::successors(Some(self.from), next).take(self.len())
    }
}
