//! The load over a run: what was in flight and what was sent, part by part. A picture of the run, no metric.

use schemars::JsonSchema;
use serde::Serialize;

use crate::rows::{Facts, Measured};

use super::window;

/// How many parts a run is seen in.
pub(super) const PARTS: usize = 60;

/// The load over a run from its start to the end of drain, in parts of equal length.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Pulse {
    /// Length of a part, in seconds.
    pub part_s: f64,
    /// The first part that holds some of the measure window, and the first behind it.
    pub window: [usize; 2],
    /// Requests in flight (sent and not over), the mean over each part.
    pub in_flight: Vec<f64>,
    /// Requests sent per second in each part.
    pub sent_per_s: Vec<f64>,
}

impl Pulse {
    /// Of one run; none where nothing was sent before the end of drain, or drain has no end.
    pub fn of(rows: &[Measured], facts: &Facts) -> Option<Pulse> {
        let end = facts.windows.end_ns;
        // In parts since the run's start.
        let at = |instant: u64| instant.min(end) as f64 / end as f64 * PARTS as f64;
        let part = |at: f64| (at as usize).min(PARTS - 1);
        let (mut sent, mut partly, mut steps) = (vec![0.0; PARTS], vec![0.0; PARTS], vec![0.0; PARTS + 1]);
        for row in rows {
            let Some(begin) = row.sent_ns().filter(|sent| *sent < end) else { continue };
            let over = at(window::request(row, facts).end_ns().max(begin));
            let begin = at(begin);
            let (first, last) = (part(begin), part(over));
            sent[first] += 1.0;
            if first == last {
                partly[first] += over - begin;
            } else {
                partly[first] += (first + 1) as f64 - begin;
                partly[last] += over - last as f64;
                steps[first + 1] += 1.0;
                steps[last] -= 1.0;
            }
        }
        let part_s = end as f64 / 1e9 / PARTS as f64;
        let mut whole = 0.0;
        let level = |(partly, step): (f64, f64)| {
            whole += step;
            whole + partly
        };
        let window = part(at(facts.windows.measure_start_ns))..at(facts.windows.measure_end_ns).ceil() as usize;
        sent.iter().any(|sent| *sent > 0.0).then(|| Pulse {
            part_s,
            window: [window.start, window.end.max(window.start)],
            in_flight: partly.into_iter().zip(steps).map(level).collect(),
            sent_per_s: sent.into_iter().map(|sent| sent / part_s).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::synthetic::{Run, measured};
    use crate::rows::{Records, Replay, Windows};

    fn pulse(run: &Run) -> (Pulse, Facts, f64) {
        let (records, facts) = run.make();
        let held: Records = records.iter().cloned().collect();
        let mean = measured(&records, &facts).flow.achieved_concurrency.unwrap();
        (Pulse::of(held.rows(), &facts).unwrap(), facts, mean)
    }

    #[test]
    fn a_closed_loop_is_level_while_it_measures() {
        let (pulse, facts, mean) = pulse(&Run { seconds: 30.0, ..Run::default() });
        assert_eq!((pulse.in_flight.len(), pulse.sent_per_s.len()), (PARTS, PARTS));
        let inside = &pulse.in_flight[pulse.window[0] + 1..pulse.window[1] - 1];
        assert!(inside.iter().all(|level| (level - mean).abs() < 0.2), "{mean}: {inside:?}");
        let seconds = facts.windows.end_ns as f64 / 1e9;
        assert!((pulse.part_s * PARTS as f64 - seconds).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_lost_between_parts() {
        let run = Run { seconds: 7.0, ..Run::open(50.0) };
        let (pulse, facts, _) = pulse(&run);
        let (records, _) = run.make();
        let end = facts.windows.end_ns;
        let sent = records.iter().filter(|record| record.row.sent_ns.is_some_and(|sent| sent < end)).count() as f64;
        assert!((pulse.sent_per_s.iter().sum::<f64>() * pulse.part_s - sent).abs() < 1e-6);
        let held: Records = records.into_iter().collect();
        let mean = window::in_flight(held.rows(), &facts, (0, end), |row| row.sent_ns()).unwrap();
        assert!((pulse.in_flight.iter().sum::<f64>() / PARTS as f64 - mean).abs() < 1e-6);
    }

    #[test]
    fn a_run_without_requests_or_length_has_none() {
        let (records, facts) = Run::default().make();
        let held: Records = records.into_iter().collect();
        assert_eq!(Pulse::of(&[], &facts), None);
        let nothing = Facts { windows: Windows::default(), ..facts };
        assert_eq!(Pulse::of(held.rows(), &nothing), None);
    }
}
