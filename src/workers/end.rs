//! Ends a run: checks its rows against its schedule, and merges the facts.

use crate::engine::{self, EngineError, Finished};
use crate::expand::RunSpec;
use crate::rows::{ClockOffset, Facts};

use super::merge::{Told, merge};
use super::under_way::{UnderWay, not_covered};

/// The coordinator's own data about an ended run.
pub(super) struct Ended {
    /// The start of the run on the coordinator's monotonic clock, in nanoseconds.
    pub(super) origin: u64,
    /// The clock of each worker.
    pub(super) clocks: Vec<ClockOffset>,
    /// Name and machine of each worker.
    pub(super) called: Vec<(String, String)>,
}

/// Returns the finished run; fails if the rows do not match the schedule.
pub(super) fn finished(mut run: UnderWay, ended: Ended, spec: &RunSpec) -> Result<Finished, EngineError> {
    let facts = run.facts();
    let end = facts.iter().map(|(facts, _)| facts.windows.end_ns).min().unwrap_or(0);
    let window = |facts: &Facts| (facts.windows.measure_start_ns, facts.windows.measure_end_ns);
    if let [(first, _), others @ ..] = &facts[..]
        && let Some((other, _)) = others.iter().find(|(other, _)| window(other) != window(first))
    {
        return Err(not_covered(format!("their windows differ: {:?} and {:?} ns", window(first), window(other))));
    }
    run.cover.check(engine::arrivals(spec), end).map_err(not_covered)?;
    let max_in_flight = run.cover.max_in_flight();
    let workers = facts.into_iter().zip(ended.clocks).zip(ended.called).enumerate();
    let told = workers.map(|(index, (((facts, started_late_ns), clock), (name, host)))| {
        let requests = run.cover.requests(index);
        Told { name, host, clock, requests, started_late_ns, facts }
    });
    let facts = merge(told.collect(), ended.origin, max_in_flight);
    let facts = facts.ok_or_else(|| EngineError::Workers("there are no workers".to_owned()))?;
    let (samples, texts) = run.close().map_err(EngineError::Sink)?;
    Ok(Finished { facts, samples, texts })
}
