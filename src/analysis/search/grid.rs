//! The loads that a search may measure.
//!
//! Except for the two ends, the loads do not depend on the range, so a search over an edited range, or a
//! repeated search, requests loads that were already measured. The plan determines the loads, because they
//! become its runs.

use super::question::Question;
use crate::plan::search::grid;

/// Loads in rising order, two per step of the resolution.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    loads: Vec<f64>,
}

impl Grid {
    /// Creates the loads of a question: powers of the square root of 1 + `within`, rounded, and both ends of
    /// the range.
    pub fn of(question: &Question) -> Grid {
        let Question { from, to, within, whole, .. } = *question;
        Grid { loads: grid([from, to], within, whole) }
    }

    /// Returns all loads, in rising order; empty only if the range is empty.
    pub fn loads(&self) -> &[f64] {
        &self.loads
    }

    /// Returns the lowest load.
    pub(super) fn first(&self) -> f64 {
        self.loads.first().copied().unwrap_or(f64::NAN)
    }

    /// Returns the highest load.
    pub(super) fn last(&self) -> f64 {
        self.loads.last().copied().unwrap_or(f64::NAN)
    }

    /// Returns the highest load at or below a number, or the lowest load if there is none.
    pub(super) fn at_or_below(&self, number: f64) -> f64 {
        let above = self.loads.partition_point(|load| *load <= number);
        self.loads.get(above.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }

    /// Returns the load that is nearest to a number, compared by ratio rather than by difference.
    pub(super) fn nearest(&self, number: f64) -> f64 {
        let below = self.at_or_below(number);
        let above = self.above(below).unwrap_or(below);
        if above / number < number / below { above } else { below }
    }

    /// Returns the next lower load; `None` below the lowest.
    pub(super) fn below(&self, number: f64) -> Option<f64> {
        self.loads.iter().rev().copied().find(|load| *load < number)
    }

    /// Returns the next higher load; `None` above the highest.
    pub(super) fn above(&self, number: f64) -> Option<f64> {
        self.loads.iter().copied().find(|load| *load > number)
    }

    /// Returns the load that is `factor` (above 1) times as high, but at least the next load and at
    /// most the last.
    pub(super) fn times(&self, load: f64, factor: f64) -> f64 {
        let next = self.above(load).unwrap_or(load);
        self.at_or_below(factor * load * (1.0 + 1e-9)).max(next)
    }
}

impl Question {
    /// Returns why this question cannot be answered and how to fix it; `None` if it can be answered.
    pub fn fault(&self) -> Option<String> {
        let Question { from, to, within, .. } = *self;
        if !(from > 0.0 && to.is_finite() && from < to) {
            Some(format!("the range {from} to {to} is empty: `from` must be above 0 and below `to`"))
        } else if !(0.005..=0.5).contains(&within) {
            Some(format!("a resolution of {} % is out of range: choose one from 0.5 % to 50 %", 100.0 * within))
        } else if Grid::of(self).loads().len() < 2 {
            Some(format!("no two loads between {from} and {to} differ by the resolution: widen the range"))
        } else {
            None
        }
    }
}
