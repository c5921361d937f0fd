//! Runs that differ in their load alone, as a curve: what each load brings and costs, where it bends, and up to which load the
//! objective holds.
//!
//! A curve's runs are those of one sweep with the same endpoint, model, scenario and further axes. Its loads are arrivals per
//! second (open loops, their latencies from the schedule) or requests in flight (closed loops). Repeats of a load are one
//! rung. Invalid runs are left out unless asked for. A run that was given up is of its rung, and brings no figure.

mod bracket;
mod figure;
mod fronts;
pub mod knee;
pub mod pareto;
#[cfg(test)]
mod tests;

use crate::rows::{GivenUp, RunLabels};

use super::slo::{self, Answer, SloTest};
use super::verdict::State;
use super::{MeanTokens, PlanMetrics, RunMetrics, Verdict};

pub use bracket::{Bracket, Judged, together};
pub use figure::{FIGURES, Figure, Reading};
pub use fronts::{FRONTS, Front, on_fronts};
pub use knee::{Knee, Step};

/// What the load of a curve is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Axis {
    /// Arrivals per second of an open loop.
    Qps,
    /// Requests in flight of a closed loop.
    BatchSize,
}

impl Axis {
    /// The name in plans and tables.
    pub fn name(self) -> &'static str {
        match self {
            Axis::Qps => "qps",
            Axis::BatchSize => "batch_size",
        }
    }
}

/// One run with all that a curve needs of it.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The plan's sweep.
    pub sweep: &'a str,
    /// What names it.
    pub labels: &'a RunLabels,
    /// Its metrics.
    pub metrics: &'a RunMetrics,
    /// Its metrics under the plan.
    pub plan_metrics: &'a PlanMetrics,
    /// What it is worth.
    pub verdict: &'a Verdict,
    /// The plan's limits on latencies, tested on it.
    pub slo: &'a [SloTest],
    /// Whether its tokens cost no more than the plan's objective allows; none where it sets no limit.
    pub cost: Option<Answer>,
    /// How long its requests were.
    pub tokens: MeanTokens,
}

/// One run that was given up: it has a load, a reason, and nothing else.
#[derive(Debug, Clone, Copy)]
pub struct GivenUpRun<'a> {
    /// The plan's sweep.
    pub sweep: &'a str,
    /// What names it.
    pub labels: &'a RunLabels,
    /// Why.
    pub given_up: &'a GivenUp,
    /// Whether the plan has an objective.
    pub objective: bool,
}

/// What a curve is made of.
#[derive(Debug, Clone, Copy)]
pub enum Point<'a> {
    /// A run with a result.
    Measured(Run<'a>),
    /// A run without one.
    GivenUp(GivenUpRun<'a>),
}

impl<'a> From<Run<'a>> for Point<'a> {
    fn from(run: Run<'a>) -> Point<'a> {
        Point::Measured(run)
    }
}

impl<'a> Point<'a> {
    /// The sweep and what names the run.
    fn names(&self) -> (&'a str, &'a RunLabels) {
        match self {
            Point::Measured(run) => (run.sweep, run.labels),
            Point::GivenUp(run) => (run.sweep, run.labels),
        }
    }
}

fn axis_and_load(labels: &RunLabels) -> Option<(Axis, f64)> {
    match (labels.qps, labels.batch_size) {
        (Some(qps), _) => Some((Axis::Qps, qps)),
        (None, Some(batch_size)) => Some((Axis::BatchSize, f64::from(batch_size))),
        (None, None) => None,
    }
}

impl Run<'_> {
    /// Whether its arrivals outran the server.
    pub fn is_saturated(&self) -> bool {
        self.verdict.labels.iter().any(|label| label.name == "saturated")
    }

    /// Whether the whole objective holds; none without one.
    pub fn answer(&self) -> Option<Answer> {
        Some(together([self.serves()?].into_iter().chain(self.cost)))
    }

    /// Whether it served what came within the objective's latencies; none without an objective. A saturated run did not: what it
    /// serves is not what came.
    fn serves(&self) -> Option<Answer> {
        match (self.slo.is_empty(), self.cost) {
            _ if self.is_saturated() && (self.cost.is_some() || !self.slo.is_empty()) => Some(Answer::Misses),
            (true, None) => None,
            (true, Some(_)) => Some(Answer::Holds),
            (false, _) => Some(slo::answer(self.slo)),
        }
    }

    /// Whether it is invalid because so many of its requests failed, and for nothing that the client did.
    pub fn is_failed(&self) -> bool {
        let invalid: Vec<&str> =
            self.verdict.reasons.iter().filter(|one| one.state == State::Invalid).map(|one| one.name).collect();
        invalid == ["errors"]
    }
}

/// What all runs of a curve have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The plan's sweep.
    pub sweep: String,
    /// The plan's name of the endpoint.
    pub endpoint: String,
    /// The plan's name of the model.
    pub model: String,
    /// The plan's name of the scenario.
    pub scenario: String,
    /// The in-flight cap of an open loop.
    pub cap: Option<u32>,
    /// Values on further axes.
    pub axes: Vec<(String, String)>,
}

impl Series {
    /// Whether both serve the same: one model, and one scenario with the same values on further axes, which are of requests. Only
    /// such can be weighed against each other.
    pub fn serves_as(&self, other: &Series) -> bool {
        (&self.model, &self.scenario, &self.axes) == (&other.model, &other.scenario, &other.axes)
    }

    /// What is served: `chat on llama`, with values on further axes.
    pub fn served(&self) -> String {
        let axes = self.axes.iter().map(|(axis, value)| format!(" · {axis}={value}"));
        format!("{}{} on {}", self.scenario, axes.collect::<String>(), self.model)
    }
}

/// The things that serve the same, each group in the order of its first.
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

/// The repeats of one load.
#[derive(Debug, Clone)]
pub struct Rung<'a> {
    /// The load.
    pub load: f64,
    /// The runs that count.
    pub runs: Vec<Run<'a>>,
    /// Invalid runs, which do not.
    pub left_out: Vec<Run<'a>>,
    /// Runs that were given up: they have no figures.
    pub given_up: Vec<GivenUpRun<'a>>,
}

impl<'a> Rung<'a> {
    /// What its runs say together of the objective; none without an objective or without runs.
    pub fn answer(&self) -> Option<Answer> {
        self.judged()?.answer()
    }

    /// What its runs say together of the objective's parts; none without an objective. A load at which the server failed so many
    /// requests that a run is invalid is none to promise: of its latencies nothing is said, but it misses. Nor is one at which a
    /// run was given up because the server rejects the load or dies of it.
    pub fn judged(&self) -> Option<Judged> {
        let of = |answers: Vec<Answer>| (!answers.is_empty()).then(|| together(answers.into_iter()));
        let is_tested = self.runs.iter().chain(&self.left_out).any(|run| run.serves().is_some());
        if !is_tested && !self.given_up.iter().any(|run| run.objective) {
            return None;
        }
        let failed = (self.has_failed() || self.is_rejected()).then_some(Answer::Misses);
        Some(Judged {
            load: self.load,
            serves: of(self.runs.iter().filter_map(Run::serves).chain(failed).collect()),
            cost: of(self.runs.iter().filter_map(|run| run.cost).collect()),
        })
    }

    /// Whether a run of it was left out because the server failed so many of its requests.
    pub fn has_failed(&self) -> bool {
        self.left_out.iter().any(Run::is_failed)
    }

    /// Whether a run of it was given up because the server does not meet the load.
    pub fn is_rejected(&self) -> bool {
        self.given_up.iter().any(|run| run.given_up.is_a_miss())
    }

    /// Why runs of it were given up, each reason once: `429 (3 of 3)`; none where none was.
    pub fn why_given_up(&self) -> Option<String> {
        let mut reasons: Vec<String> = self.given_up.iter().map(|run| run.given_up.reason()).collect();
        reasons.sort();
        reasons.dedup();
        (!reasons.is_empty()).then(|| reasons.join(", "))
    }

    /// Whether more than half of its runs are saturated.
    pub fn is_saturated(&self) -> bool {
        self.runs.iter().filter(|run| run.is_saturated()).count() * 2 > self.runs.len()
    }

    /// One of the [`FIGURES`] over its runs; none where no run has it.
    pub fn figure(&self, reading: &Reading) -> Option<Figure> {
        figure::over(&self.runs, reading)
    }

    /// Output tokens of a completed request, on average over its runs; none where nobody counted them.
    pub fn output_tokens(&self) -> Option<f64> {
        let means: Vec<f64> = self.runs.iter().map(|run| run.tokens.output).collect::<Option<_>>()?;
        (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
    }

    /// How many values the run with the fewest has, where they are too few for a percentile.
    pub fn too_few(&self, reading: &Reading) -> Option<u64> {
        figure::too_few(&self.runs, reading)
    }

    fn step(&self) -> Option<Step> {
        let mean = |of: fn(&Run) -> Option<f64>| -> Option<f64> {
            let values: Vec<f64> = self.runs.iter().map(of).collect::<Option<_>>()?;
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let latency = |run: &Run| match run.labels.qps {
            Some(_) => run.metrics.e2e_from_schedule.mean,
            None => run.metrics.e2e.mean,
        };
        let throughput = mean(|run| run.metrics.flow.request_throughput).filter(|rate| *rate > 0.0)?;
        let latency = mean(latency).filter(|latency| *latency > 0.0)? / 1000.0;
        Some(Step { load: self.load, throughput, latency })
    }
}

/// One curve.
#[derive(Debug, Clone)]
pub struct Curve<'a> {
    /// What its runs have in common.
    pub series: Series,
    /// What its load is counted in.
    pub axis: Axis,
    /// Its loads, rising.
    pub rungs: Vec<Rung<'a>>,
}

impl Curve<'_> {
    /// The lightest load at which a run was given up because the server does not meet it.
    pub fn rejected_from(&self) -> Option<f64> {
        self.rungs.iter().find(|rung| rung.is_rejected()).map(|rung| rung.load)
    }

    /// Where it bends, below the first load that the server does not meet. An open loop that still gained power up to there bends
    /// between the loads beside its last.
    pub fn knee(&self) -> Knee {
        let rejected = self.rejected_from();
        let met = |rung: &&Rung| rejected.is_none_or(|first| rung.load < first);
        let steps: Vec<Step> = self.rungs.iter().filter(met).filter_map(Rung::step).collect();
        let knee = match self.axis {
            Axis::Qps => knee::open(&steps),
            Axis::BatchSize => knee::closed(&steps),
        };
        match (self.axis, knee, rejected, &steps[..]) {
            (Axis::Qps, Knee::NotReached(_), Some(above), [.., below, last]) => {
                Knee::At { load: last.load, between: (below.load, above) }
            }
            _ => knee,
        }
    }

    /// Up to which load the objective holds; none without one, and where nothing is known at any load.
    pub fn bracket(&self) -> Option<Bracket> {
        let rungs: Vec<Judged> = self.rungs.iter().filter_map(Rung::judged).collect();
        rungs.iter().any(|rung| rung.serves.is_some()).then(|| Bracket::of(&rungs))
    }

    /// The highest load that the server kept up with, and the lowest that it did not, or turned away; open loops only.
    pub fn saturation(&self) -> (Option<f64>, Option<f64>) {
        let is_too_much = |rung: &Rung| rung.is_rejected() || (!rung.runs.is_empty() && rung.is_saturated());
        let first = self.rungs.iter().position(is_too_much);
        let kept = &self.rungs[..first.unwrap_or(self.rungs.len())];
        let last = kept.iter().rev().find(|rung| !rung.runs.is_empty());
        (last.map(|rung| rung.load), first.map(|at| self.rungs[at].load))
    }

    /// The rung of a load.
    pub fn rung(&self, load: f64) -> Option<&Rung<'_>> {
        self.rungs.iter().find(|rung| rung.load == load)
    }
}

/// The curves of `points`, in the order in which each one's first run stands there. `keep_invalid` counts invalid runs too.
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
            curves.push(Curve { series, axis, rungs: Vec::new() });
        }
        let curve = &mut curves[at];
        let rung = match curve.rungs.binary_search_by(|rung| rung.load.total_cmp(&load)) {
            Ok(at) => &mut curve.rungs[at],
            Err(at) => {
                curve.rungs.insert(at, Rung { load, runs: Vec::new(), left_out: Vec::new(), given_up: Vec::new() });
                &mut curve.rungs[at]
            }
        };
        match point {
            Point::GivenUp(run) => rung.given_up.push(run),
            Point::Measured(run) if run.verdict.state == State::Invalid && !keep_invalid => rung.left_out.push(run),
            Point::Measured(run) => rung.runs.push(run),
        }
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
        axes: axes.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
    }
}
