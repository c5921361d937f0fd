//! Finds a load at which runs have too few requests for the question, so that another run would not help.

use super::bracket::met;
use super::question::Probe;
use super::short::Short;

/// Number of runs at one load that may have too few requests by chance before the load is reported to
/// have too few requests.
const CHANCES: usize = 3;
/// Number of standard deviations by which a count of arrivals may be too low by chance.
const DEVIATIONS: f64 = 3.0;

/// Returns the load at which no run can decide, and the shortage of the run with the most requests
/// at this load; `None` if there is no such load.
pub(super) fn load(probes: &[Probe]) -> Option<(f64, Short)> {
    let silent = |probe: &&Probe| probe.own && probe.answer.is_some() && met(probe).is_none();
    let last = probes.last().filter(silent)?;
    let here =
        || probes.iter().filter(silent).filter(|probe| (probe.load, probe.confirms) == (last.load, last.confirms));
    let longest = here().filter_map(|probe| probe.short).max_by_key(|short| short.requests)?;
    let requests = longest.requests as f64;
    let is_by_chance = requests + DEVIATIONS * requests.sqrt() >= longest.needs as f64;
    (!is_by_chance || here().filter(|probe| probe.short.is_some()).count() >= CHANCES).then_some((last.load, longest))
}
