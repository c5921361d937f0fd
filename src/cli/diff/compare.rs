//! Determines which runs are added, removed and kept between two plans, and by which edits.
//!
//! A run of the new plan that the old plan lacks is paired with the run that it replaces. This is the run
//! with the same sweep, cell and repeat, or the run of the cell in which a value was replaced. The
//! differences between the two runs are the edits. A run without such a counterpart was added by a new value,
//! a new repeat or a new sweep.

use std::collections::{HashMap, HashSet};

use indexmap::{IndexMap, IndexSet};

use crate::expand::{PlannedRun, RunId, differences};
use crate::plan::{Scalar, Step};

use super::edits::{Both, Edit, Kind, Values};
use super::source::Side;

/// Runs that were added and removed by the same edits.
pub(crate) struct Group<'a> {
    /// The edits, each of which affects all runs of the group.
    pub edits: Vec<Edit>,
    /// The added runs, from the new plan.
    pub come: Vec<&'a PlannedRun>,
    /// The removed runs, from the old plan.
    pub go: Vec<&'a PlannedRun>,
}

/// The result of comparing two plans.
pub(crate) struct Compared<'a> {
    /// Runs that are in both plans.
    pub stay: Vec<&'a PlannedRun>,
    /// The added and removed runs, grouped by the edits that add or remove them.
    pub groups: Vec<Group<'a>>,
    /// Edits that add or remove no known run, but affect which runs are executed, or at which loads.
    pub deciding: Vec<Edit>,
    /// Edits without effect.
    pub without_effect: Vec<Edit>,
}

/// Compares two plans.
pub(crate) fn compare<'a>(a: &'a Side, b: &'a Side) -> Compared<'a> {
    let (before, after) = (unique(a), unique(b));
    let both = Both { a, b, old: Values::of(a), new: Values::of(b) };
    let stay = after.values().filter(|run| before.contains_key(&run.id)).copied().collect();
    let mut go: Vec<&PlannedRun> = before.values().filter(|run| !after.contains_key(&run.id)).copied().collect();
    let come: Vec<&PlannedRun> = after.values().filter(|run| !before.contains_key(&run.id)).copied().collect();
    let (old_axes, new_axes) = (Axes::of(a, &both.old), Axes::of(b, &both.new));
    let replaced = replaced(&old_axes, &new_axes);
    let of_cell: HashMap<Key, &PlannedRun> = go.iter().map(|run| (Key::of(run), *run)).collect();
    let mut groups: IndexMap<Vec<Edit>, Group> = IndexMap::new();
    let mut gone: HashSet<RunId> = HashSet::new();
    for run in come {
        let key = Key::of(run);
        let counterpart = of_cell.get(&key).or_else(|| of_cell.get(&key.before(&replaced)));
        let edits = match counterpart {
            Some(old) => both.between(old, run, &differences(&old.spec, &run.spec)),
            None => one_sided(&both, Kind::Added, run, (&new_axes, &old_axes)),
        };
        let group = group(&mut groups, edits);
        group.come.push(run);
        if let Some(old) = counterpart.filter(|old| gone.insert(old.id)) {
            group.go.push(old);
        }
    }
    go.retain(|run| !gone.contains(&run.id));
    for run in go {
        let edits = one_sided(&both, Kind::Removed, run, (&old_axes, &new_axes));
        group(&mut groups, edits).go.push(run);
    }
    let told: Vec<&Edit> = groups.keys().flatten().collect();
    let (deciding, without_effect) = both.without_effect(&told).into_iter().partition(|edit| both.decides(edit));
    Compared { stay, groups: groups.into_values().collect(), deciding, without_effect }
}

fn group<'g, 'a>(groups: &'g mut IndexMap<Vec<Edit>, Group<'a>>, edits: Vec<Edit>) -> &'g mut Group<'a> {
    let group = || Group { edits: edits.clone(), come: Vec::new(), go: Vec::new() };
    groups.entry(edits.clone()).or_insert_with(group)
}

/// Returns the runs of a plan, including those that searches and ladders may request. A run that several
/// sweeps share is returned once.
fn unique(side: &Side) -> IndexMap<RunId, &PlannedRun> {
    let mut runs = IndexMap::new();
    for run in side.expansion.possible() {
        runs.entry(run.id).or_insert(run);
    }
    runs
}

/// The sweep, cell and repeat of a run, which identify the run within its plan.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    sweep: String,
    cell: Vec<(String, String)>,
    repeat: u32,
}

/// For each sweep and axis: the new values, each with the old value that it replaces.
type Replaced = HashMap<(String, String), HashMap<String, String>>;

impl Key {
    fn of(run: &PlannedRun) -> Key {
        let mut cell: Vec<(String, String)> =
            run.cell.iter().map(|(axis, value)| (axis.to_owned(), value.to_string())).collect();
        cell.sort();
        Key { sweep: run.sweep.to_string(), cell, repeat: run.repeat }
    }

    /// Returns this key, with each new value changed back to the old value that it replaces.
    fn before(&self, replaced: &Replaced) -> Key {
        let mut key = self.clone();
        for (axis, value) in &mut key.cell {
            let old = replaced.get(&(self.sweep.clone(), axis.clone())).and_then(|values| values.get(value));
            *value = old.cloned().unwrap_or_else(|| value.clone());
        }
        key
    }
}

/// For each sweep of a plan: the values on each axis, and the number of repeats.
struct Axes {
    sweeps: IndexMap<String, IndexMap<String, IndexSet<String>>>,
    repeats: HashMap<String, u32>,
}

impl Axes {
    fn of(side: &Side, values: &Values) -> Axes {
        let mut axes = Axes { sweeps: IndexMap::new(), repeats: HashMap::new() };
        let mut cells: HashMap<(String, Vec<u32>), u32> = HashMap::new();
        for run in side.expansion.possible() {
            let sweep = axes.sweeps.entry(run.sweep.to_string()).or_default();
            for (axis, value) in run.cell.iter() {
                sweep.entry(axis.to_owned()).or_default().insert(value.to_string());
            }
            *cells.entry((run.sweep.to_string(), run.cell.rank().to_vec())).or_default() += 1;
        }
        for ((sweep, _), count) in cells {
            let repeats = axes.repeats.entry(sweep).or_default();
            *repeats = count.max(*repeats);
        }
        for (sweep, of_sweep) in &mut axes.sweeps {
            for (axis, seen) in of_sweep {
                let place = |value: &String| place_in_list(values, sweep, axis, value);
                seen.sort_by(|a, b| place(a).cmp(&place(b)));
            }
        }
        axes
    }

    fn values(&self, sweep: &str, axis: &str) -> Option<&IndexSet<String>> {
        self.sweeps.get(sweep)?.get(axis)
    }
}

fn axis_path(sweep: &str, axis: &str) -> Vec<Step> {
    vec!["sweeps".into(), sweep.into(), "matrix".into(), axis.into()]
}

/// Returns the position of a value in the plan's list of values for an axis. Values that are not listed
/// literally come last.
fn place_in_list(values: &Values, sweep: &str, axis: &str, value: &str) -> usize {
    let list = values.at(&axis_path(sweep, axis)).and_then(serde_json::Value::as_array);
    let is_it = |item: &serde_json::Value| {
        serde_json::from_value::<Scalar>(item.clone()).is_ok_and(|scalar| scalar.to_string() == value)
    };
    list.and_then(|items| items.iter().position(is_it)).unwrap_or(usize::MAX)
}

/// Pairs new and old values of each axis. If the numbers of added and removed values are equal, the added
/// values replace the removed values in order.
fn replaced(old: &Axes, new: &Axes) -> Replaced {
    let mut replaced = Replaced::new();
    for (sweep, axes) in &new.sweeps {
        for (axis, after) in axes {
            let Some(before) = old.values(sweep, axis) else { continue };
            let came: Vec<&String> = after.difference(before).collect();
            let went: Vec<&String> = before.difference(after).collect();
            if came.len() == went.len() {
                let pairs = came.into_iter().cloned().zip(went.into_iter().cloned()).collect();
                replaced.insert((sweep.clone(), axis.clone()), pairs);
            }
        }
    }
    replaced
}

/// Returns the edits that leave a run of one plan without a counterpart in the other plan. `here` are the
/// axes of the run's plan, and `there` are the axes of the other plan.
fn one_sided(both: &Both, kind: Kind, run: &PlannedRun, (here, there): (&Axes, &Axes)) -> Vec<Edit> {
    let sweep = &*run.sweep;
    let sweep_path: Vec<Step> = vec!["sweeps".into(), sweep.into()];
    let Some(other) = there.sweeps.get(sweep) else { return vec![both.one_sided(kind, &sweep_path, None)] };
    let mut edits = Vec::new();
    for (axis, value) in run.cell.iter() {
        let value = value.to_string();
        let mut path = axis_path(sweep, axis);
        if other.get(axis).is_some_and(|values| values.contains(&value)) {
            continue;
        }
        let at = here.values(sweep, axis).and_then(|values| values.get_index_of(&value));
        path.extend(other.contains_key(axis).then_some(at).flatten().map(Step::Index));
        edits.push(both.one_sided(kind, &path, Some(value)));
    }
    // If the search of the sweep was edited, its loads and their repeats follow from that edit.
    if let Some(search) = both.of_search(sweep).filter(|_| edits.is_empty()) {
        return vec![search];
    }
    let (was, is) = (there.repeats[sweep], here.repeats[sweep]);
    if edits.is_empty() && run.repeat >= was {
        let (old, new) = if kind == Kind::Added { (was, is) } else { (is, was) };
        let path = [sweep_path.clone(), vec!["repeats".into()]].concat();
        edits.push(both.changed(&path, old.to_string(), new.to_string()));
    }
    for axis in other.keys().filter(|axis| run.cell.get(axis).is_none()) {
        let opposite = if kind == Kind::Added { Kind::Removed } else { Kind::Added };
        edits.push(both.one_sided(opposite, &axis_path(sweep, axis), None));
    }
    if edits.is_empty() {
        // The other plan has all values of the run, so a rule of the sweep excluded the cell there.
        edits.push(both.one_sided(Kind::Changed, &[sweep_path, vec!["exclude".into()]].concat(), None));
    }
    edits
}
