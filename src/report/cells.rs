//! Groups runs by cell.

use std::collections::HashMap;

use crate::expand::RunSpec;

/// Returns the highest number of runs of any cell. It cannot be derived from the repeat numbers, because the
/// repeats of a search do not start at 0 at every load.
pub(super) fn most_repeats<'s>(specs: impl IntoIterator<Item = &'s RunSpec>) -> usize {
    let mut cells: HashMap<String, usize> = HashMap::new();
    for RunSpec { endpoint, labels, load, .. } in specs {
        *cells.entry(format!("{:?}", (&endpoint.name, labels, load))).or_default() += 1;
    }
    cells.into_values().max().unwrap_or(0)
}
