//! Checks of the top level of a plan: its version and name, that its tables are not empty, and that all
//! entries have a name.

use crate::plan::check::checker::{Checker, steps};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::plan::Plan;

impl Checker<'_> {
    pub(super) fn head(&mut self, plan: &Plan) {
        if plan.sweepline != 1 {
            let message = format!("this sweepline reads version 1 of the plan format, not {}", plan.sweepline);
            self.report(&steps!["sweepline"], Diagnostic::new(Code::Version, message).remedy("write `sweepline: 1`"));
        }
        if plan.name.trim().is_empty() {
            self.empty(&steps!["name"], "`name` is empty", "write a short name for tables and reports");
        }
        if plan.endpoints.is_empty() {
            let remedy = "add a server under test, like demo: { engine: mock }";
            self.empty(&steps!["endpoints"], "`endpoints` is empty", remedy);
        }
        if plan.models.is_empty() {
            self.empty(&steps!["models"], "`models` is empty", "add a model, like demo: { id: demo }");
        }
        if plan.sweeps.is_empty() {
            let remedy = "add what to run, like first: { matrix: { batch_size: [1, 8] } }";
            self.empty(&steps!["sweeps"], "`sweeps` is empty", remedy);
        }
        for table in ["endpoints", "models", "scenarios", "sweeps"] {
            if self.tree.get(table).is_some_and(|node| node.keys().any(|key| key.trim().is_empty())) {
                let message = format!("a name in `{table}` is empty");
                self.report_key(&steps![table, ""], Diagnostic::new(Code::Empty, message).remedy("give it a name"));
            }
            for name in self.declared(table).into_iter().filter(|name| name.chars().any(char::is_control)) {
                let message = format!("a name in `{table}` contains a line break or another control character");
                let remedy = "names appear in tables: write each one as a single line of plain text";
                self.report_key(&steps![table, name], Diagnostic::new(Code::OutOfRange, message).remedy(remedy));
            }
        }
    }
}
