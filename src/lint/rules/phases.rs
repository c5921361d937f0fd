//! Rules about warm-ups and measure windows that are too short.

use super::super::expect::Expect;
use super::super::finding::Finding;
use super::super::view::{Rung, SweepView, View};
use super::{count, time_for};
use crate::units::Nanos;

/// Minimum duration of a warm-up.
const WARM_UP: Nanos = Nanos::from_secs(30);
/// Minimum number of requests in a warm-up.
const WARM_UP_REQUESTS: f64 = 50.0;
/// Minimum duration of a measure window.
const WINDOW: Nanos = Nanos::from_secs(60);

/// M001: fill and stabilize are shorter than 30 s, or contain fewer than 50 requests.
pub(crate) fn warm_up(view: &View, sweep: &SweepView) -> Option<Finding> {
    too_short(view, sweep).or_else(|| too_few(sweep))
}

fn warming(rung: &Rung) -> Nanos {
    rung.phases.fill.saturating_add(rung.phases.stabilize)
}

fn too_short(view: &View, sweep: &SweepView) -> Option<Finding> {
    let rung = sweep.rungs.iter().min_by_key(|rung| warming(rung)).filter(|rung| warming(rung) < WARM_UP)?;
    let written = if rung.phases.fill < rung.phases.stabilize { "stabilize" } else { "fill" };
    let at = [written, "stabilize", "fill"].map(|phase| sweep.phase_path(view.plan, phase));
    Some(sweep.finding(
        at.into_iter().find(|at| *at != sweep.path()).unwrap_or_else(|| sweep.path()),
        format!("`fill` and `stabilize` together last {}, less than {WARM_UP}", warming(rung)),
        "write `phases: { fill: 30s, stabilize: 60s }` (the defaults)",
    ))
}

fn too_few(sweep: &SweepView) -> Option<Finding> {
    let expect = Expect::of(sweep);
    // If a rate profile starts at zero, no requests are sent during stabilize, however long it is.
    let short = |rung: &&Rung| expect.warming(rung) < WARM_UP_REQUESTS && expect.settled(rung) > 0.0;
    let worst = sweep.rungs.iter().filter(short).min_by(|a, b| expect.warming(a).total_cmp(&expect.warming(b)))?;
    let of_fill = expect.settled(worst) * worst.phases.fill.secs() / 2.0;
    let stabilize = time_for(WARM_UP_REQUESTS - of_fill, expect.settled(worst));
    Some(sweep.finding(
        worst.at.clone(),
        format!(
            "`{}` sends {} requests before its measure window, fewer than {WARM_UP_REQUESTS}{}",
            worst.written(),
            count(expect.warming(worst)),
            expect.assumption(worst),
        ),
        format!("write `phases: {{ stabilize: {stabilize} }}`, or remove the lowest load"),
    ))
}

/// M006: the window is shorter than 60 s.
pub(crate) fn short_window(view: &View, sweep: &SweepView) -> Option<Finding> {
    let window = sweep.rungs.first().map(|rung| rung.phases.measure.duration).filter(|window| *window < WINDOW)?;
    Some(sweep.finding(
        sweep.phase_path(view.plan, "measure"),
        format!("`measure` is {window}, less than {WINDOW}"),
        "write `phases: { measure: 120s }` (the default)",
    ))
}
