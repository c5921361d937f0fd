//! Renders a calibration as text, and the line about it that `run` prints.

use comfy_table::Cell;

use crate::analysis::calibration::{BOUND_MS, Pressure, Spread, Stamps};
use crate::analysis::quantile;
use crate::expand::LoadEngine;
use crate::plan::{Connections, Percentile};
use crate::sweep::calibrate::{Calibration, CalibrationLoad, Known, Loaded, Measured, Searched};
use crate::sweep::event::load_name;
use crate::units::text::counted;

use super::format::{digits, plain};
use super::grid::{self, right};

/// Minimum number of cores with which the client and the mock do not need to share cores.
const ENOUGH_CORES: u32 = 4;

/// Renders the whole calibration, at most 100 columns wide.
pub fn text(calibration: &Calibration) -> String {
    let environment = &calibration.environment;
    let of = calibration.plan.as_ref().map_or(String::new(), |plan| format!(" for {}", plain(plan)));
    let cpu = environment.client_cpu.as_ref().map_or(String::new(), |cpu| format!(", {}", plain(cpu)));
    let mut text = format!(
        "calibration{of}\n{}, {} cores{cpu}\n{}; sweepline {}\n\n",
        plain(&environment.client_host),
        environment.client_cores,
        plain(&environment.client_os),
        environment.sweepline,
    );
    if !calibration.loads.is_empty() {
        text.push_str(&figures(&calibration.loads));
        text.push_str(LEGEND);
    }
    for line in notes(calibration) {
        text.push_str(&format!("{line}\n"));
    }
    text
}

const LEGEND: &str = "
errors: rows − the mock's log; signed mean, absolute values otherwise
late: how long after it was due a request reached the mock; mock late: how much later than scheduled it
wrote its first token; n/a: too few requests (p50 needs 6, p99 needs 368); *: p99 of fewer than 1000

";

/// Renders the table of errors, with five lines for each load.
fn figures(loads: &[Measured]) -> String {
    let mut table = grid::table();
    let header = ["n", "mean\nms", "p50\nms", "p99\nms", "max\nms"].map(right);
    table.set_header([Cell::new("load"), Cell::new("")].into_iter().chain(header));
    for measured in loads {
        let errors = &measured.errors;
        let spreads = [&errors.ttft, &errors.itl, &errors.lateness, &errors.late, &errors.server_delay];
        let column = |value: &dyn Fn(&Spread) -> String| right(spreads.map(value).join("\n"));
        let number = |value: Option<f64>| value.map_or("n/a".to_owned(), digits);
        table.add_row([
            Cell::new(describe(measured)),
            Cell::new("TTFT error\nITL error\nlateness error\nlate\nmock late"),
            column(&|spread| spread.n.to_string()),
            column(&|spread| number(spread.mean_ms)),
            column(&|spread| number(spread.p50_ms)),
            column(&|spread| {
                spread.p99_ms.map_or("n/a".to_owned(), |p99| format!("{}{}", digits(p99), few(spread, "*")))
            }),
            column(&|spread| number(spread.max_ms)),
        ]);
    }
    grid::text(table, 1, &[])
}

/// Returns `mark` if a p99 is computed from few samples, otherwise an empty text.
fn few<'m>(spread: &Spread, mark: &'m str) -> &'m str {
    if spread.n < quantile::unmarked_from(Percentile::P99) { mark } else { "" }
}

/// Describes a load: the requests and events that it consists of, its cost in CPU time, the source of the
/// timestamps, and whether the generator's errors stay within the bound.
fn describe(measured: &Measured) -> String {
    let Measured { load, pressure, errors, cost, stamps, .. } = measured;
    let cpu = match (cost.cpu_s_per_1000_requests, cost.cores) {
        (Some(cpu), Some(cores)) => {
            format!("CPU {} s per 1000 requests, {:.1} % of a core", digits(cpu), cores * 100.0)
        }
        _ => "CPU unknown".to_owned(),
    };
    let merged = errors.merged.filter(|merged| *merged > 0.0);
    let merged = merged.map(|share| format!(", {:.1} % of events merged", share * 100.0)).unwrap_or_default();
    let faults = [(errors.failed, "failed"), (errors.unseen, "unseen by the mock"), (errors.unknown, "without a row")];
    let faults: String =
        faults.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("; {n} requests {what}")).collect();
    let failure = errors.failure.as_ref().map(|failure| format!(" ({})", plain(failure))).unwrap_or_default();
    format!(
        "{}\n{}\n{cpu}\nstamps: {}{merged}\n{}{faults}{failure}",
        plain(&load.to_string()),
        hardness(pressure),
        who(stamps),
        if errors.holds() { "holds" } else { "does not hold" },
    )
}

fn hardness(pressure: &Pressure) -> String {
    let Pressure { in_flight, requests_per_second, events_per_second } = pressure;
    format!(
        "{} in flight, {} requests/s, {events_per_second:.0} events/s",
        digits(*in_flight),
        digits(*requests_per_second)
    )
}

/// Describes whether the timestamps of responses (at the client) and of arrivals (at the mock) are from the
/// kernel or from user space.
fn who(stamps: &Stamps) -> String {
    let by = |kernel: u64, all: u64| match kernel {
        0 => "user".to_owned(),
        _ if kernel == all => "kernel".to_owned(),
        _ => format!("kernel for {kernel} of {all}"),
    };
    let (client, server) = (by(stamps.client_kernel, stamps.client), by(stamps.server_kernel, stamps.server));
    format!("client {client}, mock {server}")
}

/// Renders one load in one line.
pub fn brief(measured: &Measured) -> String {
    let tail = |spread: &Spread| spread.tail_ms().map_or("n/a".to_owned(), |tail| format!("{} ms", digits(tail)));
    let errors = &measured.errors;
    let holds = if errors.holds() { "holds" } else { "does not hold" };
    let pressure = hardness(&measured.pressure);
    format!("  {pressure}: TTFT error {}, late {}: {holds}", tail(&errors.ttft), tail(&errors.late))
}

/// Returns the conclusions from the calibration, and notes on what limits its validity.
pub(crate) fn notes(calibration: &Calibration) -> Vec<String> {
    let mut notes: Vec<String> = calibration.searches.iter().map(finding).collect();
    let failed = calibration.loads.iter().filter(|one| !one.errors.holds());
    notes.extend(failed.map(|one| format!("does not hold: {}", plain(&one.load.to_string()))));
    let cores = calibration.environment.client_cores;
    if cores < ENOUGH_CORES {
        let cores = counted(cores, "core");
        notes.push(format!("{cores}: client and mock share them, and the errors include the mock's own delays"));
    }
    for left in &calibration.unmeasured {
        notes.push(format!("{} was not measured: {}", left.load, plain(&left.reason)));
    }
    notes
}

/// Describes the result of a search.
fn finding(search: &Searched) -> String {
    let name = |load: &CalibrationLoad| load_name(&load.load);
    let bound = format!("TTFT error and late below {BOUND_MS} ms at p99");
    let found = match (&search.holds_to, &search.fails_at) {
        (Some(held), Some(failed)) => format!("{bound} up to {}, not at {}", name(held), name(failed)),
        (Some(held), None) => format!("{bound} at every load tried, up to {}", name(held)),
        (None, Some(failed)) => format!("{bound} at no load tried, down to {}", name(failed)),
        (None, None) => format!("{bound}: not searched"),
    };
    let early = search.ended_early.as_ref().map(|reason| format!(" ({})", plain(reason))).unwrap_or_default();
    found + &early
}

/// Compares these runs with the known calibration. Returns the lines to show, and whether a new calibration
/// would help.
pub fn beside(known: &Known, runs: &[Loaded]) -> (Vec<String>, bool) {
    let calibration = match known {
        Known::Nothing => return (Vec::new(), true),
        Known::Elsewhere(why) => {
            return (vec![format!("generator: the last calibration is {} and is ignored", plain(why))], true);
        }
        Known::Here(calibration, _) => calibration,
    };
    let hardest = |runs: &mut dyn Iterator<Item = &Loaded>| -> Option<Loaded> {
        runs.max_by(|a, b| a.pressure.events_per_second.total_cmp(&b.pressure.events_per_second)).cloned()
    };
    let covered = |run: &&Loaded| calibration.covering(run).is_some();
    let mut lines = Vec::new();
    let inside = hardest(&mut runs.iter().filter(covered));
    if let Some(measured) = inside.as_ref().and_then(|run| calibration.covering(run)) {
        lines.push(quote(calibration, measured));
    }
    let beyond: Vec<&Loaded> = runs.iter().filter(|run| !covered(run)).collect();
    if let Some(run) = hardest(&mut beyond.iter().copied()) {
        let runs = if beyond.len() == 1 { "1 run is".to_owned() } else { format!("{} runs are", beyond.len()) };
        lines.push(format!(
            "warning: {runs} beyond the calibrated range of the generator; the most demanding: {} ({}){}",
            plain(&run.name),
            hardness(&run.pressure),
            covered_by(&run),
        ));
    }
    (lines, !beyond.is_empty())
}

/// Returns a hint with the flags of a calibration that would cover a run. A calibration with the plan's own
/// loads may not cover the run, because the mock's timing differs from the server's. If flags cannot
/// reproduce the generator's settings or the run's rate is 0, the hint only names the flags that set the
/// mock's timing.
fn covered_by(run: &Loaded) -> String {
    let Pressure { in_flight, requests_per_second, events_per_second } = run.pressure;
    let built = run.engine != LoadEngine::default() || run.connections == Connections::PerRequest;
    if built || requests_per_second <= 0.0 {
        return "; --ttft and --itl set the mock's timing to the server's".to_owned();
    }
    // The flags request 10 % more than the run needs, because the requested load is never quite reached.
    let batch_size = (in_flight * 1.1).ceil().max(1.0);
    let tokens = (events_per_second / requests_per_second).ceil().max(1.0);
    let answer_us = batch_size / requests_per_second * 1e6 / 1.1;
    let itl = (answer_us / (tokens + 1.0)).floor();
    let ttft = (answer_us - itl * (tokens - 1.0)).floor();
    format!(
        "; covered by: sweepline calibrate --batch-size {batch_size} --output-tokens {tokens} --ttft {ttft}us --itl {itl}us"
    )
}

/// Renders the line about the calibrated load that covers a run.
fn quote(calibration: &Calibration, measured: &Measured) -> String {
    let spread = &measured.errors.ttft;
    let error = match (spread.p99_ms, spread.max_ms) {
        (Some(p99), _) => format!("TTFT error p99 {} ms{}", digits(p99), few(spread, " (few samples)")),
        (None, Some(max)) => format!("TTFT error at most {} ms (n={})", digits(max), spread.n),
        (None, None) => "TTFT error not measured".to_owned(),
    };
    let late = measured.errors.late.tail_ms().map(|late| format!(", late {} ms", digits(late))).unwrap_or_default();
    let to = calibration.holds_to(&measured.load).map(|load| load_name(&load.load));
    let held = to.map(|load| format!("; holds to {load}")).unwrap_or_default();
    let (warning, holds) = match measured.errors.holds() {
        true => ("", held),
        false => ("warning: ", format!("{held}; lower the load, use more engine threads, or a quieter machine")),
    };
    let day: String = calibration.started.to_string().chars().take(10).collect();
    format!(
        "{warning}generator: {error}{late} at {} (calibrated {day} on this host){holds}",
        load_name(&measured.load.load)
    )
}
