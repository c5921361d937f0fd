//! Checks on thousands of simulated servers that intervals keep their guarantees.
//! `tests/it/equal_servers.rs` tests the guarantees of comparisons, including the order of their runs.
//!
//! `SWEEPLINE_SIMULATIONS=20000 cargo test --release --lib simulations -- --nocapture` runs more
//! simulations and prints the results; the default is 2 000.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::paired::bootstrap;
use super::replicates::{Ends, Scale, over_runs};
use super::request::{Metric, sample};
use super::saturation::State;
use super::slo::{self, Answer};
use super::stats::Summary;
use super::synthetic::{Run, measured};
use super::window;
use super::worth::Turns;
use crate::plan::{Percentile, Slo};
use crate::rows::{Facts, Measured, Record};
use crate::units::Nanos;

fn times() -> usize {
    crate::analysis::synthetic::number_of_simulations(500, 2_000)
}

/// Returns how far the share of `count` simulations may fall short by chance alone: two standard errors.
fn chance(count: usize) -> f64 {
    2.0 * (0.05 * 0.95 / count as f64).sqrt()
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// Returns the share of simulations whose interval contains `truth`.
fn coverage(seed: u64, count: usize, truth: f64, mut interval: impl FnMut(&mut ChaCha8Rng) -> (f64, f64)) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut holds = || {
        let (low, high) = interval(&mut rng);
        low <= truth && truth <= high
    };
    (0..count).filter(|_| holds()).count() as f64 / count as f64
}

fn within(value: Option<super::Interval>) -> (f64, f64) {
    let interval = value.expect("an interval");
    (interval.low_number().expect("an end"), interval.high_number().expect("an end"))
}

#[test]
fn intervals_over_runs_hold_the_truth() {
    let runs = |rng: &mut ChaCha8Rng, n: usize| -> Vec<f64> { (0..n).map(|_| normal(rng)).collect() };
    for n in [2, 3, 5, 10, 30] {
        let plain = coverage(n as u64, times(), 40.0, |rng| {
            let values: Vec<f64> = runs(rng, n).iter().map(|one| 40.0 + 3.0 * one).collect();
            let Ends { low, high, .. } = over_runs(&values, Scale::Plain).ends.expect("an interval");
            (low, high)
        });
        let log = coverage(n as u64 + 100, times(), 40.0, |rng| {
            let values: Vec<f64> = runs(rng, n).iter().map(|one| 40.0 * (0.4 * one).exp()).collect();
            let Ends { low, high, .. } = over_runs(&values, Scale::Log).ends.expect("an interval");
            (low, high)
        });
        println!("coverage over {n} runs: t {:.1} %, t on logarithms {:.1} %", 100.0 * plain, 100.0 * log);
        assert!((0.93..0.97).contains(&plain) && (0.93..0.97).contains(&log), "{n}: {plain} {log}");
    }
}

#[test]
fn bootstrap_intervals_over_runs_hold_the_truth() {
    // Fewer simulations suffice here, because each one draws 2 000 resamples.
    let count = times() / 8;
    let sizes: &[usize] = if times() > 2_000 { &[8, 12, 20] } else { &[bootstrap::FEWEST] };
    for n in sizes.iter().copied() {
        let normal = coverage(n as u64, count, 0.0, |rng| {
            let values: Vec<f64> = (0..n).map(|_| normal(rng)).collect();
            bootstrap::interval(&values).expect("an interval")
        });
        let skewed = coverage(n as u64, count, 1.0, |rng| {
            let values: Vec<f64> = (0..n).map(|_| -(1.0 - rng.random::<f64>()).ln()).collect();
            bootstrap::interval(&values).expect("an interval")
        });
        println!("coverage of the bootstrap over {n} runs: {:.1} %, skewed {:.1} %", 100.0 * normal, 100.0 * skewed);
        assert!(normal.min(skewed) + chance(count) >= 0.93, "{n}: {normal} {skewed}");
        assert!(normal.max(skewed) - chance(count) <= 0.97, "{n}: {normal} {skewed}");
    }
}

#[test]
fn order_statistic_intervals_hold_the_truth() {
    // Ranks are whole numbers, so the two tails of 2.5 % are rarely exhausted. The coverage depends on the
    // ranks and is above 95 %.
    for (n, percentile, share) in
        [(20, Percentile::P50, 0.5), (200, Percentile::P50, 0.5), (368, Percentile::P99, 0.99)]
    {
        let truth = -(1.0f64 - share).ln();
        let covered = coverage(n as u64, times(), truth, |rng| {
            let values = (0..n).map(|_| -(1.0 - rng.random::<f64>()).ln()).collect();
            within(Summary::of(values, 0, None).percentile(percentile).interval())
        });
        let (low, high) = super::binomial::interval_ranks(n as u64, share).expect("enough");
        let exact =
            super::binomial::at_most(n as u64, share, high - 1) - super::binomial::at_most(n as u64, share, low - 1);
        println!("coverage of {percentile:?} of {n}: {:.1} %, by its ranks {:.1} %", 100.0 * covered, 100.0 * exact);
        assert!(covered >= 0.93 && (covered - exact).abs() < 0.015, "{n} {percentile:?}: {covered} {exact}");
    }
}

/// Simulates a queue of four servers at 86 % of their capacity. Requests wait for each other, so a thousand
/// of them carry as much information as a few dozen independent ones.
fn queue(seed: u64, seconds: f64) -> (Vec<Record>, Facts) {
    Run { slots: 4, ttft: 16_000_000, tokens: 2, seconds, seed, ..Run::open(172.0) }.make()
}

fn rows(records: &[Record]) -> Vec<Measured> {
    records.iter().map(|record| Measured::from(&record.row)).collect()
}

/// Returns two E2E latencies from the schedule, both in the long run: the latency that the given share of
/// requests exceeds, and the median.
fn long_run(share: f64) -> [f64; 2] {
    let (records, facts) = queue(1, 1_200.0);
    let rows = rows(&records);
    let requests = window::in_order(&rows, &facts).into_iter().map(|row| window::request(row, &facts));
    let (sample, _) = sample(requests, Metric::E2eFromSchedule, Turns::CLOSED);
    let rising = sample.rising();
    [share, 0.5].map(|above| rising[((1.0 - above) * rising.len() as f64) as usize])
}

#[test]
fn a_queue_seldom_holds_what_it_misses() {
    let count = times() as u64 / 20;
    let [limit, median] = long_run(0.06);
    let (mut holds, mut held, mut given) = (0, 0, 0);
    for seed in 0..count {
        let (records, facts) = queue(seed + 2, 10.0);
        let rows = rows(&records);
        let limit = Nanos((limit * 1e6) as u64);
        let slo = Slo { e2e: [(Percentile::P95, limit)].into_iter().collect(), ..Slo::default() };
        let [.., e2e] = slo::of_requests(&rows, &facts, &slo);
        holds += u64::from(e2e[0].answer == Answer::Holds);
        if let Some(interval) = measured(&records, &facts).e2e_from_schedule.percentile(Percentile::P50).interval() {
            given += 1;
            held += u64::from(interval.low_number() <= Some(median) && Some(median) <= interval.high_number());
        }
    }
    println!("p95 exceeded by 6 %: {holds} of {count} hold; p50: {held} of {given} intervals cover");
    assert!(holds as f64 <= (0.05 + chance(count as usize)) * count as f64, "{holds} of {count}");
    assert!(held as f64 >= (0.92 - chance(given.max(1) as usize)) * given as f64, "{held} of {given}");
}

#[test]
fn ten_percent_too_much_is_never_kept_up() {
    let of = |qps: f64, seconds: f64, seed: u64| {
        let server = Run { slots: 4, ttft: 16_000_000, tokens: 2, seconds, seed, ..Run::open(qps) };
        let (records, facts) = server.make();
        measured(&records, &facts).saturation.expect("an open loop").state()
    };
    let count = times() as u64 / 40;
    let share = |qps, state| (0..count).filter(|seed| of(qps, 20.0, *seed) == state).count() as f64 / count as f64;
    let (over, under) = (share(220.0, State::KeptUp), share(120.0, State::KeptUp));
    let false_alarm = share(180.0, State::Saturated);
    println!("kept up: {over} at 110 %, {under} at 60 %; saturated: {false_alarm} at 90 %");
    assert!(over <= 0.02 && false_alarm <= 0.02 + 1.0 / count as f64, "{over} {false_alarm}");
    assert!(under >= 0.95, "{under}");
}
