//! Rules about ladders of rates that are meant to show the capacity of a server.

use super::super::expect::Expect;
use super::super::finding::Finding;
use super::super::view::{Rung, SweepView, View};
use crate::expand::Load;
use crate::plan::Slo;
use crate::units::Nanos;

/// Length of a window that shows whether a server keeps up, in multiples of the duration of a request. A
/// decision needs 16 swings of the queue between low and high levels (`analysis::series::swings`). About 55
/// swings occur in 200 relaxation times, where the relaxation time is the time in which the queue returns to
/// its usual level. Under a light load, it is the duration of a request; closer to the limit, it is longer.
const TIMES: f64 = 60.0;

/// M024: there is an objective and there are several rates, but the windows are too short to show whether
/// the server keeps up.
pub(crate) fn unshown_queue(view: &View, sweep: &SweepView) -> Option<Finding> {
    view.plan.slo.as_ref().filter(|slo| !Slo::is_empty(slo))?;
    let open: Vec<&Rung> = sweep.rungs.iter().filter(|rung| matches!(rung.load, Load::Open { .. })).collect();
    let expect = Expect::of(sweep);
    let (request, assumption) = expect.request();
    let window = |rung: &Rung| expect.measured(rung) / expect.rate(rung);
    let shortest = open.iter().map(|rung| window(rung)).filter(|seconds| seconds.is_finite()).reduce(f64::min)?;
    let takes = TIMES * request;
    let is_short = open.len() > 1 && shortest < takes;
    let seconds = |seconds: f64| Nanos::from_millis((seconds * 1e3).round() as u64);
    let message = format!(
        "a window of {} is shorter than {TIMES} consecutive requests of {} each{assumption}, so it will most likely \
         not show whether the server keeps up",
        seconds(shortest).spoken(),
        seconds(request).spoken(),
    );
    let remedy = format!(
        "write `phases: {{ measure: {} }}`, or request shorter responses",
        Nanos::from_secs(takes.ceil() as u64)
    );
    is_short.then(|| sweep.finding(sweep.phase_path(view.plan, "measure"), message, remedy))
}
