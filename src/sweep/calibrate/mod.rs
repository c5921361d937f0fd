//! Calibration measures the generator's own errors on this machine under loads like those of a plan, and
//! searches for the highest load at which these errors remain small. The loads are sent to the mock, a
//! server in a separate process whose responses are known exactly.

mod known;
mod load;
mod measure;
mod search;

use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::analysis::calibration::Errors;
use crate::engine::demand;
use crate::rows::Environment;
use crate::server::client_environment;
use crate::store::{Moment, Scratch};
use crate::units::Nanos;

pub use known::known;
pub(crate) use known::{Known, Loaded};
pub(crate) use load::{CalibrationLoad, Timing, of_flags, of_plan};
pub(crate) use measure::Measured;

use measure::{Trouble, measure};
use search::Search;

/// Format version of a calibration file. It is incremented when readers of the old format would misread the
/// new format.
const FORMAT: u32 = 1;
/// Maximum number of requests in flight that the search tries. It is well below the number of ports that
/// an address has.
const MOST_IN_FLIGHT: u64 = 16_384;
/// Allowance for open files of the process other than those of the run, with headroom.
const OTHER_FILES: u64 = 64;

/// A load that was not measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unmeasured {
    /// The load.
    pub load: CalibrationLoad,
    /// Why the load was not measured.
    pub reason: String,
    /// Whether an error occurred. Otherwise, there was not enough time for the load, or the load was too
    /// light for a request to fall into the measure window.
    pub failed: bool,
}

/// The search for the highest load of one kind (open or closed loop) that holds, that is, at which the
/// generator's errors are acceptable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Searched {
    /// The loads that were tried, in order. A load that did not hold was tried twice.
    pub steps: Vec<Measured>,
    /// The highest load that held, if all lower loads that were tried also held; otherwise null.
    pub holds_to: Option<CalibrationLoad>,
    /// The lowest load that did not hold; null if all loads held.
    pub fails_at: Option<CalibrationLoad>,
    /// Why the search ended before it found the limit; null if it found the limit.
    pub ended_early: Option<String>,
}

/// A calibration, as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Format version of the file.
    pub format: u32,
    /// Start time, in UTC.
    pub started: Moment,
    /// End time, in UTC.
    pub ended: Moment,
    /// The machine and the program to which the calibration applies.
    pub environment: Environment,
    /// The name of the plan with these loads; null if the load was given by flags.
    pub plan: Option<String>,
    /// The requested loads that were measured, heaviest first.
    pub loads: Vec<Measured>,
    /// The requested loads that were not measured.
    pub unmeasured: Vec<Unmeasured>,
    /// The searches: one over batch sizes if the loads include closed loops, and one over rates if they
    /// include open loops.
    pub searches: Vec<Searched>,
}

/// The settings of a calibration.
#[derive(Debug, Clone)]
pub struct Task {
    /// The name of the plan with these loads; `None` if the load was given by flags.
    pub plan: Option<String>,
    /// The loads to measure, heaviest first.
    pub loads: Vec<CalibrationLoad>,
    /// Minimum length of the measure window of a load.
    pub at_least: Nanos,
    /// Time limit of the whole calibration. A measurement that would probably exceed it is not begun.
    pub within: Nanos,
    /// Whether to search for the highest load at which the generator's errors are acceptable.
    pub search: bool,
    /// Maximum number of files that the process may have open.
    pub(crate) most_files: u64,
}

impl Task {
    /// Returns which load cannot be measured with this limit on open files, and how to raise the limit;
    /// `None` if the limit suffices for all loads.
    pub(crate) fn lack_of_files(&self) -> Option<String> {
        let needs = |load: &CalibrationLoad| {
            let demand = demand(&load.spec(self.at_least));
            u64::from(demand.at_once.unwrap_or(0)) + demand.files + OTHER_FILES
        };
        let (needed, load) = self.loads.iter().map(|load| (needs(load), load)).max_by_key(|(needed, _)| *needed)?;
        let most = self.most_files;
        (needed > most)
            .then(|| format!("{load} needs {needed} open files, and this process may open {most}: ulimit -n {needed}"))
    }
}

/// Progress of a calibration.
#[derive(Debug, Clone, Copy)]
pub enum Said<'a> {
    /// The measurement of this load begins, and is estimated to take this time.
    Begun(&'a CalibrationLoad, Nanos),
    /// A load was measured.
    Measured(&'a Measured),
}

/// The user stopped the calibration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

/// A calibration in progress.
struct Bench<'a> {
    task: &'a Task,
    scratch: &'a Scratch,
    stop: watch::Receiver<bool>,
    begun: Instant,
    tell: &'a mut dyn FnMut(Said),
}

/// Performs a calibration, and reports progress to `tell`.
pub fn calibrate(
    task: &Task,
    scratch: &Scratch,
    stop: watch::Receiver<bool>,
    tell: &mut dyn FnMut(Said),
) -> Result<Calibration, Stopped> {
    let started = Moment::now();
    let mut bench = Bench { task, scratch, stop, begun: Instant::now(), tell };
    let (loads, unmeasured) = bench.loads()?;
    let searches = if task.search { bench.searches(&loads)? } else { Vec::new() };
    Ok(Calibration {
        format: FORMAT,
        started,
        ended: Moment::now(),
        environment: client_environment(),
        plan: task.plan.clone(),
        loads,
        unmeasured,
        searches,
    })
}

impl Bench<'_> {
    /// Measures the requested loads.
    fn loads(&mut self) -> Result<(Vec<Measured>, Vec<Unmeasured>), Stopped> {
        let (mut measured, mut unmeasured) = (Vec::new(), Vec::new());
        // If there is a search, half of the time is reserved for it.
        let share = if self.task.search { Nanos(self.task.within.0 / 2) } else { self.task.within };
        for load in self.task.loads.clone() {
            // The first load, which is the heaviest, is measured even if there is too little time.
            let none_yet = measured.is_empty() && unmeasured.is_empty();
            if !none_yet && !self.has_time(&load, share) {
                let reason = "no time left; raise --within".to_owned();
                unmeasured.push(Unmeasured { load, reason, failed: false });
                continue;
            }
            match self.measure(&load) {
                Ok(one) if one.errors.mostly_failed() => {
                    let Errors { failed, requests, failure, .. } = one.errors;
                    let why = failure.unwrap_or_default();
                    let reason = format!("{failed} of its {requests} requests failed, most of them with {why}");
                    unmeasured.push(Unmeasured { load, reason, failed: true });
                }
                Ok(one) => measured.push(one),
                Err(Trouble::Stopped) => return Err(Stopped),
                Err(Trouble::Empty) => {
                    let reason = "no request fell into its window; raise --for".to_owned();
                    unmeasured.push(Unmeasured { load, reason, failed: false });
                }
                Err(Trouble::Failed(reason)) => unmeasured.push(Unmeasured { load, reason, failed: true }),
            }
        }
        Ok((measured, unmeasured))
    }

    /// Runs a search for each kind of load (open and closed loop), which starts at the heaviest measured
    /// load of this kind.
    fn searches(&mut self, loads: &[Measured]) -> Result<Vec<Searched>, Stopped> {
        let kinds: Vec<&Measured> = [false, true]
            .into_iter()
            .filter_map(|open| loads.iter().find(|measured| measured.load.is_open() == open))
            .collect();
        let mut searches = Vec::new();
        for (done, heaviest) in kinds.iter().enumerate() {
            let left = self.task.within.saturating_sub(self.passed());
            let share = Nanos(left.0 / (kinds.len() - done) as u64);
            let until = self.passed().saturating_add(share);
            searches.push(self.search(heaviest, loads, until)?);
        }
        Ok(searches)
    }

    fn search(&mut self, heaviest: &Measured, loads: &[Measured], until: Nanos) -> Result<Searched, Stopped> {
        let shape = &heaviest.load;
        let mut search = Search::new(shape.level(), self.most(shape));
        // The search also uses the results of measured loads of the same shape, so that it never reports a
        // limit above a load that was shown not to hold. Loads with a level of 0 are skipped, because 0
        // cannot be doubled.
        for one in loads.iter().filter(|one| one.load.level() > 0 && one.load.is_shaped_like(shape)) {
            search.learn(one.load.level(), one.errors.holds());
        }
        let (mut steps, mut ended_early) = (Vec::new(), None);
        while let Some(level) = search.next() {
            match self.step(&shape.at_level(level), until, &mut steps) {
                Ok(Some(holds)) => search.learn(level, holds),
                Ok(None) => {
                    ended_early = Some("the time is up; raise --within".to_owned());
                    break;
                }
                Err(Trouble::Stopped) => return Err(Stopped),
                Err(Trouble::Empty) => {
                    ended_early = Some("no request fell into a window; raise --for".to_owned());
                    break;
                }
                Err(Trouble::Failed(reason)) => {
                    ended_early = Some(format!("{} could not be measured: {reason}", shape.at_level(level)));
                    break;
                }
            }
        }
        let load = |level: Option<u64>| level.map(|level| shape.at_level(level));
        Ok(Searched { steps, holds_to: load(search.held()), fails_at: load(search.failed()), ended_early })
    }

    /// Measures whether a load holds. If it does not hold, the measurement is repeated once, because the
    /// cause may have been a disturbance of the machine and not the generator's limit. Returns `None` if
    /// there is no time left.
    fn step(
        &mut self,
        load: &CalibrationLoad,
        until: Nanos,
        steps: &mut Vec<Measured>,
    ) -> Result<Option<bool>, Trouble> {
        for _ in 0..2 {
            if !self.has_time(load, until) {
                return Ok(None);
            }
            let measured = self.measure(load)?;
            let holds = measured.errors.holds();
            steps.push(measured);
            if holds {
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }

    fn measure(&mut self, load: &CalibrationLoad) -> Result<Measured, Trouble> {
        (self.tell)(Said::Begun(load, load.takes(self.task.at_least)));
        let measured = measure(load, self.task.at_least, self.scratch.folder(), &self.stop)?;
        (self.tell)(Said::Measured(&measured));
        Ok(measured)
    }

    /// Returns the highest level that a search with this shape of load may try.
    fn most(&self, shape: &CalibrationLoad) -> u64 {
        let others = demand(&shape.spec(self.task.at_least)).files + OTHER_FILES;
        let in_flight = self.task.most_files.saturating_sub(others).clamp(1, MOST_IN_FLIGHT);
        if shape.is_open() {
            // The number of requests in flight is the rate times the duration of a response. Only half of
            // the permitted number is used, because arrivals come in bursts.
            (in_flight as f64 / 2.0 / shape.answer().secs().max(1e-3)) as u64
        } else {
            in_flight
        }
    }

    fn has_time(&self, load: &CalibrationLoad, until: Nanos) -> bool {
        self.passed().saturating_add(load.takes(self.task.at_least)) <= until
    }

    fn passed(&self) -> Nanos {
        self.begun.elapsed().into()
    }
}
