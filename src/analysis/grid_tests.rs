//! Detection of changes during a run: for each combination of fault, loop and position in the window,
//! the share of runs in which any reason reports the fault.
//! `cargo test --lib steady_grid -- --nocapture` prints the table that `docs/METRICS.md` quotes.

use super::*;
use crate::analysis::synthetic::{Fault, Pace, Run, verdict};

/// Number of runs per cell, overridden by `SWEEPLINE_SIMULATIONS`.
fn runs() -> u64 {
    std::env::var("SWEEPLINE_SIMULATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(10)
}

const REASONS: [&str; 6] = ["unsteady", "warming_up", "paused", "errors_bunched", "errors", "saturated"];
const PLACES: [f64; 3] = [0.2, 0.5, 0.8];

/// Simulates a server of 4 slots that serves 20 requests a second, in a window of 30 s with at least 300
/// requests.
fn run(fault: (Fault, f64), is_open: bool, seed: u64) -> Run {
    let pace = Pace { deviation: 0.1, memory: 0.9, drift: 0.0 };
    let server = Run {
        slots: 4,
        ttft: 50_000_000,
        itl: 10_000_000,
        tokens: 16,
        jitter: 0.2,
        seconds: 30.0,
        pace,
        ..Run::default()
    };
    let load = if is_open {
        Run { qps: Some(12.0), batch_size: None, ..server }
    } else {
        Run { batch_size: Some(4), ..server }
    };
    Run { fault: Some(fault), seed, ..load }
}

/// Returns the percentage of runs with any verdict other than valid.
fn noticed(fault: (Fault, f64), is_open: bool) -> f64 {
    let is_noticed = |seed: &u64| {
        let (records, facts) = run(fault, is_open, *seed).make();
        let verdict = verdict(&records, &facts, &Validity::default(), None);
        verdict.reasons.iter().chain(&verdict.labels).any(|reason| REASONS.contains(&reason.name))
    };
    100.0 * (1..=runs()).filter(is_noticed).count() as f64 / runs() as f64
}

#[test]
fn steady_grid() {
    let faults = [
        ("10 % slower", Fault::Slow(1.10), 0.0),
        ("15 % slower", Fault::Slow(1.15), 0.0),
        ("50 % slower", Fault::Slow(1.5), 0.0),
        ("100 % slower", Fault::Slow(2.0), 95.0),
        ("pause of 0.3 s", Fault::Pause(0.3), 0.0),
        ("pause of 1 s", Fault::Pause(1.0), 0.0),
        ("pause of 3 s", Fault::Pause(3.0), 95.0),
        ("errors for 2 s", Fault::Errors(2.0), 95.0),
        ("rate capped: half the slots", Fault::Slots(2), 0.0),
        ("cold up to that point (TTFT × 3)", Fault::Cold(3.0), 0.0),
    ];
    println!("| fault | loop | at 20 % | at 50 % | at 80 % |\n|---|---|---|---|---|");
    for (name, fault, least) in faults {
        for is_open in [true, false] {
            let shares = PLACES.map(|place| noticed((fault, place), is_open));
            let [a, b, c] = shares.map(|share| format!("{share:.0} %"));
            println!("| {name} | {} | {a} | {b} | {c} |", if is_open { "open" } else { "closed" });
            // With few runs, one miss is allowed.
            let one = 100.0 / runs() as f64;
            assert!(shares[1] + one >= least, "{name}, open {is_open}: {shares:?}");
        }
    }
}

/// A server that serves 20 requests a second. Either 22 to 26 requests arrive per second and the server's
/// speed is constant, or 17 requests arrive per second and the server becomes half as fast in the middle of
/// the window.
#[test]
fn overloads_are_valid_and_servers_that_turn_slow_under_them_are_not() {
    let overload = |qps: f64, slower: f64, seed: u64| {
        let run = run((Fault::Slow(slower), 0.5), true, seed);
        let (records, facts) = Run { qps: Some(qps), ..run }.make();
        verdict(&records, &facts, &Validity::default(), None)
    };
    let cases = 6 * runs();
    let is_steady = |seed: &u64| {
        let verdict = overload(22.0 + (seed % 5) as f64, 1.0, *seed);
        !verdict.reasons.iter().any(|reason| ["unsteady", "warming_up"].contains(&reason.name))
    };
    let steady = (0..cases).filter(is_steady).count() as u64;
    let is_noticed = |seed: &u64| overload(17.0, 2.0, *seed).reasons.iter().any(|reason| reason.name == "unsteady");
    let noticed = (0..cases).filter(is_noticed).count() as u64;
    println!("of {cases}: {steady} overloads are steady, {noticed} at half speed from the middle on are not");
    // At most 2 % of the steady overloads may be reported and at most 5 % of the slow servers missed, plus
    // one of each by chance.
    assert!(
        50 * (cases - steady) <= cases + 50 && 20 * (cases - noticed) <= cases + 20,
        "{steady}, {noticed} of {cases}"
    );
}
