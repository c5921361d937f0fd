//! Pauses: periods in which the canary with its own thread was not woken. No thread of sweepline ran in these
//! periods, whatever the run was doing. Pauses are stored as spans of time, not by phase, because a process
//! that stood still notices a new phase too late.

use crate::rows::{Pauses, Standstill, Windows};

/// A wake-up that is later than this (in nanoseconds) is a pause. Shorter delays are ordinary on a
/// busy machine; the canaries' percentiles show them.
const LEAST_NS: u64 = 100_000_000;
/// A wake-up that is later than this (in nanoseconds) because the thread was stopped, rather than waiting for
/// a core, is a pause if there are at least `AGAIN` such wake-ups.
const LEAST_STOP_NS: u64 = 50_000_000;
/// Short stops are treated as pauses only if there are at least this many. One or two are normal on a virtual
/// machine.
const AGAIN: u64 = 3;
/// Maximum number of spans of each kind that are stored. When it is reached, adjacent spans are merged, so
/// that memory is bounded however long the run is.
const MOST: usize = 4096;

/// Records the pauses of a run.
#[derive(Debug, Default)]
pub(crate) struct Book {
    stopped: Vec<Span>,
    starved: Vec<Span>,
}

/// A pause, or several pauses that follow each other. Times are in nanoseconds since the run's start,
/// durations in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: u64,
    to: u64,
    count: u64,
    /// Total duration of the pauses in this span.
    paused: u64,
    longest: u64,
}

impl Book {
    /// Records that the canary should have been woken at `from` but slept until `to`. `waited` is how long
    /// it waited for a core in this time, in nanoseconds; `None` if unknown.
    pub(crate) fn slept(&mut self, from: u64, to: u64, waited: Option<u64>) {
        let paused = to.saturating_sub(from);
        // A stopped thread does not wait for a core. If the wait is unknown, the shorter limit for stopped
        // threads does not apply.
        let starved = waited.is_some_and(|waited| waited >= paused / 2);
        let is_stopped = waited.is_some() && !starved;
        if paused < if is_stopped { LEAST_STOP_NS } else { LEAST_NS } {
            return;
        }
        let spans = if starved { &mut self.starved } else { &mut self.stopped };
        if spans.len() == MOST {
            *spans = spans.chunks(2).map(|pair| pair.iter().copied().reduce(Span::then).unwrap_or(pair[0])).collect();
        }
        spans.push(Span { from, to, count: 1, paused, longest: paused });
    }

    /// Returns the pauses that affect the measurements in the measure window.
    pub(crate) fn within(&self, windows: &Windows) -> Pauses {
        let sum = |spans: &[Span]| {
            let short: u64 = spans.iter().filter(|s| s.is_short() && s.concerns(windows)).map(|span| span.count).sum();
            let counts = |span: &&Span| short >= AGAIN || !span.is_short();
            let concern = spans.iter().filter(|span| span.concerns(windows)).filter(counts);
            concern.fold(Standstill::default(), |sum, span| Standstill {
                count: sum.count + span.count,
                in_window_ns: sum.in_window_ns + span.inside(windows),
                longest_ns: sum.longest_ns.max(span.longest),
            })
        };
        Pauses { stopped: sum(&self.stopped), starved: sum(&self.starved) }
    }
}

impl Span {
    /// Whether this pause is so short that it is included only if there are enough such pauses (`AGAIN`).
    fn is_short(&self) -> bool {
        self.longest < LEAST_NS
    }

    fn then(self, later: Span) -> Span {
        Span {
            from: self.from,
            to: later.to,
            count: self.count + later.count,
            paused: self.paused + later.paused,
            longest: self.longest.max(later.longest),
        }
    }

    /// Whether this pause affects the measurements. After the measure window, requests of the window are
    /// still in flight. A pause before the window leaves a backlog, which takes about as long to work off
    /// as the pause lasted.
    fn concerns(&self, windows: &Windows) -> bool {
        let felt = self.to.saturating_add(self.longest);
        self.from < windows.end_ns && felt > windows.measure_start_ns
    }

    /// Returns how much of the paused time was in the measure window, in nanoseconds. If the span contains
    /// several pauses, they are treated as if they were spread evenly over it.
    fn inside(&self, windows: &Windows) -> u64 {
        let (from, to) = (self.from.max(windows.measure_start_ns), self.to.min(windows.measure_end_ns));
        let (inside, length) = (to.saturating_sub(from), self.to - self.from);
        (u128::from(self.paused) * u128::from(inside) / u128::from(length.max(1))) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    /// A window from 2 s to 7 s, and a drain of 1 s.
    const WINDOWS: Windows =
        Windows { stabilize_ns: 1000 * MS, measure_start_ns: 2000 * MS, measure_end_ns: 7000 * MS, end_ns: 8000 * MS };

    /// Records one pause between `from` and `to`, in milliseconds. Returns the number of pauses that affect
    /// the measurements, their time in the window, and the length of the longest one, in milliseconds.
    fn after(from: u64, to: u64) -> (u64, u64, u64) {
        let mut book = Book::default();
        book.slept(from * MS, to * MS, Some(0));
        let Standstill { count, in_window_ns, longest_ns } = book.within(&WINDOWS).stopped;
        (count, in_window_ns / MS, longest_ns / MS)
    }

    #[test]
    fn a_pause_counts_where_it_was_whatever_the_phase_is_when_it_ends() {
        assert_eq!(after(3000, 4000), (1, 1000, 1000));
        assert_eq!(after(6900, 7900), (1, 100, 1000), "across the end");
        assert_eq!(after(1500, 2500), (1, 500, 1000), "across the start");
        assert_eq!(after(1500, 9500), (1, 5000, 8000), "around the whole window");
        assert_eq!(after(7100, 7600), (1, 0, 500), "while requests of the window are in flight");
        assert_eq!(after(8000, 9000), (0, 0, 0), "after the run");
        assert_eq!(after(900, 1500), (1, 0, 600), "so shortly before that its backlog is measured");
        assert_eq!(after(900, 1400), (0, 0, 0), "long before");
        assert_eq!(after(3000, 3099), (0, 0, 0), "normal for any busy machine");
    }

    #[test]
    fn short_stops_count_where_they_come_again_and_again() {
        let stops = |count: u64, length: u64, waited: Option<u64>| {
            let mut book = Book::default();
            for at in 0..count {
                let from = (2100 + 200 * at) * MS;
                book.slept(from, from + length * MS, waited);
            }
            let Pauses { stopped, starved } = book.within(&WINDOWS);
            (stopped.count, stopped.in_window_ns / MS, starved.count)
        };
        assert_eq!(stops(2, 90, Some(0)), (0, 0, 0));
        assert_eq!(stops(3, 90, Some(0)), (3, 270, 0));
        assert_eq!(stops(14, 49, Some(0)), (0, 0, 0), "ordinary delays");
        assert_eq!(stops(14, 90, Some(80 * MS)), (0, 0, 0), "they waited for a core");
        assert_eq!(stops(14, 90, None), (0, 0, 0), "unknown");
    }

    #[test]
    fn who_waits_for_a_core_is_not_stopped() {
        let mut book = Book::default();
        book.slept(3000 * MS, 3200 * MS, Some(100 * MS));
        book.slept(4000 * MS, 4300 * MS, Some(149 * MS));
        book.slept(5000 * MS, 5100 * MS, None);
        let Pauses { stopped, starved } = book.within(&WINDOWS);
        assert_eq!((starved.count, starved.in_window_ns, starved.longest_ns), (1, 200 * MS, 200 * MS));
        assert_eq!((stopped.count, stopped.in_window_ns, stopped.longest_ns), (2, 400 * MS, 300 * MS));
    }

    #[test]
    fn a_run_of_many_pauses_keeps_few_spans_and_their_sum() {
        let windows = Windows { measure_start_ns: 0, measure_end_ns: u64::MAX, end_ns: u64::MAX, ..WINDOWS };
        let mut book = Book::default();
        let pauses = 5 * MOST as u64;
        (0..pauses).for_each(|n| book.slept(n * 1000 * MS, (n * 1000 + 100 + n % 2) * MS, Some(0)));
        assert!(book.stopped.len() <= MOST);
        let stopped = book.within(&windows).stopped;
        assert_eq!((stopped.count, stopped.longest_ns), (pauses, 101 * MS));
        let paused = pauses * 201 * MS / 2;
        assert!(stopped.in_window_ns.abs_diff(paused) <= pauses, "{stopped:?}");
    }
}
