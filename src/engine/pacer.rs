//! Decides when each request starts. This is the only difference between closed and open loops.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::schedule::Schedule;
use super::sessions::Sessions;
use super::share::Share;
use super::start::{Start, Unstarted};

/// The load pattern of a run in progress.
#[derive(Debug)]
pub(crate) enum Pacer {
    /// Slots, each of which sends one request after another.
    Closed(Closed),
    /// Arrivals that do not depend on the server.
    Open(Box<Open>),
    /// Arrivals of conversations, in which each later turn starts after the response to the
    /// previous turn.
    Sessions(Box<Sessions>),
}

/// Slots that join evenly over fill. When a request ends, its slot starts the next one at once, or after
/// the user's think time.
#[derive(Debug)]
pub(crate) struct Closed {
    slots: u32,
    fill: u64,
    share: Share,
    /// Number of slots of this share that have joined.
    joined: u32,
    /// Number of requests of this share that have started.
    next: u64,
    /// Slots in think time: when the next request is due, and the slot's number.
    thinking: BinaryHeap<Reverse<(u64, u32)>>,
}

/// Arrivals according to a schedule, with or without an in-flight cap.
#[derive(Debug)]
pub(crate) struct Open {
    /// Requests that have not arrived yet.
    arriving: Schedule,
    /// Requests that have arrived and wait for the in-flight cap. They are read from a copy of the schedule
    /// that lags behind, so that a long queue takes no memory.
    waiting: Schedule,
    share: Share,
    arrived: u64,
    started: u64,
    in_flight: u32,
    cap: u32,
}

impl Pacer {
    /// Creates one share of a closed loop whose `slots` join evenly over `fill` nanoseconds.
    pub(crate) fn closed(slots: u32, fill: u64, share: Share) -> Pacer {
        Pacer::Closed(Closed { slots, fill, share, joined: 0, next: 0, thinking: BinaryHeap::new() })
    }

    /// Creates one share of an open loop with this schedule.
    pub(crate) fn open(schedule: Schedule, cap: Option<u32>, share: Share) -> Pacer {
        let schedule = schedule.of(share);
        Pacer::Open(Box::new(Open {
            share,
            waiting: schedule.clone(),
            arriving: schedule,
            arrived: 0,
            started: 0,
            in_flight: 0,
            cap: cap.unwrap_or(u32::MAX),
        }))
    }

    /// Creates one share of an open loop of conversations.
    pub(crate) fn sessions(schedule: Schedule, cap: Option<u32>, share: Share) -> Pacer {
        Pacer::Sessions(Box::new(Sessions::new(schedule, cap, share)))
    }

    /// Returns the next instant at which a request is due (to start, or to wait for the cap) even if no other
    /// request ends before then; `None` after the last one.
    pub(crate) fn next_due(&self) -> Option<u64> {
        match self {
            Pacer::Closed(closed) => closed.next_due(),
            Pacer::Open(open) => open.arriving.peek(),
            Pacer::Sessions(sessions) => sessions.next_due(),
        }
    }

    /// Takes one request that is due and can start at `now`. Call this repeatedly until it returns `None`.
    pub(crate) fn take_due(&mut self, now: u64) -> Option<Start> {
        match self {
            Pacer::Closed(closed) => closed.take_due(now),
            Pacer::Open(open) => {
                while open.arriving.peek().is_some_and(|at| at <= now) {
                    open.arriving.take();
                    open.arrived += 1;
                    if let Some(start) = open.release(None) {
                        return Some(start);
                    }
                }
                None
            }
            Pacer::Sessions(sessions) => sessions.take_due(now),
        }
    }

    /// Whether the server's speed determines when requests start.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self, Pacer::Closed(_))
    }

    /// Records that a request ended at `at` and freed its slot; `think` is how long the user of its
    /// conversation thinks before the next turn, in nanoseconds, or `None` if there is no next turn.
    /// Returns the request that can now start, if any.
    pub(crate) fn ended(&mut self, at: u64, slot: Option<u32>, think: Option<u64>) -> Option<Start> {
        const SLOT: &str = "requests of slots and of conversations that arrive have a slot";
        match self {
            Pacer::Closed(closed) => closed.ended(at, slot.expect(SLOT), think.unwrap_or(0)),
            Pacer::Sessions(sessions) => sessions.ended(at, slot.expect(SLOT), think),
            Pacer::Open(open) => {
                open.in_flight -= 1;
                open.release(Some(at))
            }
        }
    }

    /// Takes one request that was due before `end` and never started: first those that waited for the cap,
    /// then those that `take_due` did not take in time. Call this repeatedly until it returns `None`.
    pub(crate) fn take_unstarted(&mut self, end: u64) -> Option<Unstarted> {
        let open = match self {
            Pacer::Closed(closed) => return closed.take_unstarted(end),
            Pacer::Sessions(sessions) => return sessions.take_unstarted(end),
            Pacer::Open(open) => open,
        };
        let request = open.started;
        // Requests start in the order of their arrival. While the cap is reached, none can start, including
        // those that `take_due` has not seen yet.
        let held_by_cap = request < open.arrived || open.in_flight >= open.cap;
        open.waiting.peek().filter(|at| *at < end)?;
        let scheduled = open.waiting.take()?;
        open.started += 1;
        open.arrived = open.arrived.max(open.started);
        Some(Unstarted { request: open.share.number(request), scheduled, held_by_cap })
    }

    /// Whether no further request will be due and none waits to start.
    pub(crate) fn is_at_its_end(&self) -> bool {
        match self {
            Pacer::Closed(_) => false,
            Pacer::Open(open) => open.waiting.peek().is_none(),
            Pacer::Sessions(sessions) => sessions.is_at_its_end(),
        }
    }

    /// Returns the number of requests that wait for the in-flight cap.
    pub(crate) fn waiting(&self) -> u64 {
        match self {
            Pacer::Closed(_) => 0,
            Pacer::Sessions(sessions) => sessions.waiting(),
            Pacer::Open(open) => open.arrived - open.started,
        }
    }

    /// Returns the scheduled instant of the request that has waited longest for the in-flight cap; `None`
    /// if none waits.
    pub(crate) fn oldest_waiting(&self) -> Option<u64> {
        match self {
            Pacer::Open(open) if open.arrived > open.started => open.waiting.peek(),
            Pacer::Sessions(sessions) => sessions.oldest_waiting(),
            _ => None,
        }
    }
}

impl Closed {
    fn join_instant(&self) -> u64 {
        (u128::from(self.fill) * u128::from(self.next_slot()) / u128::from(self.slots)) as u64
    }

    /// Returns the number of this share's next slot within the whole loop.
    fn next_slot(&self) -> u64 {
        self.share.number(self.joined.into())
    }

    fn next_join(&self) -> Option<u64> {
        (self.next_slot() < self.slots.into()).then(|| self.join_instant())
    }

    fn next_thought(&self) -> Option<u64> {
        self.thinking.peek().map(|Reverse((due, _))| *due)
    }

    fn next_due(&self) -> Option<u64> {
        self.next_join().into_iter().chain(self.next_thought()).min()
    }

    fn take_due(&mut self, now: u64) -> Option<Start> {
        let at = self.next_due().filter(|at| *at <= now)?;
        if self.next_join() == Some(at) {
            let slot = self.next_slot() as u32;
            self.joined += 1;
            return Some(self.start(at, slot));
        }
        let Reverse((_, slot)) = self.thinking.pop()?;
        Some(self.start(at, slot))
    }

    /// Starts the slot's next request at once if there is no think time.
    fn ended(&mut self, at: u64, slot: u32, think: u64) -> Option<Start> {
        if think == 0 {
            return Some(self.start(at, slot));
        }
        self.thinking.push(Reverse((at.saturating_add(think), slot)));
        None
    }

    /// Takes one request that never started although the user's think time had passed before `end`.
    fn take_unstarted(&mut self, end: u64) -> Option<Unstarted> {
        self.next_thought().filter(|due| *due < end)?;
        let Reverse((scheduled, slot)) = self.thinking.pop()?;
        Some(Unstarted { request: self.start(scheduled, slot).request, scheduled, held_by_cap: false })
    }

    fn start(&mut self, at: u64, slot: u32) -> Start {
        let request = self.share.number(self.next);
        self.next += 1;
        Start { request, scheduled: at, released: at, slot: Some(slot) }
    }
}

impl Open {
    /// Starts the request that has waited longest, if the cap allows it; `freed_at` is when another request
    /// ended, or `None` if the request has just arrived.
    fn release(&mut self, freed_at: Option<u64>) -> Option<Start> {
        if self.started == self.arrived || self.in_flight >= self.cap {
            return None;
        }
        let scheduled = self.waiting.take()?;
        let request = self.share.number(self.started);
        self.started += 1;
        self.in_flight += 1;
        Some(Start { request, scheduled, released: freed_at.map_or(scheduled, |at| at.max(scheduled)), slot: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::trace::Trace;
    use crate::expand::Course;
    use crate::plan::Process;

    /// Creates a schedule with an arrival every 10 ns.
    fn every_ten() -> Schedule {
        Schedule::drawn(Process::Constant, Course::steady(1e9 / 10.0, 0), [0; 32])
    }

    #[test]
    fn slots_join_evenly_and_redispatch_at_once() {
        let mut pacer = Pacer::closed(4, 100, Share::WHOLE);
        assert_eq!(pacer.take_due(0).map(|s| (s.request, s.scheduled, s.slot)), Some((0, 0, Some(0))));
        assert_eq!(pacer.take_due(0), None);
        assert_eq!(pacer.next_due(), Some(25));
        assert_eq!(pacer.ended(7, Some(0), None).map(|s| (s.request, s.scheduled, s.slot)), Some((1, 7, Some(0))));
        let late: Vec<u64> = std::iter::from_fn(|| pacer.take_due(1_000)).map(|s| s.scheduled).collect();
        assert_eq!(late, [25, 50, 75], "a late wake-up does not move the instants");
        assert_eq!(pacer.next_due(), None);
    }

    #[test]
    fn a_slot_waits_until_its_user_has_thought() {
        let mut pacer = Pacer::closed(2, 100, Share::WHOLE);
        let told = |start: Option<Start>| start.map(|s| (s.request, s.scheduled, s.released, s.slot));
        assert_eq!(told(pacer.take_due(0)), Some((0, 0, 0, Some(0))));
        assert_eq!((pacer.ended(10, Some(0), Some(80)), pacer.next_due()), (None, Some(50)));
        // A late wake-up delays neither the slot that joins nor the one that returns.
        assert_eq!(told(pacer.take_due(95)), Some((1, 50, 50, Some(1))));
        assert_eq!(told(pacer.take_due(95)), Some((2, 90, 90, Some(0))));
        assert_eq!((pacer.take_due(95), pacer.next_due(), pacer.waiting()), (None, None, 0));
        assert_eq!(
            told(pacer.ended(99, Some(1), Some(0))),
            Some((3, 99, 99, Some(1))),
            "the next conversation, at once"
        );
        assert_eq!(pacer.ended(110, Some(0), Some(40)), None);
        let unstarted =
            |pacer: &mut Pacer, end| pacer.take_unstarted(end).map(|u| (u.request, u.scheduled, u.held_by_cap));
        assert_eq!(unstarted(&mut pacer, 150), None);
        assert_eq!((unstarted(&mut pacer, 151), unstarted(&mut pacer, 151)), (Some((4, 150, false)), None));
    }

    #[test]
    fn a_cap_holds_back_and_counts_nothing_away() {
        let mut pacer = Pacer::open(every_ten(), Some(1), Share::WHOLE);
        assert_eq!(pacer.take_due(35).map(|s| (s.scheduled, s.released)), Some((10, 10)));
        assert_eq!(pacer.take_due(35), None);
        assert_eq!((pacer.waiting(), pacer.oldest_waiting()), (2, Some(20)));
        assert_eq!(pacer.ended(33, None, None).map(|s| (s.request, s.scheduled, s.released)), Some((1, 20, 33)));
        let rest: Vec<(u64, bool)> =
            std::iter::from_fn(|| pacer.take_unstarted(50)).map(|u| (u.scheduled, u.held_by_cap)).collect();
        assert_eq!(rest, [(30, true), (40, true)]);
    }

    #[test]
    fn what_a_free_cap_did_not_get_was_missed() {
        let mut pacer = Pacer::open(every_ten(), Some(2), Share::WHOLE);
        assert_eq!(pacer.take_due(15).map(|s| s.request), Some(0));
        assert_eq!(pacer.take_unstarted(25).map(|u| (u.scheduled, u.held_by_cap)), Some((20, false)));
    }

    #[test]
    fn without_a_cap_every_arrival_starts() {
        let mut pacer = Pacer::open(every_ten(), None, Share::WHOLE);
        let starts: Vec<u64> = std::iter::from_fn(|| pacer.take_due(100)).map(|s| s.scheduled).collect();
        assert_eq!(starts, (1..=10).map(|k| k * 10).collect::<Vec<_>>());
    }

    #[test]
    fn a_trace_ends_and_nothing_is_left_behind() {
        let schedule = Schedule::given(Trace::new([10, 20, 30].into()));
        let mut pacer = Pacer::open(schedule, Some(1), Share::WHOLE);
        assert_eq!(pacer.take_due(15).map(|s| s.request), Some(0));
        assert_eq!((pacer.next_due(), pacer.is_at_its_end()), (Some(20), false));
        assert_eq!(pacer.take_due(100), None, "both wait for the cap");
        assert_eq!((pacer.next_due(), pacer.waiting(), pacer.is_at_its_end()), (None, 2, false));
        assert_eq!(pacer.ended(40, None, None).map(|s| (s.scheduled, s.released)), Some((20, 40)));
        assert_eq!(pacer.take_unstarted(100).map(|u| (u.scheduled, u.held_by_cap)), Some((30, true)));
        assert_eq!((pacer.take_unstarted(100), pacer.is_at_its_end()), (None, true));
    }

    #[test]
    fn shares_of_a_loop_are_the_loop() {
        let took = |mut pacer: Pacer, until: u64| {
            std::iter::from_fn(|| pacer.take_due(until)).map(|s| (s.request, s.scheduled, s.slot)).collect::<Vec<_>>()
        };
        let shares = |count| (0..count).filter_map(move |index| Share::new(index, count));
        for count in [2, 3, 7] {
            let mut open: Vec<_> =
                shares(count).flat_map(|share| took(Pacer::open(every_ten(), None, share), 1_000)).collect();
            open.sort_unstable();
            assert_eq!(open, took(Pacer::open(every_ten(), None, Share::WHOLE), 1_000));
            let mut closed: Vec<_> =
                shares(count).flat_map(|share| took(Pacer::closed(5, 100, share), 1_000)).map(|s| (s.2, s.1)).collect();
            closed.sort_unstable();
            let whole: Vec<_> =
                took(Pacer::closed(5, 100, Share::WHOLE), 1_000).into_iter().map(|s| (s.2, s.1)).collect();
            assert_eq!(closed, whole, "a slot joins at the same time as in one process");
        }
        let mut second = Pacer::closed(4, 0, Share::new(1, 2).unwrap());
        assert_eq!(took_one(&mut second), Some((1, Some(1))));
        assert_eq!(second.ended(7, Some(1), None).map(|s| (s.request, s.slot)), Some((3, Some(1))));
    }

    fn took_one(pacer: &mut Pacer) -> Option<(u64, Option<u32>)> {
        pacer.take_due(0).map(|s| (s.request, s.slot))
    }
}
