//! Repeats: one decision about a limit from several runs of one load, with equal runs and with runs whose
//! server varies in speed.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, StandardNormal};
use sweepline::analysis::flight::Flight;
use sweepline::analysis::series::PARTS;
use sweepline::analysis::worth::{Evidence, Sample, Turns};

use super::args::Args;
use super::grid::{ALLOWED, Answers};
use super::pool;
use super::queue::{Chain, Queue, Service};
use super::table::{Promises, Table, per_mille, percent};
use super::truth::Distribution;

const TOGETHER: [usize; 3] = [3, 5, 10];
/// Deviation of the logarithm of a run's service time from the overall one.
const SPREADS: [f64; 2] = [0.0, 0.03];
/// Windows in service times: 10 s and 120 s at 20 ms.
const LENGTHS: [f64; 2] = [500.0, 6_000.0];
/// The examined percentile, as an index of the allowed shares.
const AT: usize = 1;

#[derive(Clone, Copy)]
struct Setting {
    queue: Queue,
    length: f64,
    spread: f64,
}

/// Returns a run of a setting. The run's server is slower by a factor, so more requests than usual arrive
/// during a service time.
fn run(setting: &Setting, seed: u64) -> (Flight, Vec<f64>) {
    let Setting { mut queue, length, spread } = *setting;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let normal: f64 = StandardNormal.sample(&mut rng);
    let factor = (spread * normal).exp().min(0.99 / queue.load);
    queue.load *= factor;
    let mut chain = Chain::warm(&queue, seed ^ 0x5eed);
    let (flight, mut values) = chain.window(20.0, length / factor);
    values.iter_mut().for_each(|value| *value *= factor);
    (flight, values)
}

fn sample((flight, values): (Flight, Vec<f64>)) -> Sample {
    Sample::new(values, Turns::of(&flight.averages(PARTS)))
}

#[derive(Default, Clone, Copy)]
struct Cell {
    /// Results by the number of runs combined, for limits with 1.2 ×, exactly and half of the allowed share
    /// above them.
    answers: [[Answers; 3]; TOGETHER.len()],
}

/// Prints the table; returns whether the promises are kept.
pub fn print(args: &Args) -> bool {
    let queues = [(Service::Fixed, 0.7), (Service::Fixed, 0.86), (Service::Lognormal { cv: 1.0, phi: 0.0 }, 0.7)];
    let queues = queues.map(|(service, load)| Queue { service, servers: 4, load });
    let of =
        |queue| LENGTHS.into_iter().flat_map(move |length| SPREADS.map(|spread| Setting { queue, length, spread }));
    let settings: Vec<(u64, Setting)> = (0..).zip(queues.into_iter().flat_map(of)).collect();
    let cells = pool::each("repeats", args.threads, &settings, |(at, setting)| cell(args, *at, setting));
    println!("## Repeats: several runs combined, p95, % (false \"holds\" / false \"misses\" / \"holds\" at half)\n");
    let head = ["queue", "load", "service times", "spread of runs"].map(str::to_owned);
    let mut table = Table::new(head.into_iter().chain(TOGETHER.map(|count| format!("{count} runs"))));
    let mut promises = Promises::default();
    for ((_, setting), cell) in settings.iter().zip(&cells) {
        let Setting { queue, length, spread } = setting;
        let show = |[beyond, exact, half]: [Answers; 3]| {
            let wrong = [per_mille(beyond.holds, beyond.runs), per_mille(exact.misses, exact.runs)].join(" / ");
            format!("{wrong} / {}", percent(half.holds, half.runs))
        };
        let first = [queue.name(), queue.load.to_string(), length.to_string(), format!("{} %", 100.0 * spread)];
        table.row(first.into_iter().chain(cell.answers.map(show)));
        for ([beyond, exact, _], count) in cell.answers.iter().zip(TOGETHER) {
            let name = || format!("{}, load {}, {length}, spread {spread}, {count} runs", queue.name(), queue.load);
            promises.at_most(|| format!("false \"holds\", {}", name()), beyond.holds, beyond.runs, 0.05);
            promises.at_most(|| format!("false \"misses\", {}", name()), exact.misses, exact.runs, 0.05);
        }
    }
    table.print();
    promises.print()
}

fn cell(args: &Args, at: u64, setting: &Setting) -> Cell {
    let seed = |kind: u64, run: u64| kind << 60 | at << 40 | run;
    let mut took = Distribution::new();
    for at_run in 0..10 * args.runs_of(10.0 * setting.length * setting.queue.rate()) {
        took.extend(run(setting, seed(1, at_run)).1);
    }
    let limits = [1.2, 1.0, 0.5].map(|times| took.limit(times * ALLOWED[AT]));
    let mut cell = Cell::default();
    let most = TOGETHER[TOGETHER.len() - 1];
    for group in 0..args.runs_of(most as f64 * setting.length * setting.queue.rate()) {
        let runs: Vec<Sample> =
            (0..most as u64).map(|k| sample(run(setting, seed(2, group * most as u64 + k)))).collect();
        for (which, limit) in limits.iter().enumerate() {
            let Some(limit) = limit else { continue };
            let evidence: Vec<Evidence> = runs.iter().map(|run| run.evidence(*limit, ALLOWED[AT])).collect();
            for (answers, count) in cell.answers.iter_mut().zip(TOGETHER) {
                let together = Evidence::together(&evidence[..count]);
                together.into_iter().for_each(|all| answers[which].take(all.answer(ALLOWED[AT])));
            }
        }
    }
    cell
}
