//! Checks of traces: their settings must be usable, and no other field may contradict them.

use super::checker::{Checker, is_not_positive, steps};
use crate::dataset::Format;
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::content::{Reuse, resolve};
use crate::plan::model::length_field::LengthField;
use crate::plan::model::plan::Plan;
use crate::plan::model::scalar::Scalar;
use crate::plan::model::scenario::Scenario;
use crate::plan::model::sweep::Sweep;
use crate::plan::model::table::Table;
use crate::plan::model::trace::TraceFile;
use crate::plan::text::tree::Step;

impl Checker<'_> {
    /// Checks `trace` of a scenario. The content of its file was checked when the plan was loaded.
    pub(super) fn trace(&mut self, name: &str, scenario: &Scenario, plan: &Plan) {
        let replays = |name: &str| resolve(name, &plan.scenarios).is_some_and(|found| found.content.trace.is_some());
        let in_mix = scenario.mix.iter().any(|part| replays(&part.scenario));
        if in_mix || (scenario.trace.is_some() && !scenario.mix.is_empty()) {
            let message =
                format!("the mix `{name}` contains a trace, but a trace determines when each of its requests is sent");
            let remedy = "replay the trace in a separate sweep";
            let at = steps!["scenarios", name, "mix"];
            self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
        let Some(trace) = &scenario.trace else { return };
        self.trace_itself(name, trace);
        let given = ["prompt_tokens"].into_iter().chain(LengthField::KEYS).chain([
            "lengths",
            "data",
            "system_tokens",
            "prefix",
        ]);
        for field in given
            .filter(|field| scenario.says(field) && (*field != "system_tokens" || scenario.system_tokens > Some(0)))
        {
            let message = format!("the trace of scenario `{name}` already determines `{field}`");
            let remedy = format!("remove `{field}`, or `trace`");
            let at = steps!["scenarios", name, field];
            self.report(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
        let base = resolve(name, &plan.scenarios).map(|resolved| resolved.content);
        if base.is_some_and(|content| content.reuse != Reuse::None || content.system_tokens > 0) {
            let message =
                format!("scenario `{name}` replays a trace, but its base specifies the text that prompts share");
            let remedy = "remove `base`: the trace determines what prompts share";
            let at = steps!["scenarios", name, "trace"];
            self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }

    fn trace_itself(&mut self, name: &str, trace: &TraceFile) {
        let at = |field: &str| steps!["scenarios", name, "trace", field];
        let speed = Some(trace.speed).filter(is_not_positive);
        self.outside(&steps!["scenarios", name, "trace"], "speed", "a number above 0", speed);
        if let Some([from, to]) = trace.window
            && from >= to
        {
            let message = format!("the window from {from} to {to} is empty");
            let remedy = "write the start and the end on the trace's clock, like [0s, 10m]";
            self.report(&at("window"), Diagnostic::new(Code::OutOfRange, message).remedy(remedy));
        }
        let named = trace.format.filter(|format| *format != Format::Columns);
        if let Some(format) = named
            && !trace.map.is_empty()
        {
            let message = format!("`map` has no effect: format {format} has fixed columns");
            let remedy = "remove `map`, or write `as: columns`";
            self.report_key(&at("map"), Diagnostic::new(Code::NoEffect, message).remedy(remedy));
        }
        if let Some((key, told)) = trace.map.unknown() {
            let at = steps!["scenarios", name, "trace", "map", key];
            self.report_key(&at, Diagnostic::new(Code::WrongValue, told).remedy("see the columns in docs/DATASETS.md"));
        }
    }

    /// Checks that a sweep that replays a trace does not set its rate or its lengths.
    pub(super) fn replays(&mut self, plan: &Plan, name: &str, sweep: &Sweep) {
        let is_trace = |value: &Scalar| says_trace(&value.to_string(), &plan.scenarios);
        let scenarios = sweep.values("scenario");
        if !scenarios.iter().any(is_trace) {
            return;
        }
        let said_by_trace =
            ["qps", "arrivals", "prompt_tokens", "system_tokens", "lengths"].into_iter().chain(LengthField::KEYS);
        for field in said_by_trace {
            let own =
                (field == "arrivals" && self.is_given(&steps!["sweeps", name], field)).then(|| vec![Step::from(field)]);
            let place = own.or_else(|| sweep.written(field).into_iter().next().map(|(_, place)| place));
            let Some(place) = place else { continue };
            let message = format!("sweep `{name}` replays a trace, which already determines `{field}`");
            let remedy = "remove the field, or move the other scenarios to a separate sweep; to replay faster, set the \
                          trace's `speed`";
            let at = [steps!["sweeps", name].as_slice(), &place].concat();
            self.report(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }
}

/// Whether a scenario or one of its bases replays a trace, even if the trace cannot be read.
pub(super) fn says_trace(name: &str, table: &Table<Scenario>) -> bool {
    let mut at = table.get(name);
    for _ in 0..=table.len() {
        match at {
            Some(own) if own.trace.is_some() => return true,
            Some(own) => at = own.base.as_deref().and_then(|base| table.get(base)),
            None => return false,
        }
    }
    false
}
