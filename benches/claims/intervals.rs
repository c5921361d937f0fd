//! Intervals within a run: where they are available, and how often they are correct.

use super::grid::{Cell, Given, QUANTILES, SERVICES, WINDOWS};
use super::table::{Promises, Table, per_mille, percent};

/// The minimum coverage of available intervals. The next constant is the minimum share of runs with long
/// windows for which an interval is available.
const COVERS: f64 = 0.92;
const GIVEN: f64 = 0.95;

/// Prints the tables; returns whether the promises are kept.
pub fn print(cells: &[Cell]) -> bool {
    println!("## Intervals: available, in % of the runs, for p50 / p95 / p99\n");
    grid(cells, |cell| [0, 3, 4].map(|at| percent(cell.given[at].given, cell.given[at].runs)).join(" / ")).print();
    println!("## Intervals: contain the true value, in % of those available, for p50 / p95 / p99\n");
    grid(cells, |cell| [0, 3, 4].map(|at| percent(cell.given[at].holds, cell.given[at].given)).join(" / ")).print();
    println!("## Runs of each cell, with this many requests on average; × relaxation time\n");
    grid(cells, |cell| format!("{} of {:.0}; {:.0}×", cell.runs, cell.requests, cell.relaxations)).print();
    println!("## Intervals by percentile\n");
    by_percentile(cells).print();
    let mut promises = Promises::default();
    for cell in cells {
        for (given, share) in cell.given.iter().zip(QUANTILES) {
            let name = || format!("{}, p{:.0}", cell.name(), share * 100.0);
            promises.at_least(|| format!("covered, {}", name()), given.holds, given.given, COVERS);
            if cell.is_long() {
                promises.at_least(|| format!("given, {}", name()), given.given, given.runs, GIVEN);
            }
        }
    }
    promises.print()
}

/// Returns a row for each queue and load, with a column for each service time and window.
pub fn grid(cells: &[Cell], show: impl Fn(&Cell) -> String) -> Table {
    let columns = SERVICES.iter().flat_map(|(name, _)| WINDOWS.map(|window| format!("{name}, {window} s")));
    let mut table = Table::new(["queue".to_owned(), "load".to_owned()].into_iter().chain(columns));
    for row in cells.chunks(SERVICES.len() * WINDOWS.len()) {
        let queue = row[0].truth.queue;
        table.row([queue.name(), queue.load.to_string()].into_iter().chain(row.iter().map(&show)));
    }
    table
}

/// Returns all cells together, and the worst ones.
fn by_percentile(cells: &[Cell]) -> Table {
    let mut table = Table::new([
        "percentile",
        "runs",
        "runs with an interval, %",
        "runs with both ends of the interval, %",
        "coverage of the intervals, %",
        "lowest coverage of any cell with at least 100 intervals, %",
        "cells with coverage below 92 %",
        "long windows: runs with an interval, %",
        "long windows: runs with an interval in the worst cell, %",
    ]);
    for (at, share) in QUANTILES.into_iter().enumerate() {
        let of = |cell: &Cell| cell.given[at];
        let sum = |count: fn(&Given) -> u64| cells.iter().map(|cell| count(&of(cell))).sum::<u64>();
        let (runs, given) = (sum(|given| given.runs), sum(|given| given.given));
        let enough: Vec<Given> = cells.iter().map(of).filter(|given| given.given >= 100).collect();
        let least = enough.iter().map(|given| (given.holds, given.given)).min_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        let below = enough.iter().filter(|given| ratio(&(given.holds, given.given)) < COVERS).count();
        let long: Vec<(u64, u64)> =
            cells.iter().filter(|cell| cell.is_long()).map(of).map(|given| (given.given, given.runs)).collect();
        let least_given = long.iter().copied().min_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        let show = |pair: Option<(u64, u64)>| pair.map_or("–".to_owned(), |(hits, of)| per_mille(hits, of));
        table.row([
            format!("p{:.0}", share * 100.0),
            runs.to_string(),
            per_mille(given, runs),
            per_mille(sum(|given| given.both), runs),
            per_mille(sum(|given| given.holds), given),
            show(least),
            format!("{below} of {}", enough.len()),
            per_mille(long.iter().map(|pair| pair.0).sum(), long.iter().map(|pair| pair.1).sum()),
            show(least_given),
        ]);
    }
    table
}

fn ratio(pair: &(u64, u64)) -> f64 {
    pair.0 as f64 / pair.1 as f64
}
