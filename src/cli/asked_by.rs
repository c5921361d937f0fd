//! Which search or ladder requested a run and for what purpose, or why the run was not requested.

use schemars::JsonSchema;
use serde::Serialize;

use super::workspace::Workspace;
use crate::expand::PlannedRun;

/// The search or ladder that a run belongs to.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AskedBy {
    /// The sweep of the search or ladder.
    sweep: String,
    /// The name of the cell, without the load.
    cell: String,
    /// The part of the plan that requests the runs: search, ladder or optimize.
    chooses: &'static str,
    /// The number of the step that the run is part of, counted from 1; null if the run is not part of a
    /// step.
    step: Option<usize>,
    /// What the run is for: up, closing_in, well_above, confirm, again, instead, bracketing or trial; null
    /// if it was not requested.
    purpose: Option<&'static str>,
    /// The purpose in words, with the run's outcome, or why the run was not requested.
    said: String,
    #[serde(skip)]
    not_asked: Option<&'static str>,
}

impl AskedBy {
    /// Returns the search or ladder to which a run of the plan belongs; `None` if it belongs to none.
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
            (None, Some(next)) => (Some(next.purpose), format!("requested next by {what}: {}", next.words), None),
            (None, None) if trail.pruned.contains(&load) => {
                let why = trail.why_left_out().map(|why| format!(": {why}")).unwrap_or_default();
                (None, format!("skipped by {what}{why}"), Some("pruned"))
            }
            (None, None) => (None, format!("not requested by {what}: {}", trail.standing), Some("not_asked")),
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

    /// Returns the purpose of the run, or why it was not requested, as text.
    pub(super) fn said(&self) -> &str {
        &self.said
    }

    /// Returns the state of a run that was not requested: pruned or not_asked.
    pub(super) fn not_asked(&self) -> Option<&'static str> {
        self.not_asked
    }
}
