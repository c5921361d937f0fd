//! Calibration: the generator's own error on this machine under loads like a plan's, and the highest load at
//! which this error stays small. It measures the mock, a server whose responses are all known, in a separate
//! process.

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

/// Format of a calibration file. Incremented when a reader of the old format would misread the new one.
const FORMAT: u32 = 1;
/// The maximum number of requests in flight that the search tries, well within the number of ports
/// of one address.
const MOST_IN_FLIGHT: u64 = 16_384;
/// Number of files that the process has open in addition to those of the run, with headroom.
const OTHER_FILES: u64 = 64;

/// A load that was not measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unmeasured {
    /// The load.
    pub load: CalibrationLoad,
    /// The reason.
    pub reason: String,
    /// Whether an error occurred. If not, there was no time for the load, or the load is too light for
    /// a window.
    pub failed: bool,
}

/// The search for the highest load of one kind that holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Searched {
    /// The loads that were tried, in order; a load that failed was tried twice.
    pub steps: Vec<Measured>,
    /// The highest batch size or rate that held, if all lower ones that were tried also held.
    pub holds_to: Option<CalibrationLoad>,
    /// The lowest load that did not hold.
    pub fails_at: Option<CalibrationLoad>,
    /// Why the search ended before the limit was found; null if it was found.
    pub ended_early: Option<String>,
}

/// One calibration, as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Format of the file.
    pub format: u32,
    /// Start time, in UTC.
    pub started: Moment,
    /// End time, in UTC.
    pub ended: Moment,
    /// The machine and the program; a calibration applies to no others.
    pub environment: Environment,
    /// The name of the plan that the loads come from; null if the load was given by flags.
    pub plan: Option<String>,
    /// The requested loads that were measured, heaviest first.
    pub loads: Vec<Measured>,
    /// The requested loads that were not measured.
    pub unmeasured: Vec<Unmeasured>,
    /// The searches over batch sizes and over rates, depending on the loads.
    pub searches: Vec<Searched>,
}

/// The settings of a calibration.
#[derive(Debug, Clone)]
pub struct Task {
    /// The plan's name, if the loads come from a plan.
    pub plan: Option<String>,
    /// The loads to measure, heaviest first.
    pub loads: Vec<CalibrationLoad>,
    /// Minimum length of the window of a load.
    pub at_least: Nanos,
    /// Time limit from the start: no step begins that is expected to end later.
    pub within: Nanos,
    /// Whether to search for the highest load that holds.
    pub search: bool,
    /// The maximum number of files that the process may have open.
    pub(crate) most_files: u64,
}

impl Task {
    /// Returns why a load cannot be measured with this limit on open files, and how to raise the
    /// limit; `None` if the limit suffices.
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
    /// A load is about to be measured; contains the estimated time.
    Begun(&'a CalibrationLoad, Nanos),
    /// A load was measured.
    Measured(&'a Measured),
}

/// The calibration was stopped.
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

/// Calibrates, and reports progress to `tell`.
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
        // The search is given as much time as the loads.
        let share = if self.task.search { Nanos(self.task.within.0 / 2) } else { self.task.within };
        for load in self.task.loads.clone() {
            // The heaviest load is measured even if there is too little time.
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

    /// Runs one search for each kind of load, starting from the heaviest load of the kind.
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
        // Rates below 1 cannot be doubled. No claim may cover a load that the table shows as not
        // holding.
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

    /// Checks whether a load holds. If it does not, repeats the measurement, because a hiccup of the
    /// machine is not the generator's limit. `None` if there is no time.
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

    /// Returns the highest level to try for a kind of load.
    fn most(&self, shape: &CalibrationLoad) -> u64 {
        let others = demand(&shape.spec(self.task.at_least)).files + OTHER_FILES;
        let in_flight = self.task.most_files.saturating_sub(others).clamp(1, MOST_IN_FLIGHT);
        if shape.is_open() {
            // Requests in flight are the rate times the length of a response; half of that, because
            // arrivals come in bursts.
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
