//! Rules about declarations that no sweep uses.

use std::collections::HashSet;

use super::super::finding::{Finding, Scope};
use super::super::view::View;

/// M022: a scenario is unused: no sweep sends it, no used scenario is based on it, and no used mix
/// contains it.
pub(crate) fn scenarios(view: &View) -> Vec<Finding> {
    let table = &view.plan.scenarios;
    let mut used: HashSet<&str> = HashSet::new();
    let mut next: Vec<String> = on_axis(view, "scenario").into_iter().collect();
    while let Some(name) = next.pop() {
        let Some((name, scenario)) = table.get_key_value(&name) else { continue };
        if used.insert(name) {
            next.extend(scenario.base.clone());
            next.extend(scenario.mix.iter().map(|part| part.scenario.clone()));
        }
    }
    let unused = table.keys().filter(|name| !used.contains(name.as_str()));
    let finding = |name: &String| {
        let remedy =
            format!("write `scenario: {name}` in the matrix of the sweep that should use it, or remove the scenario");
        Finding::of(Scope::Scenario(name.clone()), &[], "the scenario is declared, but no sweep uses it", remedy)
    };
    unused.map(finding).collect()
}

/// M022, as a note: no sweep measures an endpoint or a model.
pub(crate) fn endpoints_and_models(view: &View) -> Vec<Finding> {
    let endpoints = unused(view, "endpoint", view.plan.endpoints.keys(), Scope::Endpoint);
    endpoints.chain(unused(view, "model", view.plan.models.keys(), Scope::Model)).collect()
}

/// Returns findings for the names of a table that are not on the axis of any sweep.
fn unused<'p>(
    view: &View,
    axis: &'p str,
    names: impl Iterator<Item = &'p String>,
    scope: fn(String) -> Scope,
) -> impl Iterator<Item = Finding> {
    let used = on_axis(view, axis);
    names.filter(move |name| !used.contains(*name)).map(move |name| {
        let remedy = format!(
            "write `{axis}: {name}` in the matrix of the sweep that should measure it, or remove the declaration"
        );
        Finding::of(scope(name.clone()), &[], "the declaration is not used by any sweep", remedy)
    })
}

/// The names on an axis, over all sweeps.
fn on_axis(view: &View, axis: &str) -> HashSet<String> {
    view.sweeps.iter().flat_map(|sweep| sweep.values(axis)).map(|value| value.to_string()).collect()
}
