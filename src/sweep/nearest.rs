//! Finds the committed results that are closest to a new run, so that the run can be explained by the edit
//! of the plan that created it.
//!
//! The canonical forms of all specs are stored as rows of numbers, with a column for each field and a
//! number for each value of the field. To compare two runs, only two short rows are compared, so a preview
//! can compare thousands of new runs with thousands of results.

use std::collections::HashMap;

use crate::expand::{Difference, RunSpec, canonical};

/// Maximum number of fields in which a new run may differ from a result to be explained by that result.
const MOST_CHANGES: usize = 4;
/// The path of the field that distinguishes closed from open loops.
const PATTERN: &str = "load.pattern";
/// Maximum number of comparisons that a preview makes. If more would be needed, new runs are not explained.
const MOST_COMPARISONS: usize = 20_000_000;
/// Maximum number of old values of a field that are listed if the closest results differ from each other.
const MOST_OLD_VALUES: usize = 3;
/// The number for a value of a new run that does not occur in any result.
const UNKNOWN: u32 = u32::MAX;

/// Why a run is new, in comparison with the closest results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// The same spec was committed under another id, because a version of sweepline changed the meaning of
    /// the results.
    Meaning,
    /// The closest result is no longer in the plan, so these fields were changed.
    Edited(Vec<Difference>),
    /// The closest result is still in the plan, so these values were added.
    Added(Vec<Difference>),
    /// Several results are equally close, and no field differs in all of them. Contains all fields in which
    /// any of them differs.
    Unsure(Vec<String>),
}

/// Committed runs, stored for fast comparison.
#[derive(Debug, Default)]
pub(crate) struct Nearest {
    columns: HashMap<String, usize>,
    /// For each column: the values that occur, as written in a plan. The number of the first value is 1,
    /// and the number 0 means no value.
    values: Vec<Vec<String>>,
    /// For each column: the number that stands for each value.
    numbers: Vec<HashMap<String, u32>>,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    values: Vec<u32>,
    wanted: bool,
    /// The [`names`] of the run. They remain the same if other settings of the plan are edited.
    names: String,
}

impl Nearest {
    /// Adds the spec of a committed run. `wanted` states whether the plan still contains the run.
    pub(crate) fn add(&mut self, spec: &RunSpec, wanted: bool) {
        let mut values = vec![0; self.values.len()];
        for (path, value) in canonical(spec).entries() {
            let column = self.column(path);
            values.resize(values.len().max(column + 1), 0);
            values[column] = self.number(column, value.to_string());
        }
        self.rows.push(Row { values, wanted, names: names(spec) });
    }

    /// Completes the table after the last run was added.
    pub(crate) fn complete(mut self) -> Nearest {
        let width = self.values.len();
        self.rows.iter_mut().for_each(|row| row.values.resize(width, 0));
        self
    }

    /// Whether `asked` new runs can be compared with `results` results within the limit of comparisons.
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
    /// The closest results are those that differ in the fewest fields. A result that is still in the plan
    /// is treated as differing in one more field, because after an edit, the old result usually has no run in
    /// the plan. Among equally close results, those with the same [`names`] as the new run are preferred.
    pub(crate) fn find(&self, spec: &RunSpec) -> Option<Change> {
        let canonical = canonical(spec);
        let mut own = vec![0; self.values.len()];
        // Differences in fields that do not occur in any result.
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
        // If the plan still contains the result and the kind of loop differs, nothing was edited: the plan has
        // both kinds of loops, and the runs of one kind were not executed yet.
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

    /// Returns the number of fields in which the closest rows differ from `own`, whether their runs are
    /// still in the plan, and the rows themselves; `None` if there are no rows.
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

    /// Returns the values of `rows` in a column as text, such as `1 or 2`; `None` if no row has a value.
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

/// Returns a text with the names that users see for a run: endpoint, model, scenario, other axes, load and
/// repeat.
fn names(spec: &RunSpec) -> String {
    let labels = &spec.labels;
    format!("{:?}", (&spec.endpoint.name, &labels.model, &labels.scenario, &labels.axes, &spec.load, spec.repeat))
}
