//! What a plan may cost, and what it leaves out for that.

use super::checker::{Checker, steps};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::hardware::Hardware;
use crate::plan::model::phases::{FILL, MEASURE, PhasesPatch, STABILIZE};
use crate::plan::model::plan::Plan;
use crate::plan::model::sweep::Sweep;
use crate::plan::text::tree::Step;
use crate::units::{Decimal, Nanos};

impl Checker<'_> {
    /// Checks the budget, and that there is one where sweeps are optional.
    pub(super) fn budget(&mut self, plan: &Plan) {
        let at = steps!["budget"];
        let Some(budget) = plan.budget else {
            let optional = plan.sweeps.iter().find(|(_, sweep)| sweep.optional);
            if let Some((name, _)) = optional.filter(|_| !self.is_given(&[], "budget")) {
                let message =
                    "a sweep that is `optional` is left out where the `budget` says so, and the plan has none";
                let remedy = "add budget: { time: 2h } at the top of the plan, or remove `optional`";
                let at = steps!["sweeps", name.as_str(), "optional"];
                self.report_key(&at, Diagnostic::new(Code::NoEffect, message).remedy(remedy));
            }
            return;
        };
        self.outside(&at, "time", "longer than 0s", budget.time.filter(|time| *time == Nanos::ZERO));
        self.outside(&at, "tokens", "1 or more", budget.tokens.filter(|tokens| tokens.0 == 0));
        self.outside(&at, "money", "above 0", budget.money.filter(|money| !money.is_positive()));
        if budget.time.is_none() && budget.tokens.is_none() && budget.money.is_none() {
            let given = ["time", "tokens", "money"].iter().any(|key| self.is_given(&at, key));
            if !given {
                self.empty(
                    &at,
                    "`budget` says nothing",
                    "write budget: { time: 2h }, { tokens: 20M } or { money: 50 }",
                );
            }
        }
        let runs = plan.sweeps.iter().map(|(name, sweep)| self.least_run(plan, name, sweep));
        let least = runs.collect::<Option<Vec<Nanos>>>().and_then(|runs| runs.into_iter().min());
        let least = least.filter(|least| budget.time.is_some_and(|time| time > Nanos::ZERO && time < *least));
        if let (Some(least), Some(time)) = (least, budget.time) {
            let message = format!("`budget.time` is {time}, and one run takes {least}");
            let diagnostic =
                Diagnostic::new(Code::OutOfRange, message).remedy("write at least as much, or shorten `phases`");
            self.report(&steps!["budget", "time"], diagnostic);
        }
        let has_price = |hardware: &Hardware| hardware.price_per_hour.is_some() || hardware.owned.is_some();
        let unpriced = plan.endpoints.iter().find(|(_, endpoint)| !endpoint.hardware.as_ref().is_some_and(has_price));
        if let Some((name, _)) = unpriced.filter(|_| budget.money.is_some_and(|money: Decimal| money.is_positive())) {
            let message = format!("`money` is counted by prices, and endpoint `{name}` has none");
            let remedy = format!("add hardware: {{ price_per_hour: 10 }} to endpoint `{name}`, or remove `money`");
            self.report_key(&steps!["budget", "money"], Diagnostic::new(Code::MissingField, message).remedy(remedy));
        }
    }

    /// How long a run of a sweep takes at least, without its drain; none where that is not known, or what is written of it is wrong.
    pub(super) fn least_run(&self, plan: &Plan, name: &str, sweep: &Sweep) -> Option<Nanos> {
        if sweep.measures_start() {
            return None;
        }
        let (own, plans) = (&sweep.phases, &plan.phases);
        let is_wrong = |patch: &PhasesPatch, at: &[Step]| {
            let read = [
                ("idle", patch.idle.is_some()),
                ("fill", patch.fill.is_some()),
                ("stabilize", patch.stabilize.is_some()),
                ("measure", patch.measure.is_some()),
            ];
            read.into_iter().any(|(key, is_read)| !is_read && self.is_given(at, key))
        };
        if is_wrong(plans, &steps!["phases"]) || is_wrong(own, &steps!["sweeps", name, "phases"]) {
            return None;
        }
        let fill = match own.fill.or(plans.fill) {
            // A fill by a rate depends on the load.
            Some(fill) => fill.duration.unwrap_or_default(),
            None => FILL,
        };
        let measure = own.measure.or(plans.measure).map_or(MEASURE, |measure| measure.duration);
        let before =
            [own.idle.or(plans.idle).unwrap_or_default(), fill, own.stabilize.or(plans.stabilize).unwrap_or(STABILIZE)];
        Some(before.into_iter().fold(measure, Nanos::saturating_add))
    }
}
