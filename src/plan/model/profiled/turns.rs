//! Converts the turn ranges of a profile to a table from which numbers of turns are drawn.

use serde::{Deserialize, Serialize};

use crate::dataset::profile::Turns;
use crate::plan::model::lengths::resolved::{Row, Rows};
use crate::units::Decimal;

/// Maximum number of turns of a conversation in any plan.
const MOST_TURNS: u32 = 10_000;

/// One row of the table: conversations whose number of turns is in a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TurnCount {
    /// Minimum number of turns.
    pub min: u32,
    /// Maximum number of turns. Between the minimum and the maximum, the logarithm of the number is uniformly
    /// distributed.
    pub max: u32,
    /// How often this row occurs, relative to the sum of all weights.
    pub weight: Decimal,
}

impl Row for TurnCount {
    fn weight(&self) -> Decimal {
        self.weight
    }
    fn canonical(&self) -> String {
        format!("{}..{} {}", self.min, self.max, self.weight)
    }
}

impl TurnCount {
    /// The number of turns for `u`, which is at least 0 and below 1. If `u` is drawn uniformly, the logarithm
    /// of the number is uniformly distributed.
    pub fn at(&self, u: f64) -> u32 {
        let (min, beyond) = (f64::from(self.min), f64::from(self.max) + 1.0);
        (libm::floor(min * libm::pow(beyond / min, u)) as u32).clamp(self.min, self.max)
    }

    /// The mean of [`at`](Self::at) over all `u`.
    fn mean(&self) -> f64 {
        let (min, beyond) = (f64::from(self.min), f64::from(self.max) + 1.0);
        let share = |turns: u32| libm::log((f64::from(turns) + 1.0) / f64::from(turns)) / libm::log(beyond / min);
        (self.min..=self.max).map(|turns| f64::from(turns) * share(turns)).sum()
    }
}

impl Rows<TurnCount> {
    /// Maximum number of turns of a conversation.
    pub fn most(&self) -> u32 {
        self.rows().iter().map(|row| row.max).max().unwrap_or(1)
    }

    /// Mean number of turns of a conversation.
    pub fn mean(&self) -> f64 {
        let sum: f64 = self.rows().iter().map(|row| row.weight.to_f64()).sum();
        self.rows().iter().map(|row| row.mean() * row.weight.to_f64() / sum).sum()
    }
}

/// The table of a profile's turns; `None` if there are no conversations, or if turns are separate entries. The
/// lengths of such entries include the history, and they are sent as separate requests.
pub(crate) fn rows(turns: &Turns) -> Option<Rows<TurnCount>> {
    if turns.with_history || turns.buckets.iter().all(|bucket| bucket.turns == [1, 1]) {
        return None;
    }
    let count = |turns: u64| u32::try_from(turns).unwrap_or(MOST_TURNS).clamp(1, MOST_TURNS);
    let rows = turns.buckets.iter().map(|bucket| TurnCount {
        min: count(bucket.turns[0]),
        max: count(bucket.turns[1]),
        weight: Decimal::new(i64::try_from(bucket.conversations).unwrap_or(i64::MAX), 0),
    });
    Some(Rows::new(rows)).filter(|rows| !rows.rows().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_spread_over_their_range_and_have_their_mean() {
        let count = |min, max| TurnCount { min, max, weight: Decimal::from(1) };
        assert_eq!([0.0, 0.5, 0.999_999].map(|u| count(3, 3).at(u)), [3, 3, 3]);
        let wide = count(2, 15);
        let n = 100_000;
        let drawn: Vec<u32> = (0..n).map(|k| wide.at((f64::from(k) + 0.5) / f64::from(n))).collect();
        assert_eq!((drawn[0], drawn[drawn.len() - 1]), (2, 15));
        let below_four = drawn.iter().filter(|turns| **turns < 4).count() as f64 / f64::from(n);
        assert!((below_four - 1.0 / 3.0).abs() < 1e-3, "2 to 3 is one of three doublings: {below_four}");
        let mean = drawn.iter().map(|turns| f64::from(*turns)).sum::<f64>() / f64::from(n);
        assert!((mean - wide.mean()).abs() < 1e-2, "{mean}, {}", wide.mean());
        let rows = Rows::new([count(1, 1), wide]);
        assert!((rows.mean() - (1.0 + mean) / 2.0).abs() < 1e-2);
    }
}
