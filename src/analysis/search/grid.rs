//! The loads that a search may measure.
//!
//! They do not depend on the ends of the range but for the ends themselves: a search over an edited range, or one that is run again,
//! asks for loads that are there already.

use super::question::Question;

/// Rising loads, two to a step of the resolution.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    loads: Vec<f64>,
}

impl Grid {
    /// The loads of a question: powers of the root of 1 + `within`, rounded, and both ends of the range.
    pub fn of(question: &Question) -> Grid {
        let Question { from, to, within, whole, .. } = *question;
        let step = (1.0 + within).ln() / 2.0;
        let round = |load: f64| if whole { load.round() } else { significant(load, if within < 0.03 { 4 } else { 3 }) };
        let inside = |load: &f64| (from..=to).contains(load);
        let powers = (from.ln() / step).floor() as i64..=(to.ln() / step).ceil() as i64;
        let rounded = powers.map(|power| round((power as f64 * step).exp())).filter(inside);
        let ends = if whole { [from.ceil(), to.floor()] } else { [from, to] };
        let mut loads: Vec<f64> = rounded.chain(ends).filter(inside).collect();
        loads.sort_unstable_by(f64::total_cmp);
        loads.dedup();
        Grid { loads }
    }

    /// All of them, rising; never without any, but where the range is empty.
    pub fn loads(&self) -> &[f64] {
        &self.loads
    }

    /// The lowest load.
    pub(super) fn first(&self) -> f64 {
        self.loads.first().copied().unwrap_or(f64::NAN)
    }

    /// The highest load.
    pub(super) fn last(&self) -> f64 {
        self.loads.last().copied().unwrap_or(f64::NAN)
    }

    /// The highest load at or below a number; the lowest where none is.
    pub(super) fn at_or_below(&self, number: f64) -> f64 {
        let above = self.loads.partition_point(|load| *load <= number);
        self.loads.get(above.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }

    /// The load that is nearest to a number, by their ratio.
    pub(super) fn nearest(&self, number: f64) -> f64 {
        let below = self.at_or_below(number);
        let above = self.above(below).unwrap_or(below);
        if above / number < number / below { above } else { below }
    }

    /// The next load below one; none below the lowest.
    pub(super) fn below(&self, number: f64) -> Option<f64> {
        self.loads.iter().rev().copied().find(|load| *load < number)
    }

    /// The next load above one; none above the highest.
    pub(super) fn above(&self, number: f64) -> Option<f64> {
        self.loads.iter().copied().find(|load| *load > number)
    }

    /// The load that is `factor` (above 1) times as high, but at least the next and at most the last.
    pub(super) fn times(&self, load: f64, factor: f64) -> f64 {
        let next = self.above(load).unwrap_or(load);
        self.at_or_below(factor * load * (1.0 + 1e-9)).max(next)
    }
}

/// A number rounded to so many significant decimal digits: the same bits as the decimal read from text.
fn significant(number: f64, digits: usize) -> f64 {
    format!("{number:.*e}", digits - 1).parse().unwrap_or(number)
}

impl Question {
    /// Why this question has no answer: in words, with the remedy; none where it can be asked.
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
