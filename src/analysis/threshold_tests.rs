//! Tests thresholds that depend on two facts, from both sides, and the thresholds that a plan can set for
//! reasons.

use super::tests::{clean, slowing, spoil};
use super::*;
use crate::analysis::synthetic::{Run, fail, postpone, record, verdict};
use crate::rows::{ProbePrompt, PromptCount, Record, Windows};
use crate::units::{Nanos, Share};

const MS: u64 = 1_000_000;
/// Arrivals of an open loop: one every 100 ms for 10 s.
const ARRIVALS: usize = 100;

fn names(verdict: &Verdict) -> Vec<&'static str> {
    verdict.reasons.iter().chain(&verdict.labels).map(|reason| reason.name).collect()
}

/// Returns the labels of an open loop whose requests take this many ms each; a request with `None`
/// fails at once.
fn labels(takes: impl Fn(usize) -> Option<u64>) -> Vec<&'static str> {
    let (every, window) = (100 * MS, 100 * MS * ARRIVALS as u64);
    let windows = Windows { stabilize_ns: 0, measure_start_ns: 0, measure_end_ns: window, end_ns: 2 * window };
    let request = |at: usize| {
        let scheduled = at as u64 * every;
        let mut record = record(scheduled, scheduled, scheduled + takes(at).unwrap_or(100) * MS, vec![], windows);
        if takes(at).is_none() {
            fail(&mut record, Outcome::Http(503), 100 * MS);
        }
        record
    };
    let records: Vec<Record> = (0..ARRIVALS).map(request).collect();
    let facts = Facts { windows, open_loop: true, qps: Some(10.0), stream: true, ..Facts::default() };
    let verdict = verdict(&records, &facts, &Validity::default(), None);
    verdict.labels.iter().map(|label| label.name).collect()
}

#[test]
fn saturated_is_a_queue_that_grows_all_the_time() {
    assert_eq!(labels(|at| Some(100 + 30 * at as u64)), ["saturated"]);
    // A rise of the requests in flight only at the end may be a burst. They were observed neither to
    // return nor to grow without bound.
    assert_eq!(labels(|at| Some(if at < 90 { 100 } else { 10_000 })), ["not_shown"]);
    let none: [&str; 0] = [];
    assert_eq!(labels(|at| Some(if at % 4 < 2 { 100 } else { 250 })), none);
}

#[test]
fn what_is_turned_away_is_no_backlog() {
    let none: [&str; 0] = [];
    assert_eq!(labels(|at| if at % 4 < 2 { None } else { Some(250) }), none);
}

#[test]
fn only_an_open_loop_is_saturated() {
    let (records, facts) = Run::open(200.0).make();
    let closed = Facts { open_loop: false, qps: None, batch_size: Some(8), ..facts.clone() };
    let found = |facts: &Facts| names(&verdict(&records, facts, &Validity::default(), None)).contains(&"saturated");
    assert_eq!([found(&facts), found(&closed)], [true, false]);
}

/// TTFT is exactly 500 ms, so a lateness of 5 ms is allowed; requests of the clean run are already 0.02 ms
/// late.
#[test]
fn late_is_more_than_one_percent_of_ttft() {
    let late = |by: u64| {
        let shape = Run { ttft: 500 * MS, jitter: 0.0, seconds: 40.0, ..Run::default() };
        let (mut records, facts) = shape.make();
        spoil(&mut records, &facts, 400, |record| postpone(record, by));
        names(&verdict(&records, &facts, &Validity::default(), None)).contains(&"client_late")
    };
    assert_eq!([late(4_980_000), late(4_981_000)], [false, true]);
}

/// Truncations and timeouts are excused in a saturated run, but not in others.
#[test]
fn cuts_and_timeouts_are_errors_where_the_server_keeps_up() {
    for outcome in [Outcome::CutAtDrain, Outcome::Timeout, Outcome::Stalled] {
        let found = |count| {
            let (mut records, facts) = clean();
            spoil(&mut records, &facts, count, |record| fail(record, outcome, MS));
            names(&verdict(&records, &facts, &Validity::default(), None)).contains(&"errors")
        };
        assert_eq!([found(10), found(11)], [false, true], "{outcome}");
        let (mut records, facts) = Run::open(200.0).make();
        spoil(&mut records, &facts, 400, |record| fail(record, outcome, 9_000 * MS));
        assert_eq!(names(&verdict(&records, &facts, &Validity::default(), None)), ["saturated"], "{outcome}");
    }
}

#[test]
fn a_loop_whose_users_think_misses_its_rate_too() {
    let (records, facts) = clean();
    let found = |thinks, never_sent| {
        let facts = Facts { thinks, never_sent, ..facts.clone() };
        names(&verdict(&records, &facts, &Validity::default(), None)).contains(&"rate_missed")
    };
    assert_eq!([found(true, 0), found(true, 1), found(false, 1)], [false, true, false]);
}

/// The highest percentile of any latency needs the most samples.
#[test]
fn few_samples_for_any_latency_of_the_slo() {
    let (records, facts) = Run { seconds: 2.0, ..Run::default() }.make();
    let limits = |percentile| [(percentile, Nanos::from_millis(500))].into_iter().collect();
    let found = |slo: Slo| names(&verdict(&records, &facts, &Validity::default(), Some(&slo))).contains(&"few_samples");
    let inside = records.iter().filter(|record| window::contains(&facts.windows, record.row.scheduled_ns));
    assert!((60..298).contains(&inside.count()));
    for percentile in [Percentile::P50, Percentile::P95, Percentile::P99, Percentile::P999] {
        let slos = [
            Slo { ttft: limits(percentile), ..Slo::default() },
            Slo { itl: limits(percentile), ..Slo::default() },
            Slo { tpot: limits(percentile), ..Slo::default() },
            Slo { e2e: limits(percentile), ttft: limits(Percentile::P50), ..Slo::default() },
        ];
        assert_eq!(slos.map(found), [percentile > Percentile::P95; 4], "{percentile:?}");
    }
    assert!(!found(Slo::default()));
}

/// A reason, its limits in a plan, and a function that gives a clean run a defect of 3 %, which the reason
/// reports.
type Spoilt = (&'static str, fn(&mut Validity) -> &mut Limits, fn(&mut Vec<Record>, &mut Facts));

const SPOILT: [Spoilt; 6] = [
    (
        "client_late",
        |validity| &mut validity.client_late,
        |records, facts| {
            spoil(records, facts, 30, |record| postpone(record, 70 * MS));
        },
    ),
    (
        "errors",
        |validity| &mut validity.errors,
        |records, facts| {
            spoil(records, facts, 30, |record| fail(record, Outcome::Reset, MS));
        },
    ),
    (
        "output_length",
        |validity| &mut validity.output_length,
        |records, facts| {
            spoil(records, facts, 30, |record| record.row.output_tokens = Some(15));
        },
    ),
    (
        "prompt_length",
        |validity| &mut validity.prompt_length,
        |records, facts| {
            (facts.prompt_count, facts.probe_prompt) =
                (Some(PromptCount::Tokenizer), Some(ProbePrompt { ours: 12, server: 12 }));
            for record in records {
                (record.row.intended_prompt_tokens, record.row.prompt_tokens) = (1_000, Some(1_030));
            }
        },
    ),
    (
        "warm_cache",
        |validity| &mut validity.warm_cache,
        |records, _| {
            // No reuse is declared, and a template has at most 96 tokens.
            for row in records.iter_mut().map(|record| &mut record.row) {
                (row.intended_prompt_tokens, row.prompt_tokens) = (1_000, Some(1_000));
                (row.cached_tokens, row.reusable_tokens) = (Some(96 + 30), Some(0));
            }
        },
    ),
    ("unsteady", |validity| &mut validity.unsteady, |records, facts| (*records, *facts) = slowing(1.03)),
];

#[test]
fn the_plan_sets_the_thresholds_of_each_reason() {
    let percent = |value: i64| Some(Share::percent(value));
    for (name, limits, spoilt) in SPOILT {
        let (mut records, mut facts) = clean();
        spoilt(&mut records, &mut facts);
        let state = |suspect, invalid| {
            let mut validity = Validity::default();
            *limits(&mut validity) = Limits { suspect, invalid };
            let verdict = verdict(&records, &facts, &validity, None);
            verdict.reasons.into_iter().find(|reason| reason.name == name).map(|reason| reason.state)
        };
        let default = !["prompt_length", "unsteady"].contains(&name);
        assert_eq!(state(None, None), default.then_some(State::Suspect), "{name} by default");
        assert_eq!(state(percent(4), None), None, "{name} above 4 %");
        assert_eq!(state(percent(2), None), Some(State::Suspect), "{name} above 2 %");
        assert_eq!(state(percent(2), percent(4)), Some(State::Suspect), "{name}, invalid above 4 %");
        assert_eq!(state(None, percent(2)), Some(State::Invalid), "{name}, invalid above 2 %");
        assert_eq!(state(percent(4), percent(2)), Some(State::Invalid), "{name}, invalid before suspect");
    }
}
