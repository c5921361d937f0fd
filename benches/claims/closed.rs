//! Closed loops: a fixed number of slots, each of which sends its next request after the response to the
//! previous one. The server's speed is correlated from request to request.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sweepline::analysis::worth::{Sample, Turns};

use super::args::Args;
use super::grid::{ALLOWED, Given, Limits, Objective, QUANTILES};
use super::pool;
use super::queue::{Draw, Servers, Service};
use super::table::{Promises, Table, per_mille, percent};
use super::truth::Distribution;

/// A closed loop.
#[derive(Debug, Clone, Copy)]
struct Loop {
    slots: usize,
    servers: usize,
    cv: f64,
    phi: f64,
}

impl Loop {
    fn all() -> Vec<Loop> {
        let sizes = [(8, 8), (32, 32), (32, 4)];
        let paces = [(0.1, 0.9), (1.0, 0.0), (1.0, 0.5), (1.0, 0.9)];
        sizes.into_iter().flat_map(|(slots, servers)| paces.map(|(cv, phi)| Loop { slots, servers, cv, phi })).collect()
    }

    fn name(&self) -> String {
        format!("{} slots on {} servers, CV {}, AR {}", self.slots, self.servers, self.cv, self.phi)
    }

    fn chain(&self, seed: u64) -> Chain {
        let draw = Draw::new(Service::Lognormal { cv: self.cv, phi: self.phi });
        let rng = ChaCha8Rng::seed_from_u64(seed);
        let mut chain = Chain { rng, draw, slots: Servers::new(self.slots), servers: Servers::new(self.servers) };
        chain.take(100 * self.slots).for_each(drop);
        chain
    }
}

/// A running closed loop: requests in the order in which they are sent.
struct Chain {
    rng: ChaCha8Rng,
    draw: Draw,
    slots: Servers,
    servers: Servers,
}

impl Chain {
    fn take(&mut self, count: usize) -> impl Iterator<Item = f64> {
        (0..count).map(|_| {
            let sent = self.slots.first();
            let end = self.servers.first().max(sent) + self.draw.next(&mut self.rng);
            self.servers.take(end);
            self.slots.take(end);
            end - sent
        })
    }
}

const REQUESTS: [usize; 4] = [300, 1_000, 3_000, 10_000];

struct Cell {
    of: Loop,
    requests: usize,
    given: [Given; QUANTILES.len()],
    objectives: [Objective; ALLOWED.len()],
}

/// Prints the table; returns whether the promises are kept.
pub fn print(args: &Args) -> bool {
    let loops: Vec<(u64, Loop)> = (0..).zip(Loop::all()).collect();
    let most = *REQUESTS.last().unwrap_or(&0) as u64;
    let truths = pool::each("closed truths", args.threads, &loops, |(at, of)| {
        let mut took = Distribution::new();
        took.extend(of.chain(3_000_000 + at).take((2 * args.requests.min(args.runs * 10 * most)) as usize));
        took
    });
    let jobs: Vec<(u64, (usize, usize))> =
        (0..).zip(REQUESTS.into_iter().flat_map(|requests| (0..loops.len()).map(move |of| (of, requests)))).collect();
    let cells = pool::each("closed", args.threads, &jobs, |(seed, (of, requests))| {
        cell(loops[*of].1, &truths[*of], *requests, args.runs_of(*requests as f64), *seed)
    });
    println!("## Closed loops: intervals and objectives of p50 / p95 / p99, %\n");
    table(&cells).print();
    println!("## Closed loops by number of requests: the worst of p50 / p95 / p99 and of p90 / p95 / p99, %\n");
    by_requests(&cells).print();
    promised(&cells).print()
}

fn cell(of: Loop, truth: &Distribution, requests: usize, runs: u64, seed: u64) -> Cell {
    let quantiles = QUANTILES.map(|share| truth.quantile(share));
    let limits = ALLOWED.map(|allowed| Limits::of(truth, allowed));
    let mut chain = of.chain(seed);
    let (given, objectives) = ([Given::default(); QUANTILES.len()], [Objective::default(); ALLOWED.len()]);
    let mut cell = Cell { of, requests, given, objectives };
    for _ in 0..runs {
        // Requests between two windows are skipped.
        chain.take(50 * of.slots).for_each(drop);
        let sample = Sample::new(chain.take(requests).collect(), Turns::CLOSED);
        let given = cell.given.iter_mut().zip(QUANTILES).zip(quantiles);
        given.for_each(|((given, share), truth)| given.add(&sample, share, truth));
        let objectives = cell.objectives.iter_mut().zip(&limits).zip(ALLOWED);
        objectives.for_each(|((objective, limits), allowed)| objective.add(&sample, limits, allowed));
    }
    cell
}

fn table(cells: &[Cell]) -> Table {
    let mut table = Table::new([
        "closed loop",
        "requests",
        "runs with an interval",
        "coverage of the intervals",
        "false \"holds\" of p90 / p95 / p99",
        "false \"misses\"",
        "\"holds\" at half the allowed share",
    ]);
    for cell in cells {
        let given = |show: fn(&Given) -> String| [0, 3, 4].map(|at| show(&cell.given[at])).join(" / ");
        let objective = |show: fn(&Objective) -> String| cell.objectives.each_ref().map(show).join(" / ");
        table.row([
            cell.of.name(),
            cell.requests.to_string(),
            given(|given| percent(given.given, given.runs)),
            given(|given| percent(given.holds, given.given)),
            objective(|of| per_mille(of.beyond.holds, of.beyond.runs)),
            objective(|of| per_mille(of.exact.misses, of.exact.runs)),
            objective(|of| percent(of.half.holds, of.half.runs)),
        ]);
    }
    table
}

/// Returns a row for each number of requests, with the worst of all loops.
fn by_requests(cells: &[Cell]) -> Table {
    let mut table = Table::new([
        "requests",
        "runs",
        "runs with an interval, lowest",
        "coverage of the intervals, lowest",
        "false \"holds\", highest",
        "false \"misses\", highest",
        "\"holds\" at half the allowed share, lowest and highest",
    ]);
    for requests in REQUESTS {
        let here: Vec<&Cell> = cells.iter().filter(|cell| cell.requests == requests).collect();
        let share = |(hits, of): (u64, u64)| (of > 0).then(|| 100.0 * hits as f64 / of as f64);
        let least = |pairs: Vec<(u64, u64)>| pairs.into_iter().filter_map(share).fold(100.0, f64::min);
        let most = |pairs: Vec<(u64, u64)>| pairs.into_iter().filter_map(share).fold(0.0, f64::max);
        let given = |pair: fn(&Given) -> (u64, u64)| {
            [0, 3, 4]
                .map(|at| format!("{:.0}", least(here.iter().map(|cell| pair(&cell.given[at])).collect())))
                .join(" / ")
        };
        let all = |at: usize, pair: fn(&Objective) -> (u64, u64)| -> Vec<(u64, u64)> {
            here.iter().map(|cell| pair(&cell.objectives[at])).collect()
        };
        let worst =
            |pair: fn(&Objective) -> (u64, u64)| [0, 1, 2].map(|at| format!("{:.1}", most(all(at, pair)))).join(" / ");
        let half = |of: &Objective| (of.half.holds, of.half.runs);
        table.row([
            requests.to_string(),
            here.iter().map(|cell| cell.given[0].runs).sum::<u64>().to_string(),
            given(|given| (given.given, given.runs)),
            given(|given| (given.holds, given.given)),
            worst(|of| (of.beyond.holds, of.beyond.runs)),
            worst(|of| (of.exact.misses, of.exact.runs)),
            [0, 1, 2].map(|at| format!("{:.0}–{:.0}", least(all(at, half)), most(all(at, half)))).join(" / "),
        ]);
    }
    table
}

fn promised(cells: &[Cell]) -> Promises {
    let mut promises = Promises::default();
    for cell in cells {
        let name = || format!("{}, {} requests", cell.of.name(), cell.requests);
        for (given, share) in cell.given.iter().zip(QUANTILES) {
            promises.at_least(|| format!("covered, {}, p{:.0}", name(), share * 100.0), given.holds, given.given, 0.92);
        }
        for (of, allowed) in cell.objectives.iter().zip(ALLOWED) {
            promises.at_most(
                || format!("false \"holds\", {}, allowed {allowed}", name()),
                of.beyond.holds,
                of.beyond.runs,
                0.05,
            );
            promises.at_most(
                || format!("false \"misses\", {}, allowed {allowed}", name()),
                of.exact.misses,
                of.exact.runs,
                0.05,
            );
            if of.half.is_enough(allowed) {
                promises.at_least(
                    || format!("\"holds\", {}, allowed {allowed}", name()),
                    of.half.holds,
                    of.half.runs,
                    0.80,
                );
            }
        }
    }
    promises
}
