//! Converts all forms of an AIPerf configuration to one form, in which the benchmark's settings are under
//! `benchmark`, and `datasets` and `phases` are tables keyed by name
//! (`src/aiperf/config/loader/normalizers.py`).

use indexmap::IndexMap;

use super::leaves::Tree;
use crate::import::secrets::names_headers;

/// Keys that stay outside of `benchmark`.
const ENVELOPE: [&str; 7] =
    ["schema_version", "random_seed", "variables", "sweep", "multi_run", "no_sweep_table", "plot"];
/// Tables whose keys are names, which stay unchanged.
const NAMED: [&str; 7] = ["headers", "extra", "variables", "filters", "parameters", "slos", "values"];

/// Converts `camelCase` to `snake_case`, because AIPerf accepts keys in both forms.
pub(super) fn snake(key: &str) -> String {
    let mut out = String::with_capacity(key.len() + 4);
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Normalizes the spelling of keys; values stay unchanged.
pub(super) fn keys(tree: &mut Tree) {
    match tree {
        Tree::Leaf(_) => {}
        Tree::List(items) => items.iter_mut().for_each(keys),
        Tree::Map(entries) => {
            let old = std::mem::take(entries);
            for (key, mut value) in old {
                let key = if key.starts_with(|c: char| c.is_ascii_lowercase()) { snake(&key) } else { key };
                let is_named = NAMED.contains(&key.as_str()) || names_headers(&key);
                if !is_named {
                    keys(&mut value);
                }
                entries.insert(key, value);
            }
        }
    }
}

/// Moves the benchmark's settings under `benchmark`, as in the newest form of the configuration.
pub(super) fn envelope(tree: &mut Tree) {
    let Tree::Map(entries) = tree else { return };
    let mut body = match entries.shift_remove("benchmark") {
        Some(Tree::Map(body)) => body,
        Some(other) => return drop(entries.insert("benchmark".to_owned(), other)),
        None => IndexMap::new(),
    };
    let outside: Vec<String> = entries.keys().filter(|key| !ENVELOPE.contains(&key.as_str())).cloned().collect();
    for key in outside {
        if let Some(value) = entries.shift_remove(&key) {
            // The benchmark's own value wins; the other value stays in place and is listed.
            if body.contains_key(&key) {
                entries.insert(key, value);
            } else {
                body.insert(key, value);
            }
        }
    }
    lists(&mut body);
    entries.insert("benchmark".to_owned(), Tree::Map(body));
    // Runs of a scenario list are partial configurations.
    if let Some(Tree::Map(sweep)) = entries.get_mut("sweep")
        && let Some(Tree::List(runs)) = sweep.get_mut("runs")
    {
        runs.iter_mut().for_each(run);
    }
}

/// Converts one entry of a scenario list.
fn run(tree: &mut Tree) {
    let Tree::Map(entries) = tree else { return };
    let own = |key: &str| ["name", "variables", "benchmark", "values"].contains(&key);
    let outside: Vec<String> = entries.keys().filter(|key| !own(key)).cloned().collect();
    let mut body = match entries.shift_remove("benchmark") {
        Some(Tree::Map(body)) => body,
        _ => IndexMap::new(),
    };
    for key in outside {
        if let Some(value) = entries.shift_remove(&key) {
            body.entry(key).or_insert(value);
        }
    }
    lists(&mut body);
    entries.insert("benchmark".to_owned(), Tree::Map(body));
}

/// Converts data sets and phases to tables keyed by name.
fn lists(body: &mut IndexMap<String, Tree>) {
    if let Some(one) = body.shift_remove("dataset") {
        body.entry("datasets".to_owned()).or_insert_with(|| Tree::Map(IndexMap::from([("default".to_owned(), one)])));
    }
    let mut phases = match body.shift_remove("phases") {
        Some(flat @ Tree::Map(_)) if flat.get("type").is_some() => IndexMap::from([("profiling".to_owned(), flat)]),
        Some(other) => named(other),
        None => IndexMap::new(),
    };
    for name in ["warmup", "profiling"] {
        if let Some(one) = body.shift_remove(name) {
            phases.entry(name.to_owned()).or_insert(one);
        }
    }
    if !phases.is_empty() {
        body.insert("phases".to_owned(), Tree::Map(phases));
    }
    if let Some(datasets) = body.shift_remove("datasets") {
        body.insert("datasets".to_owned(), Tree::Map(named(datasets)));
    }
}

/// Converts a list of named tables to one table keyed by name.
fn named(tree: Tree) -> IndexMap<String, Tree> {
    match tree {
        Tree::Map(entries) => entries,
        Tree::List(items) => {
            let mut all = IndexMap::new();
            for (number, item) in items.into_iter().enumerate() {
                let said = item.get("name").map(Tree::json);
                let name = said.and_then(|name| name.as_str().map(str::to_owned));
                let name = name.unwrap_or_else(|| if number == 0 { "default".to_owned() } else { number.to_string() });
                let free = if all.contains_key(&name) { format!("{name}-{number}") } else { name };
                all.insert(free, item);
            }
            all
        }
        leaf @ Tree::Leaf(_) => IndexMap::from([("default".to_owned(), leaf)]),
    }
}
