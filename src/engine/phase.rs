//! Assigns instants to the phases of the run. The measure window may be extended until it contains enough
//! requests.

use crate::expand::Phases;
use crate::plan::DrainMode;
use crate::rows::{Phase, Windows};

use super::schedule::Schedule;

/// The borders of a run's phases, in nanoseconds since the run's start.
#[derive(Debug, Clone)]
pub(crate) struct PhaseClock {
    stabilize: u64,
    measure: u64,
    /// The earliest possible end of the measure window.
    end: u64,
    /// The latest possible end of the measure window, if it is extended.
    latest_end: u64,
    drain: u64,
    mode: DrainMode,
    min_requests: u64,
    in_window: u64,
}

impl PhaseClock {
    /// Creates the phase clock of a run with these phases.
    pub(crate) fn new(phases: &Phases) -> PhaseClock {
        let stabilize = phases.fill.0;
        let measure = stabilize + phases.stabilize.0;
        let end = measure + phases.measure.duration.0;
        let latest = phases.measure.at_most.map_or(end, |at_most| measure + at_most.0);
        PhaseClock {
            stabilize,
            measure,
            end,
            latest_end: latest.max(end),
            drain: phases.drain.duration.0,
            mode: phases.drain.mode,
            min_requests: phases.measure.min_requests.unwrap_or(0),
            in_window: 0,
        }
    }

    /// Returns the phase of a request scheduled at `at`, and counts the request if it is in the measure
    /// window. Call this in the order of the scheduled instants, as far as the load pattern knows them in
    /// advance.
    pub(crate) fn enter(&mut self, at: u64) -> Phase {
        let phase = self.phase(at);
        if phase == Phase::Measure {
            self.in_window += 1;
            if at >= self.end {
                // The measure window had to be extended, and now ends just after this request.
                self.end = at + 1;
            }
        }
        phase
    }

    /// Determines the end of the measure window in advance from all arrivals of the run, for a process that
    /// sends only some of them.
    pub(crate) fn look_ahead(&mut self, mut arrivals: Schedule) {
        while self.in_window < self.min_requests {
            match arrivals.take() {
                Some(at) if self.enter(at) == Phase::Drain => break,
                Some(_) => {}
                None => self.no_more(),
            }
        }
        if self.in_window < self.min_requests {
            self.end = self.latest_end;
        }
        (self.in_window, self.min_requests) = (0, 0);
    }

    /// Records that no further request will be due, so that the measure window is not extended to wait for
    /// more.
    pub(crate) fn no_more(&mut self) {
        self.min_requests = self.min_requests.min(self.in_window);
    }

    /// Returns the phase of the instant `at`.
    pub(crate) fn phase(&self, at: u64) -> Phase {
        match at {
            _ if at < self.stabilize => Phase::Fill,
            _ if at < self.measure => Phase::Stabilize,
            _ if at < self.measure_end() => Phase::Measure,
            _ => Phase::Drain,
        }
    }

    /// Returns the end of the measure window, as far as it is known: the latest possible end while the
    /// window has too few requests.
    pub(crate) fn measure_end(&self) -> u64 {
        if self.in_window < self.min_requests { self.latest_end } else { self.end }
    }

    /// Returns the start and end of the measure window, as far as they are known.
    pub(crate) fn window(&self) -> (u64, u64) {
        (self.measure, self.measure_end())
    }

    /// Returns the number of requests in the measure window so far.
    pub(crate) fn in_window(&self) -> u64 {
        self.in_window
    }

    /// Returns the instant at which the run ends at the latest.
    pub(crate) fn deadline(&self) -> u64 {
        match self.mode {
            DrainMode::Keep => self.measure_end() + self.drain,
            DrainMode::Stop => self.measure_end(),
        }
    }

    /// Returns the next border of a phase after `now`; `None` after the last.
    pub(crate) fn next_border(&self, now: u64) -> Option<u64> {
        [self.stabilize, self.measure, self.measure_end(), self.deadline()].into_iter().find(|border| *border > now)
    }

    /// Returns the actual borders of the phases, for a run that ended at `end`.
    pub(crate) fn windows(&self, end: u64) -> Windows {
        Windows {
            stabilize_ns: self.stabilize,
            measure_start_ns: self.measure,
            measure_end_ns: self.measure_end(),
            end_ns: end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Drain, Measure};
    use crate::units::Nanos;

    fn clock(min_requests: Option<u64>) -> PhaseClock {
        PhaseClock::new(&Phases {
            idle: None,
            fill: Nanos(10),
            stabilize: Nanos(20),
            measure: Measure { duration: Nanos(100), min_requests, at_most: min_requests.map(|_| Nanos(300)) },
            drain: Drain { duration: Nanos(50), mode: DrainMode::Keep },
        })
    }

    #[test]
    fn borders_belong_to_the_later_phase() {
        let clock = clock(None);
        let phases = [9, 10, 29, 30, 129, 130].map(|at| clock.phase(at));
        use Phase::*;
        assert_eq!(phases, [Fill, Stabilize, Stabilize, Measure, Measure, Drain]);
        assert_eq!(clock.deadline(), 180);
    }

    #[test]
    fn the_window_is_prolonged_until_it_holds_enough() {
        let mut clock = clock(Some(3));
        assert_eq!([40, 90, 200].map(|at| clock.enter(at)), [Phase::Measure; 3]);
        assert_eq!(clock.enter(201), Phase::Drain);
        assert_eq!(clock.measure_end(), 201);
    }

    #[test]
    fn a_share_knows_the_end_of_the_window_beforehand() {
        let arrivals = |instants: &[u64]| Schedule::given(crate::engine::trace::Trace::new(instants.into()));
        for instants in [&[40, 90, 200, 201, 329][..], &[40, 90], &[5, 6, 40, 41, 42, 43], &[40, 350, 360]] {
            let mut whole = clock(Some(3));
            for at in instants {
                whole.enter(*at);
            }
            if instants.len() < 3 {
                whole.no_more();
            }
            let mut share = clock(Some(3));
            share.look_ahead(arrivals(instants));
            assert_eq!(share.measure_end(), whole.measure_end(), "{instants:?}");
        }
    }

    #[test]
    fn a_window_does_not_wait_for_what_never_comes() {
        let mut clock = clock(Some(3));
        clock.enter(40);
        assert_eq!(clock.measure_end(), 330);
        clock.no_more();
        assert_eq!(clock.measure_end(), 130);
        let mut prolonged = self::clock(Some(3));
        assert_eq!([40, 200].map(|at| prolonged.enter(at)), [Phase::Measure; 2]);
        prolonged.no_more();
        assert_eq!(prolonged.measure_end(), 201, "requests after its shortest end were included");
    }

    #[test]
    fn a_prolonged_window_has_an_end() {
        let mut clock = clock(Some(3));
        clock.enter(40);
        assert_eq!(clock.phase(329), Phase::Measure);
        assert_eq!(clock.enter(330), Phase::Drain);
    }

    #[test]
    fn enough_requests_leave_the_window_alone() {
        let mut clock = clock(Some(2));
        assert_eq!([40, 41, 42].map(|at| clock.enter(at)), [Phase::Measure; 3]);
        assert_eq!(clock.measure_end(), 130);
    }
}
