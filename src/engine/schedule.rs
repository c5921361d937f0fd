//! When requests of an open loop are due: a pure function of load, phases and seed, known before
//! the first request.
//!
//! Unit gaps (mean 1) come from a seeded stream; their running sum gives the arrival times of a process of
//! rate 1. The rate profile gives the expected number of arrivals up to a time, Λ(t): arrival k is Λ⁻¹ of
//! the k-th sum (time change of a Poisson process: Lewis & Shedler 1979; of a renewal process: Gerhard &
//! Nelson 2009). Alternatively, the instants are read from a trace one by one.

use std::sync::Arc;

use crate::expand::Course;
use crate::plan::Process;

use super::share::Share;
use super::trace::Trace;
use super::unit_gaps::UnitGaps;

/// The arrivals of an open loop, in order, in nanoseconds since the run's start. A clone continues from
/// the position of the original.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    source: Source,
    next: Option<u64>,
    /// One arrival in every `stride` belongs to the share.
    stride: u32,
}

/// The source of arrivals.
#[derive(Debug, Clone)]
enum Source {
    /// Random gaps, transformed by a rate profile.
    Drawn {
        gaps: Box<UnitGaps>,
        course: Arc<Course>,
        /// Running sum of the gaps.
        sum: f64,
    },
    /// A list.
    Given(Trace),
}

impl Schedule {
    /// Creates the schedule of a process with a rate profile. It ends only if the rate has fallen
    /// to 0 for good.
    pub(crate) fn drawn(process: Process, course: Course, seed: [u8; 32]) -> Schedule {
        Schedule::new(Source::Drawn {
            gaps: Box::new(UnitGaps::new(process, seed)),
            course: Arc::new(course),
            sum: 0.0,
        })
    }

    /// Creates the schedule of a trace. The schedule ends with the trace.
    pub(crate) fn given(trace: Trace) -> Schedule {
        Schedule::new(Source::Given(trace))
    }

    fn new(source: Source) -> Schedule {
        let mut schedule = Schedule { source, next: None, stride: 1 };
        schedule.advance();
        schedule
    }

    /// Returns the arrivals of `share`; the schedule must not have been advanced.
    pub(crate) fn of(mut self, share: Share) -> Schedule {
        (0..share.index()).for_each(|_| self.advance());
        self.stride = share.count();
        self
    }

    /// Returns the next arrival without taking it; `None` if there are no more.
    pub(crate) fn peek(&self) -> Option<u64> {
        self.next
    }

    /// Takes the next arrival.
    pub(crate) fn take(&mut self) -> Option<u64> {
        let at = self.next;
        (0..self.stride).for_each(|_| self.advance());
        at
    }

    fn advance(&mut self) {
        let next = match &mut self.source {
            Source::Drawn { gaps, course, sum } => {
                *sum += gaps.next();
                course.at(*sum).map(|seconds| (seconds * 1e9).round() as u64)
            }
            Source::Given(trace) => trace.take(),
        };
        // Where two pieces of a rate profile meet, rounding must not swap two arrivals.
        self.next = next.map(|at| at.max(self.next.unwrap_or(0)));
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
