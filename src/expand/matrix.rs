//! A sweep's matrix → its cells: axes multiply in declared order, the last one fastest; `exclude` takes cells out.

use indexmap::IndexMap;

use crate::plan::shorthand::OneOrMany;
use crate::plan::{Scalar, Sweep, Table};

/// One point of a matrix: a value for each axis, in declared order.
pub type Cell = IndexMap<String, Scalar>;

/// The cells of `sweep`, in declared order.
pub fn cells(sweep: &Sweep) -> Vec<Cell> {
    let mut cells = vec![Cell::new()];
    for (axis, values) in &sweep.matrix {
        cells = cells.iter().flat_map(|cell| values.0.iter().map(|value| with(cell, axis, value))).collect();
    }
    cells.retain(|cell| !sweep.exclude.iter().any(|rule| matches(rule, cell)));
    cells
}

fn with(cell: &Cell, axis: &str, value: &Scalar) -> Cell {
    let mut cell = cell.clone();
    cell.insert(axis.to_owned(), value.clone());
    cell
}

/// Whether every field of `rule` is one of the values it lists; a field that the cell lacks never matches.
pub fn matches(rule: &Table<OneOrMany<Scalar>>, cell: &Cell) -> bool {
    rule.iter().all(|(axis, values)| cell.get(axis).is_some_and(|value| values.0.contains(value)))
}
