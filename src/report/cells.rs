//! Runs grouped by cell.

use std::collections::HashMap;

use crate::expand::RunSpec;

/// Number of runs of the cell with the most runs. It cannot be derived from the repeat numbers, which need
/// not start at 0, because a search numbers its repeats separately at each load.
pub(super) fn most_repeats<'s>(specs: impl IntoIterator<Item = &'s RunSpec>) -> usize {
    let mut cells: HashMap<String, usize> = HashMap::new();
    for RunSpec { endpoint, labels, load, .. } in specs {
        *cells.entry(format!("{:?}", (&endpoint.name, labels, load))).or_default() += 1;
    }
    cells.into_values().max().unwrap_or(0)
}
