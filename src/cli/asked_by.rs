//! Which search or ladder asked for a run, and with what purpose; or why it did not.

use schemars::JsonSchema;
use serde::Serialize;

use super::workspace::Workspace;
use crate::expand::PlannedRun;

/// The search or ladder that a run belongs to.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AskedBy {
    /// Its sweep.
    sweep: String,
    /// Its cell but for the load.
    cell: String,
    /// search, ladder or optimize.
    chooses: &'static str,
    /// Which of its steps the run is part of, from 1; null where it was not decided from.
    step: Option<usize>,
    /// What the run is for: up, closing_in, well_above, confirm, again, instead, bracketing or trial; null where it was not asked for.
    purpose: Option<&'static str>,
    /// The same in words, with what the run said, or why it was not asked for.
    said: String,
    #[serde(skip)]
    not_asked: Option<&'static str>,
}

impl AskedBy {
    /// That of a run of the plan; none where its sweep declares its loads.
    pub(super) fn of(workspace: &Workspace, run: &PlannedRun) -> Option<AskedBy> {
        let mut pools = workspace.expansion.pools.iter().zip(&workspace.trails);
        let (load, trail) = pools.find_map(|(pool, trail)| {
            let member = pool.members.iter().find(|member| member.run.id == run.id && pool.sweep == run.sweep)?;
            Some((member.load, trail))
        })?;
        let id = run.id.to_string();
        let what = format!("the {} {}", trail.chooses, trail.title());
        let step = trail.steps.iter().position(|step| step.runs.contains(&id));
        let trial = trail.trials.iter().position(|trial| trial.run == id);
        let next = trail.next.as_ref().filter(|next| next.run == id);
        let (purpose, said, not_asked) = match (step.or(trial), next) {
            (Some(at), _) if trial.is_some() => {
                (Some("trial"), format!("step {} of {what}: {}", at + 1, trail.trials[at].told()), None)
            }
            (Some(at), _) => {
                let step = &trail.steps[at];
                (Some(step.purpose), format!("step {} of {what}: {}", at + 1, step.told()), None)
            }
            (None, Some(next)) => (Some(next.purpose), format!("asked for next by {what}: {}", next.words), None),
            (None, None) if trail.pruned.contains(&load) => {
                let why = trail.why_left_out().map(|why| format!(": {why}")).unwrap_or_default();
                (None, format!("left out by {what}{why}"), Some("pruned"))
            }
            (None, None) => (None, format!("not asked for by {what}: {}", trail.standing), Some("not_asked")),
        };
        Some(AskedBy {
            sweep: trail.sweep.clone(),
            cell: trail.cell.clone(),
            chooses: trail.chooses,
            step: step.or(trial).map(|at| at + 1),
            purpose,
            said,
            not_asked,
        })
    }

    /// What it says, in words.
    pub(super) fn said(&self) -> &str {
        &self.said
    }

    /// The state of a run that was not asked for: pruned or not_asked.
    pub(super) fn not_asked(&self) -> Option<&'static str> {
        self.not_asked
    }
}
