//! A percentile in a table: its number, or the reason why there is none.

use super::super::view::Cell;
use crate::analysis::{Estimate, Summary};
use crate::plan::Percentile;

/// The number, marked if there are few samples; n/a with the number of samples if there are too
/// few.
pub(super) fn percentile(summary: &Summary, percentile: Percentile) -> Cell {
    let estimate = summary.percentile(percentile);
    match (estimate.exact(), estimate) {
        (Some(exact), _) => Cell::marked(exact, estimate.few_samples()),
        (None, Estimate::NotEnough { n, .. }) if n > 0 => Cell::text(&format!("n/a (n={n})")),
        (None, Estimate::Is { value, .. }) => Cell::text(&crate::report::format::value(value)),
        (None, Estimate::NotEnough { .. }) => Cell::number(None),
    }
}
