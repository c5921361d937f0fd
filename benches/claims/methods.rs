//! The same intervals by other methods: the effective size of a sample by each method, and how often the
//! resulting interval contains the true value.

use sweepline::analysis::binomial::{worth_at_least, worth_at_most};
use sweepline::analysis::series::{PARTS, autocorrelation_time, blocks, mean, variance};
use sweepline::analysis::student;
use sweepline::analysis::worth::{Sample, Turns};

use super::args::Args;
use super::grid::{Given, LOADS, WINDOWS, apart, known};
use super::pool;
use super::queue::{Chain, Queue, Service};
use super::table::{Table, percent};
use super::truth::Truth;

/// A method to estimate the effective size of a sample of exceedances.
#[derive(Debug, Clone, Copy)]
enum Method {
    /// Treats requests as independent.
    Independent,
    /// Means of this many batches, with Student's t.
    Batches(usize),
    /// Overlapping blocks, as drawn by the moving block bootstrap, of n^⅓ requests (the usual length) times a
    /// factor.
    Blocks(f64),
    /// The spectral density at zero of an autoregressive process fitted to block means, of the order with
    /// the best AIC.
    Spectral,
    /// Geyer's integrated autocorrelation time of block means.
    Autocorrelation,
    /// The method of sweepline.
    Worth,
}

const METHODS: [(&str, Method); 8] = [
    ("order statistics of independent requests", Method::Independent),
    ("10 batches", Method::Batches(10)),
    ("15 batches", Method::Batches(15)),
    ("30 batches", Method::Batches(30)),
    ("moving blocks of 4 × n^⅓", Method::Blocks(4.0)),
    ("spectrum at zero, AR by AIC", Method::Spectral),
    ("integrated autocorrelation time", Method::Autocorrelation),
    ("worth (sweepline)", Method::Worth),
];
const SHARES: [f64; 3] = [0.5, 0.95, 0.99];
/// Service time in seconds.
const SERVICE: f64 = 0.02;

/// Prints the tables.
pub fn print(args: &Args) {
    for service in [Service::Fixed, Service::Lognormal { cv: 2.0, phi: 0.0 }] {
        let queues = LOADS.map(|load| Queue { service, servers: 4, load });
        let seeded: Vec<(usize, Queue)> = queues.into_iter().enumerate().collect();
        let truths = pool::each("truths of methods", args.threads, &seeded, |(at, queue)| {
            Truth::of(*queue, known(args), 4_000_000 + *at as u64)
        });
        let jobs: Vec<(usize, (&Truth, f64))> = truths
            .iter()
            .flat_map(|truth| [WINDOWS[0], WINDOWS[2]].map(|window| (truth, window)))
            .enumerate()
            .collect();
        let cells = pool::each("methods", args.threads, &jobs, |(at, (truth, window))| {
            let length = window / SERVICE;
            cell(truth, length, args.runs_of(truth.queue.rate() * length), *at as u64)
        });
        println!(
            "## Methods, {}, service 20 ms: contain the true value, % of those available (available, %), p50 / p95 / p99\n",
            queues[0].name()
        );
        let columns = jobs.iter().map(|(_, (truth, window))| format!("load {}, {window} s", truth.queue.load));
        let mut table = Table::new(["method".to_owned()].into_iter().chain(columns));
        for (at, (name, _)) in METHODS.iter().enumerate() {
            let show = |cell: &[[Given; SHARES.len()]; METHODS.len()]| {
                let one = |given: Given| match given.given == given.runs {
                    true => percent(given.holds, given.given),
                    false => format!("{} ({})", percent(given.holds, given.given), percent(given.given, given.runs)),
                };
                cell[at].map(one).join(" / ")
            };
            table.row([(*name).to_owned()].into_iter().chain(cells.iter().map(show)));
        }
        table.print();
    }
}

fn cell(truth: &Truth, length: f64, runs: u64, seed: u64) -> [[Given; SHARES.len()]; METHODS.len()] {
    let truths = SHARES.map(|share| truth.took.quantile(share));
    let mut chain = Chain::warm(&truth.queue, seed);
    let mut cell = [[Given::default(); SHARES.len()]; METHODS.len()];
    for _ in 0..runs {
        let (flight, values) = apart(&mut chain, &truth.queue, length);
        let turns = Turns::of(&flight.averages(PARTS));
        let mut rising = values.clone();
        rising.sort_unstable_by(f64::total_cmp);
        let sample = Sample::new(values.clone(), turns);
        for (at, share) in SHARES.into_iter().enumerate() {
            let level = rising[(share * (rising.len() - 1) as f64) as usize];
            let above: Vec<f64> = values.iter().map(|value| f64::from(u8::from(*value > level))).collect();
            for ((_, method), given) in METHODS.iter().zip(&mut cell) {
                match method {
                    Method::Worth => given[at].add(&sample, share, truths[at]),
                    _ => given[at].take(covers(&rising, share, method.worth(&above), truths[at])),
                }
            }
        }
    }
    cell
}

/// Returns whether the interval of a share by the ranks of this many independent values contains the true
/// value; `None` if no such interval has both ends.
fn covers(rising: &[f64], share: f64, worth: f64, truth: f64) -> Option<bool> {
    const TAIL: f64 = 0.025;
    let has_ends = worth_at_most(worth, share, 0.0) <= TAIL && worth_at_least(worth, share, worth) <= TAIL;
    // The true value is below the lower end if too few values are at most as large, and above the upper end
    // if too many are smaller.
    let below = rising.partition_point(|value| *value < truth) as f64 / rising.len() as f64;
    let up_to = rising.partition_point(|value| *value <= truth) as f64 / rising.len() as f64;
    let is_low = worth_at_most(worth, share, up_to * worth) <= TAIL;
    let is_high = worth_at_least(worth, share, below * worth) <= TAIL;
    has_ends.then_some(!is_low && !is_high)
}

impl Method {
    /// Returns the effective size of a sample of exceedances in the order of the schedule.
    fn worth(self, above: &[f64]) -> f64 {
        let n = above.len() as f64;
        let share = mean(above);
        if share == 0.0 || share == 1.0 {
            return n;
        }
        let of_one = share * (1.0 - share);
        let normal = student::critical(0.05, 1e6);
        let (of_mean, t) = match self {
            Method::Independent | Method::Worth => (of_one / n, normal),
            Method::Batches(count) => {
                let means = blocks(above, count);
                (variance(&means) / means.len() as f64, student::critical(0.05, means.len() as f64 - 1.0))
            }
            Method::Blocks(times) => (moving(above, (times * n.cbrt()) as usize), normal),
            Method::Spectral => (spectral(&blocks(above, PARTS)), normal),
            Method::Autocorrelation => {
                let means = blocks(above, PARTS);
                (variance(&means) * autocorrelation_time(&means) / means.len() as f64, normal)
            }
        };
        if of_mean > 0.0 { (of_one / of_mean * (normal / t).powi(2)).clamp(1.0, n) } else { n }
    }
}

/// Returns the variance of the mean to which the moving block bootstrap converges with infinitely many
/// resamples.
fn moving(values: &[f64], size: usize) -> f64 {
    let (n, size) = (values.len(), size.clamp(1, values.len()));
    let centre = mean(values);
    let mut sum: f64 = values[..size].iter().sum();
    let mut squares = 0.0;
    for at in 0..=n - size {
        squares += (sum / size as f64 - centre).powi(2);
        if at + size < n {
            sum += values[at + size] - values[at];
        }
    }
    squares / (n - size + 1) as f64 * size as f64 / n as f64
}

/// Returns the variance of the mean from the spectral density at zero of an autoregressive process
/// (Yule-Walker equations solved with the Levinson-Durbin recursion, up to order 20).
fn spectral(means: &[f64]) -> f64 {
    const MOST: usize = 20;
    let n = means.len();
    let centre = mean(means);
    let covariance = |lag: usize| {
        means[..n - lag].iter().zip(&means[lag..]).map(|(a, b)| (a - centre) * (b - centre)).sum::<f64>() / n as f64
    };
    let most = MOST.min(n.saturating_sub(2));
    let covariances: Vec<f64> = (0..=most).map(covariance).collect();
    let mut weights: Vec<f64> = Vec::new();
    let mut rest = covariances[0];
    let aic = |rest: f64, order: usize| n as f64 * rest.ln() + 2.0 * order as f64;
    let mut best = (aic(rest, 0), rest);
    for order in 1..=most {
        let known: f64 = weights.iter().zip(covariances[1..order].iter().rev()).map(|(w, c)| w * c).sum();
        let last = (covariances[order] - known) / rest;
        let turned: Vec<f64> = weights.iter().rev().map(|weight| last * weight).collect();
        weights.iter_mut().zip(turned).for_each(|(weight, less)| *weight -= less);
        weights.push(last);
        rest *= 1.0 - last * last;
        let density = rest / (1.0 - weights.iter().sum::<f64>()).powi(2);
        if aic(rest, order) < best.0 {
            best = (aic(rest, order), density);
        }
    }
    best.1 / n as f64
}
