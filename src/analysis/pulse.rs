//! A run over time, part by part: requests in flight and sent, tokens received, latencies and failures. It
//! illustrates the run and is not a metric.

use schemars::JsonSchema;
use serde::Serialize;

use crate::rows::{Facts, Measured, Outcome};

use super::flow;
use super::gaps::Events;
use super::received::PARTS;
use super::request::Metric;
use super::window;

/// The load over a run from its start to the end of drain, in parts of equal length.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Pulse {
    /// Length of a part, in seconds.
    pub part_s: f64,
    /// Index of the first part that overlaps the measure window, and of the first part after the window.
    pub window: [usize; 2],
    /// Mean number of requests in flight (sent and not finished) in each part.
    pub in_flight: Vec<f64>,
    /// Requests sent per second in each part.
    pub sent_per_s: Vec<f64>,
    /// Output tokens received per second in each part, regardless of which request they belong to; null if
    /// the token count of any request is unavailable.
    pub tokens_per_s: Option<Vec<f64>>,
    /// The shortest and the longest time to first token, in milliseconds, of the completed requests that were
    /// sent in each part; null if there are no such requests.
    pub ttft_ms: Vec<Option<[f64; 2]>>,
    /// The shortest and the longest latency from sending to the last token, in milliseconds, of the
    /// requests that `ttft_ms` covers.
    pub e2e_ms: Vec<Option<[f64; 2]>>,
    /// Number of requests that failed, by the part in which they ended. Includes requests of the window that
    /// were truncated at the end of drain, but no other truncated requests.
    pub failed: Vec<u64>,
}

impl Pulse {
    /// Computes the load over one run; `None` if nothing was sent before the end of drain.
    pub fn of(rows: &[Measured], events: &Events, facts: &Facts) -> Option<Pulse> {
        let end = facts.windows.end_ns;
        // Time since the run's start, as a number of parts.
        let at = |instant: u64| instant.min(end) as f64 / end as f64 * PARTS as f64;
        let part = |at: f64| (at as usize).min(PARTS - 1);
        let (mut sent, mut partly, mut steps) = (vec![0.0; PARTS], vec![0.0; PARTS], vec![0.0; PARTS + 1]);
        let (mut ttft, mut e2e, mut failed) = (vec![None; PARTS], vec![None; PARTS], vec![0; PARTS]);
        for row in rows {
            let request = window::request(row, facts);
            // A request that was not measured and is still in flight at the end has not failed.
            let is_cut_short =
                row.outcome == Outcome::CutAtDrain && !window::contains(&facts.windows, row.scheduled_ns);
            if !row.outcome.is_ok() && !is_cut_short && end > 0 {
                failed[part(at(request.end_ns()))] += 1;
            }
            let Some(begin) = row.sent_ns().filter(|sent| *sent < end) else { continue };
            let over = at(request.end_ns().max(begin));
            let begin = at(begin);
            let (first, last) = (part(begin), part(over));
            sent[first] += 1.0;
            widen(&mut ttft[first], request.observe(Metric::Ttft).value());
            widen(&mut e2e[first], request.observe(Metric::E2e).value());
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
            tokens_per_s: (!flow::is_uncounted(rows, facts)).then(|| {
                let tokens = events.received.tokens().iter();
                tokens.map(|tokens| tokens / part_s).collect()
            }),
            ttft_ms: ttft,
            e2e_ms: e2e,
            failed,
        })
    }
}

impl Pulse {
    /// Returns the same data in fewer parts: every `of` parts are merged into one, with the mean of means,
    /// the minimum and maximum of ranges, and the sum of failures. The last part may be shorter.
    pub fn in_longer_parts(&self, of: usize) -> Pulse {
        let of = of.max(1);
        let means = |values: &[f64]| -> Vec<f64> {
            values.chunks(of).map(|parts| parts.iter().sum::<f64>() / parts.len() as f64).collect()
        };
        let ends = |values: &[Option<[f64; 2]>]| -> Vec<Option<[f64; 2]>> {
            let both = |[a, b]: [f64; 2], [c, d]: [f64; 2]| [a.min(c), b.max(d)];
            values.chunks(of).map(|parts| parts.iter().flatten().copied().reduce(both)).collect()
        };
        Pulse {
            part_s: self.part_s * of as f64,
            window: [self.window[0] / of, self.window[1].div_ceil(of)],
            in_flight: means(&self.in_flight),
            sent_per_s: means(&self.sent_per_s),
            tokens_per_s: self.tokens_per_s.as_deref().map(means),
            ttft_ms: ends(&self.ttft_ms),
            e2e_ms: ends(&self.e2e_ms),
            failed: self.failed.chunks(of).map(|parts| parts.iter().sum()).collect(),
        }
    }
}

/// Widens the range to include one more value.
fn widen(ends: &mut Option<[f64; 2]>, value: Option<f64>) {
    let Some(value) = value else { return };
    let [least, most] = ends.get_or_insert([value, value]);
    (*least, *most) = (least.min(value), most.max(value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::request::token_events;
    use crate::analysis::synthetic::{Run, fail, measured};
    use crate::rows::{Records, Replay, Windows};

    fn of(held: &Records, facts: &Facts) -> Option<Pulse> {
        let Ok(events) = Events::of(held, facts, &[]);
        Pulse::of(held.rows(), &events, facts)
    }

    fn pulse(run: &Run) -> (Pulse, Facts, f64) {
        let (records, facts) = run.make();
        let held: Records = records.iter().cloned().collect();
        let mean = measured(&records, &facts).flow.achieved_concurrency.unwrap();
        (of(&held, &facts).unwrap(), facts, mean)
    }

    #[test]
    fn longer_parts_have_the_means_the_ends_and_the_sums_of_shorter_ones() {
        let (pulse, ..) = pulse(&Run::default());
        let longer = pulse.in_longer_parts(3);
        assert_eq!(longer.in_flight.len() * 3, pulse.in_flight.len());
        assert_eq!(longer.part_s, pulse.part_s * 3.0);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        assert!((mean(&longer.in_flight) - mean(&pulse.in_flight)).abs() < 1e-9);
        let ends = |all: &[Option<[f64; 2]>]| {
            let all: Vec<[f64; 2]> = all.iter().flatten().copied().collect();
            let least = all.iter().map(|[least, _]| *least).fold(f64::INFINITY, f64::min);
            [least, all.iter().map(|[_, most]| *most).fold(0.0, f64::max)]
        };
        assert_eq!(ends(&longer.ttft_ms), ends(&pulse.ttft_ms));
        assert_eq!(longer.failed.iter().sum::<u64>(), pulse.failed.iter().sum::<u64>());
        assert_eq!(pulse.in_longer_parts(1), pulse);
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
    fn every_token_extreme_and_failure_has_its_part() {
        let (mut records, facts) = Run { seconds: 9.0, ..Run::default() }.make();
        records.iter_mut().step_by(40).for_each(|record| fail(record, Outcome::Http(503), 1_000_000));
        let held: Records = records.into_iter().collect();
        let pulse = of(&held, &facts).unwrap();
        let has_failed = |row: &&Measured| row.outcome == Outcome::Http(503);
        let wanted = held.rows().iter().filter(has_failed).count() as u64;
        assert!(wanted > 5 && pulse.failed.iter().sum::<u64>() == wanted, "{wanted}: {:?}", pulse.failed);
        let mut tokens = 0.0;
        let end = facts.windows.end_ns;
        let Ok(()) = held.replay(&mut |row, gaps| {
            let inside = token_events(row, gaps, true).filter(|(at, _)| *at < end);
            tokens += inside.map(|(_, tokens)| tokens).sum::<f64>();
        });
        let seen = pulse.tokens_per_s.as_ref().unwrap().iter().sum::<f64>() * pulse.part_s;
        assert!(tokens > 100.0 && (seen - tokens).abs() < 1e-6 * tokens, "{seen} of {tokens}");
        for (seen, metric) in [(&pulse.ttft_ms, Metric::Ttft), (&pulse.e2e_ms, Metric::E2e)] {
            let sent = held.rows().iter().filter(|row| row.sent_ns().is_some_and(|sent| sent < end));
            let all = sent.filter_map(|row| window::request(row, &facts).observe(metric).value());
            let (least, most) = all.fold((f64::INFINITY, 0.0_f64), |(a, b), value| (a.min(value), b.max(value)));
            let ends = seen.iter().flatten().fold((f64::INFINITY, 0.0_f64), |(a, b), [c, d]| (a.min(*c), b.max(*d)));
            assert_eq!(ends, (least, most), "the extremes of the run are those of its parts");
        }
    }

    #[test]
    fn a_run_without_requests_or_length_has_none() {
        let (records, facts) = Run::default().make();
        let held: Records = records.into_iter().collect();
        assert_eq!(of(&Records::default(), &facts), None);
        let nothing = Facts { windows: Windows::default(), ..facts };
        assert_eq!(of(&held, &nothing), None);
    }
}
