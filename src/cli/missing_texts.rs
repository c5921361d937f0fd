//! Finds results that lack texts although the plan requests them to be recorded.

use crate::sweep::resume::{Action, Decision};

use super::workspace::Workspace;

/// Reports results that were measured before the plan requested their texts, and the command to measure
/// them again; `None` if no result lacks them. The numbers of these results are valid, so the runs are
/// not measured again automatically.
pub(super) fn missing(workspace: &Workspace, decisions: &[Option<Decision>]) -> Option<String> {
    let cached = |decision: &Option<Decision>| decision.as_ref().is_some_and(|d| d.action == Action::Cached);
    let runs =
        workspace.expansion.runs.iter().zip(decisions).filter(|(_, decision)| cached(decision)).map(|(run, _)| run);
    let asked = runs.filter(|run| run.spec.record.text);
    let lacks = asked.filter(|run| workspace.disk.said(&run.id).is_some_and(|said| !said.has_texts));
    let mut ids: Vec<String> = lacks.map(|run| run.id.short()[..8].to_owned()).collect();
    ids.sort_unstable();
    ids.dedup();
    let whose = match ids.len() {
        0 => return None,
        1 => "the result of 1 run is".to_owned(),
        many => format!("the results of {many} runs are"),
    };
    let quoted: Vec<String> = ids.iter().map(|id| format!("'{id}'")).collect();
    Some(format!(
        "{whose} without texts, because `record: {{ text: true }}` was not set; to measure again: --force --only \
         \"id[:8] in [{}]\"",
        quoted.join(", ")
    ))
}
