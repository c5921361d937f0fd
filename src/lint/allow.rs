//! Takes out what the plan allows, and says which of its allowances allow nothing.

use crate::plan::{Allow, LintCode, Plan, Severity, Step};

use super::calibrated::Calibrated;
use super::finding::{Finding, Scope};
use super::view::steps;

/// An `allow` of the plan, where it stands, and whether it allowed something.
struct Entry<'p> {
    allow: &'p Allow,
    /// The sweep it stands in.
    sweep: Option<&'p str>,
    at: Vec<Step>,
    used: bool,
}

impl Entry<'_> {
    /// Whether it is meant for a finding: one of the plan for all, one of a sweep for those about that sweep.
    fn is_for(&self, code: LintCode, finding: &Finding) -> bool {
        let inside = match (self.sweep, &finding.scope) {
            (None, _) => true,
            (Some(sweep), Scope::Sweep(name)) => sweep == name,
            (Some(_), _) => false,
        };
        self.allow.code == code && inside
    }
}

/// What is left of `found`, and a note for every allowance that was not needed.
pub(super) fn apply(
    plan: &Plan,
    found: Vec<(LintCode, Severity, Finding)>,
    calibrated: Option<&Calibrated>,
) -> Vec<(LintCode, Severity, Finding)> {
    let mut entries = entries(plan);
    let codes: Vec<LintCode> = found.iter().map(|(code, ..)| *code).collect();
    let mut kept = Vec::new();
    for (code, severity, finding) in found {
        match entries.iter_mut().find(|entry| entry.is_for(code, &finding)) {
            Some(entry) => entry.used = true,
            None => kept.push((code, severity, finding)),
        }
    }
    // On a host without a calibration nothing can be beyond it, and the plan is right all the same.
    let unknown = |code| code == LintCode::BeyondCalibration && calibrated.is_none();
    let idle = entries.iter().filter(|entry| !entry.used && !unknown(entry.allow.code));
    kept.extend(
        idle.map(|entry| (LintCode::IdleAllow, Severity::Note, note(entry, codes.contains(&entry.allow.code)))),
    );
    kept
}

fn entries(plan: &Plan) -> Vec<Entry<'_>> {
    fn of<'p>(allowed: &'p [Allow], sweep: Option<&'p str>) -> impl Iterator<Item = Entry<'p>> {
        let parents = sweep.map_or_else(Vec::new, |name| steps!["sweeps", name]);
        allowed.iter().enumerate().map(move |(index, allow)| {
            let at = parents.iter().cloned().chain(steps!["allow", index]).collect::<Vec<_>>();
            Entry { allow, sweep, at, used: false }
        })
    }
    // A sweep's own come first: where they stand, the plan's are not needed.
    let of_sweeps = plan.sweeps.iter().flat_map(|(name, sweep)| of(&sweep.allow, Some(name)));
    of_sweeps.chain(of(&plan.allow, None)).collect()
}

fn note(entry: &Entry, found_elsewhere: bool) -> Finding {
    let code = entry.allow.code;
    let (scope, message, remedy) = match entry.sweep {
        Some(sweep) if found_elsewhere => (
            Scope::Sweep(sweep.to_owned()),
            format!("this allows {code} for the sweep, and {code} is found outside it"),
            "write it under the plan's own `allow`, or remove it".to_owned(),
        ),
        Some(sweep) => (Scope::Sweep(sweep.to_owned()), idle(code), REMOVE.to_owned()),
        None => (Scope::Plan, idle(code), REMOVE.to_owned()),
    };
    Finding { scope, at: entry.at.clone(), message, remedy, undisclosed: Vec::new() }
}

const REMOVE: &str = "remove it: an opt-out that nothing needs hides the next mistake";

fn idle(code: LintCode) -> String {
    format!("this allows {code}, and {code} finds nothing here")
}
