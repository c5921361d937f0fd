//! Runs by their cells.

use std::collections::HashMap;

use crate::expand::RunSpec;

/// How many runs the cell has that has the most. Numbers of repeats do not tell: they need not go up from 0, for a search has its own at each
/// load.
pub(super) fn most_repeats<'s>(specs: impl IntoIterator<Item = &'s RunSpec>) -> usize {
    let mut cells: HashMap<String, usize> = HashMap::new();
    for RunSpec { endpoint, labels, load, .. } in specs {
        *cells.entry(format!("{:?}", (&endpoint.name, labels, load))).or_default() += 1;
    }
    cells.into_values().max().unwrap_or(0)
}
