//! An open loop of conversations. Arrivals are first turns; each later turn is due when the think time
//! after the previous response has passed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::schedule::Schedule;
use super::share::Share;
use super::start::{Start, Unstarted};

/// Conversations that arrive according to a schedule and in which each later turn starts after the
/// response to the previous turn, with or without an in-flight cap. Only conversations in progress
/// are held in memory.
#[derive(Debug)]
pub(crate) struct Sessions {
    /// Conversations that have not arrived yet.
    arriving: Schedule,
    /// Conversations that have arrived but not begun. They are read from a copy of the schedule that lags
    /// behind, so that a long queue takes no memory.
    waiting: Schedule,
    share: Share,
    arrived: u64,
    begun: u64,
    /// Conversations between two turns: when the next turn is due, and the conversation's number.
    thinking: BinaryHeap<Reverse<(u64, u32)>>,
    /// Later turns that are due but not started: when each was due, and the conversation's number.
    turns: VecDeque<(u64, u32)>,
    /// Number of requests of this share that have started.
    requests: u64,
    in_flight: u32,
    cap: u32,
}

impl Sessions {
    /// Creates one share of the conversations that arrive according to `schedule`.
    pub(crate) fn new(schedule: Schedule, cap: Option<u32>, share: Share) -> Sessions {
        let schedule = schedule.of(share);
        Sessions {
            share,
            waiting: schedule.clone(),
            arriving: schedule,
            arrived: 0,
            begun: 0,
            thinking: BinaryHeap::new(),
            turns: VecDeque::new(),
            requests: 0,
            in_flight: 0,
            cap: cap.unwrap_or(u32::MAX),
        }
    }

    /// Returns the next instant at which a turn is due (to start, or to wait for the cap) even if no other
    /// request ends before then; `None` if there is none.
    pub(crate) fn next_due(&self) -> Option<u64> {
        let waiting = self.oldest_waiting().filter(|_| self.in_flight < self.cap);
        let thinking = self.thinking.peek().map(|Reverse((due, _))| *due);
        waiting.into_iter().chain(thinking).chain(self.arriving.peek()).min()
    }

    /// Takes one turn that is due and can start at `now`.
    pub(crate) fn take_due(&mut self, now: u64) -> Option<Start> {
        self.notice(now);
        self.release(None)
    }

    /// Records that a turn of conversation `slot` ended at `at`; the next turn is due after `think`
    /// nanoseconds (`None` if there is no next turn). Returns the request that can now start, if any.
    pub(crate) fn ended(&mut self, at: u64, slot: u32, think: Option<u64>) -> Option<Start> {
        self.in_flight -= 1;
        self.thinking.extend(think.map(|think| Reverse((at.saturating_add(think), slot))));
        self.notice(at);
        self.release(Some(at))
    }

    /// Takes one request that was due before `end` and never started.
    pub(crate) fn take_unstarted(&mut self, end: u64) -> Option<Unstarted> {
        self.notice(end.saturating_sub(1));
        let (scheduled, _) = self.take_oldest()?;
        self.requests += 1;
        Some(Unstarted {
            request: self.share.number(self.requests - 1),
            scheduled,
            held_by_cap: self.in_flight >= self.cap,
        })
    }

    /// Whether no further request will be due and none waits to start.
    pub(crate) fn is_at_its_end(&self) -> bool {
        let no_turns = self.in_flight == 0 && self.thinking.is_empty() && self.turns.is_empty();
        no_turns && self.waiting.peek().is_none()
    }

    /// Returns the number of requests that are due but not started.
    pub(crate) fn waiting(&self) -> u64 {
        self.arrived - self.begun + self.turns.len() as u64
    }

    /// Returns the scheduled instant of the due request that has waited longest; `None` if none waits.
    pub(crate) fn oldest_waiting(&self) -> Option<u64> {
        let session = self.waiting.peek().filter(|_| self.begun < self.arrived);
        let turn = self.turns.front().map(|(due, _)| *due);
        session.into_iter().chain(turn).min()
    }

    /// Queues all turns that are due by `now`.
    fn notice(&mut self, now: u64) {
        while self.arriving.peek().is_some_and(|at| at <= now) {
            self.arriving.take();
            self.arrived += 1;
        }
        while let Some(Reverse((due, slot))) = self.thinking.peek().copied().filter(|Reverse((due, _))| *due <= now) {
            self.thinking.pop();
            self.turns.push_back((due, slot));
        }
    }

    /// Starts the request that has waited longest, if the cap allows it; `freed_at` is when another request
    /// ended, or `None` if the request did not have to wait for that.
    fn release(&mut self, freed_at: Option<u64>) -> Option<Start> {
        if self.in_flight >= self.cap {
            return None;
        }
        let (scheduled, slot) = self.take_oldest()?;
        self.in_flight += 1;
        self.requests += 1;
        let released = freed_at.map_or(scheduled, |at| at.max(scheduled));
        Some(Start { request: self.share.number(self.requests - 1), scheduled, released, slot: Some(slot) })
    }

    /// Takes the turn that has waited longest: when it was due, and its conversation's number. If a first
    /// and a later turn have waited equally long, takes the later turn.
    fn take_oldest(&mut self) -> Option<(u64, u32)> {
        let oldest = self.oldest_waiting()?;
        if self.turns.front().is_some_and(|(due, _)| *due == oldest) {
            return self.turns.pop_front();
        }
        let session = self.share.number(self.begun);
        self.begun += 1;
        Some((self.waiting.take()?, session as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::trace::Trace;
    use crate::expand::Course;
    use crate::plan::Process;

    /// Creates a load in which a conversation arrives every 100 ns.
    fn sessions(cap: Option<u32>) -> Sessions {
        Sessions::new(Schedule::drawn(Process::Constant, Course::steady(1e7, 0), [0; 32]), cap, Share::WHOLE)
    }

    fn told(start: Option<Start>) -> Option<(u64, u64, u64, u32)> {
        start.map(|start| (start.request, start.scheduled, start.released, start.slot.expect("a conversation")))
    }

    #[test]
    fn turns_follow_their_answers_while_others_arrive() {
        let mut pacer = sessions(None);
        assert_eq!((pacer.next_due(), pacer.take_due(99)), (Some(100), None));
        assert_eq!(told(pacer.take_due(100)), Some((0, 100, 100, 0)));
        // The user of conversation 0 thinks until 250; conversation 1 begins meanwhile.
        assert_eq!(pacer.ended(150, 0, Some(100)), None);
        assert_eq!(pacer.next_due(), Some(200));
        // A late wake-up does not change when requests are scheduled or released.
        let late: Vec<_> = std::iter::from_fn(|| told(pacer.take_due(310))).collect();
        assert_eq!(late, [(1, 200, 200, 1), (2, 250, 250, 0), (3, 300, 300, 2)]);
        assert_eq!(pacer.next_due(), Some(400));
        // Without think time the next turn is due at once; without a next turn the conversation has ended.
        assert_eq!(told(pacer.ended(320, 1, Some(0))), Some((4, 320, 320, 1)));
        assert_eq!((pacer.ended(330, 0, None), pacer.waiting()), (None, 0));
    }

    #[test]
    fn a_cap_lets_the_oldest_through_first() {
        let mut pacer = sessions(Some(1));
        assert_eq!(told(pacer.take_due(250)), Some((0, 100, 100, 0)));
        assert_eq!((pacer.take_due(250), pacer.waiting(), pacer.oldest_waiting()), (None, 1, Some(200)));
        // The turn is due at 260, after the conversation that arrived at 200 and before the one
        // that arrives at 300.
        assert_eq!(told(pacer.ended(255, 0, Some(5))), Some((1, 200, 255, 1)));
        assert_eq!(pacer.next_due(), Some(260));
        assert_eq!((pacer.take_due(310), pacer.waiting(), pacer.next_due()), (None, 2, Some(400)));
        assert_eq!(told(pacer.ended(320, 1, None)), Some((2, 260, 320, 0)));
        let rest: Vec<_> = std::iter::from_fn(|| pacer.take_unstarted(401)).collect();
        let rest: Vec<_> = rest.iter().map(|one| (one.request, one.scheduled, one.held_by_cap)).collect();
        assert_eq!(rest, [(3, 300, true), (4, 400, true)]);
    }

    #[test]
    fn the_last_arrival_is_not_the_last_request() {
        let mut pacer = Sessions::new(Schedule::given(Trace::new([10].into())), None, Share::WHOLE);
        assert_eq!(told(pacer.take_due(10)), Some((0, 10, 10, 0)));
        assert_eq!((pacer.next_due(), pacer.is_at_its_end()), (None, false));
        assert_eq!((pacer.ended(20, 0, Some(5)), pacer.next_due(), pacer.is_at_its_end()), (None, Some(25), false));
        assert_eq!(told(pacer.take_due(25)), Some((1, 25, 25, 0)));
        assert_eq!((pacer.ended(30, 0, None), pacer.is_at_its_end()), (None, true));
    }

    #[test]
    fn what_nobody_took_in_time_was_missed() {
        let mut pacer = sessions(None);
        assert_eq!(told(pacer.take_due(100)), Some((0, 100, 100, 0)));
        assert_eq!(pacer.ended(110, 0, Some(50)), None);
        let missed = pacer.take_unstarted(200).map(|one| (one.request, one.scheduled, one.held_by_cap));
        assert_eq!((missed, pacer.take_unstarted(200)), (Some((1, 160, false)), None));
    }
}
