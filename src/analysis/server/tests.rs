//! Tests of figures on series with known results.

use super::*;
use crate::rows::{Telemetry, Windows};

/// Returns a run with a window from 10 s to 20 s.
pub(super) fn facts() -> Facts {
    let s = 1_000_000_000;
    let windows = Windows { stabilize_ns: 5 * s, measure_start_ns: 10 * s, measure_end_ns: 20 * s, end_ns: 25 * s };
    Facts { windows, telemetry: Some(Telemetry::default()), ..Facts::default() }
}

/// Returns the samples of one page: `up`, and a value for each instant in seconds. If there is no value,
/// the scrape failed.
pub(super) fn page(
    url: u32,
    source: &str,
    name: &str,
    points: impl IntoIterator<Item = (f64, Option<f64>)>,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    for (at, value) in points {
        let one = Sample { at_ns: (at * 1e9) as u64, url: Some(url), ..Sample::default() };
        let error = value.is_none().then(|| "timeout".to_owned());
        let up = f64::from(u8::from(value.is_some()));
        samples.push(Sample { source: "scrape".into(), name: "up".into(), value: up, error, ..one.clone() });
        let value = value.map(|value| Sample { source: source.into(), name: name.into(), value, ..one });
        samples.extend(value);
    }
    samples
}

/// Returns one point per second from 0 to 25.
pub(super) fn course(of: impl Fn(f64) -> Option<f64>) -> impl Iterator<Item = (f64, Option<f64>)> {
    (0..=25).map(f64::from).map(move |at| (at, of(at)))
}

fn value(samples: &[Sample], name: &str) -> Result<f64, String> {
    let figures = figures(samples, &facts(), Some(500.0), Some(0.125));
    let found = figures.iter().find(|figure| figure.name == name);
    found.unwrap_or_else(|| panic!("no {name} among {figures:?}")).value.clone()
}

fn is_near(found: Result<f64, String>, wanted: f64) {
    let found = found.unwrap();
    assert!((found - wanted).abs() < 1e-6 * wanted.abs().max(1.0), "{found}, expected {wanted}");
}

#[test]
fn a_gauge_has_its_mean_and_its_most_over_the_window() {
    let rising = page(0, "server", "requests_running", course(Some));
    is_near(value(&rising, "requests_running_mean"), 15.0);
    is_near(value(&rising, "requests_running_max"), 20.0);
    // If scrapes do not coincide with the boundaries, values are interpolated.
    let sparse = page(0, "server", "requests_running", [(4.0, Some(4.0)), (13.0, Some(13.0)), (24.0, Some(24.0))]);
    is_near(value(&sparse, "requests_running_mean"), 15.0);
    assert!(figures(&[], &facts(), None, None).is_empty());
}

#[test]
fn a_counter_has_its_growth_and_a_histogram_its_mean() {
    let mut samples = page(0, "server", "prompt_tokens", course(|at| Some(100.0 * at)));
    samples.extend(page(0, "server", "queue_seconds.sum", course(|at| Some(0.5 * at))));
    samples.extend(page(0, "server", "queue_seconds.count", course(|at| Some(2.0 * at))));
    samples.extend(page(0, "server", "prefix_cache_queries", course(|at| Some(80.0 * at))));
    samples.extend(page(0, "server", "prefix_cache_hits", course(|at| Some(20.0 * at))));
    is_near(value(&samples, "prompt_tokens"), 1_000.0);
    is_near(value(&samples, "queue_seconds_mean"), 0.25);
    is_near(value(&samples, "prefix_hit_share"), 0.25);
    is_near(value(&samples, "prefix_reusable_share"), 0.125);
    let unknown = figures(&samples, &facts(), None, None);
    assert!(unknown.iter().any(|figure| figure.name == "prefix_reusable_share" && figure.value.is_err()));
    let still = [
        page(0, "server", "queue_seconds.sum", course(|_| Some(3.0))),
        page(0, "server", "queue_seconds.count", course(|_| Some(7.0))),
    ];
    assert_eq!(value(&still.concat(), "queue_seconds_mean"), Err("nothing was counted in the window".to_owned()));
}

#[test]
fn replicas_add_up() {
    let mut samples = page(0, "server", "requests_running", course(|at| Some(if at < 15.0 { 8.0 } else { 2.0 })));
    samples.extend(page(1, "server", "requests_running", course(|at| Some(if at < 15.0 { 1.0 } else { 7.0 }))));
    is_near(value(&samples, "requests_running_max"), 9.0);
    is_near(value(&samples, "requests_running_mean"), 9.0);
    let usage =
        [0, 1].map(|url| page(url, "server", "kv_cache_usage", course(move |_| Some(0.2 + 0.4 * f64::from(url)))));
    is_near(value(&usage.concat(), "kv_cache_usage_mean"), 0.4);
}

#[test]
fn a_gap_in_the_window_makes_it_null_and_one_outside_does_not() {
    let with_gap_at = |gap: f64| page(0, "server", "prompt_tokens", course(move |at| (at != gap).then_some(at)));
    assert_eq!(value(&with_gap_at(15.0), "prompt_tokens"), Err("1 scrape in the window failed (timeout)".to_owned()));
    // The figures of the window depend on the scrape at its boundary.
    assert!(value(&with_gap_at(10.0), "prompt_tokens").is_err());
    is_near(value(&with_gap_at(3.0), "prompt_tokens"), 10.0);
    is_near(value(&with_gap_at(23.0), "prompt_tokens"), 10.0);
    // A counter that appears on its page later was 0 when the page was last read without it.
    let mut late = page(0, "server", "requests_running", [(9.0, Some(0.0))]);
    late.extend(page(0, "server", "prompt_tokens", [(11.0, Some(1.0)), (21.0, Some(11.0))]));
    is_near(value(&late, "prompt_tokens"), 9.5);
    let short = page(0, "server", "requests_running", [(11.0, Some(1.0)), (19.0, Some(2.0))]);
    assert_eq!(value(&short, "requests_running_mean"), Err("the window is not between two scrapes".to_owned()));
}

#[test]
fn a_counter_that_falls_is_null_and_never_negative() {
    let restarted =
        |when: f64| page(0, "server", "prompt_tokens", course(move |at| Some(if at < when { at } else { at - when })));
    let why = "the counter fell in the window: the server was restarted".to_owned();
    assert_eq!(value(&restarted(15.0), "prompt_tokens"), Err(why));
    is_near(value(&restarted(5.0), "prompt_tokens"), 10.0);
}

#[test]
fn energy_is_the_counter_s_and_else_the_integral_of_power() {
    // A trace that swings by 40 % in twenty seconds. The window contains only the lower half of a swing.
    let power = |at: f64| 300.0 + 120.0 * (at * std::f64::consts::PI / 10.0).sin();
    let joules = 3_000.0 - 2_400.0 / std::f64::consts::PI;
    let mut samples = page(0, "gpu", "gpu_power_watts", course(move |at| Some(power(at))));
    let found = value(&samples, "energy_by_power").unwrap();
    assert!((found / joules - 1.0).abs() < 0.01, "{found}, expected {joules}");
    assert!((value(&samples, "joules_per_output_token").unwrap() / joules * 500.0 - 1.0).abs() < 0.01);
    samples.extend(page(0, "gpu", "gpu_energy_joules", course(|at| Some(7e6 + 310.0 * at))));
    is_near(value(&samples, "energy_by_counter"), 3_100.0);
    is_near(value(&samples, "joules_per_output_token"), 6.2);
    is_near(value(&samples, "tokens_per_joule"), 1.0 / 6.2);
    // If a counter wraps, the figure is null. The integral does not replace it, because the method must
    // not change during a run.
    let wrapped = page(1, "gpu", "gpu_energy_joules", course(|at| Some(if at < 15.0 { 4e6 } else { 3.0 })));
    let wrapped = [samples, wrapped].concat();
    let why = "the counter fell in the window: it wrapped, or its driver was reset".to_owned();
    for figure in ["energy_by_counter", "joules_per_output_token", "tokens_per_joule"] {
        assert_eq!(value(&wrapped, figure), Err(why.clone()), "{figure}");
    }
}

#[test]
fn throttling_is_what_power_heat_and_hardware_do() {
    let masks = page(0, "gpu", "gpu_throttle_reasons", course(|at| Some(if at < 15.0 { 1.0 } else { 5.0 })));
    is_near(value(&masks, "gpu_throttled_share"), 6.0 / 11.0);
    let mut cpu = page(0, "host", "cpu_seconds", course(|at| Some(8.0 * at)));
    cpu.extend(page(0, "host", "cpu_idle_seconds", course(|at| Some(6.0 * at))));
    is_near(value(&cpu, "cpu_used_share"), 0.25);
}
