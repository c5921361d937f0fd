//! Finds the committed results that are closest to a new run, so that the run can be described by
//! the edit that created it.
//!
//! The canonical forms of all records are laid out as rows of numbers, with a column for each path and a
//! number for each value that occurs there. Comparing two runs compares two short rows, so a preview can
//! compare thousands with thousands.

use std::collections::HashMap;

use crate::expand::{Difference, RunSpec, canonical};

/// A run that differs in more fields than this is not described as changed.
const MOST_CHANGES: usize = 4;
/// The path of the field that distinguishes closed from open loops.
const PATTERN: &str = "load.pattern";
/// The number of comparisons that a preview may make; beyond this number, new runs are only
/// described as new.
const MOST_COMPARISONS: usize = 20_000_000;
/// The number of old values of one field that are named if the closest results differ from each other.
const MOST_OLD_VALUES: usize = 3;
/// The value of a new run that does not occur in any record.
const UNKNOWN: u32 = u32::MAX;

/// The comparison of a new run with the closest results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// The same spec was committed under another id, because the meaning of the numbers has
    /// changed.
    Meaning,
    /// The closest result is no longer in the plan, so these fields were changed.
    Edited(Vec<Difference>),
    /// The closest result is still in the plan, so these values were added.
    Added(Vec<Difference>),
    /// Several results are equally close and have no difference in common. Contains all fields in which
    /// any of them differs.
    Unsure(Vec<String>),
}

/// Committed runs, laid out for comparison.
#[derive(Debug, Default)]
pub(crate) struct Nearest {
    columns: HashMap<String, usize>,
    /// For each column, the values that occur, as written in a plan. Value n has the number n + 1,
    /// and 0 means no value.
    values: Vec<Vec<String>>,
    /// For each column, the number assigned to each value.
    numbers: Vec<HashMap<String, u32>>,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    values: Vec<u32>,
    wanted: bool,
    /// The name of the run that users see. Two runs of one cell share it, whatever was edited elsewhere in
    /// the plan.
    names: String,
}

impl Nearest {
    /// Adds the spec of a committed run; `wanted` is whether the plan still contains it.
    pub(crate) fn add(&mut self, spec: &RunSpec, wanted: bool) {
        let mut values = vec![0; self.values.len()];
        for (path, value) in canonical(spec).entries() {
            let column = self.column(path);
            values.resize(values.len().max(column + 1), 0);
            values[column] = self.number(column, value.to_string());
        }
        self.rows.push(Row { values, wanted, names: names(spec) });
    }

    /// Completes the search after the last run has been added.
    pub(crate) fn complete(mut self) -> Nearest {
        let width = self.values.len();
        self.rows.iter_mut().for_each(|row| row.values.resize(width, 0));
        self
    }

    /// Whether `asked` new runs can be compared with this many results at acceptable cost.
    pub(crate) fn may_compare(asked: usize, results: usize) -> bool {
        results > 0 && asked.saturating_mul(results) <= MOST_COMPARISONS
    }

    fn column(&mut self, path: &str) -> usize {
        if let Some(column) = self.columns.get(path) {
            return *column;
        }
        self.values.push(Vec::new());
        self.numbers.push(HashMap::new());
        self.columns.insert(path.to_owned(), self.values.len() - 1);
        self.values.len() - 1
    }

    fn number(&mut self, column: usize, value: String) -> u32 {
        let values = &mut self.values[column];
        *self.numbers[column].entry(value).or_insert_with_key(|value| {
            values.push(value.clone());
            values.len() as u32
        })
    }

    /// Explains the new run `spec` by the closest results; `None` if no result is close enough.
    ///
    /// The closest results differ in the fewest fields. For a result that is still in the plan, one
    /// field is added, because an edit usually leaves the old result without a run in the plan.
    /// Among equals, results with the same user-visible names come first.
    pub(crate) fn find(&self, spec: &RunSpec) -> Option<Change> {
        let canonical = canonical(spec);
        let mut own = vec![0; self.values.len()];
        // Values that do not occur in any result.
        let mut further = Vec::new();
        for (path, value) in canonical.entries() {
            let text = value.to_string();
            match self.columns.get(path) {
                Some(column) => own[*column] = self.numbers[*column].get(&text).copied().unwrap_or(UNKNOWN),
                None => further.push(Difference { field: path.clone(), old: None, new: Some(text) }),
            }
        }
        let (fields, wanted, nearest) = self.nearest(&own, further.len(), spec)?;
        if fields == 0 {
            return Some(Change::Meaning);
        }
        // Nothing was edited if the plan has both closed and open loops, because one of the two was
        // simply not executed yet.
        let differs = |column: &usize| nearest.iter().any(|row| row.values[*column] != own[*column]);
        if fields > MOST_CHANGES || wanted && self.columns.get(PATTERN).is_some_and(differs) {
            return None;
        }
        let new = |column: usize| {
            let path = self.columns.iter().find(|(_, at)| **at == column).map(|(path, _)| path.clone())?;
            let value = canonical.entries().iter().find(|(at, _)| *at == path).map(|(_, value)| value.to_string());
            Some((path, value))
        };
        let mut common = further;
        let mut either = Vec::new();
        for column in (0..own.len()).filter(|column| nearest.iter().any(|row| row.values[*column] != own[*column])) {
            let (field, new) = new(column)?;
            match nearest.iter().all(|row| row.values[column] != own[column]) {
                true => common.push(Difference { field, old: self.old(column, &nearest), new }),
                false => either.push(field),
            }
        }
        common.sort_by(|a, b| a.field.cmp(&b.field));
        either.sort();
        Some(match (common.is_empty(), wanted) {
            (true, _) => Change::Unsure(either),
            (false, true) => Change::Added(common),
            (false, false) => Change::Edited(common),
        })
    }

    /// Returns the number of fields in which the closest rows differ from `own`, whether these rows are
    /// still in the plan, and the rows themselves.
    fn nearest(&self, own: &[u32], further: usize, spec: &RunSpec) -> Option<(usize, bool, Vec<&Row>)> {
        let distance = |row: &Row| row.values.iter().zip(own).filter(|(a, b)| a != b).count() + further;
        let weight = |row: &Row| distance(row) + usize::from(row.wanted);
        let weights: Vec<usize> = self.rows.iter().map(weight).collect();
        let least = *weights.iter().min()?;
        let mut nearest: Vec<&Row> =
            self.rows.iter().zip(&weights).filter(|(_, weight)| **weight == least).map(|(row, _)| row).collect();
        let names = names(spec);
        let by_name = |row: &&Row| (row.names != names, row.wanted);
        let first = nearest.iter().map(by_name).min()?;
        nearest.retain(|row| by_name(row) == first);
        let wanted = nearest[0].wanted;
        Some((least - usize::from(wanted), wanted, nearest))
    }

    /// Returns the values that `rows` have in a column; `None` if the first row has no value.
    fn old(&self, column: usize, rows: &[&Row]) -> Option<String> {
        let mut numbers: Vec<u32> = rows.iter().map(|row| row.values[column]).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let text = |number: &u32| match number {
            0 => None,
            number => Some(self.values[column][*number as usize - 1].clone()),
        };
        if let [one] = numbers.as_slice() {
            return text(one);
        }
        let mut named: Vec<String> =
            numbers.iter().map(|one| text(one).unwrap_or_else(|| "nothing".to_owned())).collect();
        named.sort_by(|a, b| match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(a), Ok(b)) => a.total_cmp(&b),
            _ => a.cmp(b),
        });
        let more = if named.len() > MOST_OLD_VALUES { " or others" } else { "" };
        named.truncate(MOST_OLD_VALUES);
        Some(format!("{}{more}", named.join(" or ")))
    }
}

/// Endpoint, model, scenario, load, other axes and repeat.
fn names(spec: &RunSpec) -> String {
    let labels = &spec.labels;
    format!("{:?}", (&spec.endpoint.name, &labels.model, &labels.scenario, &labels.axes, &spec.load, spec.repeat))
}
