//! Client checks for a run whose load was sent by several processes. Each process is checked as if it had
//! sent its share alone, because one bad client spoils the run even if many good ones dilute its effect.

use crate::rows::{ClockOffset, Facts, Measured, Worker};

use super::state::State;

/// Maximum delay between the common start and a worker's start, in nanoseconds. It equals the threshold for
/// a pause.
const LATE_NS: u64 = 100_000_000;
/// A skew above this multiple of the allowed lateness makes a run invalid.
const INVALID: f64 = 10.0;

/// The part of a run's load that one worker sent.
pub(super) struct OfWorker {
    /// The worker's name and machine.
    pub(super) called: String,
    pub(super) rows: Vec<Measured>,
    pub(super) facts: Facts,
}

/// Returns each worker's part; empty if one process sent the load.
pub(super) fn parts(rows: &[Measured], facts: &Facts) -> Vec<OfWorker> {
    let part = |worker: &Worker| OfWorker { called: worker.called(), rows: Vec::new(), facts: facts.of_worker(worker) };
    let mut parts: Vec<OfWorker> = facts.workers.iter().map(part).collect();
    let count = parts.len().max(1) as u64;
    for row in rows {
        if let Some(part) = parts.get_mut((row.request % count) as usize) {
            part.rows.push(row.clone());
        }
    }
    parts
}

/// Checks whether the workers started together and whether their clocks agree to within `allowed_ms`, the
/// lateness that is allowed for a client. A clock error makes all requests of a worker early or late by
/// the same amount. Returns the worst finding; `None` if there is none.
pub(super) fn skewed(facts: &Facts, allowed_ms: f64) -> Option<(State, String)> {
    let findings = facts.workers.iter().filter_map(|worker| {
        let (state, text) = skew(worker, facts, allowed_ms)?;
        Some((state, format!("{}: {text}", worker.called())))
    });
    findings.reduce(worse)
}

fn skew(worker: &Worker, facts: &Facts, allowed_ms: f64) -> Option<(State, String)> {
    let ClockOffset { uncertainty_ns, drift_ns, drift_uncertainty_ns, .. } = worker.clock;
    let ms = |nanos: u64| nanos as f64 / 1e6;
    let state = |found: f64| if found > INVALID * allowed_ms { State::Invalid } else { State::Suspect };
    let uncertainty = ms(uncertainty_ns);
    // A change within the measurement uncertainty is not a drift.
    let drift = ms(drift_ns.unsigned_abs().saturating_sub(drift_uncertainty_ns));
    let late = worker.started_late_ns;
    let findings = [
        (late > LATE_NS).then(|| {
            let state = if late > facts.windows.measure_start_ns { State::Invalid } else { State::Suspect };
            (state, format!("it started {:.0} ms after the others", ms(late)))
        }),
        (uncertainty > allowed_ms).then(|| {
            let text = format!("its clock is known only to within {uncertainty:.1} ms, more than {allowed_ms:.1} ms");
            (state(uncertainty), text)
        }),
        (drift > allowed_ms).then(|| (state(drift), format!("its clock drifted by {drift:.1} ms during the run"))),
    ];
    findings.into_iter().flatten().reduce(worse)
}

/// Returns the worse of two findings; the first if they are equally bad.
pub(super) fn worse(first: (State, String), second: (State, String)) -> (State, String) {
    if second.0 > first.0 { second } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::synthetic::{Run, postpone, verdict};
    use crate::plan::Validity;
    use crate::rows::{Pauses, Standstill, Windows};

    /// Returns the verdict on a run with two workers after `change` has modified its facts; every `late`-th
    /// request of the second worker is sent 300 ms late.
    fn judged(late: u64, change: impl FnOnce(&mut Facts)) -> Vec<(&'static str, State, String)> {
        let (mut records, mut facts) = Run { seconds: 50.0, ..Run::open(40.0) }.make();
        for (number, record) in (0u64..).zip(&mut records) {
            record.row.request = number;
            if number % 2 == 1 && (number / 2).is_multiple_of(late) {
                postpone(record, 300_000_000);
            }
        }
        let worker = |name: &str| Worker {
            name: name.to_owned(),
            host: "h".to_owned(),
            monotonic_ns: facts.monotonic_ns,
            wall_ns: facts.wall_ns,
            boottime_ns: facts.boottime_ns,
            cpu_ns: facts.client_cpu_ns,
            cores: 2,
            observed: facts.observed.clone(),
            pauses: facts.pauses,
            ..Worker::default()
        };
        facts.workers = vec![worker("worker 1"), worker("worker 2")];
        (facts.observed, facts.pauses) = (None, None);
        change(&mut facts);
        let reasons = verdict(&records, &facts, &Validity::default(), None).reasons;
        reasons.into_iter().map(|reason| (reason.name, reason.state, reason.text)).collect()
    }

    #[test]
    fn one_bad_client_is_not_diluted_by_good_ones() {
        let clean = judged(u64::MAX, |_| {});
        assert!(clean.is_empty(), "two good clients: {clean:?}");
        // 1.5 % of the worker's requests are late, and 0.8 % of all requests.
        let found = judged(66, |_| {});
        let [(name, state, text)] = &found[..] else { panic!("{found:?}") };
        assert_eq!((*name, *state), ("client_late", State::Suspect));
        assert!(text.starts_with("worker 2 (h): 1.") && text.contains(" of requests ("), "{text}");
        let paused = judged(u64::MAX, |facts| {
            let stopped = Standstill { count: 1, in_window_ns: 4_000_000_000, longest_ns: 4_000_000_000 };
            facts.workers[1].pauses = Some(Pauses { stopped, ..Pauses::default() });
        });
        let [(name, state, text)] = &paused[..] else { panic!("{paused:?}") };
        assert_eq!((*name, *state), ("client_paused", State::Invalid));
        assert!(text.starts_with("worker 2 (h): "), "{text}");
        let moved = judged(u64::MAX, |facts| facts.workers[0].wall_ns += 200_000_000);
        let [(name, state, text)] = &moved[..] else { panic!("{moved:?}") };
        assert_eq!((*name, *state), ("clock", State::Invalid));
        assert!(text.starts_with("worker 1 (h): "), "{text}");
    }

    fn found(change: impl FnOnce(&mut Worker)) -> Option<(State, String)> {
        let mut second = Worker { name: "worker 2".into(), host: "b".into(), ..Worker::default() };
        change(&mut second);
        let first = Worker { name: "worker 1".into(), host: "a".into(), ..Worker::default() };
        let windows = Windows { measure_start_ns: 2_000_000_000, ..Windows::default() };
        skewed(&Facts { workers: vec![first, second], windows, ..Facts::default() }, 1.0)
    }

    #[test]
    fn a_skewed_worker_is_named_with_its_skew() {
        assert_eq!(found(|_| {}), None);
        assert_eq!(found(|worker| worker.clock.uncertainty_ns = 1_000_000), None);
        let (state, text) = found(|worker| worker.clock.uncertainty_ns = 1_100_000).unwrap();
        let told = "worker 2 (b): its clock is known only to within 1.1 ms, more than 1.0 ms";
        assert_eq!((state, text.as_str()), (State::Suspect, told));
        assert_eq!(found(|worker| worker.clock.uncertainty_ns = 10_100_000).unwrap().0, State::Invalid);
        // An offset is corrected; only its change during the run is an error.
        assert_eq!(found(|worker| worker.clock.offset_ns = 7_000_000_000), None);
        let drifted = |drift, uncertainty| {
            found(move |worker| {
                (worker.clock.drift_ns, worker.clock.drift_uncertainty_ns) = (drift, uncertainty);
            })
        };
        assert_eq!(drifted(-1_400_000, 500_000), None);
        assert_eq!(drifted(-1_600_000, 500_000).map(|(state, _)| state), Some(State::Suspect));
        assert_eq!(drifted(11_000_000, 500_000).map(|(state, _)| state), Some(State::Invalid));
    }

    #[test]
    fn a_late_start_counts_like_a_pause() {
        assert_eq!(found(|worker| worker.started_late_ns = 100_000_000), None);
        assert_eq!(found(|worker| worker.started_late_ns = 101_000_000).map(|(state, _)| state), Some(State::Suspect));
        let (state, text) = found(|worker| worker.started_late_ns = 2_100_000_000).unwrap();
        assert_eq!((state, text.as_str()), (State::Invalid, "worker 2 (b): it started 2100 ms after the others"));
    }
}
