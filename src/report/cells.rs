//! Runs grouped by cell.

use std::collections::HashMap;

use crate::expand::RunSpec;

/// Number of runs of the cell that has the most. The repeat numbers do not show it: they need not start at
/// 0, since a search numbers its own at each load.
pub(super) fn most_repeats<'s>(specs: impl IntoIterator<Item = &'s RunSpec>) -> usize {
    let mut cells: HashMap<String, usize> = HashMap::new();
    for RunSpec { endpoint, labels, load, .. } in specs {
        *cells.entry(format!("{:?}", (&endpoint.name, labels, load))).or_default() += 1;
    }
    cells.into_values().max().unwrap_or(0)
}
