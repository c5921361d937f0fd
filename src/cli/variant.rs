//! Finds the results that belong to a plan with other values: measured with `--set`, and read without
//! it. Every command that finds no result of the plan names the flags.
//!
//! Results do not record the flags of their command. The flags are derived from the fields in which a result
//! differs from a run of the plan, and are only named if the plan with these flags has the result.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use super::changes::Changes;
use super::workspace::Workspace;
use crate::cli::options::Folder;
use crate::cli::stderr;
use crate::expand::{Expansion, PlannedRun, RunSpec, canonical, expand, origin};
use crate::plan::{Loaded, Step};
use crate::store::RunRecord;
use crate::units::text::quoted;

/// Maximum number of results that are compared with the plan.
const MOST_RESULTS: usize = 100;

/// Maximum number of the plan's runs with which results are compared.
const MOST_RUNS: usize = 100;

/// Maximum number of values in which a result may differ from the plan.
const MOST_VALUES: usize = 4;

/// Maximum number of flags that are tried.
const MOST_TRIES: usize = 8;

/// The flags with which a plan has results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Variant {
    /// The plan as written has results, but not with the values that the call sets.
    AsWritten,
    /// The plan has results with these values, each like `phases.measure=60s`.
    Set(Vec<String>),
}

impl fmt::Display for Variant {
    /// Formats the flags: `of the plan with `--set phases.measure=60s``.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Variant::AsWritten => write!(f, "of the plan without `--set`"),
            Variant::Set(values) => {
                let flags: Vec<String> = values.iter().map(|value| format!("--set {}", quoted(value))).collect();
                write!(f, "of the plan with `{}`", flags.join(" "))
            }
        }
    }
}

/// Returns the flags with which a plan has results in a folder; `None` if there are none, or if the plan has
/// results as it is.
pub(crate) fn of_folder(plan: &Path, changes: &Changes, folder: &Folder) -> Option<Variant> {
    let store = folder.store().ok()?;
    let records = store.stream().ok()?.filter_map(|listed| listed.record).take(MOST_RESULTS);
    of_records(plan, changes, &records.collect::<Vec<_>>())
}

/// Names the flags with which a plan has results, if it has none as it is.
pub(crate) fn note(workspace: &Workspace, plan: &Path, changes: &Changes, folder: &Folder) {
    if workspace.expansion.possible().any(|run| workspace.disk.has(&run.id)) {
        return;
    }
    if let Some(variant) = of_folder(plan, changes, folder) {
        stderr::complain(&format!("note: the plan has no results, but there are results {variant}"));
    }
}

/// Returns the flags with which a plan has one of these results; `None` if there are none, or if the plan has
/// one of them as it is.
pub(crate) fn of_records(plan: &Path, changes: &Changes, records: &[RunRecord]) -> Option<Variant> {
    let (loaded, expansion) = expanded(plan, changes)?;
    if has_any(&expansion, records) {
        return None;
    }
    if changes.set_something() && has_results(plan, &changes.without_set(), records) {
        return Some(Variant::AsWritten);
    }
    let runs: Vec<(&PlannedRun, Fields)> =
        expansion.possible().take(MOST_RUNS).map(|run| (run, fields(&run.spec))).collect();
    // Results with values for the same places, such as several loads, are set together.
    let mut values: BTreeMap<Vec<String>, Vec<Vec<String>>> = BTreeMap::new();
    for record in records {
        let differing = nearest(&loaded, &runs, &fields(&record.spec)).unwrap_or_default();
        if differing.is_empty() {
            continue;
        }
        let (places, own): (Vec<String>, Vec<String>) = differing.into_iter().unzip();
        let all = values.entry(places).or_default();
        if !all.contains(&own) {
            all.push(own);
        }
    }
    let tried = values.iter().flat_map(|(places, all)| sets(places, all));
    let has = |set: &Vec<String>| has_results(plan, &changes.with_set(set), records);
    tried.take(MOST_TRIES).find(has).map(Variant::Set)
}

/// Returns the plan with these changes, and its runs.
fn expanded(plan: &Path, changes: &Changes) -> Option<(Loaded, Expansion)> {
    let loaded = changes.load(plan).ok()?;
    let expansion = expand(&loaded.plan).ok()?;
    Some((loaded, expansion))
}

fn has_results(plan: &Path, changes: &Changes, records: &[RunRecord]) -> bool {
    expanded(plan, changes).is_some_and(|(_, expansion)| has_any(&expansion, records))
}

fn has_any(expansion: &Expansion, records: &[RunRecord]) -> bool {
    let mut ids = expansion.possible().map(|run| run.id.to_string());
    ids.any(|id| records.iter().any(|record| record.id == id))
}

/// The fields of a run's identity, with their values as in a plan.
type Fields = BTreeMap<String, String>;

fn fields(spec: &RunSpec) -> Fields {
    canonical(spec).entries().iter().map(|(field, value)| (field.clone(), value.to_string())).collect()
}

/// Returns the places of the plan in which a result differs from the nearest run, each with the result's
/// value; `None` if it differs in too much, or in something that no flag sets.
fn nearest(loaded: &Loaded, runs: &[(&PlannedRun, Fields)], result: &Fields) -> Option<BTreeMap<String, String>> {
    let (run, own) = runs.iter().min_by_key(|(_, own)| differing(own, result).len())?;
    let fields = differing(own, result);
    if fields.len() > MOST_VALUES {
        return None;
    }
    let mut values = BTreeMap::new();
    for field in fields {
        let written = origin(&loaded.plan, run, field);
        values.insert(place(loaded.settable(&written))?, result.get(field)?.clone());
    }
    Some(values)
}

/// Returns the fields in which two runs differ.
fn differing<'a>(own: &'a Fields, result: &'a Fields) -> Vec<&'a str> {
    let of_own = own.iter().filter(|(field, value)| result.get(*field) != Some(*value));
    let only_of_result = result.iter().filter(|(field, _)| !own.contains_key(*field));
    of_own.chain(only_of_result).map(|(field, _)| field.as_str()).collect()
}

/// Returns a place of the plan as `--set` names it. A value on an axis is set together with the axis.
fn place(steps: &[Step]) -> Option<String> {
    let steps = match steps {
        [of_axis @ .., Step::Index(_)] => of_axis,
        all => all,
    };
    let key = |step: &Step| match step {
        Step::Key(key) if !key.contains(['.', '=', '[']) => Some(key.clone()),
        _ => None,
    };
    let keys: Vec<String> = steps.iter().map(key).collect::<Option<_>>()?;
    (!keys.is_empty()).then(|| keys.join("."))
}

/// Returns the values to set for these places: all at once, if there are several for one place, then those of
/// each result.
fn sets(places: &[String], all: &[Vec<String>]) -> Vec<Vec<String>> {
    let each = all.iter().map(|values| {
        let both = places.iter().zip(values);
        both.map(|(place, value)| format!("{place}={value}")).collect::<Vec<String>>()
    });
    let together = match (places, all) {
        ([place], [_, _, ..]) => {
            let list: Vec<&str> = all.iter().filter_map(|values| values.first()).map(String::as_str).collect();
            Some(vec![format!("{place}=[{}]", list.join(","))])
        }
        _ => None,
    };
    together.into_iter().chain(each).collect()
}
