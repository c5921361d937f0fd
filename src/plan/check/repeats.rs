//! Checks of the repeats of a sweep: their number, and the precision that ends them.

use super::checker::{Checker, steps};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::plan::Plan;
use crate::plan::model::sweep::Sweep;
use crate::plan::text::tree::Value;
use crate::units::{Decimal, Share};

/// Minimum number of repeats for an interval of a mean.
const FEWEST: u32 = 3;
/// The highest and the lowest precision of a mean that `until` may request.
const WITHIN: (Share, Share) = (Share(Decimal::new(1, 3)), Share::percent(50));

impl Checker<'_> {
    /// Checks how often the cells of a sweep are run.
    pub(super) fn repeats(&mut self, name: &str, sweep: &Sweep) {
        let at = steps!["sweeps", name, "repeats"];
        let repeats = &sweep.repeats;
        let is_table = matches!(self.tree.walk(&at).node.value, Value::Map(_));
        let (table, field) = if is_table { (&at[..], "at_most") } else { (&at[..2], "repeats") };
        let Some(until) = repeats.until else {
            self.outside(table, field, "1 or more", (repeats.at_most == 0).then_some(0));
            if !repeats.metrics.is_empty() && !self.is_given(&at, "until") {
                let message = "`metrics` lists the metrics whose means `until` applies to, but there is no `until`";
                let remedy = "add `until: 2%`, or remove `metrics`";
                let at = [&at[..], &steps!["metrics"]].concat();
                self.report_key(&at, Diagnostic::new(Code::NoEffect, message).remedy(remedy));
            }
            return;
        };
        let (finest, coarsest) = WITHIN;
        let is_within = until >= finest && until <= coarsest;
        self.outside(&at, "until", &format!("a share from {finest} to {coarsest}"), (!is_within).then_some(until));
        if repeats.at_most < FEWEST {
            let message =
                format!("`at_most` is {}, but the interval of a mean needs at least {FEWEST} runs", repeats.at_most);
            let remedy = format!("write `at_most: {FEWEST}` or more, preferably 12");
            let at = [&at[..], &steps!["at_most"]].concat();
            self.report(&at, Diagnostic::new(Code::OutOfRange, message).remedy(remedy));
        }
        if sweep.stop.is_some() && sweep.search.is_none() {
            let message = "`until` ends the repeats of a load, but `stop` judges a load by all of its repeats";
            let remedy = "write a number of repeats, or remove `stop`";
            let at = [&at[..], &steps!["until"]].concat();
            self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }

    /// Reports `until` in sweeps whose cells are compared, because all arms need the same rounds. The plan's
    /// comparisons must already use the primary names of axes.
    pub(super) fn compared_until(&mut self, plan: &Plan) {
        for (name, sweep) in &plan.sweeps {
            if sweep.repeats.until.is_none() || plan.compared(sweep).is_none() {
                continue;
            }
            let message = "the comparison of these cells needs the same rounds for each cell, but `until` ends the \
                           repeats of every cell separately";
            let remedy = format!(
                "write `repeats: {}` and, in `compare`, `sequential: true`, which ends the rounds once a difference is \
                 shown; or compare cells only in other sweeps, each with its own `compare`",
                sweep.repeats.at_most
            );
            let at = steps!["sweeps", name.as_str(), "repeats", "until"];
            self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }
}
