//! The gates of a plan: whether they let sweeps run, based on the findings of earlier sweeps.

use std::collections::{BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::{Gate, Plan};

use super::bounds::{Asks, broken, longer, undecided};
use super::known::{Finding, Known, Says};
use super::pending::Waits;

/// The state of cells that a gate stops, with the reason.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stop {
    pub state: Waits,
    pub why: String,
}

/// Returns the state and the reason for every sweep that is stopped by its own gate, or by the gate of a
/// sweep that it directly or indirectly comes after.
pub(super) fn gates(plan: &Plan, known: &Known) -> HashMap<String, Stop> {
    let stop_of = |name: &str| {
        let (at, stop) = gates_before(plan, name).find_map(|(at, gate)| Some((at, stopped(gate, known)?)))?;
        let why = if at == name { stop.why } else { format!("gate of `{at}`: {}", stop.why) };
        Some((name.to_owned(), Stop { state: stop.state, why }))
    };
    plan.sweeps.keys().filter_map(|name| stop_of(name)).collect()
}

/// The gates that a sweep depends on, each with its sweep: first its own gate, then the gates of the sweeps
/// that it directly or indirectly comes after.
pub(super) fn gates_before<'p>(plan: &'p Plan, name: &str) -> impl Iterator<Item = (&'p str, &'p Gate)> {
    let first = plan.sweeps.get_key_value(name).map(|(name, _)| name.as_str());
    let (mut open, mut seen) = (Vec::from_iter(first), BTreeSet::new());
    let next = move || {
        let at = open.pop()?;
        let before = plan.sweeps.get(at).into_iter().flat_map(|sweep| &sweep.after.0);
        open.extend(before.map(String::as_str).filter(|before| seen.insert(*before)));
        Some(at)
    };
    std::iter::from_fn(next).filter_map(|at| Some((at, plan.sweeps.get(at)?.gate.as_ref()?)))
}

/// The findings that a gate reads, for every cell of the earlier sweep.
pub(super) fn of_gate<'k>(known: &'k Known, gate: &Gate) -> impl Iterator<Item = &'k Finding> {
    let (sweep, metric) = (gate.sweep.clone(), gate.metric);
    known.findings.iter().filter(move |found| *found.sweep == *sweep && found.metric == metric)
}

/// Returns the state and the reason if a gate stops a sweep; `None` if the gate passes.
fn stopped(gate: &Gate, known: &Known) -> Option<Stop> {
    let about = || of_gate(known, gate);
    let bounds = (gate.at_least, gate.at_most);
    let told = || about().map(|finding| (finding, broken(finding, bounds, Asks::Gate)));
    let missed: Vec<String> = told().filter_map(|(_, broken)| broken.flatten()).collect();
    if !missed.is_empty() {
        return Some(Stop { state: Waits::Stopped, why: missed.join("; ") });
    }
    let open = about().find_map(|finding| match &finding.says {
        Says::Open(standing) => Some(format!("waits for {}: {standing}", finding.title())),
        _ => None,
    });
    if let Some(why) = open {
        return Some(Stop { state: Waits::Pending, why });
    }
    let open = told().find(|(_, broken)| broken.is_none()).map(|(finding, _)| undecided(finding, bounds));
    let nothing = || about().next().is_none().then(|| format!("`{}` found nothing", gate.sweep));
    open.or_else(nothing).map(|why| Stop { state: Waits::Undecided, why })
}

/// The result of a gate, or of one of the values that it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum GateAnswer {
    /// The gate passes.
    Yes,
    /// The gate fails.
    No,
    /// The runs exist but do not decide the gate.
    Undecided,
    /// Runs that may decide the gate are missing.
    Pending,
}

impl GateAnswer {
    /// The text for users.
    pub fn words(self) -> &'static str {
        match self {
            GateAnswer::Yes => "yes",
            GateAnswer::No => "no",
            GateAnswer::Undecided => "cannot be decided",
            GateAnswer::Pending => "not answered yet",
        }
    }
}

/// The state of a gate of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct GateState {
    /// The sweep that has the gate.
    pub sweep: String,
    /// The bounds of the gate: `at least 20`, `at most 500ms`.
    pub bound: String,
    /// The values that the gate reads; empty if the earlier sweep has no cell.
    pub values: Vec<GateValue>,
    /// The overall result.
    pub answer: GateAnswer,
}

/// A value that a gate reads.
#[derive(Debug, Clone, PartialEq)]
pub struct GateValue {
    /// The earlier sweep and its cell: `limit: vllm · llama · chat`.
    pub of: String,
    /// The metric.
    pub metric: String,
    /// The value with its unit; `None` if there is no value.
    pub value: Option<String>,
    /// The 95 % interval of the value; `None` for loads, and if it is unknown.
    pub interval: Option<String>,
    /// The reason why the value is missing, or a caveat; `None` if neither applies.
    pub note: Option<String>,
    /// The result for this value.
    pub answer: GateAnswer,
    /// Whether the value is the figures of a search.
    is_of_search: bool,
}

/// The state of each gate of the plan, in the order of its sweeps.
pub fn gate_states(plan: &Plan, known: &Known) -> Vec<GateState> {
    let of = |(name, gate): (&String, &Gate)| {
        let values: Vec<GateValue> = of_gate(known, gate).map(|finding| GateValue::of(finding, gate)).collect();
        let is_there = |answer| values.iter().any(|value| value.answer == answer);
        let first = [GateAnswer::No, GateAnswer::Pending, GateAnswer::Undecided].into_iter().find(|one| is_there(*one));
        let answer = if values.is_empty() { GateAnswer::Undecided } else { first.unwrap_or(GateAnswer::Yes) };
        let bounds = [("at least", gate.at_least), ("at most", gate.at_most)].into_iter();
        let bounds = bounds.filter_map(|(word, bound)| Some(format!("{word} {}", bound?)));
        GateState { sweep: name.clone(), bound: bounds.collect::<Vec<_>>().join(" and "), values, answer }
    };
    plan.sweeps.iter().filter_map(|(name, sweep)| Some((name, sweep.gate.as_ref()?))).map(of).collect()
}

impl GateValue {
    fn of(finding: &Finding, gate: &Gate) -> GateValue {
        let bounds = (gate.at_least, gate.at_most);
        let answer = match (broken(finding, bounds, Asks::Gate), &finding.says) {
            (Some(Some(_)), _) => GateAnswer::No,
            (Some(None), _) => GateAnswer::Yes,
            (None, Says::Open(_)) => GateAnswer::Pending,
            (None, _) => GateAnswer::Undecided,
        };
        let longer = (answer == GateAnswer::Undecided).then(|| longer(finding, bounds)).flatten();
        let notes: Vec<String> = finding.note().into_iter().chain(longer).collect();
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        GateValue {
            of: finding.title(),
            metric: finding.metric.to_string(),
            value: finding.value(),
            interval: finding.interval(),
            note,
            answer,
            is_of_search: finding.search.is_some(),
        }
    }

    /// A one-line form: `smoke: vllm · chat · 5: ttft_p99 is 512 ms (498 ms to 530 ms)`.
    pub fn words(&self) -> String {
        let GateValue { of, metric, value, interval, note, .. } = self;
        let is = if self.is_of_search { ":" } else { " is" };
        let interval = interval.as_ref().map(|interval| format!(" ({interval})")).unwrap_or_default();
        match (value, note) {
            (Some(value), Some(note)) => format!("{of}: {metric}{is} {value}{interval}; {note}"),
            (Some(value), None) => format!("{of}: {metric}{is} {value}{interval}"),
            (None, note) => format!("{of}: {metric}: {}", note.as_deref().unwrap_or_default()),
        }
    }
}
