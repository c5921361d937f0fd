//! Checks of searches for the best settings of a server: their requirements on the plan, and conflicting
//! fields.

use super::checker::{Checker, steps};
use super::names::fields;
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::axis::server_flag;
use crate::plan::model::hardware::Hardware;
use crate::plan::model::optimize::Aim;
use crate::plan::model::phases::PhasesPatch;
use crate::plan::model::plan::Plan;
use crate::plan::model::sweep::Sweep;
use crate::units::Nanos;

impl Checker<'_> {
    /// Checks a sweep that searches for the best settings of a server.
    pub(super) fn optimize(&mut self, plan: &Plan, name: &str, sweep: &Sweep) {
        let Some(optimize) = sweep.optimize else { return };
        let at = steps!["sweeps", name, "optimize"];
        let matrix = self.tree.walk(&steps!["sweeps", name, "matrix"]).node;
        let is_whole = !matrix.is_damaged() && matrix.holes.is_empty();
        let mut axes = sweep.matrix.iter().flat_map(|(key, axis)| fields(key, axis));
        if is_whole && !axes.any(|axis| server_flag(axis).is_some()) {
            let message = "`optimize` searches for the best settings of a server, but the matrix has no `server` axis";
            let remedy = "add such an axis, like server.max_num_seqs: [64, 128, 256]; the endpoint also needs `launch`";
            self.report_key(&at, Diagnostic::new(Code::MissingAxis, message).remedy(remedy));
        }
        for (other, is_there) in [("search", sweep.search.is_some()), ("stop", sweep.stop.is_some())] {
            if is_there {
                let message = format!("`{other}` and `optimize` both decide which runs are executed");
                let remedy = format!("keep one of the two fields, or move `{other}` to a separate sweep");
                self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
            }
        }
        if sweep.repeats.at_most != 1 {
            let message = "`repeats` has no effect with `optimize`, which adds longer runs for settings that it \
                           cannot tell apart";
            let diagnostic = Diagnostic::new(Code::NoEffect, message).remedy("remove `repeats`");
            self.report_key(&steps!["sweeps", name, "repeats"], diagnostic);
        }
        if sweep.measures_start() {
            let message = "`optimize` compares settings under a load, but a sweep with `measure: start` has no load";
            self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy("keep one of the two"));
        }
        if sweep.compare.is_some() {
            let message = "settings that `optimize` drops have fewer runs, so there are no complete rounds to compare";
            let remedy = "compare the best settings in a separate sweep that comes `after` this one";
            let at = steps!["sweeps", name, "compare"];
            self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
        if !sweep.add.is_empty() {
            let message = "each entry of `add` is a complete cell, but `optimize` compares settings in otherwise equal \
                           cells";
            let remedy = "write the settings as axes of the matrix";
            self.report_key(
                &steps!["sweeps", name, "add"],
                Diagnostic::new(Code::Contradiction, message).remedy(remedy),
            );
        }
        self.aimed(plan, name, optimize.aim);
        let shortest = written(&plan.phases, &sweep.phases);
        if optimize.budget == Nanos::ZERO || optimize.budget < shortest {
            let message = format!("a budget of {} is less than the duration of one run, {shortest}", optimize.budget);
            let remedy = "write a budget that covers one run of each combination of settings and all server starts";
            let at = steps!["sweeps", name, "optimize", "budget"];
            self.report(&at, Diagnostic::new(Code::OutOfRange, message).remedy(remedy));
        }
    }

    /// Checks that the goal of the optimization is defined.
    fn aimed(&mut self, plan: &Plan, name: &str, aim: Aim) {
        let at = steps!["sweeps", name, "optimize", "for"];
        let is_given = |checker: &Self, key: &str| checker.is_given(&[], key);
        let has_limits = plan.slo.is_some() || plan.goodput.is_some();
        if aim == Aim::Goodput && !has_limits && !is_given(self, "slo") && !is_given(self, "goodput") {
            let message = "`for: goodput` counts good requests, but the plan does not define which requests are good";
            let remedy = "add limits at the top of the plan, like goodput: { ttft: 500ms, tpot: 50ms }";
            self.report(&at, Diagnostic::new(Code::MissingField, message).remedy(remedy));
        }
        let has_price =
            plan.endpoints.values().filter_map(|endpoint| endpoint.hardware.as_ref()).any(Hardware::has_price);
        if aim == Aim::CostPerMillion && !has_price {
            let message = "`for: cost_per_million` needs a price, but no endpoint has one";
            let remedy = "add hardware: { price_per_hour: 31.20 } to the endpoint";
            self.report(&at, Diagnostic::new(Code::MissingField, message).remedy(remedy));
        }
    }
}

/// The duration of the shortest run: the sum of the phases whose lengths the sweep or the plan sets.
fn written(plan: &PhasesPatch, sweep: &PhasesPatch) -> Nanos {
    let measure = sweep.measure.or(plan.measure).map(|measure| measure.duration);
    let fill = sweep.fill.or(plan.fill).and_then(|fill| fill.duration);
    let phases = [fill, sweep.stabilize.or(plan.stabilize), measure];
    phases.into_iter().flatten().fold(Nanos::ZERO, Nanos::saturating_add)
}
