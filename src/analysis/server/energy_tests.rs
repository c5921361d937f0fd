//! Tests of the energy computed from power traces with known energy.

use super::tests::page;
use super::*;
use crate::rows::{GpuReadings, Telemetry, Windows};

/// Returns the power of a serving GPU in watts: batches that grow and shrink, bursts of prefill up to the
/// power cap, and a slow rise.
fn watts(at: f64) -> f64 {
    let swing = 90.0 * (at * std::f64::consts::TAU / 7.3).sin() + 25.0 * (at * std::f64::consts::TAU / 2.9).cos();
    let burst = if at.rem_euclid(11.3) < 2.6 { 230.0 } else { 0.0 };
    360.0 + swing + burst + 0.8 * at
}

/// Returns the joules between two instants, integrated in steps of a tenth of a millisecond.
fn joules(from: f64, to: f64) -> f64 {
    let steps = ((to - from) * 1e4).round();
    let step = (to - from) / steps;
    (0..steps as u64).map(|at| watts(from + (at as f64 + 0.5) * step) * step).sum()
}

fn facts(window: [f64; 2]) -> Facts {
    let [measure_start_ns, measure_end_ns] = window.map(|at| (at * 1e9) as u64);
    let windows = Windows { stabilize_ns: 0, measure_start_ns, measure_end_ns, end_ns: measure_end_ns };
    Facts { windows, telemetry: Some(Telemetry::default()), ..Facts::default() }
}

fn energy(samples: &[Sample], facts: &Facts, name: &str) -> f64 {
    let figures = figures(samples, facts, Some(5_000.0), None);
    figures.into_iter().find(|figure| figure.name == name).unwrap_or_else(|| panic!("no {name}")).value.unwrap()
}

#[test]
fn energy_is_within_a_hundredth_however_scrapes_fall() {
    for every in [1.0, 0.1] {
        // The boundaries lie between scrapes, at a different position each time.
        for (offset, window) in
            [(0.0, [10.37, 70.81]), (0.29, [11.0, 71.5]), (0.071, [9.95, 69.33]), (0.53, [12.5, 72.5])]
        {
            let instants: Vec<f64> =
                (0..(80.0 / every) as u32).map(|nth| offset * every + f64::from(nth) * every).collect();
            let truth = joules(window[0], window[1]);
            let facts = facts(window);
            let power = page(0, "gpu", "gpu_power_watts", instants.iter().map(|at| (*at, Some(watts(*at)))));
            let found = energy(&power, &facts, "energy_by_power");
            assert!((found / truth - 1.0).abs() < 0.01, "by power every {every} s: {found}, expected {truth}");
            let mut so_far = 7e6;
            let counted: Vec<(f64, Option<f64>)> = instants
                .iter()
                .scan(0.0, |last, at| {
                    so_far += joules(*last, *at);
                    *last = *at;
                    // A driver reports whole millijoules.
                    Some((*at, Some((so_far * 1e3_f64).floor() / 1e3)))
                })
                .collect();
            let counter = page(0, "gpu", "gpu_energy_joules", counted);
            let found = energy(&counter, &facts, "energy_by_counter");
            assert!((found / truth - 1.0).abs() < 0.01, "by counter every {every} s: {found}, expected {truth}");
            let both = [power, counter].concat();
            assert!((energy(&both, &facts, "tokens_per_joule") * truth / 5_000.0 - 1.0).abs() < 0.01);
        }
    }
}

#[test]
fn gpus_of_this_machine_do_not_count_beside_those_of_a_page() {
    let course = |of: f64| (0..80).map(move |at| (f64::from(at), Some(of)));
    let page_of = |url, of| page(url, "gpu", "gpu_power_watts", course(of));
    let mut facts = facts([10.0, 70.0]);
    let gpus = GpuReadings { page: 1, ..GpuReadings::default() };
    facts.telemetry = Some(Telemetry { gpus: Some(gpus), ..Telemetry::default() });
    assert_eq!(energy(&page_of(1, 100.0), &facts, "energy_by_power"), 6_000.0);
    let both = [page_of(0, 250.0), page_of(1, 100.0)].concat();
    assert_eq!(energy(&both, &facts, "energy_by_power"), 15_000.0);
    // The energy counters of this machine's own page are not used either, because they cover other GPUs.
    let other = [page_of(0, 250.0), page(1, "gpu", "gpu_energy_joules", course(5.0))].concat();
    assert!(figures(&other, &facts, None, None).iter().all(|figure| figure.name != "energy_by_counter"));
}
