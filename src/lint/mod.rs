//! The methodology of the field as rules over a plan: what would make its results say less than they seem to.
//!
//! A rule looks at a plan that is right as such and at the values of its axes, never at its cells. It gives findings;
//! here what the plan allows is taken out, what is the same for several sweeps or endpoints becomes one lint, and each
//! gets its place. `rule` is the one table of rules; their pages are written by hand, `docs/LINT.md` is made from both.

mod allow;
mod calibrated;
mod expect;
mod finding;
pub mod rule;
mod rules;
mod show;
mod threat;
mod view;

#[cfg(test)]
mod tests;

use indexmap::{IndexMap, IndexSet};

use crate::plan::{LintCode, Loaded, Place, Plan, Severity, Step};

pub(crate) use calibrated::{Calibrated, Held};
pub(crate) use finding::Scope;
pub(crate) use rule::RULES;
pub use show::{counts, text};
pub(crate) use threat::Threat;

use finding::Finding;
use view::View;

/// One lint: what a rule found, once for all sweeps, endpoints or models for which it is the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Lint {
    /// The rule.
    pub code: LintCode,
    /// How much it weighs.
    pub severity: Severity,
    /// What it is about; never empty.
    pub(crate) scopes: Vec<Scope>,
    /// Where it is written, for the first of these; none for the plan as a whole.
    pub place: Option<Place>,
    /// What is wrong, with its figures.
    pub message: String,
    /// What to type.
    pub remedy: String,
    /// What it puts in doubt.
    pub(crate) threatens: Threat,
    /// Facts that are not disclosed, by name; empty where it is about something else.
    pub(crate) undisclosed: Vec<String>,
}

/// Every lint of a plan, the most important first: by what it threatens, its weight and what it is about. `calibrated` is none where no calibration applies to this host.
pub fn lint(loaded: &Loaded, calibrated: Option<&Calibrated>) -> Vec<Lint> {
    let view = View::new(&loaded.plan, calibrated);
    let mut found: Vec<(LintCode, Severity, Finding)> = Vec::new();
    for rule in &RULES {
        found.extend(rule.check.findings(&view).into_iter().map(|finding| (rule.code, rule.severity, finding)));
        found.extend(rule.notes.findings(&view).into_iter().map(|finding| (rule.code, Severity::Note, finding)));
    }
    // A fragment serves several plans: what one of them does not need is no slip.
    let is_shared = |at: &[Step]| loaded.place(at).is_some_and(|place| place.file != loaded.file());
    found.retain(|(code, _, finding)| *code != LintCode::NeverUsed || !is_shared(&finding.at));
    let kept = allow::apply(&loaded.plan, found, calibrated);
    /// What is said once: code, message and remedy.
    type Said = (LintCode, String, String);
    /// How much it weighs, where the first stands, what is not disclosed, and what it is about.
    type Merged = (Severity, Vec<Step>, Vec<String>, IndexSet<Scope>);
    let mut merged: IndexMap<Said, Merged> = IndexMap::new();
    for (code, severity, Finding { scope, at, message, remedy, undisclosed }) in kept {
        let new = || (severity, at, undisclosed, IndexSet::new());
        merged.entry((code, message, remedy)).or_insert_with(new).3.insert(scope);
    }
    let one = |((code, message, remedy), (severity, at, undisclosed, scopes)): (Said, Merged)| Lint {
        code,
        severity,
        scopes: scopes.into_iter().collect(),
        place: loaded.place(&at),
        message,
        remedy,
        threatens: rule::of(code).threatens,
        undisclosed,
    };
    let mut lints: Vec<Lint> = merged.into_iter().map(one).collect();
    let places: Places = places(&loaded.plan);
    lints.sort_by_cached_key(|lint| {
        let about = lint.scopes.iter().map(|scope| places.get(scope).copied()).collect::<Vec<_>>();
        (lint.threatens, lint.severity == Severity::Note, about)
    });
    lints
}

/// Where in the order of a plan something stands.
type Places = std::collections::HashMap<Scope, usize>;

/// The plan, then its endpoints, models, scenarios and sweeps, as they are written.
fn places(plan: &Plan) -> Places {
    let endpoints = plan.endpoints.keys().cloned().map(Scope::Endpoint);
    let models = plan.models.keys().cloned().map(Scope::Model);
    let scenarios = plan.scenarios.keys().cloned().map(Scope::Scenario);
    let sweeps = plan.sweeps.keys().cloned().map(Scope::Sweep);
    let all = [Scope::Plan].into_iter().chain(endpoints).chain(models).chain(scenarios).chain(sweeps);
    all.enumerate().map(|(place, scope)| (scope, place)).collect()
}
