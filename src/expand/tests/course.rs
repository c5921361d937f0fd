//! Compares Λ and its inverse with results worked out by hand.

use super::*;
use crate::plan::{Arrivals, Drain, DrainMode, Measure};
use crate::units::{Decimal, Nanos};
use proptest::prelude::*;

/// Returns the rate profile of `arrivals` at 10 requests per second, after 10 s of fill and 20 s of
/// stabilize.
fn course(arrivals: &str) -> Course {
    let arrivals: Arrivals = serde_json::from_str(arrivals).unwrap();
    let qps = arrivals.own_rate().unwrap_or(Decimal::from(10));
    let measure = Measure { duration: Nanos::from_secs(60), min_requests: None, at_most: None };
    let drain = Drain { duration: Nanos::from_secs(1), mode: DrainMode::Keep };
    let phases = Phases { idle: None, fill: Nanos::from_secs(10), stabilize: Nanos::from_secs(20), measure, drain };
    Course::new(&Load::Open { qps, arrivals, cap: None }, &phases).unwrap()
}

/// Returns the mean rate between two times, which are given in seconds since the start of the window.
fn rate(course: &Course, from: f64, to: f64) -> f64 {
    (course.expected(30.0 + to) - course.expected(30.0 + from)) / (to - from)
}

#[track_caller]
fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9 * expected.abs().max(1.0), "{found}, expected {expected}");
}

#[test]
fn a_steady_rate_fills_and_stays() {
    let course = course("\"poisson\"");
    near(course.expected(10.0), 50.0);
    near(course.expected(30.0), 250.0);
    near(rate(&course, 0.0, 60.0), 10.0);
    near(course.at(250.0).unwrap(), 30.0);
    assert_eq!((course.peak(), course.settled()), (10.0, 10.0));
}

#[test]
fn a_ramp_begins_with_the_window_and_then_stays() {
    let course = course(r#"{ "ramp": { "from": 2, "to": 20, "over": "30s" } }"#);
    near(course.expected(10.0), 10.0);
    near(course.expected(30.0), 50.0);
    near(rate(&course, 0.0, 30.0), 11.0);
    near(rate(&course, 30.0, 60.0), 20.0);
    assert_eq!((course.peak(), course.settled()), (20.0, 2.0));
}

#[test]
fn steps_follow_one_another_and_the_last_stays() {
    let course = course(r#"{ "steps": [{ "qps": "50%", "for": "10s" }, { "qps": "200%", "for": "5s" }] }"#);
    near(rate(&course, -20.0, 10.0), 5.0);
    near(rate(&course, 10.0, 15.0), 20.0);
    near(rate(&course, 15.0, 1_000.0), 20.0);
}

#[test]
fn bursts_keep_the_mean_and_begin_with_the_window() {
    let course = course(r#"{ "bursts": { "on": "4s", "off": "8s" } }"#);
    near(rate(&course, 0.0, 4.0), 30.0);
    near(rate(&course, 4.0, 12.0), 0.0);
    near(rate(&course, 0.0, 48.0), 10.0);
    near(rate(&course, -8.0, 0.0), 0.0);
    near(rate(&course, -12.0, -8.0), 30.0);
    assert_eq!(course.settled(), 10.0);
    near(course.expected(10.0), 50.0);
    let soft = self::course(r#"{ "bursts": { "on": "4s", "off": "8s", "low": "40%" } }"#);
    near(rate(&soft, 4.0, 12.0), 4.0);
    near(rate(&soft, 0.0, 4.0), 22.0);
    near(soft.peak(), 22.0);
}

#[test]
fn an_arrival_belongs_to_the_burst_that_it_begins() {
    let course = course(r#"{ "bursts": { "on": "4s", "off": "8s" } }"#);
    let window = course.expected(30.0);
    near(course.at(window + 119.0).unwrap(), 30.0 + 119.0 / 30.0);
    near(course.at(window + 120.0).unwrap(), 42.0);
    near(course.at(window + 150.0).unwrap(), 43.0);
}

#[test]
fn a_curve_is_linear_between_its_points() {
    let course = course(r#"{ "curve": [["0s", 2], ["10s", 12], ["40s", 0]], "repeat": true }"#);
    near(rate(&course, 0.0, 10.0), 7.0);
    near(rate(&course, 0.0, 5.0), 4.5);
    near(rate(&course, 10.0, 40.0), 6.0);
    near(rate(&course, 40.0, 50.0), 7.0);
    near(rate(&course, -40.0, 0.0) * 40.0, course.expected(30.0) - course.expected(-10.0));
    assert_eq!(course.peak(), 12.0);
    near(course.settled(), 250.0 / 40.0);
}

#[test]
fn a_rate_of_nothing_never_brings_more() {
    let course = course(r#"{ "ramp": { "from": 10, "to": 0, "over": "10s" } }"#);
    near(course.expected(1_000.0), 300.0);
    near(course.at(299.0).unwrap(), 40.0 - (2.0f64).sqrt());
    assert_eq!(course.at(300.5), None);
}

proptest! {
    #[test]
    fn the_inverse_undoes_the_course(
        rates in prop::collection::vec((0u32..500, 1u64..20_000), 1..8),
        repeats: bool,
        count in 0.0f64..50_000.0,
    ) {
        prop_assume!(rates.iter().any(|(rate, _)| *rate > 0));
        let steps: Vec<String> =
            rates.iter().map(|(rate, ms)| format!(r#"{{ "qps": {rate}, "for": "{ms}ms" }}"#)).collect();
        let course = course(&format!(r#"{{ "steps": [{}], "repeat": {repeats} }}"#, steps.join(",")));
        if let Some(at) = course.at(count) {
            let back = course.expected(at);
            prop_assert!((back - count).abs() < 1e-6 * count.max(1.0), "{count} at {at} is {back}");
            prop_assert!(course.at(count + 1.0).is_none_or(|next| next >= at));
        }
    }
}
