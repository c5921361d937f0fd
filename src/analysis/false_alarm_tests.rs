//! How often clean runs are judged suspect: 2 000 simulated runs of different sizes, with fixed seeds.

use std::collections::BTreeMap;

use super::*;
use crate::analysis::synthetic::{Run, verdict};

/// Counts alarms by reason over the runs. A window that is too short for a decision is not an alarm.
fn alarms(runs: impl Iterator<Item = Run>) -> BTreeMap<&'static str, usize> {
    let mut alarms = BTreeMap::new();
    for run in runs {
        let (records, facts) = run.make();
        let verdict = verdict(&records, &facts, &Validity::default(), None);
        let labels = verdict.labels.iter().filter(|label| label.name != "not_shown");
        for reason in verdict.reasons.iter().chain(labels) {
            *alarms.entry(reason.name).or_insert(0) += 1;
        }
    }
    alarms
}

/// Returns runs of one shape with `count` different seeds.
fn seeds(shape: Run, count: u64) -> impl Iterator<Item = Run> {
    (1..=count).map(move |seed| Run { seed, ..shape.clone() })
}

fn assert_rare(shape: Run, count: u64) {
    let found = alarms(seeds(shape.clone(), count));
    for (reason, alarms) in found {
        assert!(alarms as f64 <= 0.02 * count as f64, "{reason}: {alarms} of {count} for {shape:?}");
    }
}

#[test]
fn open_loops_of_few_and_many_requests_raise_no_alarm() {
    for (qps, seconds, count) in [(2.0, 10.0, 400), (10.0, 10.0, 400), (50.0, 4.0, 200), (20.0, 30.0, 100)] {
        assert_rare(Run { seconds, ..Run::open(qps) }, count);
    }
}

/// A request takes 80 ms in one of 8 slots, so the server completes at most 100 requests per second.
#[test]
fn busy_servers_that_keep_up_raise_no_alarm() {
    for (qps, count) in [(70.0, 100), (85.0, 100)] {
        assert_rare(Run { seconds: 10.0, ..Run::open(qps) }, count);
    }
}

#[test]
fn closed_loops_raise_no_alarm() {
    for (batch_size, jitter, count) in [(1, 0.05, 200), (8, 0.3, 200), (16, 0.3, 100), (4, 0.9, 200)] {
        assert_rare(Run { batch_size: Some(batch_size), jitter, seconds: 3.0, ..Run::default() }, count);
    }
}

/// Users have long, random think times, so rates are comparable only over parts at least as long as a
/// round of request and think time.
#[test]
fn think_times_raise_no_alarm() {
    for (batch_size, think_ms, seconds, count) in
        [(8, 200, 10.0, 200), (32, 2_000, 30.0, 100), (4, 1_000, 60.0, 100), (64, 10_000, 120.0, 50)]
    {
        let shape = Run { batch_size: Some(batch_size), think: think_ms * 1_000_000, seconds, ..Run::default() };
        assert_rare(shape, count);
    }
}

/// Users have think times, and the server's first tokens come 15 ms later in the second half of the window.
#[test]
fn thinking_does_not_hide_that_the_server_slows_down() {
    let shape = Run { batch_size: Some(32), think: 300_000_000, seconds: 30.0, ..Run::default() };
    let found = (1..=20).filter(|seed| {
        let (mut records, facts) = Run { seed: *seed, ..shape.clone() }.make();
        let middle = (facts.windows.measure_start_ns + facts.windows.measure_end_ns) / 2;
        for row in records.iter_mut().map(|record| &mut record.row).filter(|row| row.scheduled_ns > middle) {
            row.first_token_ns = row.first_token_ns.map(|at| at + 15_000_000);
        }
        verdict(&records, &facts, &Validity::default(), None).to_string().contains("unsteady")
    });
    assert_eq!(found.count(), 20);
}

/// Synchronized slots produce waves of tokens. Whether one half of the window contains a wave more than the
/// other is a matter of chance.
#[test]
fn batches_in_step_raise_no_alarm() {
    let shape = Run { jitter: 0.0, tokens: 8, ttft: 90_000_000, ..Run::default() };
    let lengths = (0..1000).map(|step| 0.5 + 0.0131 * f64::from(step));
    let found = alarms(lengths.map(|seconds| Run { seconds, ..shape.clone() }));
    assert_eq!(found, BTreeMap::new());
}

/// Under a profile, the load and the requests in flight differ between parts of the window. Both
/// follow from the declared profile.
#[test]
fn declared_profiles_raise_no_alarm() {
    let rising: fn(f64) -> f64 = |share| 0.1 + 0.9 * share;
    let falling: fn(f64) -> f64 = |share| 1.0 - 0.9 * share;
    let step: fn(f64) -> f64 = |share| if share < 0.5 { 0.2 } else { 1.0 };
    let bursts: fn(f64) -> f64 = |share| if (share * 6.0).fract() < 0.4 { 1.0 } else { 0.05 };
    for profile in [rising, falling, step, bursts] {
        for (qps, tokens, seconds, count) in [(60.0, 16, 10.0, 50), (20.0, 64, 30.0, 50)] {
            let shape = Run { tokens, seconds, profile: Some(profile), ..Run::open(qps) };
            assert_rare(shape, count);
        }
    }
}

/// The load rises with the profile, and the server cannot sustain it at the end.
#[test]
fn a_profile_does_not_hide_that_the_server_is_too_slow() {
    let rising: fn(f64) -> f64 = |share| 0.1 + 0.9 * share;
    let found = alarms(seeds(Run { profile: Some(rising), seconds: 20.0, ..Run::open(250.0) }, 20));
    assert_eq!(found.get("saturated"), Some(&20), "{found:?}");
}
