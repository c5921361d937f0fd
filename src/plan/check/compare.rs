//! Checks of declarations that do not affect runs: comparisons must have cells to compare, and lint
//! opt-outs must have a reason.

use super::checker::{Checker, steps};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::diagnostic::suggest;
use crate::plan::model::allow::Allow;
use crate::plan::model::axis;
use crate::plan::model::compare::{Compare, is_margin};
use crate::plan::model::plan::Plan;
use crate::plan::model::scalar::Scalar;
use crate::plan::model::sweep::Sweep;
use crate::plan::text::tree::Step;

impl Checker<'_> {
    /// Checks `compare` and `allow` of the plan and of every sweep, whose matrices must be normalized.
    /// Returns the plan with the primary names of the compared axes.
    pub(super) fn comparisons(&mut self, mut plan: Plan) -> Plan {
        self.allowed(&steps![], &plan.allow);
        for (name, sweep) in &plan.sweeps {
            self.allowed(&steps!["sweeps", name.as_str()], &sweep.allow);
        }
        let of_sweeps = plan.sweeps.values_mut().map(|sweep| &mut sweep.compare);
        std::iter::once(&mut plan.compare).chain(of_sweeps).flatten().for_each(first_name);
        if let Some(compare) = &plan.compare {
            self.compared(&steps!["compare"], compare, plan.sweeps.iter().collect());
        }
        for (name, sweep) in &plan.sweeps {
            if let Some(compare) = &sweep.compare {
                self.compared(&steps!["sweeps", name.as_str(), "compare"], compare, vec![(name, sweep)]);
            }
        }
        self.loads_of_arms(&plan);
        self.compared_until(&plan);
        plan
    }

    /// Checks that one of `sweeps` has the axis, and that the axis has the baseline and another value to
    /// compare with it.
    fn compared(&mut self, at: &[Step], compare: &Compare, sweeps: Vec<(&String, &Sweep)>) {
        let Compare { by, baseline, metrics: _, margin, sequential: _ } = compare;
        let wrong = margin.filter(|margin| !is_margin(*margin));
        self.outside(at, "margin", "a share above 0% and below 100%", wrong);
        if sweeps.iter().any(|(name, sweep)| compare.applies_to(sweep) || self.is_axis_damaged(name, by)) {
            return;
        }
        let inside = |field: &str| [at, &steps![field]].concat();
        let axes = sweeps.iter().flat_map(|(_, sweep)| sweep.fields());
        let with: Vec<&Sweep> =
            sweeps.iter().map(|(_, sweep)| *sweep).filter(|sweep| sweep.fields().contains(&by.as_str())).collect();
        if with.is_empty() {
            let message = format!("none of the sweeps that `compare` applies to has an axis `{by}`");
            let remedy = match suggest::nearest(by, axes.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("add `{by}` to a matrix, or write {}", choices(axes)),
            };
            return self.report(&inside("by"), Diagnostic::new(Code::UnknownAxis, message).remedy(remedy));
        }
        let values: Vec<Scalar> = with.iter().flat_map(|sweep| sweep.values(by)).collect();
        if let Some(known) = self.names_with_slips(by, &values) {
            // The axis contains an unknown name, which has already been reported. The baseline is reported
            // only if the plan does not declare its name either.
            if !matches!(baseline, Scalar::Text(name) if known.contains(&name.as_str())) {
                self.unknown_name(&inside("baseline"), by, &baseline.to_string(), &known);
            }
            return;
        }
        if !values.contains(baseline) {
            let shown: Vec<String> = values.iter().map(|value| value.to_string()).collect();
            let names = shown.iter().map(String::as_str);
            let remedy = match suggest::nearest(&baseline.to_string(), names.clone()) {
                _ if shown.contains(&baseline.to_string()) => {
                    "write the value exactly as on the axis: numbers without quotes, names with quotes".to_owned()
                }
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("write {}", choices(names)),
            };
            let message = format!("the baseline `{baseline}` is not on axis `{by}`");
            return self.report(&inside("baseline"), Diagnostic::new(Code::UnknownName, message).remedy(remedy));
        }
        let message = format!("nothing to compare `{baseline}` with: it is the only value on axis `{by}`");
        let remedy = format!("add another value to axis `{by}`, or remove `compare`");
        self.report_key(at, Diagnostic::new(Code::NoEffect, message).remedy(remedy));
    }

    /// Whether an axis itself has an error. If so, a comparison by this axis cannot be checked.
    fn is_axis_damaged(&self, sweep: &str, axis: &str) -> bool {
        let matrix = self.tree.walk(&steps!["sweeps", sweep, "matrix"]);
        let values = self.tree.walk(&steps!["sweeps", sweep, "matrix", axis]);
        let (of_matrix, of_values) = (matrix.broken || !matrix.node.holes.is_empty(), values.node.is_damaged());
        of_matrix || (!std::ptr::eq(matrix.node, values.node) && of_values)
    }

    /// Checks that every opt-out of the lint has a reason.
    fn allowed(&mut self, at: &[Step], allowed: &[Allow]) {
        for (index, Allow { code, because }) in allowed.iter().enumerate() {
            if because.trim().is_empty() {
                let at = [at, &steps!["allow", index, "because"]].concat();
                let message = format!("this entry allows {code} without giving a reason");
                self.empty(&at, message, "write why the rule does not apply here, for readers of the results");
            }
        }
    }
}

/// Renames the compared axis to its primary name, as is done in matrices.
fn first_name(compare: &mut Compare) {
    if let Some(first) = axis::first_name(&compare.by) {
        compare.by = first.to_owned();
    }
}

/// Formats names as `a`, `b` or `c`, each name once.
fn choices<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut seen = std::collections::HashSet::new();
    suggest::choices(names.filter(|name| seen.insert(*name)))
}
