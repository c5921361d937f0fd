//! Saturation: the labels of an open loop at loads below and above its server's capacity.

use sweepline::analysis::saturation::{Evidence, State};

use super::args::Args;
use super::grid::{Place, SERVICES, WINDOWS, apart};
use super::pool;
use super::queue::{Chain, Queue};
use super::table::{Promises, Table, percent};

const LOADS: [f64; 6] = [0.5, 0.7, 0.9, 0.95, 1.1, 1.15];

struct Cell {
    queue: Queue,
    place: Place,
    runs: u64,
    requests: f64,
    kept_up: u64,
    saturated: u64,
}

/// Prints the table; returns whether the promises are kept.
pub fn print(args: &Args) -> bool {
    let place = |queue| (0..SERVICES.len()).flat_map(move |s| (0..WINDOWS.len()).map(move |w| (queue, (s, w))));
    let queues: Vec<Queue> = LOADS.into_iter().flat_map(Queue::all).collect();
    let mut jobs: Vec<(usize, (usize, Place))> = (0..queues.len()).flat_map(place).enumerate().collect();
    let length = |place: Place| WINDOWS[place.1] / SERVICES[place.0].1;
    let cost = |job: &(usize, (usize, Place))| queues[job.1.0].rate() * length(job.1.1);
    jobs.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    let mut cells = pool::each("saturation", args.threads, &jobs, |job| {
        let (at, (queue, place)) = *job;
        let runs = args.runs_of(cost(job));
        (at, cell(queues[queue], place, runs, at as u64))
    });
    cells.sort_by_key(|(at, _)| *at);
    let cells: Vec<Cell> = cells.into_iter().map(|(_, cell)| cell).collect();
    println!("## Saturation: kept up / saturated, in % of the runs; the others are `not_shown`\n");
    table(&cells).print();
    println!("## Saturation by load: kept up and saturated, minimum and maximum over the queues, %\n");
    by_load(&cells).print();
    let runs: Vec<u64> = cells.iter().map(|cell| cell.runs).collect();
    println!(
        "{} runs of {} cells, {} to {} each\n",
        runs.iter().sum::<u64>(),
        cells.len(),
        runs.iter().min().unwrap_or(&0),
        runs.iter().max().unwrap_or(&0)
    );
    promised(&cells).print()
}

fn cell(queue: Queue, place: Place, runs: u64, seed: u64) -> Cell {
    let length = WINDOWS[place.1] / SERVICES[place.0].1;
    let mut cell = Cell { queue, place, runs, requests: 0.0, kept_up: 0, saturated: 0 };
    // A stationary queue continues from run to run. An overloaded queue starts empty, a tenth of the window
    // before the window.
    let mut chain = (queue.load < 1.0).then(|| Chain::warm(&queue, seed));
    for run in 0..runs {
        let (flight, values) = match &mut chain {
            Some(chain) => apart(chain, &queue, length),
            None => Chain::empty(&queue, seed << 20 | run).window(length / 10.0, length),
        };
        cell.requests += values.len() as f64 / runs as f64;
        match Evidence::of(&flight).expect("a window").state() {
            State::KeptUp => cell.kept_up += 1,
            State::Saturated => cell.saturated += 1,
            State::NotShown => {}
        }
    }
    cell
}

fn table(cells: &[Cell]) -> Table {
    let columns = SERVICES.iter().flat_map(|(name, _)| WINDOWS.map(|window| format!("{name}, {window} s")));
    let mut table = Table::new(["queue".to_owned(), "load".to_owned()].into_iter().chain(columns));
    for row in cells.chunks(SERVICES.len() * WINDOWS.len()) {
        let show =
            |cell: &Cell| format!("{} / {}", percent(cell.kept_up, cell.runs), percent(cell.saturated, cell.runs));
        let first = [row[0].queue.name(), row[0].queue.load.to_string()];
        table.row(first.into_iter().chain(row.iter().map(show)));
    }
    table
}

/// Returns a row for each load, with the minimum and maximum over all queues.
fn by_load(cells: &[Cell]) -> Table {
    let columns = SERVICES.iter().flat_map(|(name, _)| WINDOWS.map(|window| format!("{name}, {window} s")));
    let mut table = Table::new(["load".to_owned()].into_iter().chain(columns));
    for load in LOADS {
        let places = (0..SERVICES.len()).flat_map(|service| (0..WINDOWS.len()).map(move |window| (service, window)));
        let show = |place| {
            let here = cells.iter().filter(|cell| cell.queue.load == load && cell.place == place);
            let range = |count: fn(&Cell) -> u64| {
                let shares = || here.clone().map(|cell| 100.0 * count(cell) as f64 / cell.runs as f64);
                let ends =
                    [shares().fold(100.0, f64::min), shares().fold(0.0, f64::max)].map(|share| format!("{share:.0}"));
                if ends[0] == ends[1] { ends[0].clone() } else { ends.join("–") }
            };
            format!("{} / {}", range(|cell| cell.kept_up), range(|cell| cell.saturated))
        };
        table.row([load.to_string()].into_iter().chain(places.map(show)));
    }
    table
}

fn promised(cells: &[Cell]) -> Promises {
    let mut promises = Promises::default();
    for cell in cells {
        let (service, window) = (SERVICES[cell.place.0].0, WINDOWS[cell.place.1]);
        let name = || format!("{}, load {}, service {service}, {window} s", cell.queue.name(), cell.queue.load);
        let relaxations = window / SERVICES[cell.place.0].1 / cell.queue.relaxation();
        let is_long = relaxations >= 200.0 && cell.requests >= 1_000.0;
        if cell.queue.load >= 1.1 {
            promises.at_most(|| format!("\"kept up\", {}", name()), cell.kept_up, cell.runs, 0.02);
        }
        if cell.queue.load <= 0.9 {
            promises.at_most(|| format!("\"saturated\", {}", name()), cell.saturated, cell.runs, 0.02);
        }
        if cell.queue.load <= 0.7 && is_long {
            promises.at_least(|| format!("\"kept up\", {}", name()), cell.kept_up, cell.runs, 0.95);
        }
    }
    promises
}
