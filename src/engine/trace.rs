//! Arrivals that a trace lists one by one, instead of arrivals drawn from a rate and a process.

use std::sync::Arc;

use crate::expand::RunSpec;

/// Instants of arrivals, shared by all users of the trace. A clone continues from the position of
/// the original.
#[derive(Debug, Clone)]
pub struct Trace {
    /// Instants in ascending order, in nanoseconds on the trace's own clock.
    instants: Arc<[u64]>,
    /// The part of the list that is replayed.
    first: usize,
    last: usize,
    /// The instant of the trace that maps to `begin`.
    origin: u64,
    /// When in the run the trace begins, in nanoseconds since the run's start.
    begin: u64,
    /// Seconds of the run per second of the trace.
    scale: f64,
    /// Duration of one pass, in nanoseconds of the run, if the trace restarts when it has ended.
    period: Option<u64>,
    turn: u64,
    next: usize,
}

impl Trace {
    /// Creates a trace of all `instants`, which are in ascending order and start at 0 on the trace's
    /// clock. It is replayed once, from the run's start, at the recorded speed.
    pub fn new(instants: Arc<[u64]>) -> Trace {
        debug_assert!(instants.is_sorted(), "instants are in ascending order");
        let last = instants.len();
        Trace { instants, first: 0, last, origin: 0, begin: 0, scale: 1.0, period: None, turn: 0, next: 0 }
    }

    /// Returns the arrivals of a run that replays a trace.
    pub fn of(spec: &RunSpec) -> Option<Trace> {
        let replay = spec.scenario.trace.as_ref()?;
        let instants: Vec<u64> = replay.requests.0.iter().map(|request| request.at.0).collect();
        let [from, to] = replay.window();
        let trace = Trace::new(instants.into()).window(from.0, to.0).scaled(1.0 / replay.speed.to_f64());
        Some(if replay.repeat { trace.repeated(replay.period().0) } else { trace })
    }

    /// Returns the number of arrivals in [from, to) of the run.
    pub fn between(self, from: u64, to: u64) -> usize {
        let mut left = self;
        std::iter::from_fn(|| left.take()).take_while(|at| *at < to).filter(|at| *at >= from).count()
    }

    /// Limits the trace to the arrivals in [from, to) on its own clock; `from` becomes the
    /// beginning of the trace.
    pub fn window(mut self, from: u64, to: u64) -> Trace {
        self.first = self.instants.partition_point(|at| *at < from);
        self.last = self.instants.partition_point(|at| *at < to).max(self.first);
        (self.origin, self.next) = (from, self.first);
        self
    }

    /// Multiplies all times of the trace by `scale`: 0.5 replays it twice as fast. `scale` must be
    /// above 0.
    pub fn scaled(mut self, scale: f64) -> Trace {
        debug_assert!(scale > 0.0, "time continues");
        self.scale = scale;
        self
    }

    /// Starts the trace `begin` nanoseconds after the run's start.
    pub fn begin_at(mut self, begin: u64) -> Trace {
        self.begin = begin;
        self
    }

    /// Makes the trace restart every `length` nanoseconds of its own clock, counted from its beginning;
    /// no pass ends before its last arrival.
    pub fn repeated(mut self, length: u64) -> Trace {
        let reach = self.last.checked_sub(1).filter(|last| *last >= self.first).map_or(0, |last| self.instants[last]);
        let length = length.max(reach.saturating_sub(self.origin)).max(1);
        self.period = Some(((length as f64 * self.scale).round() as u64).max(1));
        self
    }

    /// Takes the next arrival in nanoseconds since the run's start; `None` when the trace has ended.
    pub fn take(&mut self) -> Option<u64> {
        if self.next == self.last {
            // A pass without arrivals would never return one.
            self.period.filter(|_| self.first < self.last)?;
            (self.turn, self.next) = (self.turn + 1, self.first);
        }
        let passed = (self.instants[self.next] - self.origin) as f64 * self.scale;
        self.next += 1;
        let turns = self.turn.saturating_mul(self.period.unwrap_or(0));
        Some(self.begin.saturating_add(turns).saturating_add(passed.round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(trace: Trace) -> Vec<u64> {
        let mut trace = trace;
        std::iter::from_fn(|| trace.take()).take(1_000).collect()
    }

    fn list(instants: &[u64]) -> Trace {
        Trace::new(instants.into())
    }

    #[test]
    fn every_instant_comes_once_and_then_none() {
        assert_eq!(all(list(&[0, 5, 5, 9])), [0, 5, 5, 9]);
        assert!(all(list(&[])).is_empty());
    }

    #[test]
    fn a_window_is_laid_on_the_run_and_time_is_scaled() {
        let trace = list(&[10, 20, 30, 40, 50]).window(20, 50);
        assert_eq!(all(trace.clone()), [0, 10, 20], "from its beginning to just before its end");
        assert_eq!(all(trace.clone().scaled(0.5)), [0, 5, 10]);
        assert_eq!(all(trace.scaled(2.0).begin_at(100)), [100, 120, 140]);
        assert!(all(list(&[10, 20]).window(15, 18).repeated(5)).is_empty(), "nothing arrives in it");
    }

    #[test]
    fn a_repeated_trace_begins_again_where_it_ended() {
        let mut trace = list(&[0, 4]).scaled(2.0).begin_at(1).repeated(10);
        assert_eq!((0..5).map(|_| trace.take()).collect::<Option<Vec<_>>>(), Some(vec![1, 9, 21, 29, 41]));
        let mut short = list(&[0, 4]).repeated(2);
        assert_eq!((0..4).map(|_| short.take()).collect::<Option<Vec<_>>>(), Some(vec![0, 4, 4, 8]));
    }

    proptest! {
        #[test]
        fn arrivals_never_go_back(
            mut instants in prop::collection::vec(0u64..1_000_000_000, 0..40),
            scale in 0.01f64..10.0,
            (from, length) in (0u64..1_000_000_000, 1u64..1_000_000_000),
            repeats: bool,
        ) {
            instants.sort_unstable();
            let trace = list(&instants).window(from, from + length).scaled(scale);
            let times = all(if repeats { trace.repeated(length) } else { trace });
            prop_assert!(times.windows(2).all(|w| w[0] <= w[1]));
        }
    }
}
