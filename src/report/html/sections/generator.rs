//! The section on the precision of the load generator: its calibration, its lateness in the runs, and its CPU
//! usage.

use super::super::chart::{Axis, Row, forest};
use super::super::error::PageError;
use super::super::naming::{content, load, short};
use super::super::sources::{Calibrated, MeasuredRun, Sources};
use super::super::view::{Block, Caption, Cell, Figure, Found, Link, Missing, Section, Table, tone};
use super::groups::groups;
use super::over_load::OverLoad;
use super::percentiles::percentile;
use crate::analysis::calibration::{BOUND_MS, Spread};
use crate::analysis::curve::Ordinate;
use crate::analysis::quantile;
use crate::metrics;
use crate::plan::Percentile;
use crate::report::calibration::{beside, notes};
use crate::report::format::{digits, plain};
use crate::sweep::calibrate::{Calibration, Known, Measured};
use crate::units::text::counted;

const TITLE: &str = "The generator";

/// Maximum number of figures that show lateness.
const MOST_FIGURES: usize = 3;

/// Maximum number of runs in the table, which lists the runs with the highest lateness.
const MOST_RUNS: usize = 20;

/// Maximum number of loads in the table of a calibration.
const MOST_LOADS: usize = 16;

/// Builds the section, or states why it is missing.
pub(crate) fn generator(sources: &Sources) -> Result<Found, PageError> {
    if sources.runs.is_empty() {
        let why = "no run has a result, so nothing is known about the client";
        return Ok(Err(Missing { title: TITLE, why: why.to_owned() }));
    }
    let text = "The measuring client has its own error. A calibration measures it against a server whose \
                every response is known; the lateness of requests in the runs themselves is shown as well.";
    let mut blocks = vec![Block::Text { text: text.to_owned() }];
    for (number, one) in sources.calibrated.iter().enumerate() {
        blocks.extend(calibrated(one, number, sources)?);
    }
    let mut figures = Vec::new();
    if let Some(reading) = Ordinate::named("lateness_p99") {
        for (number, group) in groups(sources.curves).into_iter().enumerate() {
            if figures.len() >= MOST_FIGURES {
                break;
            }
            let one = OverLoad {
                plan: sources.plan,
                curves: sources.curves,
                group: &group,
                reading,
                prefix: "generator",
                is_judged: false,
                marks: &[],
            };
            figures.extend(one.figure(number)?);
        }
    }
    blocks.push(Block::Heading { text: "In the runs".to_owned() });
    if !figures.is_empty() {
        blocks.push(Block::Figures { figures });
    }
    blocks.push(Block::Table { table: runs(&sources.runs) });
    let left = sources.runs.len().saturating_sub(MOST_RUNS);
    if left > 0 {
        let text =
            format!("{} with less lateness not listed: `sweepline export` has all of them.", counted(left, "more run"));
        blocks.push(Block::Text { text });
    }
    Ok(Ok(Section { id: "generator", title: TITLE, blocks }))
}

/// Describes the calibration for the runs of one machine, or states that there is none.
fn calibrated(one: &Calibrated, number: usize, sources: &Sources) -> Result<Vec<Block>, PageError> {
    let host = plain(&one.host);
    let runs = counted(one.runs.len(), "run");
    let (mut blocks, mut said) = (Vec::new(), Vec::new());
    let calibration = match &one.known {
        Known::Nothing => {
            said.push(format!(
                "Not calibrated: no calibration of {host} is in the results folder ({runs}). `{}` measures its \
                precision.",
                sources.calibrate
            ));
            None
        }
        Known::Elsewhere(_) => {
            said.push(format!("Not calibrated: no calibration applies to {host} ({runs})."));
            None
        }
        Known::Here(calibration, _) => Some(calibration),
    };
    said.extend(beside(&one.known, &one.runs).0.iter().map(|line| plain(line)));
    let Some(calibration) = calibration else {
        blocks.push(Block::List { items: said });
        return Ok(blocks);
    };
    let of = calibration
        .plan
        .as_ref()
        .map_or("loads given by flags".to_owned(), |plan| format!("the loads of {}", plain(plan)));
    let day: String = calibration.started.to_string().chars().take(10).collect();
    blocks.push(Block::Heading { text: format!("Calibrated on {host}, {day}, with {of}") });
    blocks.push(Block::List { items: said });
    let items: Vec<String> = notes(calibration);
    if !items.is_empty() {
        blocks.push(Block::Folded { title: format!("Notes on the calibration ({})", items.len()), items });
    }
    blocks.extend(figure(calibration, number)?.map(|figure| Block::Figures { figures: vec![figure] }));
    Ok(blocks)
}

/// Builds the figure of the TTFT error at each calibrated load, with a line at the bound.
fn figure(calibration: &Calibration, number: usize) -> Result<Option<Figure>, PageError> {
    let tail = |measured: &Measured| measured.errors.ttft.tail_ms();
    let row = |measured: &Measured| {
        let spread = &measured.errors.ttft;
        let value = spread.tail_ms()?;
        let least = spread.p50_ms.unwrap_or(value);
        let load = plain(&measured.load.to_string());
        let text = format!("{load}: TTFT error {}", tail_said(spread));
        Some(Row { name: load, value, ends: [least.min(value), value], shown: measured.errors.holds(), text })
    };
    let rows: Vec<Row> = calibration.measured().take(MOST_LOADS).filter_map(row).collect();
    let highest = calibration.measured().filter_map(|measured| Some((measured, tail(measured)?)));
    let Some((worst, _)) = highest.max_by(|a, b| a.1.total_cmp(&b.1)) else { return Ok(None) };
    let most = rows.iter().map(|row| row.value).fold(BOUND_MS * 1.1, f64::max);
    let holding = calibration.measured().filter(|measured| measured.errors.holds()).count();
    let all = calibration.measured().count();
    let mut shown = vec![format!(
        "n: {} requests of {} were compared with the server's log.",
        requests(calibration),
        counted(all, "load")
    )];
    let details = vec![
        format!(
            "Square: p99 (the maximum if there are too few requests for it); the line begins at p50. Dashed: \
            the bound of {BOUND_MS} ms."
        ),
        "Filled: every error of the load is below the bound. There is no interval. The axis begins at 0.".to_owned(),
    ];
    if rows.len() < all {
        shown.push(format!("{} of {all} loads are not drawn; they are in the numbers.", all - rows.len()));
    }
    let x = Axis::from_zero("TTFT error of the generator, ms", most);
    let metric = metrics::find("ttft").map(|metric| Link { key: metric.key, title: metric.title });
    let worst = format!("{} ({})", tail_said(&worst.errors.ttft), plain(&worst.load.to_string()));
    Ok(Some(Figure {
        id: format!("calibration-{}", number + 1),
        title: format!("The generator's own error is small at {holding} of {all} loads; TTFT error at worst {worst}"),
        caption: Caption { shown, details },
        metric,
        drawing: forest(&x, &rows, Some(BOUND_MS))?,
        table: table(calibration),
    }))
}

fn requests(calibration: &Calibration) -> u64 {
    calibration.measured().map(|measured| measured.errors.requests).sum()
}

/// Formats the p99 of an error: `p99 0.061 ms`, or its maximum if there are too few requests.
fn tail_said(spread: &Spread) -> String {
    let few = if spread.n < quantile::unmarked_from(Percentile::P99) { " (few samples)" } else { "" };
    match (spread.p99_ms, spread.max_ms) {
        (Some(p99), _) => format!("p99 {} ms{few}", digits(p99)),
        (None, Some(max)) => format!("at most {} ms (n={})", digits(max), spread.n),
        (None, None) => "not measured".to_owned(),
    }
}

/// Returns a table of all calibrated loads, with errors in milliseconds (the values in the client's rows
/// minus those in the mock's log).
fn table(calibration: &Calibration) -> Table {
    let columns = [
        "load",
        "in flight#",
        "requests/s#",
        "events/s#",
        "n#",
        "TTFT error p50, ms#",
        "TTFT error p99, ms#",
        "TTFT error max, ms#",
        "ITL error p99, ms#",
        "ITL error max, ms#",
        "late p99, ms#",
        "late max, ms#",
        "CPU, cores#",
        "holds",
    ];
    let mut table = Table::new("The rows minus the mock's log", &columns);
    for measured in calibration.measured() {
        let Measured { load, pressure, errors, cost, .. } = measured;
        table.rows.push(vec![
            Cell::text(&load.to_string()),
            Cell::number(Some(pressure.in_flight)),
            Cell::number(Some(pressure.requests_per_second)),
            Cell::number(Some(pressure.events_per_second)),
            Cell::count(errors.ttft.n),
            Cell::number(errors.ttft.p50_ms),
            p99(&errors.ttft),
            Cell::number(errors.ttft.max_ms),
            p99(&errors.itl),
            Cell::number(errors.itl.max_ms),
            p99(&errors.late),
            Cell::number(errors.late.max_ms),
            Cell::number(cost.cores),
            if errors.holds() { Cell::toned("yes", tone("holds")) } else { Cell::toned("no", tone("misses")) },
        ]);
    }
    table
}

fn p99(spread: &Spread) -> Cell {
    match spread.p99_ms {
        Some(value) => Cell::marked(value, spread.n < quantile::unmarked_from(Percentile::P99)),
        None => Cell::text(&format!("n/a (n={})", spread.n)),
    }
}

/// Returns a table of the generator's lateness in the runs, with the highest lateness first.
fn runs(runs: &[MeasuredRun]) -> Table {
    let columns = [
        "run",
        "endpoint",
        "scenario",
        "load",
        "lateness_p50_ms#",
        "lateness_p99_ms#",
        "lateness_max_ms#",
        "CPU, % of its cores#",
        "busiest thread, % of a core#",
        "cores#",
    ];
    let mut table =
        Table::new("Lateness (sent − released − connecting) and CPU of the client, latest runs first", &columns);
    let mut all: Vec<&MeasuredRun> = runs.iter().collect();
    let latest = |run: &MeasuredRun| run.metrics.lateness.max.and_then(|value| value.exact()).unwrap_or(-1.0);
    all.sort_by(|a, b| latest(b).total_cmp(&latest(a)));
    for run in all.into_iter().take(MOST_RUNS) {
        let (labels, lateness, facts) = (run.labels, &run.metrics.lateness, &run.record.facts);
        let observed = facts.observed.as_ref().filter(|observed| observed.for_ns > 0);
        let cores = f64::from(facts.client_cores.max(1));
        let whole = observed.map(|observed| observed.share(observed.process_cpu_ns) / cores * 100.0);
        let busiest = observed.and_then(|observed| {
            let shares = observed.threads.iter().map(|thread| observed.share(thread.cpu_ns) * 100.0);
            shares.reduce(f64::max)
        });
        table.rows.push(vec![
            Cell::text(&short(&labels.run_id)),
            Cell::text(&labels.endpoint),
            Cell::text(&content(labels)),
            Cell::text(&load(labels)),
            percentile(lateness, Percentile::P50),
            percentile(lateness, Percentile::P99),
            Cell::number(lateness.max.and_then(|value| value.exact())),
            Cell::number(whole),
            Cell::number(busiest),
            Cell::count(facts.client_cores.into()),
        ]);
    }
    table
}
