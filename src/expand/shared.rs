//! Decides which loads several processes can send together so that their sum is exactly the load of one process.

use crate::plan::Sessions;
use crate::plan::model::content::{Content, Reuse};

use super::error::Mistake;
use super::{Load, LoadEngine, Phases};

/// Returns the generator settings of a run with this load: a closed loop uses no more processes than it has
/// slots.
pub(super) fn engine(
    engine: LoadEngine,
    load: &Load,
    phases: &Phases,
    content: &Content,
) -> Result<LoadEngine, Mistake> {
    let most = match load {
        Load::Closed { batch_size } => (*batch_size).max(1),
        Load::Open { .. } => u32::MAX,
    };
    let engine = LoadEngine { workers: engine.workers.clamp(1, most), ..engine };
    match undivided(load, phases, content).filter(|_| engine.workers > 1) {
        Some((why, remedy)) => Err(Mistake::Undivided { workers: engine.workers, why, remedy }),
        None => Ok(engine),
    }
}

/// Returns why several processes cannot send a load together, with the remedy; `None` if they can.
fn undivided(load: &Load, phases: &Phases, content: &Content) -> Option<(&'static str, &'static str)> {
    let talks = content.reuse == Reuse::Conversation;
    let counts = phases.measure.min_requests.is_some();
    match load {
        Load::Open { cap: Some(_), .. } => Some((
            "the cap on requests in flight (`batch_size` next to `qps`) needs the responses of all workers",
            "remove the cap",
        )),
        Load::Open { .. } if talks && content.talk.sessions == Sessions::Pooled => Some((
            "an arrival continues the conversation that has waited longest, whichever worker holds it",
            "write `sessions: open`, so that arrivals are conversations, or use a closed loop",
        )),
        Load::Open { .. } if !talks => None,
        Load::Open { .. } | Load::Closed { .. } => counts.then_some((
            "the window ends after `min_requests` requests, and counting them needs the responses of all workers",
            "write a longer window instead of `min_requests`",
        )),
    }
}
