//! The document of `decide --format json`. Its types define the schema (schemas/decide.schema.json).

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::super::capacity::document::Instance;
use super::super::curves::document::OneRung;
use crate::analysis::curve::{Bracket, Series, on_fronts};
use crate::plan::Slo;
use crate::report::CapacityAnswer;
use crate::report::decision::{Decided, Evidence, Kin, Outcome, kin};
use crate::report::format::plain;

/// A decision, and the configurations that were considered.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document {
    /// The plan's name.
    plan: String,
    /// The file of the decision record.
    record: String,
    /// Whether the record agrees with the current plan and results; null without --check.
    current: Option<bool>,
    /// The hypothesis of the plan; null if it states none.
    hypothesis: Option<String>,
    /// The objective, as in the plan; null without one.
    slo: Option<Slo>,
    /// The decisions, the current one first.
    decisions: Vec<OneDecision>,
    /// Every configuration of the plan that has results: the accepted one first, then the others in the
    /// plan's order.
    configurations: Vec<OneConfiguration>,
    /// Number of the plan's runs that have a result.
    runs: usize,
    /// Number of the plan's runs that have no result, for any reason.
    runs_without_result: usize,
}

/// One decision.
#[derive(Debug, Serialize, JsonSchema)]
struct OneDecision {
    /// The name that the accepted configuration had at the time of the decision.
    accepted: String,
    /// The load that was accepted; null if the configuration is accepted up to the highest load that
    /// meets the objective.
    load: Option<f64>,
    /// The configuration's outcome under the objective when it was accepted.
    outcome: Outcome,
    /// The reason for the decision, in the decider's words.
    because: String,
    /// The person who decided; null if none was named.
    by: Option<String>,
    /// The day of the decision, in UTC, as YYYY-MM-DD.
    on: String,
}

/// One configuration.
#[derive(Debug, Serialize, JsonSchema)]
struct OneConfiguration {
    #[serde(flatten)]
    series: Series,
    /// The unit of the configuration's load: qps or batch_size.
    load_axis: &'static str,
    /// The relation to the accepted configuration.
    kin: Kin,
    /// The current outcome under the objective.
    outcome: Outcome,
    /// The reason for the outcome, in a sentence.
    why: String,
    /// The two loads between which the configuration stops meeting the objective; null if there is no
    /// objective, or if nothing is known at any load.
    limit: Option<Bracket>,
    /// The highest load that is shown to meet the objective at 95 %; null if no load is.
    shown: Option<f64>,
    /// The highest load that met the objective in what was seen, whether or not this is shown; null if no load
    /// did.
    observed: Option<f64>,
    /// The load to which the figures belong, as in `curves`: the accepted load if one was named,
    /// otherwise the highest that meets the objective, otherwise the lightest that was measured (without
    /// an objective, the heaviest). Null if no run counts.
    at: Option<OneRung>,
    /// Figures and cost of one instance at the highest rate that meets the objective; null if no
    /// rate does, and in closed loops.
    instance: Option<Instance>,
}

impl Document {
    /// Builds the document from the results; `current` is set if a record was checked.
    pub(super) fn of(
        evidence: &Evidence,
        accepted: usize,
        decisions: &[Decided],
        (path, current): (&Path, Option<bool>),
    ) -> Document {
        let load = decisions.last().and_then(|last| last.configuration.load);
        let standings = evidence.standings(accepted, load);
        let fronts = on_fronts(evidence.curves, evidence.plan.slo.as_ref());
        let one = |at: usize| {
            let (curve, standing) = (&evidence.curves[at], &standings[at]);
            let rung = curve.rungs.iter().zip(&fronts[at]).find(|(rung, _)| Some(rung.load) == standing.load);
            let instance = match evidence.configurations.get(at).map(|one| &one.answer) {
                Some(CapacityAnswer::Holds { instance, output, .. }) => Some(Instance::of(instance, output)),
                _ => None,
            };
            OneConfiguration {
                series: curve.series.clone(),
                load_axis: curve.axis.name(),
                kin: kin(&evidence.curves[accepted], curve),
                outcome: standing.outcome,
                why: standing.words.clone(),
                limit: curve.bracket(),
                shown: curve.highest().shown,
                observed: curve.highest().observed,
                at: rung.map(|(rung, on)| OneRung::of(rung, *on)),
                instance,
            }
        };
        let others = (0..evidence.curves.len()).filter(|at| *at != accepted);
        let decision = |one: &Decided| OneDecision {
            accepted: one.name.clone(),
            load: one.configuration.load,
            outcome: one.outcome,
            because: one.because.clone(),
            by: one.by.clone(),
            on: one.on.clone(),
        };
        Document {
            plan: evidence.plan.name.clone(),
            record: path.display().to_string(),
            current,
            hypothesis: evidence.plan.hypothesis.clone(),
            slo: evidence.plan.slo.clone(),
            decisions: decisions.iter().rev().map(decision).collect(),
            configurations: std::iter::once(accepted).chain(others).map(one).collect(),
            runs: evidence.runs.len(),
            runs_without_result: evidence.without.len(),
        }
    }

    /// Returns the accepted configuration and its outcome in one line.
    pub(super) fn line(&self) -> String {
        let stands = self.configurations.first().map_or("", |one| match one.outcome {
            Outcome::Holds => "it meets the objective",
            Outcome::Misses => "it misses the objective",
            Outcome::Undecided => "undecided: it is not shown to meet the objective",
            Outcome::NotJudged => "not judged: the plan has no objective",
        });
        let accepted = self.decisions.first().map(|one| plain(&one.accepted)).unwrap_or_default();
        format!("{}: accepted {accepted}; {stands}", self.record)
    }
}
