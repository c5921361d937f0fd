//! Checks of a plan's budget, and of the sweeps that it may skip.

use super::checker::{Checker, steps};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::endpoint::Endpoint;
use crate::plan::model::hardware::Hardware;
use crate::plan::model::plan::Plan;
use crate::units::{Decimal, Nanos};

impl Checker<'_> {
    /// Checks the budget, and that there is a budget if sweeps are optional.
    pub(super) fn budget(&mut self, plan: &Plan) {
        let at = steps!["budget"];
        let Some(budget) = plan.budget else {
            let optional = plan.sweeps.iter().find(|(_, sweep)| sweep.optional);
            if let Some((name, _)) = optional.filter(|_| !self.is_given(&[], "budget")) {
                let message = "an `optional` sweep is skipped if the `budget` requires it, but the plan has no budget";
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
                self.empty(&at, "`budget` is empty", "write budget: { time: 2h }, { tokens: 20M } or { money: 50 }");
            }
        }
        let has_price = |endpoint: &Endpoint| endpoint.hardware.as_ref().is_some_and(Hardware::has_price);
        let unpriced = plan.endpoints.iter().find(|(_, endpoint)| !has_price(endpoint));
        if let Some((name, _)) = unpriced.filter(|_| budget.money.is_some_and(|money: Decimal| money.is_positive())) {
            let message = format!("`money` is computed from prices, but endpoint `{name}` has none");
            let remedy = format!("add hardware: {{ price_per_hour: 10 }} to endpoint `{name}`, or remove `money`");
            self.report_key(&steps!["budget", "money"], Diagnostic::new(Code::MissingField, message).remedy(remedy));
        }
    }
}
