//! What a plan declares and no sweep uses.

use std::collections::HashSet;

use super::super::finding::{Finding, Scope};
use super::super::view::{View, steps};
use crate::plan::Step;

/// M022: a scenario that no sweep sends, no used scenario starts from and no used mix has.
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
    let finding = |name: &String| Finding {
        scope: Scope::Scenario(name.clone()),
        at: steps!["scenarios", name.as_str()],
        message: "it is declared, and no sweep sends it".to_owned(),
        remedy: format!("write scenario: {name} in the matrix that is meant to send it, or remove it"),
    };
    unused.map(finding).collect()
}

/// M022, as a note: an endpoint or model that no sweep measures.
pub(crate) fn endpoints_and_models(view: &View) -> Vec<Finding> {
    let endpoints = unused(view, "endpoint", view.plan.endpoints.keys());
    let endpoints = endpoints.map(|(name, remedy)| {
        let at = steps!["endpoints", name.as_str()];
        finding(Scope::Endpoint(name), at, remedy)
    });
    let models = unused(view, "model", view.plan.models.keys());
    let models = models.map(|(name, remedy)| {
        let at = steps!["models", name.as_str()];
        finding(Scope::Model(name), at, remedy)
    });
    endpoints.chain(models).collect()
}

fn finding(scope: Scope, at: Vec<Step>, remedy: String) -> Finding {
    Finding { scope, at, message: "it is declared, and no sweep measures it".to_owned(), remedy }
}

/// The names of a table that are on no sweep's axis, each with what to type.
fn unused<'p>(
    view: &View,
    axis: &'p str,
    names: impl Iterator<Item = &'p String>,
) -> impl Iterator<Item = (String, String)> {
    let used = on_axis(view, axis);
    let unused: Vec<&String> = names.filter(|name| !used.contains(*name)).collect();
    let remedy =
        move |name: &String| format!("write {axis}: {name} in the matrix that is meant to have it, or remove it");
    unused.into_iter().map(move |name| (name.clone(), remedy(name)))
}

/// The names on an axis, over all sweeps.
fn on_axis(view: &View, axis: &str) -> HashSet<String> {
    view.sweeps.iter().flat_map(|sweep| sweep.values(axis)).map(|value| value.to_string()).collect()
}
