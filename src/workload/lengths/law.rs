//! A distribution prepared for drawing. It maps a number between 0 and 1 to a number of tokens. Equal
//! numbers give equal lengths, and larger numbers never give smaller lengths.

use crate::plan::model::lengths::{Distribution, Range, Row, Rows};

use super::bell::Bell;
use super::moments::Moments;

/// A distribution of a number of tokens.
#[derive(Debug, Clone)]
pub(crate) enum Law {
    /// All numbers in a range, with equal probability.
    Uniform(Range),
    /// A truncated normal distribution.
    Normal(Bell),
    /// A truncated lognormal distribution.
    Lognormal(Bell),
    /// A table: a row is drawn according to its weight, then a number in the row's range, all with equal
    /// probability.
    Table(Table),
}

impl Law {
    /// Prepares `distribution` for drawing.
    pub(crate) fn new(distribution: &Distribution) -> Law {
        match distribution {
            Distribution::Constant(tokens) => Law::Uniform(Range::one(*tokens)),
            Distribution::Uniform(within) => Law::Uniform(*within),
            Distribution::Normal { mean, sd, within } => {
                Law::Normal(Bell::new(mean.to_f64(), sd.to_f64(), *within, f64::from))
            }
            Distribution::Lognormal { mean, sd, within } => {
                let (mean, sd) = (mean.to_f64(), sd.to_f64());
                let variance = libm::log1p(sd * sd / (mean * mean));
                let mu = libm::log(mean) - variance / 2.0;
                Law::Lognormal(Bell::new(mu, libm::sqrt(variance), *within, log))
            }
            Distribution::LognormalMedian { median, sigma, within } => {
                Law::Lognormal(Bell::new(libm::log(median.to_f64()), sigma.to_f64(), *within, log))
            }
            Distribution::Histogram(rows) => {
                Law::Table(Table::new(rows, rows.rows().iter().map(|row| row.tokens).collect()))
            }
        }
    }

    /// Returns the number of tokens at the quantile `u` (above 0 and below 1), rounded to the nearest whole
    /// token.
    pub(crate) fn at(&self, u: f64) -> u32 {
        match self {
            Law::Uniform(range) => of_range(*range, u),
            Law::Normal(bell) => bell.rounded(bell.at(u)),
            Law::Lognormal(bell) => bell.rounded(libm::exp(bell.at(u))),
            Law::Table(table) => {
                let (range, inside) = table.at(u);
                of_range(range, inside)
            }
        }
    }

    /// Returns the mean and the standard deviation before rounding, computed with closed-form formulas.
    pub(crate) fn moments(&self) -> Moments {
        match self {
            Law::Uniform(range) => Moments::of_range(*range),
            Law::Normal(bell) => Moments::of_normal(bell),
            Law::Lognormal(bell) => Moments::of_lognormal(bell),
            Law::Table(table) => Moments::mixed(table.shares().map(|(share, range)| (share, Moments::of_range(range)))),
        }
    }
}

/// Returns the logarithm of a number of tokens; minus infinity for 0.
fn log(tokens: u32) -> f64 {
    libm::log(f64::from(tokens))
}

/// Returns the number at the quantile `u` if all numbers in `range` have equal probability.
pub(crate) fn of_range(range: Range, u: f64) -> u32 {
    let count = f64::from(range.max - range.min) + 1.0;
    (range.min + (u * count) as u32).min(range.max)
}

/// A table of rows, from which rows are drawn according to their weights.
#[derive(Debug, Clone)]
pub(crate) struct Table<T = Range> {
    rows: Vec<T>,
    /// For each row, the total share of all rows up to and including it.
    upto: Vec<f64>,
}

impl<T: Copy> Table<T> {
    /// Creates a table with the weights of `rows`, in which `values` contains the value of each row.
    pub(crate) fn new<R: Row>(rows: &Rows<R>, values: Vec<T>) -> Table<T> {
        let mut sum = 0.0;
        let mut upto: Vec<f64> = Vec::with_capacity(values.len());
        for row in rows.rows() {
            sum += row.weight().to_f64();
            upto.push(sum);
        }
        upto.iter_mut().for_each(|share| *share /= sum);
        Table { rows: values, upto }
    }

    /// Returns the value of the row at the quantile `u`, and the position of `u` within the row, from 0 to
    /// below 1.
    pub(crate) fn at(&self, u: f64) -> (T, f64) {
        let row = self.upto.partition_point(|upto| *upto <= u).min(self.rows.len() - 1);
        let before = if row == 0 { 0.0 } else { self.upto[row - 1] };
        let inside = (u - before) / (self.upto[row] - before);
        (self.rows[row], inside.clamp(0.0, 1.0 - f64::EPSILON))
    }

    /// Returns the share and the value of each row.
    pub(crate) fn shares(&self) -> impl Iterator<Item = (f64, T)> {
        let before = std::iter::once(0.0).chain(self.upto.iter().copied());
        let shares = self.upto.iter().zip(before).map(|(upto, before)| upto - before);
        shares.zip(self.rows.iter().copied())
    }
}
