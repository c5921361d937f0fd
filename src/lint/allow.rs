//! Removes the findings that the plan allows, and reports the entries of `allow` that have no effect.

use crate::plan::{Allow, LintCode, Plan, Severity, Step};

use super::calibrated::Calibrated;
use super::finding::{Finding, Scope};
use super::view::steps;

/// An entry of `allow`, its place in the plan, and whether it matched a finding.
struct Entry<'p> {
    allow: &'p Allow,
    /// The sweep that contains the entry; `None` for an entry of the plan itself.
    sweep: Option<&'p str>,
    at: Vec<Step>,
    used: bool,
}

impl Entry<'_> {
    /// Whether the entry applies to a finding. An entry of the plan applies everywhere; an entry of a sweep
    /// applies only to findings about this sweep.
    fn is_for(&self, code: LintCode, finding: &Finding) -> bool {
        let inside = match (self.sweep, &finding.scope) {
            (None, _) => true,
            (Some(sweep), Scope::Sweep(name)) => sweep == name,
            (Some(_), _) => false,
        };
        self.allow.code == code && inside
    }
}

/// Returns the remaining findings, and a note for every entry of `allow` that was not needed.
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
    // Without a calibration, it is unknown whether a load exceeds what this host sustains, so an
    // entry that allows such loads is not reported as unneeded.
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
    // A sweep's own entries come first, so a finding that one of them allows does not mark the plan's
    // entries as used.
    let of_sweeps = plan.sweeps.iter().flat_map(|(name, sweep)| of(&sweep.allow, Some(name)));
    of_sweeps.chain(of(&plan.allow, None)).collect()
}

fn note(entry: &Entry, found_elsewhere: bool) -> Finding {
    let code = entry.allow.code;
    let (scope, message, remedy) = match entry.sweep {
        Some(sweep) if found_elsewhere => (
            Scope::Sweep(sweep.to_owned()),
            format!("this entry allows {code} for the sweep, but {code} is found outside the sweep"),
            "write it under the plan's own `allow`, or remove it".to_owned(),
        ),
        Some(sweep) => (Scope::Sweep(sweep.to_owned()), idle(code), REMOVE.to_owned()),
        None => (Scope::Plan, idle(code), REMOVE.to_owned()),
    };
    Finding { scope, at: entry.at.clone(), message, remedy, undisclosed: Vec::new() }
}

const REMOVE: &str = "remove the entry: an unneeded opt-out hides the next problem";

fn idle(code: LintCode) -> String {
    format!("this entry allows {code}, but {code} finds nothing here")
}
