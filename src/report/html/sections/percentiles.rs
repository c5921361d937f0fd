//! The cell of a percentile in a table: its value, or the reason why there is none.

use super::super::view::Cell;
use crate::analysis::{Estimate, Summary};
use crate::plan::Percentile;

/// Returns the cell of a percentile: its value, marked if there are few samples, or `n/a` with the number of
/// samples if there are too few.
pub(super) fn percentile(summary: &Summary, percentile: Percentile) -> Cell {
    let estimate = summary.percentile(percentile);
    match (estimate.exact(), estimate) {
        (Some(exact), _) => Cell::marked(exact, estimate.few_samples()),
        (None, Estimate::NotEnough { n, .. }) if n > 0 => Cell::text(&format!("n/a (n={n})")),
        (None, Estimate::Is { value, .. }) => Cell::text(&crate::report::format::value(value)),
        (None, Estimate::NotEnough { .. }) => Cell::number(None),
    }
}
