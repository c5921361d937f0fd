//! A curve of runs that differ only in their load: the figures and cost of each load, where the curve
//! bends, and up to which load the objective holds.
//!
//! A curve consists of the runs of one sweep with the same endpoint, model, scenario and further axes.
//! Its loads are arrivals per second (open loops, latencies from the schedule) or requests in flight
//! (closed loops). Repeats of a load form one rung. Invalid runs are excluded unless they are requested.
//! A run that was given up belongs to a rung but has no figures.

mod bracket;
pub mod decision;
mod figure;
mod fronts;
mod groups;
pub mod knee;
pub mod pareto;
mod run;
mod rung;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::model::axis::server_flag;
use crate::rows::RunLabels;

use super::highest::Highest;
use super::saturation;

pub(crate) use bracket::TWO_LOADS;
pub use bracket::{Bracket, Judged};
pub use decision::Limit;
pub use figure::{FIGURES, Figure, Ordinate};
pub use fronts::{FRONTS, Front, OnFronts, money_front, on_front, on_fronts};
pub use groups::{Together, labels, together};
pub use knee::{Basis, Knee, Range, Step};
pub use run::{GivenUpRun, Point, Run};
pub use rung::{Excluded, Rung};

/// The unit of a curve's load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Axis {
    /// Arrivals per second in an open loop.
    Qps,
    /// Number of requests in flight in a closed loop.
    BatchSize,
}

impl Axis {
    /// Returns the name in plans and tables.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

fn axis_and_load(labels: &RunLabels) -> Option<(Axis, f64)> {
    match (labels.qps, labels.batch_size) {
        (Some(qps), _) => Some((Axis::Qps, qps)),
        (None, Some(batch_size)) => Some((Axis::BatchSize, f64::from(batch_size))),
        (None, None) => None,
    }
}

/// The attributes that all runs of a curve share.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Series {
    /// The plan's sweep.
    pub sweep: String,
    /// The endpoint's name in the plan.
    pub endpoint: String,
    /// The model's name in the plan.
    pub model: String,
    /// The scenario's name in the plan.
    pub scenario: String,
    /// The in-flight cap of an open loop, in requests; null if there is none, and in closed loops.
    pub cap: Option<u32>,
    /// Values on further axes, by axis.
    pub axes: BTreeMap<String, String>,
}

impl Series {
    /// Returns the values on the further axes that apply to requests, by axis.
    pub fn of_requests(&self) -> impl Iterator<Item = (&String, &String)> {
        self.axes.iter().filter(|(axis, _)| server_flag(axis).is_none())
    }

    /// Returns the values of the server's flags that the sweep varies, by axis (`server.FLAG`).
    pub fn settings(&self) -> impl Iterator<Item = (&String, &String)> {
        self.axes.iter().filter(|(axis, _)| server_flag(axis).is_some())
    }

    /// Returns whether both series serve the same workload: the same model and scenario, with the same values
    /// on the axes that apply to requests. Endpoints and settings of a server may differ. Only curves of the
    /// same workload are comparable.
    pub fn serves_as(&self, other: &Series) -> bool {
        (&self.model, &self.scenario) == (&other.model, &other.scenario) && self.of_requests().eq(other.of_requests())
    }

    /// Describes what is served: `chat (model llama)`, with values on the axes that apply to requests.
    pub fn served(&self) -> String {
        let axes = self.of_requests().map(|(axis, value)| format!(" · {axis}={value}"));
        format!("{}{} (model {})", self.scenario, axes.collect::<String>(), self.model)
    }
}

/// Groups the items that serve the same workload, each group in the order of its first item.
pub fn alike<'s, T>(all: &'s [T], series: impl Fn(&'s T) -> &'s Series) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for at in 0..all.len() {
        match groups.iter_mut().find(|group| series(&all[group[0]]).serves_as(series(&all[at]))) {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    groups
}

/// One curve.
#[derive(Debug, Clone)]
pub struct Curve<'a> {
    /// The attributes that the curve's runs share.
    pub series: Series,
    /// The unit of the curve's load.
    pub axis: Axis,
    /// The loads of the curve, in rising order.
    pub rungs: Vec<Rung<'a>>,
    /// The result of the search that chose the loads; `None` if no search chose them.
    pub search: Option<Highest>,
}

impl Curve<'_> {
    /// Returns the highest load that is shown to meet the objective, and the highest load that met it in what
    /// was seen. If a search chose the loads, these are the search's figures.
    pub fn highest(&self) -> Highest {
        let seen = || self.rungs.iter().map(Rung::seen).collect::<Vec<_>>();
        self.search.unwrap_or_else(|| Highest::of(&seen(), None))
    }

    /// Returns the lightest load at which a run was given up because the server does not sustain it.
    pub fn rejected_from(&self) -> Option<f64> {
        self.rungs.iter().find(|rung| rung.is_rejected()).map(|rung| rung.load)
    }

    /// Returns the lightest load that the server does not sustain, because it was saturated there or
    /// rejected the load.
    fn too_much(&self) -> Option<f64> {
        self.rungs.iter().find(|rung| rung.is_rejected() || rung.is_saturated()).map(|rung| rung.load)
    }

    /// Finds where the curve bends, using the loads that count and lie below the first load that the server
    /// does not sustain. That load itself is always excluded, because its served rate differs from its
    /// arrival rate.
    pub fn knee(&self) -> Knee {
        let ceiling = self.too_much();
        let met = |rung: &&Rung| rung.counts() && ceiling.is_none_or(|first| rung.load < first);
        let rungs: Vec<Vec<Step>> = self.rungs.iter().filter(met).filter_map(Rung::steps).collect();
        match self.axis {
            Axis::Qps => knee::open(&rungs, ceiling),
            Axis::BatchSize => knee::closed(&rungs),
        }
    }

    /// Returns the two loads between which the highest load that meets the objective lies; `None`
    /// without an objective, or if nothing is known at any load.
    pub fn bracket(&self) -> Option<Bracket> {
        let rungs: Vec<Judged> = self.rungs.iter().filter_map(Rung::judged).collect();
        rungs.iter().any(|rung| rung.serves.is_some()).then(|| Bracket::of(&rungs))
    }

    /// Returns the highest load that the server was shown to keep up with, and the lowest load above it
    /// that the server did not keep up with or rejected; open loops only.
    pub fn saturation(&self) -> (Option<f64>, Option<f64>) {
        let first = self.too_much();
        let kept = |rung: &&Rung| rung.counts() && first.is_none_or(|first| rung.load < first);
        (self.rungs.iter().rfind(kept).map(|rung| rung.load), first)
    }

    /// Returns the loads whose windows are too short to show whether the server kept up, in rising
    /// order; open loops only.
    pub fn not_shown(&self) -> impl Iterator<Item = &Rung<'_>> {
        self.rungs.iter().filter(|rung| rung.state() == Some(saturation::State::NotShown))
    }

    /// Returns the maximum number of requests per second that the server can serve. Among the loads that
    /// saturated the server, it takes the one with the highest completion rate and returns the upper end
    /// of the 95 % interval of that rate. `None` if no load saturated the server.
    pub fn serves_at_most(&self) -> Option<f64> {
        let saturated = self.rungs.iter().filter(|rung| rung.is_saturated());
        let ended = saturated.filter_map(|rung| Some(rung.saturation()?.completion_rate()));
        ended.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, [_, high])| high)
    }

    /// Returns the rung of a load.
    pub fn rung(&self, load: f64) -> Option<&Rung<'_>> {
        self.rungs.iter().find(|rung| rung.load == load)
    }
}

/// Returns the curves of `points`, in the order of the first run of each curve. With `keep_invalid`,
/// invalid runs also count.
pub fn curves<'a, P: Into<Point<'a>> + Copy>(points: &[P], keep_invalid: bool) -> Vec<Curve<'a>> {
    let mut curves: Vec<Curve<'a>> = Vec::new();
    for point in points {
        let point: Point<'a> = (*point).into();
        let (sweep, labels) = point.names();
        let Some((axis, load)) = axis_and_load(labels) else { continue };
        let series = series(sweep, labels, axis);
        let at = curves.iter().position(|curve| curve.axis == axis && curve.series == series);
        let at = at.unwrap_or(curves.len());
        if at == curves.len() {
            curves.push(Curve { series, axis, rungs: Vec::new(), search: None });
        }
        let curve = &mut curves[at];
        let at = curve.rungs.binary_search_by(|rung| rung.load.total_cmp(&load)).unwrap_or_else(|at| {
            curve.rungs.insert(at, Rung::new(load));
            at
        });
        curve.rungs[at].add(point, keep_invalid);
    }
    if !keep_invalid {
        curves.iter_mut().flat_map(|curve| &mut curve.rungs).for_each(Rung::exclude_exceptions);
    }
    curves
}

fn series(sweep: &str, labels: &RunLabels, axis: Axis) -> Series {
    let RunLabels { endpoint, model, scenario, batch_size, axes, .. } = labels;
    Series {
        sweep: sweep.to_owned(),
        endpoint: endpoint.clone(),
        model: model.clone(),
        scenario: scenario.clone(),
        cap: batch_size.filter(|_| axis == Axis::Qps),
        axes: axes.clone(),
    }
}
