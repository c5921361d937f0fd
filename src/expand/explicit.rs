//! Writes out a plan's defaults as `resolve` would fill them in: the runs stay the same, but nothing is
//! implicit.

use crate::plan::model::content::{Resolved, Reuse, SCENARIO, resolve as resolve_scenario};
use crate::plan::model::length_field::LengthField;
use crate::plan::model::phases::{DrainMode, FILL, Fill, MEASURE, STABILIZE};
use crate::plan::{Drain, Measure, OneOrMany, PhasesPatch, Plan, Scenario, Table, Workers};
use crate::units::Nanos;

use super::resolve::{AT_MOST, DRAIN};
use super::resource::resources;
use super::{LoadEngine, Recording};

/// The plan without fragments and variables, and with every default explicit that a plan can express. It
/// expands to the same runs.
pub fn explicit(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    plan.uses = OneOrMany::default();
    plan.vars = Table::new();
    phases(&mut plan.phases);
    // Written values override the values that a profile recorded.
    let recorded = |name: &String| resolve_scenario(name, &plan.scenarios).is_some_and(|one| one.arrivals.is_some());
    let records = plan.scenarios.keys().any(recorded);
    for sweep in plan.sweeps.values_mut() {
        bounded(&mut sweep.phases);
        let has = |axis: &str| sweep.matrix.contains_key(axis);
        if has("qps") && !has("arrivals") && !records {
            sweep.arrivals.get_or_insert_default();
        }
    }
    let default = LoadEngine::default();
    plan.engine.threads.get_or_insert(default.threads);
    plan.engine.timer.get_or_insert(default.timer);
    plan.engine.workers.get_or_insert_with(Workers::alone);
    plan.validity = plan.validity.explicit();
    plan.record.text.get_or_insert(Recording::default().text);
    let resources = resources(&plan);
    for (name, endpoint) in &mut plan.endpoints {
        endpoint.errors.get_or_insert_default();
        endpoint.resource.get_or_insert_with(|| resources[name].clone());
        if endpoint.is_embedded() {
            endpoint.mock.get_or_insert_default();
        }
    }
    let scenarios = plan.scenarios.clone();
    for (name, scenario) in &mut plan.scenarios {
        if let Some(resolved) = resolve_scenario(name, &scenarios) {
            request(scenario, &resolved);
        }
    }
    plan
}

fn phases(phases: &mut PhasesPatch) {
    phases.fill.get_or_insert(Fill { duration: Some(FILL), per_second: None });
    phases.stabilize.get_or_insert(STABILIZE);
    phases.measure.get_or_insert(Measure { duration: MEASURE, min_requests: None, at_most: None });
    phases.drain.get_or_insert(Drain { duration: DRAIN, mode: DrainMode::Keep });
    bounded(phases);
}

/// Sets the maximum length to which a window may be extended.
fn bounded(phases: &mut PhasesPatch) {
    if let Some(measure) = &mut phases.measure
        && measure.min_requests.is_some()
    {
        measure.at_most.get_or_insert(Nanos(measure.duration.0.saturating_mul(AT_MOST)));
    }
}

/// The values that a scenario inherits from its base. Settings that the sweep or the plan determines are
/// left unset.
fn request(scenario: &mut Scenario, resolved: &Resolved) {
    // A mix contains only the values that apply to all of its scenarios.
    if !resolved.mix.is_empty() {
        return;
    }
    scenario.base.get_or_insert_with(|| SCENARIO.to_owned());
    let content = &resolved.content;
    // Requests for vectors or scores have no output tokens.
    let generates = resolved.fields.inputs.is_none() && resolved.fields.documents.is_none();
    // Lengths stay in the scenario that sets them, which is this one or a base.
    let is_read = content.trace.is_some() || content.data.is_some() || resolved.profiled;
    if content.lengths.is_none() && scenario.lengths.is_none() && !is_read {
        scenario.prompt_tokens.get_or_insert(content.prompt_tokens);
        if generates && resolved.fields.length_field == LengthField::MaxTokens {
            scenario.output_tokens.get_or_insert(content.output_tokens);
        }
    }
    scenario.system_tokens.get_or_insert(content.system_tokens);
    if content.reuse == Reuse::Conversation {
        if content.turn_counts.is_none() {
            scenario.turns.get_or_insert(content.turns);
        }
        scenario.history.get_or_insert(content.talk.history);
        if !resolved.opens_sessions {
            scenario.sessions.get_or_insert(content.talk.sessions);
        }
        if content.talk.context_limit.is_some() {
            scenario.context_cut.get_or_insert(content.talk.context_cut);
        }
    }
    scenario.prefix = scenario.prefix.or(content.prefix);
    scenario.cache.get_or_insert(content.cache);
    if !generates {
        return;
    }
    for (written, said) in scenario.sampling_mut().into_iter().zip(resolved.fields.sampling.said()) {
        *written = written.or(said);
    }
}
