//! Decides for each run whether it is executed, repeated or skipped, and why. The decisions depend only on
//! the plan, the user's options and the files on disk.

use schemars::JsonSchema;
use serde::Serialize;

use crate::expand::{Difference, PlannedRun};
use crate::store::{Deleted, GivenUp, How, LastTry, RunRecord, State, Tries};
use crate::units::clock;

use super::nearest::Change;
use super::on_disk::OnDisk;

/// What is done with a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Action {
    /// The run has no result and will be executed.
    New,
    /// The run has a result, so there is nothing to do.
    Cached,
    /// The run has a result that will be replaced.
    Redo,
    /// The environment spoiled the run and all its retries. The run is executed again only on request.
    #[serde(rename = "given_up")]
    #[strum(serialize = "given up")]
    GivenUp,
    /// Another process is currently measuring the run.
    Pending,
    /// `run` would skip the run, because its result cannot be read or is not needed.
    Pruned,
    /// A result that was measured on an endpoint of the plan, but does not belong to any run of the plan.
    Orphan,
}

impl Action {
    /// All actions, in the order in which tables list them.
    pub(crate) const ALL: [Action; 7] =
        [Action::New, Action::Redo, Action::GivenUp, Action::Pending, Action::Pruned, Action::Cached, Action::Orphan];

    /// Returns the name of the action in tables.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }

    /// Whether the run will be executed.
    pub(crate) fn is_work(self) -> bool {
        matches!(self, Action::New | Action::Redo)
    }
}

/// The decision about a run, and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The action.
    pub(crate) action: Action,
    /// The reason, as text.
    pub reason: String,
    /// The explanation of a new run by the closest results; `None` if there is none, or until `explain` is
    /// called.
    pub change: Option<Change>,
    /// Number of spoiled attempts that count towards the limit of retries.
    pub spoiled: u32,
    /// Whether the next attempt starts a new count of spoiled attempts, because the run was given up and
    /// the user requests it again.
    pub afresh: bool,
}

impl Decision {
    fn new(action: Action, reason: impl Into<String>) -> Decision {
        Decision { action, reason: reason.into(), change: None, spoiled: 0, afresh: false }
    }

    /// Returns the decision to skip a run, with this reason.
    pub(crate) fn pruned(reason: &str) -> Decision {
        Decision::new(Action::Pruned, reason)
    }

    /// Returns the fields in which a new run differs from the closest results; empty if it is not explained
    /// by them.
    pub(crate) fn differences(&self) -> &[Difference] {
        match &self.change {
            Some(Change::Edited(differences) | Change::Added(differences)) => differences,
            _ => &[],
        }
    }
}

/// The user's command-line options that affect the decisions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// Whether all runs are executed again.
    pub force: bool,
    /// Whether runs with an invalid verdict are executed again.
    pub(crate) redo_invalid: bool,
    /// Whether runs that were given up are executed again.
    pub(crate) redo_given_up: bool,
}

/// Decides about one run. `retries` is the number of retries after the environment spoils the run.
/// `is_invalid` returns whether a committed run has an invalid verdict; it is called only if the decision
/// depends on it.
pub(crate) fn decide(
    run: &PlannedRun,
    disk: &OnDisk,
    (wishes, retries): (Wishes, u32),
    is_invalid: &dyn Fn(&RunRecord) -> bool,
) -> Decision {
    let decision = by_result(run, disk, wishes, is_invalid);
    match disk.tries(&run.id) {
        Some(tries) if decision.action.is_work() => {
            // A run with a usable result is repeated only on request, so such a run was requested.
            let asked = wishes.force || wishes.redo_given_up || disk.is_whole(&run.id);
            tried(decision, tries, retries, asked)
        }
        _ => decision,
    }
}

/// Returns the decision to repeat a run that has a result, for the given reason.
pub(crate) fn again(run: &PlannedRun, disk: &OnDisk, retries: u32, reason: String) -> Decision {
    let decision = Decision::new(Action::Redo, reason);
    match disk.tries(&run.id) {
        Some(tries) => tried(decision, tries, retries, true),
        None => decision,
    }
}

/// Takes earlier attempts into account in the decision to execute a run. If the run was given up, it is
/// executed only if `asked` is set, which means that it was requested again.
fn tried(mut decision: Decision, tries: &Tries, retries: u32, asked: bool) -> Decision {
    let given_up = given_up(tries, retries).map(given_up_words);
    let words = match (&given_up, &tries.last) {
        (Some(words), _) if asked => Some(format!("{words}, and requested again")),
        (Some(words), _) => Some(words.clone()),
        (None, last) => last.as_ref().map(|last| last_words(last, tries.spoiled, Some(retries))),
    };
    decision.afresh = given_up.is_some() && asked;
    decision.spoiled = if decision.afresh { 0 } else { tries.spoiled };
    if given_up.is_some() && !asked {
        let but = if decision.reason == NEVER { String::new() } else { format!("; {}", decision.reason) };
        decision.reason = words.unwrap_or_default() + &but;
        decision.action = Action::GivenUp;
    } else if let (Action::New, Some(words)) = (decision.action, words) {
        let before = if decision.reason == NEVER { String::new() } else { format!("{}; ", decision.reason) };
        decision.reason = before + &words;
    }
    decision
}

/// Returns how a run was given up, if it is still given up with `retries` retries; otherwise `None`. If the
/// plan now allows more retries than before, the run is tried again. If it allows none, no run is given up.
fn given_up(tries: &Tries, retries: u32) -> Option<&GivenUp> {
    tries.given_up.as_ref().filter(|given_up| retries > 0 && given_up.times >= retries)
}

/// Describes the attempts at a run as text, without the number of retries, which is known only from a plan.
pub(crate) fn tries_words(tries: &Tries) -> String {
    match (&tries.given_up, &tries.last) {
        (Some(given_up), _) => given_up_words(given_up),
        (None, Some(last)) => last_words(last, tries.spoiled, None),
        (None, None) => NEVER.to_owned(),
    }
}

/// Describes how a run was given up: `given up: 429 (3 of 3)`, that is, after 3 of 3 retries.
pub(crate) fn given_up_words(given_up: &GivenUp) -> String {
    let GivenUp { times, spoiled, .. } = given_up;
    format!("given up: {}", spoiled.cause.given_up(*times))
}

/// Describes how the last attempt ended: `interrupted 14:43`, `failed: no room on the disk`, or `failed:
/// 429 (2 of 3)`, that is, after 2 of 3 retries. `retries` is the maximum number of retries; `None` if no
/// plan is known.
pub(crate) fn last_words(last: &LastTry, spoiled: u32, retries: Option<u32>) -> String {
    match &last.how {
        How::UnderWay(pid) => format!("process {pid} is making attempt {}", last.number),
        How::Interrupted => match last.ended {
            Some(ended) => format!("interrupted {}", clock::time_of(ended.0)),
            None => "interrupted".to_owned(),
        },
        How::Failed(reason) => format!("failed: {reason}"),
        How::Spoiled(what) => {
            let again = retries.filter(|retries| *retries > 0 && spoiled > 1);
            let count =
                again.map(|retries| format!(" ({} of {retries})", (spoiled - 1).min(retries))).unwrap_or_default();
            format!("failed: {}{count}", what.cause)
        }
    }
}

/// Changes the decision to [`Action::Pending`] if another process is currently measuring the run.
pub(crate) fn or_pending(decision: &mut Decision, run: &PlannedRun, disk: &OnDisk) {
    let last = disk.tries(&run.id).and_then(|tries| tries.last.as_ref());
    if let Some(last) = last.filter(|last| decision.action.is_work() && matches!(last.how, How::UnderWay(_))) {
        decision.action = Action::Pending;
        decision.reason = last_words(last, 0, None);
    }
}

/// The reason for executing a run that has neither a result nor attempts.
const NEVER: &str = "never committed";

/// Decides about a run from its result, without considering uncommitted attempts.
fn by_result(run: &PlannedRun, disk: &OnDisk, wishes: Wishes, is_invalid: &dyn Fn(&RunRecord) -> bool) -> Decision {
    let Some(brief) = disk.brief(&run.id) else {
        let said = disk.deleted(&run.id).map_or_else(|| NEVER.to_owned(), Deleted::said);
        return Decision::new(Action::New, said);
    };
    let said = match (&brief.state, &brief.said) {
        // The result may be undamaged, so the run is repeated only on request.
        (State::Unreadable(reason), _) if !wishes.force => {
            return Decision::new(Action::Pruned, format!("its result is kept but cannot be used: {reason}"));
        }
        (State::Unreadable(_), _) => return Decision::new(Action::Redo, "forced"),
        (State::Corrupt(reason), _) => return Decision::new(Action::Redo, format!("corrupt: {reason}")),
        (State::Whole, None) => return Decision::new(Action::Redo, "corrupt: run.json cannot be read"),
        (State::Whole, Some(said)) => said,
    };
    // The id is compared instead of the spec, because specs that differ only in names have equal ids.
    if said.id != Some(run.id) || !said.is_sound {
        return Decision::new(Action::Redo, "corrupt: the id in run.json does not match its contents");
    }
    if wishes.force {
        return Decision::new(Action::Redo, "forced");
    }
    if wishes.redo_invalid && disk.record(&run.id).is_some_and(|record| is_invalid(&record)) {
        return Decision::new(Action::Redo, "its verdict is invalid");
    }
    Decision::new(Action::Cached, format!("committed {:.19}Z", said.ended.to_string()))
}

/// Adds to the decision about a new run how it differs from the closest results. `asked` is the total
/// number of runs to explain.
pub(crate) fn explain(decision: &mut Decision, run: &PlannedRun, disk: &OnDisk, asked: usize) {
    // The decision about a run that was deleted, or that was attempted before, already contains an
    // explanation.
    if decision.action != Action::New || disk.deleted(&run.id).is_some() || disk.tries(&run.id).is_some() {
        return;
    }
    decision.change = disk.nearest_change(&run.spec, asked);
    // The result has an equal spec but a different id, so only the version of the measurement
    // method, which the program sets, differs.
    if decision.change == Some(Change::Meaning) {
        decision.reason = "its result is from an older sweepline, whose numbers have a different meaning".to_owned();
    }
}

#[cfg(test)]
mod tests;
