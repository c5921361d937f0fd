//! Ladders of rates that are to show how much a server bears.

use super::super::expect::Expect;
use super::super::finding::Finding;
use super::super::view::{Rung, SweepView, View};
use crate::expand::Load;
use crate::plan::Slo;
use crate::units::Nanos;

/// How many times as long as a request a window is that shows whether a server keeps up. Of 200 relaxation times of a queue there are
/// some 55 swings (`analysis::series::swings`), and it takes 16; under a light load the relaxation time is that of a request, nearer to
/// the limit longer.
const TIMES: f64 = 60.0;

/// M024: an objective, several rates, and windows too short to show whether the server keeps up with them.
pub(crate) fn unshown_queue(view: &View, sweep: &SweepView) -> Option<Finding> {
    view.plan.slo.as_ref().filter(|slo| !Slo::is_empty(slo))?;
    let open: Vec<&Rung> = sweep.rungs.iter().filter(|rung| matches!(rung.load, Load::Open { .. })).collect();
    let expect = Expect::of(sweep);
    let (request, assumption) = expect.request();
    let window = |rung: &Rung| expect.measured(rung) / expect.rate(rung);
    let shortest = open.iter().map(|rung| window(rung)).filter(|seconds| seconds.is_finite()).reduce(f64::min)?;
    let takes = TIMES * request;
    let is_short = open.len() > 1 && shortest < takes;
    let seconds = |seconds: f64| Nanos::from_millis((seconds * 1e3) as u64);
    let message = format!(
        "a window of {} is less than {TIMES} requests of {} one after another{assumption}: whether the server keeps up is most \
         likely not shown",
        seconds(shortest).spoken(),
        seconds(request).spoken(),
    );
    let remedy = format!("write phases: {{ measure: {} }}, or shorter answers", Nanos::from_secs(takes.ceil() as u64));
    is_short.then(|| sweep.finding(sweep.phase_path(view.plan, "measure"), message, remedy))
}
