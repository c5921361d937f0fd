//! Converts `sweep:` of an AIPerf configuration to its variations, in the same way as `aiperf config expand`
//! (`src/aiperf/config/sweep/expand.py`): a grid is the product of its lists in the order of their names, a
//! zip pairs its lists, and scenarios are applied on top of the base.

use indexmap::IndexMap;

use super::leaves::{At, Ledger, Tree};
use super::shape::snake;
use crate::import::error::ImportError;
use crate::import::text::one_line;

/// Maximum number of variations.
const MOST: usize = 10_000;
/// Phase fields that a sweep may name without a path.
const OF_PHASE: [&str; 12] = [
    "concurrency",
    "prefill_concurrency",
    "rate",
    "requests",
    "duration",
    "sessions",
    "users",
    "smoothness",
    "grace_period",
    "concurrency_ramp",
    "prefill_ramp",
    "rate_ramp",
];
/// Phase fields in which a list is a sweep.
const LISTS: [&str; 8] =
    ["concurrency", "prefill_concurrency", "rate", "requests", "duration", "sessions", "users", "smoothness"];
/// Keys that identify the kind of a distribution.
const KINDS: [&str; 6] = ["peaks", "points", "value", "median", "stddev", "p50"];

/// One variation: the whole configuration without its sweep.
pub(super) struct Variation {
    /// The name of the variation, if any.
    pub name: Option<String>,
    /// The configuration.
    pub tree: Tree,
}

/// Returns all variations of a configuration.
pub(super) fn all(place: &str, mut tree: Tree, ledger: &Ledger) -> Result<Vec<Variation>, ImportError> {
    let sweep = match &mut tree {
        Tree::Map(entries) => entries.shift_remove("sweep"),
        _ => None,
    };
    let Some(sweep) = sweep else { return magic(place, tree, ledger) };
    let at = At::new(&sweep, ledger);
    let kind = at.get("type").text().map_or_else(|| "grid".to_owned(), |said| said.value);
    order(at);
    let lists = at.first(&["parameters", "variables"]);
    if !lists.is_there() && !at.get("type").is_there() {
        // A sweep without variations contains only settings that apply to every sweep, such as
        // `cooldown_seconds`.
        at.needless("nothing is varied");
        return magic(place, tree, ledger);
    }
    match kind.as_str() {
        "grid" => {
            at.get("type").needless("every combination is measured");
            product(place, tree, &paths(place, lists)?, ledger)
        }
        "zip" => side_by_side(place, tree, &paths(place, lists)?, ledger),
        "scenarios" => scenarios(place, &tree, (at.get("runs"), &sweep), ledger),
        _ => {
            let why = "the points of this sweep come from a search or a random sequence, so the plan has only the \
                       base values: write a list \
                       of values, or `search` of a sweep for the highest load under an `slo`";
            at.missing(why);
            magic(place, tree, ledger)
        }
    }
}

/// Lists the settings that control the order of AIPerf's runs.
fn order(at: At) {
    at.get("iteration_order").needless("the plan's seed shuffles the runs within each repeat");
    at.get("same_seed").needless("all cells of a repeat get the same requests");
    at.get("recipe_name").needless("a recipe's name, without effect");
}

/// The steps of a path into the configuration, and the values that the sweep sets at that path.
type Varied = (Vec<String>, Vec<Tree>);

/// Returns the paths and values of a grid or zip.
fn paths(place: &str, at: At<'_>) -> Result<Vec<Varied>, ImportError> {
    let mut all = Vec::new();
    for (path, values) in at.entries() {
        let steps = steps(path);
        let values = values.trees();
        if values.is_empty() {
            let what = format!("sweep: `{}` has no values", one_line(path));
            return Err(ImportError::shape(place, what, "write a list of values"));
        }
        all.push((steps, values));
    }
    if all.is_empty() {
        return Err(ImportError::shape(
            place,
            "the sweep varies nothing",
            "write `parameters: { concurrency: [1, 2] }`",
        ));
    }
    all.sort_by_key(|(steps, _)| steps.join("."));
    Ok(all)
}

/// Returns the steps of a path. The name of a phase field without a path means that field of
/// `phases.profiling`.
fn steps(path: &str) -> Vec<String> {
    match path {
        alone if OF_PHASE.contains(&alone) => ["phases", "profiling", alone].map(str::to_owned).to_vec(),
        path => path.split('.').map(snake).collect(),
    }
}

fn bounded(place: &str, count: Option<usize>) -> Result<(), ImportError> {
    let place = place.to_owned();
    let remedy = "import a part of the sweep";
    match count {
        Some(count) if count <= MOST => Ok(()),
        _ => Err(ImportError::TooMany { place, what: "variations", most: MOST, remedy }),
    }
}

fn product(
    place: &str,
    tree: Tree,
    lists: &[(Vec<String>, Vec<Tree>)],
    ledger: &Ledger,
) -> Result<Vec<Variation>, ImportError> {
    bounded(place, lists.iter().try_fold(1_usize, |count, (_, values)| count.checked_mul(values.len())))?;
    let mut all = vec![tree];
    for (path, values) in lists {
        let mut next = Vec::with_capacity(all.len() * values.len());
        for tree in &all {
            for value in values {
                next.push(with(place, tree, (path, value), ledger)?);
            }
        }
        all = next;
    }
    Ok(all.into_iter().map(|tree| Variation { name: None, tree }).collect())
}

fn side_by_side(
    place: &str,
    tree: Tree,
    lists: &[(Vec<String>, Vec<Tree>)],
    ledger: &Ledger,
) -> Result<Vec<Variation>, ImportError> {
    let count = lists.first().map_or(0, |(_, values)| values.len());
    bounded(place, Some(count))?;
    if let Some((path, values)) = lists.iter().find(|(_, values)| values.len() != count) {
        let what = format!("zip: `{}` has {} values, another list has {count}", path.join("."), values.len());
        return Err(ImportError::shape(place, what, "give all lists the same length"));
    }
    let one = |number: usize| {
        let made = lists
            .iter()
            .try_fold(tree.clone(), |tree, (path, values)| with(place, &tree, (path, &values[number]), ledger));
        made.map(|tree| Variation { name: None, tree })
    };
    (0..count).map(one).collect()
}

/// Returns the variations of a configuration whose phases contain lists in place of numbers, which AIPerf
/// also treats as a sweep.
fn magic(place: &str, tree: Tree, ledger: &Ledger) -> Result<Vec<Variation>, ImportError> {
    let mut lists = Vec::new();
    if let Some(Tree::Map(phases)) = tree.get("benchmark").and_then(|body| body.get("phases")) {
        for (name, phase) in phases {
            for key in LISTS {
                if let Some(Tree::List(values)) = phase.get(key) {
                    lists.push((["phases", name, key].map(str::to_owned).to_vec(), values.clone()));
                }
            }
        }
    }
    product(place, tree, &lists, ledger)
}

fn scenarios(
    place: &str,
    tree: &Tree,
    (runs, sweep): (At, &Tree),
    ledger: &Ledger,
) -> Result<Vec<Variation>, ImportError> {
    let Some(Tree::List(entries)) = sweep.get("runs") else {
        return Err(ImportError::shape(
            place,
            "the sweep has no runs",
            "write `runs: [{ name: …, benchmark: { … } }]`",
        ));
    };
    bounded(place, Some(entries.len()))?;
    let mut all = Vec::new();
    for (entry, at) in entries.iter().zip(runs.each()) {
        let name = at.get("name").text().map(|said| said.value);
        at.get("values").needless("columns of the results identify a run");
        let mut over = entry.clone();
        if let Tree::Map(over) = &mut over {
            ["name", "values"].iter().for_each(|key| drop(over.shift_remove(*key)));
            rename(over, tree);
        }
        let mut tree = tree.clone();
        lay(&mut tree, over, ledger);
        all.push(Variation { name, tree });
    }
    Ok(all)
}

/// Gives an unnamed data set of a scenario the name of the base's only data set, which it overrides.
fn rename(over: &mut IndexMap<String, Tree>, base: &Tree) {
    let own = base.get("benchmark").and_then(|body| body.get("datasets"));
    let (Some(Tree::Map(own)), Some(Tree::Map(body))) = (own, over.get_mut("benchmark")) else { return };
    if let (Some(Tree::Map(datasets)), 1) = (body.get_mut("datasets"), own.len())
        && let (Some(only), Some(name)) = (datasets.shift_remove("default"), own.keys().next())
    {
        datasets.insert(name.clone(), only);
    }
}

/// Applies a tree on top of another: tables are merged, other values are replaced.
fn lay(base: &mut Tree, over: Tree, ledger: &Ledger) {
    match (base, over) {
        (Tree::Map(base), Tree::Map(over)) if !is_other_kind(base, &over) => {
            for (key, value) in over {
                match base.get_mut(&key) {
                    Some(known) => lay(known, value, ledger),
                    None => drop(base.insert(key, value)),
                }
            }
        }
        (base, over) => {
            ledger.replaced(base);
            *base = over;
        }
    }
}

/// Whether both values are distributions of different kinds.
fn is_other_kind(base: &IndexMap<String, Tree>, over: &IndexMap<String, Tree>) -> bool {
    let kinds =
        |table: &IndexMap<String, Tree>| KINDS.into_iter().filter(|kind| table.contains_key(*kind)).collect::<Vec<_>>();
    let (base, over) = (kinds(base), kinds(over));
    !base.is_empty() && !over.is_empty() && base != over
}

/// Replaces the value at a path. A path that begins with `variables` is next to `benchmark`; all other paths
/// are inside `benchmark`.
fn with(place: &str, tree: &Tree, (path, value): (&[String], &Tree), ledger: &Ledger) -> Result<Tree, ImportError> {
    let mut tree = tree.clone();
    let is_outside = path.first().is_some_and(|step| step == "variables");
    let mut at = &mut tree;
    let (before, mut is_named) = (["benchmark".to_owned()], false);
    let (last, parents) = path.split_last().expect("a path has a step");
    for step in before.iter().filter(|_| !is_outside).chain(parents) {
        let Tree::Map(entries) = at else { return Err(no_place(place, path)) };
        let step = alias(entries, step);
        // A phase or data set that does not exist counts as a typo.
        if is_named && !entries.is_empty() && !entries.contains_key(&step) {
            return Err(no_place(place, path));
        }
        is_named = ["phases", "datasets"].contains(&step.as_str());
        at = entries.entry(step).or_insert_with(|| Tree::Map(IndexMap::new()));
    }
    // The path leads into a distribution that the base gives as a plain number, so a table replaces the
    // number.
    if let Tree::Leaf(_) = at {
        ledger.replaced(at);
        *at = Tree::Map(IndexMap::new());
    }
    let Tree::Map(entries) = at else { return Err(no_place(place, path)) };
    if let Some(old) = entries.insert(last.clone(), value.clone()) {
        ledger.replaced(&old);
    }
    Ok(tree)
}

/// Returns the name of the phase or data set that a step refers to. A number is a position; `profiling`,
/// `default` and `main` mean the only entry that is not a warm-up.
pub(super) fn alias(entries: &IndexMap<String, Tree>, step: &str) -> String {
    if entries.contains_key(step) {
        return step.to_owned();
    }
    if let Some((name, _)) = step.parse::<usize>().ok().and_then(|number| entries.get_index(number)) {
        return name.clone();
    }
    let mut others = entries.keys().filter(|name| *name != "warmup");
    match (step, others.next(), others.next()) {
        ("profiling" | "default" | "main", Some(only), None) => only.clone(),
        _ => step.to_owned(),
    }
}

fn no_place(place: &str, path: &[String]) -> ImportError {
    let what = format!("sweep: unknown path `{}`", one_line(&path.join(".")));
    ImportError::shape(place, what, "name a field of the benchmark, such as phases.profiling.rate")
}
