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

/// The result of looking for a calibration that applies to measurements of this program on this machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Known {
    /// No calibration exists.
    Nothing,
    /// Calibrations exist, but none applies; the string states why the latest one does not.
    Elsewhere(String),
    /// The latest calibration that applies, and the path of its file.
    Here(Box<Calibration>, PathBuf),
}

/// Looks for a calibration in a results folder. `here` describes this machine and program.
pub fn known(store: &Store, here: &Environment) -> Result<Known, StoreError> {
    let mut elsewhere = None;
    for path in store.calibrations()? {
        // Skip calibrations that this program cannot read and calibrations without measurements, because
        // they contain no information about this machine.
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

/// Returns why a calibration that was made in the environment `there` does not apply in the environment
/// `here`; `None` if it applies.
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

/// The load that a run put on the generator.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Loaded {
    /// The name of the run.
    pub name: String,
    /// The measures of how heavy the load was.
    pub pressure: Pressure,
    /// The settings of the load generator.
    pub engine: LoadEngine,
    /// The HTTP/2 settings; `None` if requests used HTTP/1.1.
    #[serde(default)]
    pub http: Option<Http2>,
    /// How connections were opened and reused.
    pub connections: Connections,
    /// Whether the run was an open loop.
    pub open: bool,
}

impl Loaded {
    /// Whether `measured` shows how the generator behaves under a run like this: the generator had the same
    /// settings, used the same HTTP version, opened connections in the same way, and its load was at least
    /// as heavy in every respect.
    fn is_shown_by(&self, measured: &Measured) -> bool {
        let opens = |connections| connections == Connections::PerRequest;
        let same = measured.load.engine == self.engine && opens(measured.load.connections) == opens(self.connections);
        same && measured.load.http == self.http && self.pressure.is_within(&measured.pressure)
    }

    /// Compares how well two measured loads that cover this run represent it. Loads of the same kind (open
    /// or closed loop) come first, then lighter loads.
    fn compare(&self, a: &Measured, b: &Measured) -> Ordering {
        let other_kind = |one: &Measured| one.load.is_open() != self.open;
        let by_weight = || a.pressure.events_per_second.total_cmp(&b.pressure.events_per_second);
        other_kind(a).cmp(&other_kind(b)).then_with(by_weight)
    }
}

impl Searched {
    /// Returns the measurements of the loads that were tried. If a load was tried twice in a row, only the
    /// second measurement is returned.
    fn last_tries(&self) -> impl Iterator<Item = &Measured> {
        self.steps.chunk_by(|a, b| a.load == b.load).filter_map(<[Measured]>::last)
    }
}

impl Calibration {
    /// Returns all measurements: of the loads, and of the steps of the searches. If a step was tried twice,
    /// only the second measurement is returned.
    pub fn measured(&self) -> impl Iterator<Item = &Measured> {
        self.loads.iter().chain(self.searches.iter().flat_map(Searched::last_tries))
    }

    /// Returns the measurement that shows how the generator behaves under `run`; `None` if there is none.
    /// This is the lightest load that covers the run, preferably of the same kind (open or closed loop). If
    /// the generator failed at a lower load of the same shape, that measurement is returned instead.
    pub(crate) fn covering(&self, run: &Loaded) -> Option<&Measured> {
        let best = self.measured().filter(|measured| run.is_shown_by(measured)).min_by(|a, b| run.compare(a, b))?;
        let failed = self.measured().filter(|other| {
            let lower = other.load.level() < best.load.level() && other.load.is_shaped_like(&best.load);
            lower && !other.errors.holds()
        });
        Some(failed.min_by_key(|other| other.load.level()).unwrap_or(best))
    }

    /// Returns the highest load of the same kind as `load` (open or closed loop) at which the generator's
    /// errors were acceptable; `None` if there is none.
    pub fn holds_to(&self, load: &CalibrationLoad) -> Option<&CalibrationLoad> {
        self.searches.iter().filter_map(|search| search.holds_to.as_ref()).find(|held| held.is_open() == load.is_open())
    }
}
