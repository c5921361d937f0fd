//! The best settings of a server: what looking for them needs of the plan, and what stands in its way.

use super::checker::{Checker, steps};
use super::names::fields;
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::axis::server_flag;
use crate::plan::model::hardware::Hardware;
use crate::plan::model::matrix::{Axis, What};
use crate::plan::model::optimize::Aim;
use crate::plan::model::plan::Plan;
use crate::plan::model::sweep::Sweep;
use crate::units::Nanos;

impl Checker<'_> {
    /// Checks a sweep that looks for the best settings of a server.
    pub(super) fn optimize(&mut self, plan: &Plan, name: &str, sweep: &Sweep) {
        let Some(optimize) = sweep.optimize else { return };
        let at = steps!["sweeps", name, "optimize"];
        let matrix = self.tree.walk(&steps!["sweeps", name, "matrix"]).node;
        let is_whole = !matrix.is_damaged() && matrix.holes.is_empty();
        let mut axes = sweep.matrix.iter().flat_map(|(key, axis)| fields(key, axis));
        if is_whole && !axes.any(|axis| server_flag(axis).is_some()) {
            let message = "`optimize` looks for the best settings of a server, and the matrix has no `server` axis";
            let remedy = "add one, like server.max_num_seqs: [64, 128, 256]; the endpoint needs `launch`";
            self.report_key(&at, Diagnostic::new(Code::MissingAxis, message).remedy(remedy));
        }
        for (other, is_there) in [("search", sweep.search.is_some()), ("stop", sweep.stop.is_some())] {
            if is_there {
                let message = format!("`{other}` and `optimize` both decide which runs are made");
                let remedy = format!("keep one of the two, or put `{other}` into a sweep of its own");
                self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
            }
        }
        if sweep.repeats.at_most != 1 {
            let message = "`repeats` has no effect beside `optimize`, which makes longer runs where settings are alike";
            let diagnostic = Diagnostic::new(Code::NoEffect, message).remedy("remove `repeats`");
            self.report_key(&steps!["sweeps", name, "repeats"], diagnostic);
        }
        if sweep.measures_start() {
            let message = "`optimize` compares settings under a load, and `measure: start` has none";
            self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy("keep one of the two"));
        }
        if sweep.compare.is_some() {
            let message = "settings that `optimize` leaves out have fewer runs, and nothing can be compared in rounds";
            let remedy = "compare the best ones in a sweep of its own that comes `after` this one";
            let at = steps!["sweeps", name, "compare"];
            self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
        if !sweep.add.is_empty() {
            let message = "`add` writes whole cells, and `optimize` compares settings in equal ones";
            let remedy = "write the settings as axes of the matrix";
            self.report_key(
                &steps!["sweeps", name, "add"],
                Diagnostic::new(Code::Contradiction, message).remedy(remedy),
            );
        }
        self.aimed(plan, name, optimize.aim);
        let run = self.least_run(plan, name, sweep).unwrap_or(Nanos::ZERO);
        let settings = settings(sweep);
        let least = Nanos(run.0.saturating_mul(settings));
        if optimize.budget == Nanos::ZERO || optimize.budget < least {
            let takes = match settings {
                1 => format!("one run takes, {least}"),
                _ => format!("one run of each of the {settings} settings takes, {least}"),
            };
            let message = format!("a budget of {} is less than {takes}", optimize.budget);
            let remedy = "write at least the time of a run of each of the settings, with their starts";
            let at = steps!["sweeps", name, "optimize", "budget"];
            self.report(&at, Diagnostic::new(Code::OutOfRange, message).remedy(remedy));
        }
    }

    /// Checks that what the settings are to be best at is known.
    fn aimed(&mut self, plan: &Plan, name: &str, aim: Aim) {
        let at = steps!["sweeps", name, "optimize", "for"];
        let is_given = |checker: &Self, key: &str| checker.is_given(&[], key);
        let has_limits = plan.slo.is_some() || plan.goodput.is_some();
        if aim == Aim::Goodput && !has_limits && !is_given(self, "slo") && !is_given(self, "goodput") {
            let message = "`for: goodput` counts requests that are good, and the plan does not say what is good";
            let remedy = "add limits at the top of the plan, like goodput: { ttft: 500ms, tpot: 50ms }";
            self.report(&at, Diagnostic::new(Code::MissingField, message).remedy(remedy));
        }
        let is_priced = |hardware: &Hardware| hardware.price_per_hour.is_some() || hardware.owned.is_some();
        let has_price = plan.endpoints.values().filter_map(|endpoint| endpoint.hardware.as_ref()).any(is_priced);
        if aim == Aim::CostPerMillion && !has_price {
            let message = "`for: cost_per_million` needs a price, and no endpoint has one";
            let remedy = "add hardware: { price_per_hour: 31.20 } to the endpoint";
            self.report(&at, Diagnostic::new(Code::MissingField, message).remedy(remedy));
        }
    }
}

/// How many settings a sweep compares at least: all combinations of its `server` axes, where no rule leaves some out.
fn settings(sweep: &Sweep) -> u64 {
    let is_plain = |axis: &Axis| match axis {
        Axis::Values(items) => items.iter().all(|item| item.when.is_none() && !matches!(item.what, What::Fields(_))),
        Axis::Zip(_) => false,
    };
    let has_rules = sweep.when.is_some() || !sweep.exclude.is_empty() || !sweep.extend.is_empty();
    let mut flags = sweep.matrix.iter().filter(|(key, _)| server_flag(key).is_some());
    if has_rules || !sweep.matrix.iter().all(|(_, axis)| is_plain(axis)) {
        return 1;
    }
    flags.try_fold(1_u64, |all, (key, _)| all.checked_mul(sweep.values(key).len() as u64)).unwrap_or(u64::MAX).max(1)
}
