//! A cell: a value for each of its axes. The values of a sweep are stored in one table, each with its
//! place in the plan. A cell is a list of indices into this table, so that a million cells fit into
//! memory.

use std::fmt;
use std::ops::Index;
use std::sync::Arc;

use crate::plan::{Scalar, Step, Take};

/// A value that cells of a sweep may have on an axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// Name of the axis.
    pub axis: Arc<str>,
    /// The value on the axis.
    pub value: Scalar,
    /// The value as text.
    pub text: Arc<str>,
    /// The place in the plan where the value is written, relative to the sweep.
    pub place: Vec<Step>,
    /// The definition of the load, if the value is derived from an earlier sweep.
    pub take: Option<Take>,
}

impl Entry {
    pub(crate) fn new(axis: &Arc<str>, value: &Scalar, place: Vec<Step>) -> Entry {
        Entry { axis: Arc::clone(axis), text: value.to_string().into(), value: value.clone(), place, take: None }
    }

    /// Returns the same entry with `take` as the definition of its load.
    pub(super) fn taking(self, take: Option<&Take>) -> Entry {
        Entry { take: take.cloned(), ..self }
    }
}

/// One point of a matrix: a value for each axis that it has, in declared order.
#[derive(Clone)]
pub struct Cell {
    table: Arc<[Entry]>,
    at: Arc<[u32]>,
}

impl Cell {
    pub(super) fn new(table: &Arc<[Entry]>, at: &[u32]) -> Cell {
        Cell { table: Arc::clone(table), at: at.into() }
    }

    /// The table that contains the cell's values.
    pub(super) fn table(&self) -> &Arc<[Entry]> {
        &self.table
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.at.iter().map(|at| &self.table[*at as usize])
    }

    /// The entry of `axis`, if the cell has it.
    pub(super) fn entry(&self, axis: &str) -> Option<&Entry> {
        self.entries().find(|entry| *entry.axis == *axis)
    }

    /// The axes and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Scalar)> {
        self.entries().map(|entry| (&*entry.axis, &entry.value))
    }

    /// The axes whose values are known, with their values: all except loads that an earlier sweep has
    /// not found yet.
    pub fn known(&self) -> impl Iterator<Item = (&str, &Scalar)> {
        self.entries().filter(|entry| entry.take.is_none()).map(|entry| (&*entry.axis, &entry.value))
    }

    /// The loads that are derived from earlier sweeps.
    pub(super) fn takes(&self) -> impl Iterator<Item = &Take> {
        self.entries().filter_map(|entry| entry.take.as_ref())
    }

    /// The axes and their values as shared text.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        self.entries().map(|entry| (&entry.axis, &entry.text))
    }

    /// The value of `axis`; `None` if the cell does not have it.
    pub fn get(&self, axis: &str) -> Option<&Scalar> {
        self.entry(axis).map(|entry| &entry.value)
    }

    /// The place where the value of `axis` is written, relative to the sweep (`matrix`, `batch_size`,
    /// `[2]`).
    pub fn place(&self, axis: &str) -> Option<&[Step]> {
        self.entry(axis).map(|entry| &entry.place[..])
    }

    /// A key that sorts the cells of one sweep in matrix order.
    pub fn rank(&self) -> &[u32] {
        &self.at
    }
}

impl Index<&str> for Cell {
    type Output = Scalar;

    fn index(&self, axis: &str) -> &Scalar {
        self.get(axis).unwrap_or_else(|| panic!("the cell has no axis `{axis}`"))
    }
}

impl PartialEq for Cell {
    fn eq(&self, other: &Cell) -> bool {
        self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
