//! Groups the cells of a comparison: cells that are equal except for one axis.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};

use super::Cell;

/// The cells of a comparison, in groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounds {
    /// Groups of cells that are equal except for the compared axis, as positions. Groups are ordered by their
    /// first cell; a cell without a counterpart forms its own group.
    pub groups: Vec<Vec<usize>>,
    /// Other axes whose values are determined by the compared axis, as in a zip. Their values differ within a
    /// group too.
    pub bound: Vec<String>,
}

/// Groups the cells of one sweep by the axis `by`.
pub fn rounds<C: Borrow<Cell>>(cells: &[C], by: &str) -> Rounds {
    let mut classes = Classes::default();
    let axes: Vec<&str> = {
        let mut seen = HashSet::new();
        let named = cells.iter().flat_map(|cell| cell.borrow().iter().map(|(axis, _)| axis));
        named.filter(|axis| *axis != by && seen.insert(*axis)).collect()
    };
    let rows: Vec<(u32, Vec<u32>)> = cells
        .iter()
        .map(|cell| {
            let texts: HashMap<&str, &str> = cell.borrow().texts().map(|(axis, text)| (&**axis, &**text)).collect();
            (classes.of(texts.get(by)), axes.iter().map(|axis| classes.of(texts.get(axis))).collect())
        })
        .collect();
    let bound: Vec<usize> = (0..axes.len()).filter(|axis| follows(&rows, *axis)).collect();
    let (mut groups, mut found) = (Vec::<Vec<usize>>::new(), HashMap::<Vec<u32>, usize>::new());
    for (at, (value, row)) in rows.iter().enumerate() {
        let free = row.iter().enumerate().filter(|(axis, _)| !bound.contains(axis)).map(|(_, class)| *class).collect();
        match found.get(&free) {
            Some(group) if *value != ABSENT => groups[*group].push(at),
            _ => {
                if *value != ABSENT {
                    found.insert(free, groups.len());
                }
                groups.push(vec![at]);
            }
        }
    }
    Rounds { groups, bound: bound.into_iter().map(|axis| axes[axis].to_owned()).collect() }
}

/// Whether an axis varies and is determined by the compared axis.
fn follows(rows: &[(u32, Vec<u32>)], axis: usize) -> bool {
    let (mut of_value, mut all) = (HashMap::new(), HashSet::new());
    let with = rows.iter().filter(|(value, _)| *value != ABSENT);
    let is_single = with.clone().all(|(value, row)| *of_value.entry(*value).or_insert(row[axis]) == row[axis]);
    all.extend(with.map(|(_, row)| row[axis]));
    is_single && all.len() > 1
}

/// The number of a missing value: the cell does not have the axis.
const ABSENT: u32 = 0;

/// Maps the texts of values to numbers, which need less memory for a million cells.
#[derive(Default)]
struct Classes<'c>(HashMap<&'c str, u32>);

impl<'c> Classes<'c> {
    fn of(&mut self, text: Option<&&'c str>) -> u32 {
        let next = self.0.len() as u32 + 1;
        text.map_or(ABSENT, |text| *self.0.entry(text).or_insert(next))
    }
}
