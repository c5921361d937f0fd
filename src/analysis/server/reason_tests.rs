//! Tests that reasons are found in series that show them, and not in others.

use super::*;
use crate::analysis::server::tests::{course, facts, page};
use crate::analysis::state::State;
use crate::rows::{Began, Seen, Telemetry};

type Points = Vec<(f64, Option<f64>)>;

fn found(name: &str, samples: &[Sample]) -> Finding {
    found_under(name, samples, &facts())
}

fn found_under(name: &str, samples: &[Sample], facts: &Facts) -> Finding {
    judge(samples, facts).into_iter().find(|(found, _)| *found == name).unwrap().1
}

/// Returns the sentence of a reason that makes a run suspect.
fn text(name: &str, samples: &[Sample]) -> String {
    let (state, text) = found(name, samples).unwrap().unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(state, State::Suspect);
    text
}

/// Returns a series with a failed scrape at 15 s.
fn with_gap(of: impl Fn(f64) -> f64) -> Points {
    course(|at| (at != 15.0).then(|| of(at))).collect()
}

#[test]
fn nothing_is_found_where_nothing_was_scraped() {
    assert!(judge(&[], &Facts::default()).is_empty());
    assert!(judge(&[], &facts()).into_iter().all(|(_, finding)| finding == Ok(None)));
    let other = page(0, "host", "cpu_utilization", course(|_| Some(0.5)));
    assert!(judge(&other, &facts()).into_iter().all(|(_, finding)| finding == Ok(None)));
}

#[test]
fn a_clock_that_is_lowered_counts_while_the_gpus_are_used() {
    let masks = |of: fn(f64) -> f64| page(0, "gpu", "gpu_throttle_reasons", course(move |at| Some(of(at))));
    let used = |of: fn(f64) -> f64| page(0, "gpu", "gpu_utilization", course(move |at| Some(of(at))));
    let hot = masks(|at| if at == 12.0 || at == 13.0 { f64::from(0x20 | 0x4) } else { 1.0 });
    let said = text("server_throttled", &hot);
    assert!(said.contains("at 2 of 11 scrapes (18.2%)") && said.contains(": heat, by the driver;"), "{said}");
    // At one of the two scrapes, the GPUs were idle.
    let both = [hot.clone(), used(|at| if at == 12.0 { 0.0 } else { 0.9 })].concat();
    assert!(text("server_throttled", &both).contains("at 1 of 10 scrapes (10.0%)"));
    let idle = [hot, used(|_| 0.0)].concat();
    assert_eq!(found("server_throttled", &idle), Ok(None));
    // Harmless bits: idle, an application clock setting and a display clock. Anything outside the
    // window is harmless too.
    for harmless in [masks(|_| f64::from(0x1 | 0x2 | 0x100)), masks(|at| if at < 10.0 { 8.0 } else { 0.0 })] {
        assert_eq!(found("server_throttled", &harmless), Ok(None));
    }
    let gap = page(0, "gpu", "gpu_throttle_reasons", with_gap(|_| 8.0));
    assert_eq!(found("server_throttled", &gap), Err("1 scrape in the window failed (timeout)".to_owned()));
}

#[test]
fn requests_that_are_put_back_in_the_window_are_told() {
    let counts = |of: fn(f64) -> f64| page(0, "server", "preemptions", course(move |at| Some(of(at))));
    let said = text("server_preempting", &counts(|at| if at < 14.0 { 3.0 } else { 10.0 }));
    assert!(said.starts_with("7 requests were preempted in the window"), "{said}");
    assert!(text("server_preempting", &counts(|at| f64::from(at > 14.0))).starts_with("1 request was"));
    for outside in [8.0, 22.0] {
        let counts = page(0, "server", "preemptions", course(move |at| Some(f64::from(at > outside))));
        assert_eq!(found("server_preempting", &counts), Ok(None));
    }
    assert!(found("server_preempting", &page(0, "server", "preemptions", with_gap(|at| at))).is_err());
}

#[test]
fn a_cache_is_full_where_it_is_so_for_a_twentieth_of_the_window() {
    let usage = |url, of: fn(f64) -> f64| page(url, "server", "kv_cache_usage", course(move |at| Some(of(at))));
    // Full from 12 s to 15 s. The usage crosses 0.99 within a hundredth of a second before and
    // after.
    let full = usage(0, |at| if (12.0..=15.0).contains(&at) { 1.0 } else { 0.0 });
    assert!(text("server_kv_full", &full).contains("at least 99% full for 30.2% of the window"));
    // Only one of two replicas is full, so their mean is half.
    let replicas = [full, usage(1, |_| 0.0)].concat();
    assert!(text("server_kv_full", &replicas).contains("the KV cache of one of the servers was"));
    for harmless in [usage(0, |_| 0.985), usage(0, |at| f64::from(at == 12.0)), usage(0, |at| f64::from(at < 10.0))] {
        assert_eq!(found("server_kv_full", &harmless), Ok(None));
    }
    assert!(found("server_kv_full", &page(0, "server", "kv_cache_usage", with_gap(|_| 1.0))).is_err());
}

#[test]
fn requests_before_the_load_are_somebody_else_s() {
    let busy =
        |url, key, before: f64| page(url, "server", key, course(move |at| Some(if at == 0.0 { before } else { 8.0 })));
    assert_eq!(found("server_not_idle", &busy(0, "requests_running", 0.0)), Ok(None));
    let two = [busy(0, "requests_running", 1.0), busy(1, "requests_running", 2.0), busy(1, "requests_waiting", 4.0)];
    assert!(text("server_not_idle", &two.concat()).starts_with("the server had 3 requests running and 4 waiting"));
    let seen = Seen::Probe { ttft_ns: None, baseline_ns: None };
    let began = |idle| Facts { began: Some(Began { idle, waited_ns: 0, endpoint: None, seen }), ..facts() };
    assert_eq!(found_under("server_not_idle", &two.concat(), &began(false)), Ok(None), "it is reported already");
    assert!(found_under("server_not_idle", &two.concat(), &began(true)).unwrap().is_some());
    let failed = page(0, "server", "requests_running", course(|at| (at != 0.0).then_some(8.0)));
    let why = "the scrape before the load failed (timeout)".to_owned();
    assert_eq!(found("server_not_idle", &failed), Err(why));
    let late = page(0, "server", "requests_running", course(|_| Some(8.0)).skip(1));
    assert!(found("server_not_idle", &late).unwrap_err().contains("had not finished"));
    // A gauge that appears on the page later was absent because nothing was running.
    let mut absent = page(0, "host", "cpu_utilization", course(|_| Some(0.5)));
    absent.extend(page(0, "server", "requests_running", course(|_| Some(8.0)).skip(1)));
    assert_eq!(found("server_not_idle", &absent), Ok(None));
}

#[test]
fn a_restart_shows_in_what_falls_and_in_the_start_of_the_process() {
    let counts = |name, of: fn(f64) -> f64| page(0, "server", name, course(move |at| Some(of(at))));
    let clean = [counts("prompt_tokens", |at| at), counts("process_start_time", |_| 1.7e9)].concat();
    assert_eq!(found("server_restarted", &clean), Ok(None));
    let falls = |at: f64| if at < 7.0 { 100.0 * at } else { at };
    // A counter that falls outside the window also shows a restart, and so does the count of a histogram.
    let said = text("server_restarted", &counts("prompt_tokens", falls));
    assert!(said.starts_with("prompt_tokens fell from 600 to 7 between 6.0 s and 7.0 s of the run"), "{said}");
    let said = text("server_restarted", &counts("e2e_seconds.count", falls));
    assert!(said.starts_with("the count of e2e_seconds fell"), "{said}");
    // A gauge may fall without a restart.
    assert_eq!(found("server_restarted", &counts("requests_running", falls)), Ok(None));
    // The counter has grown fast since the restart, so only the start time of the process shows it.
    let start = counts("process_start_time", |at| if at < 7.0 { 1.7e9 } else { 1.7e9 + 420.0 });
    let said = text("server_restarted", &[counts("prompt_tokens", |at| at), start.clone()].concat());
    assert!(said.starts_with("a process that was started 420 s later responded from 7.0 s of the run on"), "{said}");
    // The GPU exporter is a separate process.
    let exporter = [counts("gpu_energy_joules", |at| at), start].concat();
    assert_eq!(found("server_restarted", &exporter), Ok(None));
}

#[test]
fn a_gap_may_hide_a_restart_unless_the_page_tells_its_start() {
    let gap = page(0, "server", "prompt_tokens", with_gap(|at| at));
    assert!(found("server_restarted", &gap).unwrap_err().contains("does not report when the server was started"));
    let told = [gap.clone(), page(0, "server", "process_start_time", with_gap(|_| 1.7e9))].concat();
    assert_eq!(found("server_restarted", &told), Ok(None));
    let falls = page(0, "server", "prompt_tokens", with_gap(|at| if at < 15.0 { at } else { 0.0 }));
    assert!(text("server_restarted", &falls).contains("between 14.0 s and 16.0 s"));
    // For a run without samples, the facts are used.
    let mut restarted = facts();
    restarted.telemetry = Some(Telemetry::default());
    restarted.telemetry.as_mut().unwrap().counted.restarted = true;
    assert!(found_under("server_restarted", &[], &restarted).unwrap().is_some());
}
