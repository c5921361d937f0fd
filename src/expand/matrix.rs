//! Expands a sweep's matrix to its cells: first the cells of the grid, with the fields of `extend`,
//! then the cells of `add`.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::plan::matrix::axes::Axes;
use crate::plan::matrix::grid::{Chosen, Grid, Rule};
use crate::plan::{Scalar, Step, Sweep};

use super::cell::{Cell, Entry};
use super::{ExpandError, Mistake};

/// The cells of `sweep`, called `name`, in declared order.
pub fn cells(name: &str, sweep: &Sweep) -> Result<Vec<Cell>, ExpandError> {
    let grid = Grid::new(sweep).map_err(|error| ExpandError::of_sweep(name, Mistake::Matrix(error)))?;
    let table = Table::new(sweep, &grid.axes);
    let extends: Vec<Rule> = sweep.extend.iter().map(|extend| Rule::new(&grid.axes, &extend.when)).collect();
    let mut added: HashSet<BTreeMap<&str, &Scalar>> = HashSet::with_capacity(sweep.add.len());
    let mut cells = Vec::new();
    let mut mistake = None;
    let add: Vec<Cell> = (0..sweep.add.len()).map(|index| table.added(index)).collect();
    for cell in &add {
        if !added.insert(cell.iter().collect()) {
            return Err(ExpandError::new(name, cell, Mistake::CellTwice));
        }
    }
    let mut at = Vec::new();
    grid.walk(&mut |chosen| {
        table.chosen(chosen, &mut at);
        let own = at.len();
        for (index, _) in extends.iter().enumerate().filter(|(_, rule)| rule.matches(chosen)) {
            at.extend(table.extend[index].clone());
        }
        let cell = Cell::new(&table.entries, &at);
        let wrong = (at.len() > own).then(|| twice(&cell)).flatten().map(Mistake::Overrides);
        let is_added = || (!added.is_empty() && added.contains(&cell.iter().collect())).then_some(Mistake::CellTwice);
        mistake = wrong.or_else(is_added).map(|mistake| ExpandError::new(name, &cell, mistake));
        cells.push(cell);
        mistake.is_some()
    });
    cells.extend(add.iter().cloned());
    mistake.map_or(Ok(cells), Err)
}

/// Returns an axis that occurs twice in the cell.
fn twice(cell: &Cell) -> Option<String> {
    let mut seen = HashSet::new();
    cell.iter().map(|(axis, _)| axis).find(|axis| !seen.insert(*axis)).map(str::to_owned)
}

/// Every value that a cell of a sweep may have.
struct Table {
    entries: Arc<[Entry]>,
    /// For each axis and each of its points, the entries of the point.
    points: Vec<Vec<std::ops::Range<u32>>>,
    /// For each `extend`, its entries.
    extend: Vec<std::ops::Range<u32>>,
    /// For each cell of `add`, its entries.
    add: Vec<std::ops::Range<u32>>,
}

impl Table {
    fn new(sweep: &Sweep, axes: &Axes) -> Table {
        let mut entries = Vec::new();
        let names: Vec<Arc<str>> = axes.names.iter().map(|name| Arc::from(*name)).collect();
        let mut points = Vec::with_capacity(axes.axes.len());
        for (axis, (_, of_axis)) in axes.axes.iter().enumerate() {
            let written = &sweep.matrix[axis];
            points.push(push_all(
                &mut entries,
                of_axis.iter().map(|point| {
                    let entry = |field: &crate::plan::matrix::axes::Field| {
                        let entry = Entry::new(&names[field.name], &field.value, axes.place(axis, field, written));
                        entry.taking(axes.taken(field, written))
                    };
                    point.fields.iter().map(entry).collect()
                }),
            ));
        }
        let tables = |word: &str, index: usize, inside: Option<&str>, table: &crate::plan::Table<Scalar>| {
            let entry = |(axis, value): (&String, &Scalar)| {
                let mut place = vec![Step::from(word), Step::from(index)];
                place.extend(inside.map(Step::from));
                place.push(Step::from(axis.as_str()));
                Entry::new(&axis.as_str().into(), value, place)
            };
            let mut list: Vec<Entry> = table.iter().map(entry).collect();
            // Sorted in matrix order; axes outside the matrix come last.
            list.sort_by_key(|entry| axes.field(&entry.axis).unwrap_or(usize::MAX));
            list
        };
        let with = sweep.extend.iter().enumerate().map(|(at, extend)| tables("extend", at, Some("with"), &extend.with));
        let extend = push_all(&mut entries, with);
        let add = sweep.add.iter().enumerate().map(|(index, cell)| tables("add", index, None, cell));
        let add = push_all(&mut entries, add);
        Table { entries: entries.into(), points, extend, add }
    }

    /// The entries of the chosen point of each axis.
    fn chosen(&self, chosen: &Chosen, into: &mut Vec<u32>) {
        into.clear();
        for (points, point) in self.points.iter().zip(&chosen.points) {
            into.extend(point.iter().flat_map(|point| points[*point].clone()));
        }
    }

    fn added(&self, index: usize) -> Cell {
        Cell::new(&self.entries, &self.add[index].clone().collect::<Vec<u32>>())
    }
}

fn push_all(entries: &mut Vec<Entry>, groups: impl Iterator<Item = Vec<Entry>>) -> Vec<std::ops::Range<u32>> {
    let mut push = |group: Vec<Entry>| {
        let from = entries.len() as u32;
        entries.extend(group);
        from..entries.len() as u32
    };
    groups.map(&mut push).collect()
}
