//! The phase of each run, from its counters, and the phases that began since the last poll.

use std::sync::Arc;

use super::state::LivePhase;
use crate::engine::Progress;
use crate::rows::Phase;
use crate::sweep::event::{Event, RunView};

/// The phases of a load, in their order.
const OF_LOAD: [LivePhase; 4] = [LivePhase::Fill, LivePhase::Stabilize, LivePhase::Measure, LivePhase::Drain];

/// The active runs.
#[derive(Debug, Default)]
pub(super) struct Phases(Vec<Running>);

#[derive(Debug)]
struct Running {
    run: RunView,
    progress: Arc<Progress>,
    told: Option<LivePhase>,
}

impl Phases {
    /// Takes an event.
    pub(super) fn take(&mut self, event: &Event) {
        match event {
            Event::Started { run, progress } => {
                self.0.push(Running { run: run.clone(), progress: Arc::clone(progress), told: None });
            }
            Event::Committed { run }
            | Event::Failed { run, .. }
            | Event::Again { run, .. }
            | Event::GivenUp { run, .. }
            | Event::Skipped { run, .. } => self.0.retain(|running| running.run.number != run.number),
            _ => {}
        }
    }

    /// The phases that began since the last poll. For a load, these include phases that ended in
    /// between.
    pub(super) fn began(&mut self) -> Vec<(RunView, LivePhase)> {
        let of = |running: &mut Running| {
            let began = since(running.told, now(&running.progress));
            running.told = began.last().copied().or(running.told);
            began.into_iter().map(|phase| (running.run.clone(), phase)).collect::<Vec<_>>()
        };
        self.0.iter_mut().flat_map(of).collect()
    }
}

/// The current phase of a run; `None` before its load begins, unless the run waits for something.
fn now(progress: &Progress) -> Option<LivePhase> {
    if progress.settling.get() > 0 {
        return Some(LivePhase::Settle);
    }
    if progress.idling.get() > 0 {
        return Some(LivePhase::Idle);
    }
    // The counters also contain `fill` before the load begins.
    let phase = match progress.phase() {
        Phase::Fill => LivePhase::Fill,
        Phase::Stabilize => LivePhase::Stabilize,
        Phase::Measure => LivePhase::Measure,
        Phase::Drain => LivePhase::Drain,
    };
    (progress.elapsed_ns() > 0).then_some(phase)
}

/// The phases that began after `told`, up to `now`.
fn since(told: Option<LivePhase>, now: Option<LivePhase>) -> Vec<LivePhase> {
    let Some(now) = now.filter(|now| told != Some(*now)) else { return Vec::new() };
    let place = |phase: LivePhase| OF_LOAD.iter().position(|known| *known == phase);
    let Some(to) = place(now) else { return vec![now] };
    let from = told.and_then(place).map_or(0, |told| told + 1);
    OF_LOAD.get(from..=to).map_or_else(Vec::new, <[LivePhase]>::to_vec)
}

#[cfg(test)]
mod tests {
    use LivePhase::{Drain, Fill, Idle, Measure, Settle, Stabilize};

    use super::*;

    #[test]
    fn phases_that_nobody_saw_are_told_in_their_order() {
        assert_eq!(since(None, None), []);
        assert_eq!(since(None, Some(Settle)), [Settle]);
        assert_eq!(since(Some(Settle), Some(Idle)), [Idle]);
        assert_eq!(since(Some(Idle), Some(Measure)), [Fill, Stabilize, Measure]);
        assert_eq!(since(Some(Fill), Some(Fill)), []);
        assert_eq!(since(Some(Stabilize), Some(Drain)), [Measure, Drain]);
        assert_eq!(since(Some(Measure), Some(Fill)), []);
    }
}
