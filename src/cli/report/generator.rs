//! The available information about the client that measured: the applicable calibration for each machine
//! that appears in the runs.

use crate::cli::answers::loaded;
use crate::cli::results::{Readings, RunResult};
use crate::report::html::Calibrated;
use crate::rows::Environment;
use crate::store::Store;
use crate::sweep::calibrate::{Known, known};

/// Returns the available information about each client, that is, the machine and program that measured,
/// not the ones that write the report.
pub(super) fn clients(store: &Store, readings: &Readings) -> Vec<Calibrated> {
    let mut clients: Vec<(&Environment, Vec<&RunResult>)> = Vec::new();
    for run in &readings.runs {
        let environment = &run.record.environment;
        match clients.iter_mut().find(|(other, _)| is_same(other, environment)) {
            Some((_, runs)) => runs.push(run),
            None => clients.push((environment, vec![run])),
        }
    }
    let of = |(environment, runs): (&Environment, Vec<&RunResult>)| Calibrated {
        host: environment.client_host.clone(),
        // A folder of calibrations that cannot be read provides no information about the client.
        known: known(store, environment).unwrap_or(Known::Nothing),
        runs: runs.into_iter().filter_map(|run| loaded(name(run), &run.record, &run.answered.metrics)).collect(),
    };
    clients.into_iter().map(of).collect()
}

/// Whether the same calibration applies to both.
fn is_same(a: &Environment, b: &Environment) -> bool {
    let of = |one: &Environment| {
        let Environment { client_host, sweepline, client_cpu, client_cores, client_os, .. } = one.clone();
        (client_host, sweepline, client_cpu, client_cores, client_os)
    };
    of(a) == of(b)
}

fn name(run: &RunResult) -> String {
    let labels = &run.answered.labels;
    let load = match (labels.qps, labels.batch_size) {
        (Some(qps), _) => format!("qps {qps}"),
        (None, Some(batch)) => format!("batch size {batch}"),
        (None, None) => "start".to_owned(),
    };
    format!("{} · {} · {load}", labels.endpoint, labels.scenario)
}
