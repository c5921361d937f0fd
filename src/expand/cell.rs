//! A cell: a value for each axis that it has. The values of a sweep stand in one table, each with its place in the plan;
//! a cell is a list of numbers into it, so that a million of them fit into memory.

use std::fmt;
use std::ops::Index;
use std::sync::Arc;

use crate::plan::{Scalar, Step, Take};

/// A value that cells of a sweep may have.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// The axis.
    pub axis: Arc<str>,
    /// The value.
    pub value: Scalar,
    /// The value as text.
    pub text: Arc<str>,
    /// Where it is written, from the sweep on.
    pub place: Vec<Step>,
    /// What an earlier sweep finds, where that is the value.
    pub take: Option<Take>,
}

impl Entry {
    pub(crate) fn new(axis: &Arc<str>, value: &Scalar, place: Vec<Step>) -> Entry {
        Entry { axis: Arc::clone(axis), text: value.to_string().into(), value: value.clone(), place, take: None }
    }

    /// The same, whose value an earlier sweep finds.
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

    /// The table that its values stand in.
    pub(super) fn table(&self) -> &Arc<[Entry]> {
        &self.table
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.at.iter().map(|at| &self.table[*at as usize])
    }

    /// What is written for `axis`, where the cell has it.
    pub(super) fn entry(&self, axis: &str) -> Option<&Entry> {
        self.entries().find(|entry| *entry.axis == *axis)
    }

    /// The axes and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Scalar)> {
        self.entries().map(|entry| (&*entry.axis, &entry.value))
    }

    /// The axes whose values are known, and these: all but loads that an earlier sweep has yet to find.
    pub fn known(&self) -> impl Iterator<Item = (&str, &Scalar)> {
        self.entries().filter(|entry| entry.take.is_none()).map(|entry| (&*entry.axis, &entry.value))
    }

    /// What earlier sweeps find for it.
    pub(super) fn takes(&self) -> impl Iterator<Item = &Take> {
        self.entries().filter_map(|entry| entry.take.as_ref())
    }

    /// The axes and their values as text, to be shared.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        self.entries().map(|entry| (&entry.axis, &entry.text))
    }

    /// The value of `axis`; `None` where the cell does not have it.
    pub fn get(&self, axis: &str) -> Option<&Scalar> {
        self.entry(axis).map(|entry| &entry.value)
    }

    /// Where the value of `axis` is written, from the sweep on (`matrix`, `batch_size`, `[2]`).
    pub fn place(&self, axis: &str) -> Option<&[Step]> {
        self.entry(axis).map(|entry| &entry.place[..])
    }

    /// What sorts the cells of one sweep as its matrix names them.
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
