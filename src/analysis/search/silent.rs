//! Runs with too few requests for what is asked: at such a load another run would tell as little.

use super::bracket::met;
use super::question::Probe;
use super::short::Short;

/// Runs of one load that had too few requests by chance, as few as they may be, before it is said that none has enough.
const CHANCES: usize = 3;
/// Standard deviations of a count of arrivals by which it may be short by chance.
const DEVIATIONS: f64 = 3.0;

/// The load at which no run can tell, and the longest of its runs; none where all may.
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
