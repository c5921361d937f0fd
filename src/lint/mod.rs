//! The methodology of the field, as rules that check a plan. They find settings that make the plan's
//! results less meaningful than they seem.
//!
//! A rule inspects a valid plan and the values of its axes, and returns findings. Only the rule that counts
//! server starts inspects cells. This module removes the findings that the plan allows, merges equal findings
//! of several sweeps or endpoints into one lint, and adds the place of each lint. `rule` contains the only
//! table of rules; their pages are written by hand, and `docs/LINT.md` is generated from both.

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

/// One lint: a finding of a rule, merged over all sweeps, endpoints or models that share it.
#[derive(Debug, Clone, PartialEq)]
pub struct Lint {
    /// The code of the rule.
    pub code: LintCode,
    /// The severity of the lint.
    pub severity: Severity,
    /// The subjects of the lint; never empty.
    pub(crate) scopes: Vec<Scope>,
    /// The place of the lint's first subject in the plan; `None` for the plan as a whole.
    pub place: Option<Place>,
    /// The problem, with its figures.
    pub message: String,
    /// The remedy, such as the text to write in the plan.
    pub remedy: String,
    /// The aspect of the results that the lint puts in doubt.
    pub(crate) threatens: Threat,
    /// Names of facts that are not disclosed; empty if the lint is about something else.
    pub(crate) undisclosed: Vec<String>,
}

/// Returns every lint of a plan, the most important first: ordered by threat, severity and subject.
/// `calibrated` is `None` if no calibration applies to this host.
pub fn lint(loaded: &Loaded, calibrated: Option<&Calibrated>) -> Vec<Lint> {
    let view = View::new(&loaded.plan, calibrated);
    let mut found: Vec<(LintCode, Severity, Finding)> = Vec::new();
    for rule in &RULES {
        found.extend(rule.check.findings(&view).into_iter().map(|finding| (rule.code, rule.severity, finding)));
        found.extend(rule.notes.findings(&view).into_iter().map(|finding| (rule.code, Severity::Note, finding)));
    }
    // A fragment is used by several plans, so parts that one of them does not need are not errors.
    let is_shared = |at: &[Step]| loaded.place(at).is_some_and(|place| place.file != loaded.file());
    found.retain(|(code, _, finding)| *code != LintCode::NeverUsed || !is_shared(&finding.at));
    let kept = allow::apply(&loaded.plan, found, calibrated);
    /// The key by which lints are merged: code, message and remedy.
    type Said = (LintCode, String, String);
    /// Severity, place of the first subject, undisclosed facts, and subjects.
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

/// For each subject: its position in the order of the plan.
type Places = std::collections::HashMap<Scope, usize>;

/// Numbers all subjects: the plan, then its endpoints, models, scenarios and sweeps, in the order in
/// which they are written.
fn places(plan: &Plan) -> Places {
    let endpoints = plan.endpoints.keys().cloned().map(Scope::Endpoint);
    let models = plan.models.keys().cloned().map(Scope::Model);
    let scenarios = plan.scenarios.keys().cloned().map(Scope::Scenario);
    let sweeps = plan.sweeps.keys().cloned().map(Scope::Sweep);
    let all = [Scope::Plan].into_iter().chain(endpoints).chain(models).chain(scenarios).chain(sweeps);
    all.enumerate().map(|(place, scope)| (scope, place)).collect()
}
