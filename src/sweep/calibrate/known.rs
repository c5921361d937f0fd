//! Finds the calibration that applies to this machine.

use std::cmp::Ordering;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::analysis::calibration::Pressure;
use crate::expand::{Http2, LoadEngine};
use crate::plan::Connections;
use crate::rows::Environment;
use crate::store::{Store, StoreError};

use super::{Calibration, CalibrationLoad, Measured, Searched};

/// The calibration that applies to this program's measurements on this machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Known {
    /// No calibration exists.
    Nothing,
    /// Calibrations exist; the reason why the latest does not apply.
    Elsewhere(String),
    /// The latest calibration that applies, and its file.
    Here(Box<Calibration>, PathBuf),
}

/// Looks for a calibration in a results folder. `here` is this machine and program.
pub fn known(store: &Store, here: &Environment) -> Result<Known, StoreError> {
    let mut elsewhere = None;
    for path in store.calibrations()? {
        // A calibration of another program, a damaged one, and one without measurements contain no
        // information about this machine.
        let Ok(calibration) = store.calibration::<Calibration>(&path) else { continue };
        if calibration.loads.is_empty() {
            continue;
        }
        match difference(&calibration.environment, here) {
            None => return Ok(Known::Here(Box::new(calibration), path)),
            Some(why) => drop(elsewhere.get_or_insert(why)),
        }
    }
    Ok(elsewhere.map_or(Known::Nothing, Known::Elsewhere))
}

/// Returns why a calibration made `there` does not apply `here`, or `None` if it does.
fn difference(there: &Environment, here: &Environment) -> Option<String> {
    let of = |what: &str, there: &str, here: &str| (there != here).then(|| format!("of {what} {there}, not {here}"));
    let cpu = |environment: &Environment| environment.client_cpu.clone().unwrap_or_else(|| "unknown".to_owned());
    let cores = |environment: &Environment| environment.client_cores.to_string();
    of("host", &there.client_host, &here.client_host)
        .or_else(|| of("sweepline", &there.sweepline, &here.sweepline))
        .or_else(|| of("processor", &cpu(there), &cpu(here)))
        .or_else(|| of("a client with cores:", &cores(there), &cores(here)))
        .or_else(|| of("system", &there.client_os, &here.client_os))
}

/// A measured run, as its load on the generator.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Loaded {
    /// The name of the run.
    pub name: String,
    /// How heavy the load was.
    pub pressure: Pressure,
    /// How the generator was built.
    pub engine: LoadEngine,
    /// The HTTP/2 settings, if requests used it.
    #[serde(default)]
    pub http: Option<Http2>,
    /// How requests got their connections.
    pub connections: Connections,
    /// Whether the run was an open loop.
    pub open: bool,
}

impl Loaded {
    /// Whether `measured` shows how the generator behaves under such a run: it was built the same
    /// way, used the same HTTP version, opened connections as often, and the load was at least as
    /// heavy in every respect.
    fn is_shown_by(&self, measured: &Measured) -> bool {
        let opens = |connections| connections == Connections::PerRequest;
        let same = measured.load.engine == self.engine && opens(measured.load.connections) == opens(self.connections);
        same && measured.load.http == self.http && self.pressure.is_within(&measured.pressure)
    }

    /// Compares how well two covering loads represent this run: loads of the same kind first, then
    /// the lightest.
    fn compare(&self, a: &Measured, b: &Measured) -> Ordering {
        let other_kind = |one: &Measured| one.load.is_open() != self.open;
        let by_weight = || a.pressure.events_per_second.total_cmp(&b.pressure.events_per_second);
        other_kind(a).cmp(&other_kind(b)).then_with(by_weight)
    }
}

impl Searched {
    /// The loads that were tried. If a load was tried twice, this is the second attempt.
    fn last_tries(&self) -> impl Iterator<Item = &Measured> {
        self.steps.chunk_by(|a, b| a.load == b.load).filter_map(<[Measured]>::last)
    }
}

impl Calibration {
    /// All measurements, of loads and of steps of the searches. If a step was tried twice, this is
    /// the second attempt.
    pub fn measured(&self) -> impl Iterator<Item = &Measured> {
        self.loads.iter().chain(self.searches.iter().flat_map(Searched::last_tries))
    }

    /// Returns the measured load that shows how the generator behaves under `run`. This is the lightest
    /// such load, preferably of the same kind. A lower load of the same shape that did not hold outweighs
    /// it.
    pub(crate) fn covering(&self, run: &Loaded) -> Option<&Measured> {
        let best = self.measured().filter(|measured| run.is_shown_by(measured)).min_by(|a, b| run.compare(a, b))?;
        let failed = self.measured().filter(|other| {
            let lower = other.load.level() < best.load.level() && other.load.is_shaped_like(&best.load);
            lower && !other.errors.holds()
        });
        Some(failed.min_by_key(|other| other.load.level()).unwrap_or(best))
    }

    /// Returns the highest load of the kind of `load` that held.
    pub fn holds_to(&self, load: &CalibrationLoad) -> Option<&CalibrationLoad> {
        self.searches.iter().filter_map(|search| search.holds_to.as_ref()).find(|held| held.is_open() == load.is_open())
    }
}
