//! Checks on thousands of simulated servers that sequences keep their guarantees, and how many
//! rounds they cost.
//!
//! `SWEEPLINE_SIMULATIONS=20000 cargo test --release -p sweepline-analysis --lib sequential --
//! --nocapture` runs more simulations and prints the tables of `docs/SEQUENTIAL.md`; the default is 2 000
//! simulations.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::paired::looks;
use super::{Look, Precision, Sequence, Until, known, look};
use crate::analysis::paired::holm::holm;
use crate::analysis::paired::power::{LEVEL, power};
use crate::analysis::student;

fn times() -> usize {
    crate::analysis::synthetic::number_of_simulations(1_000, 2_000)
}

/// Returns by how much a share near 5 % may deviate by chance alone: three standard errors.
fn chance() -> f64 {
    3.0 * (0.05 * 0.95 / times() as f64).sqrt()
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// Standard deviation of the logarithm of a run's value.
const DEVIATION: f64 = 0.02;

/// How an arm's runs are distributed.
#[derive(Debug, Clone, Copy)]
enum Server {
    /// Runs are independent.
    Still,
    /// Runs whose deviations have heavy tails: Student's t with 4 degrees of freedom.
    Heavy,
    /// Each run inherits this share of the previous run's deviation, without other dependence.
    Remembers(f64),
    /// Each run is slower than the previous one, by this many standard deviations.
    Slows(f64),
}

impl Server {
    /// Returns the differences of rounds in which one arm is slower by `slower` standard deviations of a
    /// difference. In two random rounds of every four, the second arm comes first, as in the expansion of a
    /// plan.
    fn rounds(self, rng: &mut ChaCha8Rng, count: usize, slower: f64) -> Vec<f64> {
        let mut state = normal(rng);
        let mut runs = (0..).map(|at| match self {
            Server::Still => normal(rng),
            Server::Heavy => {
                let square: f64 = (0..4).map(|_| normal(rng).powi(2)).sum();
                normal(rng) / (square / 4.0).sqrt() / 2f64.sqrt()
            }
            Server::Remembers(share) => {
                let now = state;
                state = share * state + (1.0 - share * share).sqrt() * normal(rng);
                now
            }
            Server::Slows(by) => normal(rng) + by * f64::from(at),
        });
        let noise: Vec<f64> = runs.by_ref().take(2 * count).collect();
        let effect = slower * 2f64.sqrt() * DEVIATION;
        let mut turned = Vec::new();
        for _ in 0..count.div_ceil(4) {
            let mut four = [false, true, false, true];
            for last in (1..4).rev() {
                four.swap(last, rng.random_range(0..=last));
            }
            turned.extend(four);
        }
        let round = |(pair, turned): (&[f64], bool)| {
            let (a, b) = if turned { (pair[1], pair[0]) } else { (pair[0], pair[1]) };
            (b - a) * DEVIATION + effect
        };
        noise.chunks(2).zip(turned).map(round).collect()
    }
}

/// Returns how a sequence ends and after how many rounds.
fn end(sequence: &Sequence, rounds: &[f64]) -> (Look, usize) {
    let mut at = 0;
    loop {
        at += 1;
        match look(sequence, &rounds[..at]) {
            Look::GoOn => {}
            other => return (other, at),
        }
    }
}

fn sequence(at_most: u32) -> Sequence {
    Sequence { at_most, level: LEVEL, margin: None }
}

/// Returns the share of sequences in which a difference is shown, and the numbers of rounds of all
/// sequences in rising order.
fn outcomes(server: Server, at_most: u32, slower: f64, seed: u64) -> (f64, Vec<usize>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut shown, mut rounds) = (0, Vec::new());
    for _ in 0..times() {
        let (end, at) = end(&sequence(at_most), &server.rounds(&mut rng, at_most as usize, slower));
        shown += usize::from(matches!(end, Look::Different { .. }));
        rounds.push(at);
    }
    rounds.sort_unstable();
    (shown as f64 / times() as f64, rounds)
}

#[test]
fn equal_arms_are_told_apart_in_five_of_a_hundred_sequences() {
    let servers = [
        Server::Still,
        Server::Heavy,
        Server::Remembers(0.3),
        Server::Remembers(0.5),
        Server::Remembers(0.7),
        Server::Remembers(0.9),
        Server::Slows(0.05),
        Server::Slows(0.3),
    ];
    for at_most in [5, 12, 20] {
        for (number, server) in servers.into_iter().enumerate() {
            let (false_alarms, _) = outcomes(server, at_most, 0.0, 10 * u64::from(at_most) + number as u64);
            println!("A/A, at most {at_most} rounds, {server:?}: {:.2} %", 100.0 * false_alarms);
            assert!(false_alarms <= 0.05 + chance(), "{server:?}, {at_most} rounds: {false_alarms}");
        }
    }
}

/// Returns how many rounds a design with a single look needs to find an effect in the share `share` of cases,
/// interpolated between whole numbers.
fn fixed(effect: f64, share: f64) -> f64 {
    let after = (4..).find(|n| power(*n, effect, LEVEL) >= share).expect("enough rounds");
    let [below, above] = [after - 1, after].map(|n| power(n, effect, LEVEL));
    (after - 1) as f64 + ((share - below) / (above - below)).clamp(0.0, 1.0)
}

#[test]
fn a_sequence_takes_three_of_ten_rounds_fewer_than_a_fixed_number_of_the_same_power() {
    for at_most in [12, 16, 20, 24, 30] {
        for aim in [0.9, 0.93, 0.95] {
            // The sequence finds about as many differences as a fixed design with 0.87 × `at_most` rounds and
            // a single look.
            let alike = (0.87 * f64::from(at_most)).round() as usize;
            let effect = student::bisect(|effect| power(alike, effect, LEVEL) >= aim);
            let (found, rounds) = outcomes(Server::Still, at_most, effect, u64::from(at_most));
            let (fixed, median) = (fixed(effect, found), rounds[rounds.len() / 2] as f64);
            let mean = rounds.iter().sum::<usize>() as f64 / rounds.len() as f64;
            let fewer = 100.0 * (1.0 - median / fixed.ceil());
            println!(
                "at most {at_most}, effect {effect:.2}: found in {:.1} %, fixed {}, median {median}, mean {mean:.1}: \
                 {fewer:.0} % fewer",
                100.0 * found,
                fixed.ceil()
            );

            assert!(fewer >= 30.0 - 1e-9, "{at_most} {aim}: {fewer}");
        }
    }
}

#[test]
fn effects_of_five_percent_are_found() {
    let effect = 1.05f64.ln() / (2f64.sqrt() * DEVIATION);
    for at_most in [8, 12] {
        for server in [Server::Still, Server::Heavy, Server::Remembers(0.5), Server::Slows(0.05)] {
            let (found, rounds) = outcomes(server, at_most, effect, 40 + u64::from(at_most));
            let median = rounds[rounds.len() / 2];
            println!("5 %, at most {at_most} rounds, {server:?}: found in {:.1} %, median {median}", 100.0 * found);
            assert!(found >= 0.8, "{server:?}, {at_most} rounds: {found}");
        }
    }
}

#[test]
fn a_family_finds_something_where_there_is_nothing_in_five_of_a_hundred() {
    // Eight metrics that share half of the noise, in three cells; each cell stops when its metrics are
    // decided, or at the last look.
    const METRICS: usize = 8;
    const CELLS: usize = 3;
    let at_most = 10u32;
    let looks = looks(at_most);
    let sequence = Sequence { level: LEVEL / (METRICS * CELLS) as f64, ..sequence(at_most) };
    let mut rng = ChaCha8Rng::seed_from_u64(77);
    let count = times() / 2;
    let mut family = || {
        let mut all = Vec::new();
        for _ in 0..CELLS {
            let common: Vec<f64> = (0..at_most).map(|_| normal(&mut rng)).collect();
            let metrics: Vec<Vec<f64>> =
                (0..METRICS).map(|_| common.iter().map(|common| common + normal(&mut rng)).collect()).collect();
            let is_over = |n: &usize| metrics.iter().all(|rounds| look(&sequence, &rounds[..*n]) != Look::GoOn);
            let n = (3..=at_most as usize).find(is_over).expect("the last look ends it");
            all.extend(metrics.iter().map(|rounds| {
                let plain = crate::analysis::paired::t_test(&rounds[..n]).expect("a test");
                looks.p(n, plain.p)
            }));
        }
        holm(&all).iter().any(|p| *p <= LEVEL)
    };
    let found = (0..count).filter(|_| family()).count() as f64 / count as f64;
    println!(
        "A/A, {METRICS} metrics × {CELLS} cells, at most {at_most} rounds: {:.2} % with any finding",
        100.0 * found
    );
    assert!(found <= 0.05 + chance() * 2f64.sqrt(), "{found}");
}

#[test]
fn arms_are_shown_within_a_margin_in_five_of_a_hundred_where_they_differ_by_it() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    // The margin is 1.5 standard deviations, and there are at most 12 rounds.
    let margin = 1.5 * DEVIATION * 2f64.sqrt();
    let sequence = Sequence { margin: Some(margin), ..sequence(12) };
    let mut within = |slower: f64| {
        let ends: Vec<(Look, usize)> =
            (0..times()).map(|_| end(&sequence, &Server::Still.rounds(&mut rng, 12, slower))).collect();
        let shown = ends.iter().filter(|(end, _)| matches!(end, Look::Within { .. })).count() as f64 / times() as f64;
        let mut rounds: Vec<usize> = ends.iter().map(|(_, at)| *at).collect();
        rounds.sort_unstable();
        (shown, rounds[rounds.len() / 2])
    };
    let ((wrong, _), (right, median)) = (within(1.5), within(0.0));
    println!(
        "within a margin of 1.5 deviations: {:.2} % at it, {:.1} % of equal arms, median {median}",
        100.0 * wrong,
        100.0 * right
    );
    assert!(wrong <= 0.05 + chance(), "{wrong}");
    assert!(right >= 0.8 && median < 12, "{right} {median}");
}

#[test]
fn means_are_known_as_well_as_is_said() {
    for at_most in if times() > 2_000 { &[6, 12, 30][..] } else { &[12] }.iter().copied() {
        for (what, memory, is_log) in
            [("normal", 0.0, false), ("lognormal", 0.0, true), ("AR .5", 0.5, false), ("lognormal AR .5", 0.5, true)]
        {
            let mut worst = (1.0f64, 0.0);
            let mut rounds = Vec::new();
            // The deviation of a run, as a multiple of the requested precision.
            for share in [0.5, 0.7, 0.85, 1.0, 1.6] {
                let mut rng = ChaCha8Rng::seed_from_u64(u64::from(at_most));
                let until = Until { within: 0.02, at_least: 3, at_most };
                let ends: Vec<(bool, usize)> =
                    (0..times()).map(|_| mean(&mut rng, &until, share * 0.02, memory, is_log)).collect();
                let covered = ends.iter().filter(|(holds, _)| *holds).count() as f64 / times() as f64;
                rounds.push(ends.iter().map(|(_, at)| *at).sum::<usize>() as f64 / times() as f64);
                worst = if covered < worst.0 { (covered, share) } else { worst };
            }
            let rounds: Vec<String> = rounds.iter().map(|mean| format!("{mean:.1}")).collect();
            println!(
                "until ±2 %, at most {at_most}, {what}: covered {:.1} % at worst; repeats {}",
                100.0 * worst.0,
                rounds.join(", ")
            );
            assert!(worst.0 >= 0.95 - chance(), "{at_most} {what}: {worst:?}");
        }
    }
}

/// A cell ends when all its means are known precisely enough. The interval of each mean must still hold
/// then.
#[test]
fn means_that_wait_for_each_other_are_known_as_well() {
    for (what, memory, common) in [("apart", 0.0, 0.0), ("alike", 0.0, 0.7), ("AR .5", 0.5, 0.7)] {
        let until = Until { within: 0.02, at_least: 3, at_most: 12 };
        for share in [0.5, 0.85] {
            let mut rng = ChaCha8Rng::seed_from_u64(9);
            let held: Vec<[bool; 3]> =
                (0..times()).map(|_| together(&mut rng, &until, share * 0.02, [memory, common])).collect();
            for metric in 0..3 {
                let covered = held.iter().filter(|holds| holds[metric]).count() as f64 / times() as f64;
                println!("three means within ±2 %, {what}, {share}: covered {:.1} %", 100.0 * covered);
                assert!(covered >= 0.95 - chance(), "{what} {share}: {covered}");
            }
        }
    }
}

/// Returns whether the intervals of three metrics with a mean of 1 hold when the last mean is known. Runs
/// inherit the share `memory` of the previous run's deviation, and the share `common` of a run's noise is
/// common to its metrics.
fn together(rng: &mut ChaCha8Rng, until: &Until, deviation: f64, [memory, common]: [f64; 2]) -> [bool; 3] {
    let mut state = [(); 3].map(|_| normal(rng));
    let mut values = [const { Vec::new() }; 3];
    loop {
        let shared = normal(rng);
        for (state, values) in state.iter_mut().zip(&mut values) {
            values.push(1.0 + deviation * *state);
            let noise = f64::sqrt(common) * shared + (1.0 - common).sqrt() * normal(rng);
            *state = memory * *state + (1.0 - memory * memory).sqrt() * noise;
        }
        let looks = [0, 1, 2].map(|metric: usize| known(until, &values[metric]));
        let half = |look: &Precision| match look {
            Precision::Reached { half, .. } => Some(*half),
            Precision::NotYet { .. } => None,
            Precision::AtMost { half } => *half,
        };
        let is_last = values[0].len() as u32 == until.at_most;
        if let [Some(a), Some(b), Some(c)] = [0, 1, 2].map(|metric: usize| half(&looks[metric]))
            && (is_last || looks.iter().all(|look| matches!(look, Precision::Reached { .. })))
        {
            let holds = |metric: usize, half: f64| {
                let mean = values[metric].iter().sum::<f64>() / values[metric].len() as f64;
                (mean - 1.0).abs() <= half * mean
            };
            return [holds(0, a), holds(1, b), holds(2, c)];
        }
    }
}

/// Returns whether the final interval contains the true mean of 1, and the number of runs.
fn mean(rng: &mut ChaCha8Rng, until: &Until, deviation: f64, memory: f64, is_log: bool) -> (bool, usize) {
    let mut state = normal(rng);
    let mut values = Vec::new();
    loop {
        let now = state;
        state = memory * state + (1.0 - memory * memory).sqrt() * normal(rng);
        let square = deviation.powi(2).ln_1p();
        values.push(if is_log { (square.sqrt() * now - square / 2.0).exp() } else { 1.0 + deviation * now });
        let half = match known(until, &values) {
            Precision::NotYet { .. } => continue,
            Precision::Reached { half, .. } => half,
            Precision::AtMost { half } => half.expect("a mean"),
        };
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        return ((mean - 1.0).abs() <= half * mean, values.len());
    }
}

#[test]
fn the_exact_chance_is_what_simulations_come_to() {
    for (first, last) in [(3u32, 4u32), (3, 12), (4, 20)] {
        let looks = super::Looks::new(first, last);
        let mut rng = ChaCha8Rng::seed_from_u64(u64::from(last));
        for level in [0.05, 0.1, 0.01] {
            // The critical values do not include the safety margin for runs that depend on each other.
            let critical: Vec<f64> =
                (first..=last).map(|n| looks.critical(n as usize, level * super::bound::SLACK)).collect();
            let mut crosses = || {
                let values: Vec<f64> = (0..last).map(|_| normal(&mut rng)).collect();
                let t = |n: usize| {
                    let (mean, sd) = crate::analysis::paired::moments(&values[..n]).expect("values");
                    mean.abs() / sd * (n as f64).sqrt()
                };
                critical.iter().enumerate().any(|(at, critical)| t(first as usize + at) > *critical)
            };
            let count = 5 * times();
            let share = (0..count).filter(|_| crosses()).count() as f64 / count as f64;
            println!("looks {first} to {last} at {level}: {share}");
            let error = 4.0 * (level * (1.0 - level) / count as f64).sqrt();
            assert!((share - level).abs() < error + 0.002 * level, "{first} to {last} at {level}: {share}");
        }
    }
}
