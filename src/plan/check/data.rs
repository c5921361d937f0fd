//! Checks of data sets: their settings must be usable, and no other field may contradict them.

use super::checker::{Checker, steps};
use crate::dataset::Format;
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::content::{Content, Resolved, Reuse, resolve};
use crate::plan::model::data::data_file::TableOf;
use crate::plan::model::plan::Plan;
use crate::plan::model::scenario::Scenario;
use crate::plan::model::sweep::Sweep;
use crate::plan::text::tree::Step;

impl Checker<'_> {
    /// Checks `data` of a scenario. The content of the file was checked when the plan was loaded.
    pub(super) fn data(&mut self, name: &str, scenario: &Scenario, plan: &Plan) {
        if let Some(data) = &scenario.data {
            self.table_of_data(&steps!["scenarios", name, "data"], &data.table());
            if !scenario.mix.is_empty() {
                let message =
                    format!("`{name}` has both `data` and `mix`, but a mix sends the requests of its scenarios");
                let remedy = "move `data` to a separate scenario and name that scenario in the mix";
                let at = steps!["scenarios", name, "data"];
                self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
            }
        }
        let resolved = resolve(name, &plan.scenarios);
        if scenario.data.is_none() && !resolved.as_ref().is_some_and(sends_data) {
            return;
        }
        if self.beside_data(name, scenario) || scenario.trace.is_some() {
            return;
        }
        // A mix is not checked here. Its scenarios are checked one by one, under their own names, because the
        // fields of one scenario do not affect another.
        let resolved = resolved.as_ref().filter(|resolved| resolved.mix.is_empty());
        if resolved.is_some_and(|resolved| resolved.profiled || resolved.content.trace.is_some()) {
            let message = format!("scenario `{name}` sends a data set, but its base replays a trace or a profile");
            let remedy = "write `base: B1` or `base: D`; a trace or profile sets the lengths of generated texts";
            let at = steps!["scenarios", name, if scenario.data.is_some() { "data" } else { "base" }];
            self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        } else if resolved.is_some_and(|resolved| shares(&resolved.content)) {
            let message =
                format!("scenario `{name}` sends a data set, but its base specifies the text that prompts share");
            let remedy = "write `base: B1` to send only the first question of each record, or `base: D` to send whole \
                          conversations";
            let at = steps!["scenarios", name, if scenario.data.is_some() { "data" } else { "base" }];
            self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }

    /// Checks that no axis of a sweep sets a field that a data set determines.
    pub(super) fn data_of_sweep(&mut self, plan: &Plan, name: &str, sweep: &Sweep) {
        let scenarios = sweep.values("scenario").into_iter().map(|value| value.to_string());
        let sends = |scenario: &String| resolve(scenario, &plan.scenarios).as_ref().is_some_and(sends_data);
        let Some(scenario) = scenarios.into_iter().find(sends) else { return };
        for field in ["prompt_tokens", "system_tokens", "lengths"] {
            let Some((_, place)) = sweep.written(field).into_iter().next() else { continue };
            let message =
                format!("scenario `{scenario}` of sweep `{name}` sends a data set, which already determines `{field}`");
            let remedy = "remove the axis, or move the other scenarios to a separate sweep";
            let at = [steps!["sweeps", name].as_slice(), &place].concat();
            self.report(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }

    /// Reports fields that a data set already determines. Returns whether there are any.
    fn beside_data(&mut self, name: &str, scenario: &Scenario) -> bool {
        let given = [
            (
                "prompt_tokens",
                scenario.prompt_tokens.is_some(),
                "texts of a data set are sent unchanged; to select some of them, write `filter: { prompt_tokens: … }`",
            ),
            (
                "lengths",
                scenario.lengths.is_some(),
                "remove `lengths` or `data`; to use only the lengths of a data set, write `lengths: { data: … }`",
            ),
            (
                "system_tokens",
                scenario.system_tokens.is_some_and(|tokens| tokens > 0),
                "remove the field: the data set contains the system messages",
            ),
            ("prefix", scenario.prefix.is_some(), "remove the field: texts of a data set are sent unchanged"),
            (
                "profile",
                scenario.profile.is_some(),
                "keep either `data` or `profile`: a profile has lengths but no texts",
            ),
        ];
        let mut found = false;
        for (field, _, remedy) in given.into_iter().filter(|(_, given, _)| *given) {
            let message = format!("the data set of scenario `{name}` already determines `{field}`");
            let at = steps!["scenarios", name, field];
            self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
            found = true;
        }
        found
    }

    /// Checks the settings for reading the file of a data set.
    pub(super) fn table_of_data(&mut self, at: &[Step], table: &TableOf) {
        let inside = |keys: &[Step]| [at, keys].concat();
        let known = table.format.filter(|format| *format != Format::Columns);
        if let Some(format) = known
            && !table.map.is_empty()
        {
            let message = format!("`map` has no effect: format {format} has fixed columns");
            let remedy = "remove `map`, or write `as: columns`";
            self.report_key(&inside(&steps!["map"]), Diagnostic::new(Code::NoEffect, message).remedy(remedy));
        }
        if let Some((key, told)) = table.map.unknown() {
            let diagnostic = Diagnostic::new(Code::WrongValue, told).remedy("see the columns in docs/DATASETS.md");
            self.report_key(&inside(&steps!["map", key]), diagnostic);
        }
        for (name, _) in table.filter.bounds().filter(|(_, bounds)| !bounds.holds_something()) {
            let message = format!("the range of `{name}` is empty: its `min` is above its `max`");
            let diagnostic = Diagnostic::new(Code::OutOfRange, message).remedy("write the smaller number as `min`");
            self.report_key(&inside(&steps!["filter", name]), diagnostic);
        }
    }
}

/// Whether a scenario, or a scenario of a mix, sends a data set.
fn sends_data(scenario: &Resolved) -> bool {
    scenario.content.data.is_some() || scenario.mix.iter().any(|member| sends_data(&member.scenario))
}

/// Whether prompts of a scenario share text other than the history of a conversation.
fn shares(content: &Content) -> bool {
    let reuse = matches!(content.reuse, Reuse::SamePrompt | Reuse::SharedSystem);
    reuse || content.system_tokens > 0 || content.prefix.is_some()
}
