//! Objectives: how often a missed limit is reported as met, how often a limit that is just met is reported as
//! missed, and how often a limit with half the allowed share above it is reported as met.

use super::grid::{ALLOWED, Answers, Cell, Objective, SERVICES, WINDOWS};
use super::table::{Promises, Table, per_mille};

const WRONG: f64 = 0.05;
const POWER: f64 = 0.80;

/// Prints the tables; returns whether the promises are kept.
pub fn print(cells: &[Cell]) -> bool {
    println!("## Objectives: the worst of the queues and percentiles of each load and window, %\n");
    worst(cells).print();
    println!("## Objectives by percentile\n");
    by_percentile(cells).print();
    println!("## Objectives: decisions about a limit beyond which half of the allowed share lies\n");
    power(cells).print();
    let mut promises = Promises::default();
    for cell in cells {
        for (objective, allowed) in cell.objectives.iter().zip(ALLOWED) {
            let name = || format!("{}, allowed {allowed}", cell.name());
            let Objective { beyond, exact, half } = objective;
            promises.at_most(|| format!("false \"holds\", {}", name()), beyond.holds, beyond.runs, WRONG);
            promises.at_most(|| format!("false \"misses\", {}", name()), exact.misses, exact.runs, WRONG);
            // The effective size is that reported by the run itself, not the true size, which only many runs
            // together show.
            let (enough, holding) = half.worth;
            promises.at_least(|| format!("\"holds\", {}", name()), holding, enough, POWER);
        }
    }
    promises.print()
}

/// Returns the pair with the largest share, in percent.
fn most(pairs: impl Iterator<Item = (u64, u64)>) -> String {
    let ratio = |pair: &(u64, u64)| pair.0 as f64 / pair.1 as f64;
    let most = pairs.filter(|pair| pair.1 > 0).max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    most.map_or("–".to_owned(), |(hits, of)| per_mille(hits, of))
}

/// Returns the pair with the smallest share, in percent.
fn least(pairs: impl Iterator<Item = (u64, u64)>) -> String {
    let ratio = |pair: &(u64, u64)| pair.0 as f64 / pair.1 as f64;
    let least = pairs.filter(|pair| pair.1 > 0).min_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    least.map_or("–".to_owned(), |(hits, of)| per_mille(hits, of))
}

fn worst(cells: &[Cell]) -> Table {
    let mut table = Table::new([
        "load",
        "service",
        "window",
        "false \"holds\" at 1.2 × the allowed share",
        "false \"misses\" at exactly the allowed share",
        "\"holds\" at half the allowed share, cells with enough requests",
        "number of these cells",
        "\"holds\" at half the allowed share, runs with enough requests by their own estimate",
    ]);
    for load in super::grid::LOADS {
        for place in (0..SERVICES.len()).flat_map(|service| (0..WINDOWS.len()).map(move |window| (service, window))) {
            let here: Vec<(&Objective, f64)> = cells
                .iter()
                .filter(|cell| cell.truth.queue.load == load && cell.place == place)
                .flat_map(|cell| cell.objectives.iter().zip(ALLOWED))
                .collect();
            table
                .row(row([load.to_string(), SERVICES[place.0].0.to_owned(), format!("{} s", WINDOWS[place.1])], &here));
        }
    }
    table
}

fn by_percentile(cells: &[Cell]) -> Table {
    let mut table = Table::new([
        "percentile",
        "runs",
        "false \"holds\", all cells",
        "false \"holds\", highest of any cell",
        "false \"misses\", highest of any cell",
        "\"holds\" at half the allowed share, lowest of any cell with enough requests",
        "number of these cells",
        "\"holds\" at half the allowed share, runs with enough requests by their own estimate",
    ]);
    for (at, allowed) in ALLOWED.into_iter().enumerate() {
        let here: Vec<(&Objective, f64)> = cells.iter().map(|cell| (&cell.objectives[at], allowed)).collect();
        let holds = here.iter().map(|(objective, _)| objective.beyond.holds).sum();
        let runs: u64 = here.iter().map(|(objective, _)| objective.beyond.runs).sum();
        let first = [format!("p{:.0}", 100.0 * (1.0 - allowed)), runs.to_string(), per_mille(holds, runs)];
        table.row(row(first, &here));
    }
    table
}

/// Returns, by effective requests × allowed share, the number of cells and the number of cells whose runs
/// decide often enough.
fn power(cells: &[Cell]) -> Table {
    const CLASSES: [(f64, f64); 5] = [(0.0, 30.0), (30.0, 60.0), (60.0, 120.0), (120.0, 240.0), (240.0, f64::INFINITY)];
    let mut table = Table::new([
        "effective requests × allowed share",
        "cells",
        "cells with \"holds\" in at least 80 % of the runs",
        "runs with \"holds\", all cells together, %",
        "only long windows: cells with \"holds\" in at least 80 % of the runs",
    ]);
    for (from, to) in CLASSES {
        let here = cells.iter().flat_map(|cell| cell.objectives.iter().zip(ALLOWED).map(move |pair| (cell, pair)));
        let here: Vec<(&Cell, &Answers)> = here
            .map(|(cell, (objective, allowed))| (cell, &objective.half, allowed))
            .filter(|(_, half, allowed)| half.runs > 0 && (from..to).contains(&(half.effective() * allowed)))
            .map(|(cell, half, _)| (cell, half))
            .collect();
        let tells = |half: &Answers| half.holds as f64 >= POWER * half.runs as f64;
        let long: Vec<&Answers> = here.iter().filter(|(cell, _)| cell.is_long()).map(|(_, half)| *half).collect();
        let sum = |count: fn(&Answers) -> u64| here.iter().map(|(_, half)| count(half)).sum();
        table.row([
            if to.is_finite() { format!("{from}–{to}") } else { format!("at least {from}") },
            here.len().to_string(),
            here.iter().filter(|(_, half)| tells(half)).count().to_string(),
            per_mille(sum(|half| half.holds), sum(|half| half.runs)),
            format!("{} of {}", long.iter().filter(|half| tells(half)).count(), long.len()),
        ]);
    }
    table
}

fn row(first: [String; 3], here: &[(&Objective, f64)]) -> Vec<String> {
    let enough = || here.iter().filter(|(objective, allowed)| objective.half.is_enough(*allowed));
    let mut row = Vec::from(first);
    row.push(most(here.iter().map(|(objective, _)| (objective.beyond.holds, objective.beyond.runs))));
    row.push(most(here.iter().map(|(objective, _)| (objective.exact.misses, objective.exact.runs))));
    row.push(least(enough().map(|(objective, _)| (objective.half.holds, objective.half.runs))));
    row.push(enough().count().to_string());
    let says: Vec<(u64, u64)> = here.iter().map(|(objective, _)| objective.half.worth).collect();
    row.push(per_mille(says.iter().map(|pair| pair.1).sum(), says.iter().map(|pair| pair.0).sum()));
    row
}
