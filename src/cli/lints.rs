//! The methodology lint of a plan on this host, for `check` in full, and for `run` and `preview` in one
//! line.

use std::path::Path;

use super::changes::Changes;
use crate::analysis::calibration::Pressure;
use crate::cli::options::Folder;
use crate::expand::Load;
use crate::lint::{Calibrated, Held, Lint, Scope, lint};
use crate::plan::{Connections, Finding, Loaded};
use crate::server::client_environment;
use crate::sweep::calibrate::{Calibration, Known, Measured, known};
use crate::units::text::{counted, quoted};

/// Returns every lint of a plan. The results folder may contain an earlier calibration of this host, which
/// is taken into account.
pub(super) fn of(loaded: &Loaded, folder: &Folder) -> Vec<Lint> {
    // A folder of calibrations that cannot be read has no influence on the lints.
    let store = folder.store().ok();
    let known = store.and_then(|store| known(&store, &client_environment()).ok()).unwrap_or(Known::Nothing);
    let calibrated = match &known {
        Known::Here(calibration, _) => Some(calibrated(calibration)),
        Known::Nothing | Known::Elsewhere(_) => None,
    };
    lint(loaded, calibrated.as_ref())
}

/// Returns the summary line `3 lints: sweepline check PLAN`, with the flags that make `check` report the same
/// lints; `None` if there are no lints.
pub(super) fn one_line(loaded: &Loaded, folder: &Folder, (plan, changes): (&Path, &Changes)) -> Option<String> {
    let found = of(loaded, folder).len();
    let command = || format!("{}{}{}", quoted(&plan.to_string_lossy()), changes.typed(quoted), folder.typed());
    (found > 0).then(|| format!("{}: sweepline check {}", counted(found, "lint"), command()))
}

/// Returns one lint in the JSON format of `check`.
pub(crate) fn finding(lint: &Lint, plan: &Path) -> Finding {
    let place = lint.place.as_ref();
    let file = place.map_or(plan, |place| &place.file).display().to_string();
    Finding {
        remedy: Some(lint.remedy.clone()),
        about: lint.scopes.iter().map(Scope::to_string).collect(),
        ..Finding::new(lint.code, lint.severity, lint.message.clone(), file).at(place)
    }
}

fn calibrated(calibration: &Calibration) -> Calibrated {
    let held = calibration.measured().filter(|measured| measured.errors.holds()).map(held);
    Calibrated { held: held.collect() }
}

fn held(measured: &Measured) -> Held {
    let load = &measured.load;
    // The average over a window is slightly lower than the requested load. Plans state requested loads, so
    // the higher of the measured and the requested load is used.
    let at_least = |seen: f64, asked: f64| seen.max(asked);
    let seen = measured.pressure;
    let asked = match load.load {
        Load::Closed { batch_size } => {
            Pressure { in_flight: f64::from(batch_size), requests_per_second: 0.0, events_per_second: 0.0 }
        }
        Load::Open { qps, .. } => {
            let rate = qps.to_f64();
            let events = rate * f64::from(load.content.output_tokens);
            Pressure { in_flight: 0.0, requests_per_second: rate, events_per_second: events }
        }
    };
    Held {
        pressure: Pressure {
            in_flight: at_least(seen.in_flight, asked.in_flight),
            requests_per_second: at_least(seen.requests_per_second, asked.requests_per_second),
            events_per_second: at_least(seen.events_per_second, asked.events_per_second),
        },
        engine: load.engine,
        opens_connections: load.connections == Connections::PerRequest,
    }
}
