//! The repeats of one load, and what they say together.

use crate::analysis::saturation::{self, State as Saturation};
use crate::analysis::server::{self, PerJoule};
use crate::analysis::slo::Answer;
use crate::analysis::state::State;
use crate::analysis::undecided;

use super::bracket::Judged;
use super::decision::{self, Limit};
use super::figure::{self, Figure, Ordinate};
use super::knee::Step;
use super::run::{GivenUpRun, Point, Run};

/// The repeats of one load.
#[derive(Debug, Clone)]
pub struct Rung<'a> {
    /// The load.
    pub load: f64,
    /// The runs that count.
    pub runs: Vec<Run<'a>>,
    /// Invalid runs, which do not.
    pub left_out: Vec<Run<'a>>,
    /// Repeats to which something happened that most did not see: they do not count either.
    pub excluded: Vec<Excluded<'a>>,
    /// Runs that were given up: they have no figures.
    pub given_up: Vec<GivenUpRun<'a>>,
}

/// A repeat that does not count.
#[derive(Debug, Clone, Copy)]
pub struct Excluded<'a> {
    /// The run.
    pub run: Run<'a>,
    /// Why: the reason of its verdict.
    pub reason: &'static str,
}

impl<'a> Rung<'a> {
    /// Of a load, without runs.
    pub(super) fn new(load: f64) -> Rung<'a> {
        Rung { load, runs: Vec::new(), left_out: Vec::new(), excluded: Vec::new(), given_up: Vec::new() }
    }

    /// Of the runs of one load, whatever its unit.
    pub fn of(load: f64, points: impl IntoIterator<Item = Point<'a>>) -> Rung<'a> {
        let mut rung = Rung::new(load);
        points.into_iter().for_each(|point| rung.add(point, false));
        rung.exclude_exceptions();
        rung
    }

    /// One more run; an invalid one counts only where it is to be kept.
    pub(super) fn add(&mut self, point: Point<'a>, keep_invalid: bool) {
        match point {
            Point::GivenUp(run) => self.given_up.push(run),
            Point::Measured(run) if run.verdict.state == State::Invalid && !keep_invalid => self.left_out.push(run),
            Point::Measured(run) => self.runs.push(run),
        }
    }

    /// Excludes the repeats with a pause or a burst of errors where fewer than half have one: then it is not what the server does
    /// at this load. The half is of all repeats that were measured, invalid ones among them: whatever makes a run invalid, it shows
    /// whether there was a pause. One that was given up shows nothing.
    pub(super) fn exclude_exceptions(&mut self) {
        let all = self.runs.len() + self.left_out.len();
        let measured = || self.runs.iter().chain(&self.left_out);
        let excluded: Vec<Excluded> =
            measured().filter_map(|run| Some(Excluded { run: *run, reason: decision::exception(run)? })).collect();
        if 2 * excluded.len() < all {
            let is_usual = |run: &Run| decision::exception(run).is_none();
            self.runs.retain(is_usual);
            self.left_out.retain(is_usual);
            self.excluded = excluded;
        }
    }

    /// What its runs say together of the objective; none without an objective or without runs.
    pub fn answer(&self) -> Option<Answer> {
        self.judged()?.answer()
    }

    /// What its runs say together of the objective's parts; none without an objective. A load at which the server failed so many
    /// requests that a run is invalid is none to promise: of its latencies nothing is said, but it misses. Nor is one at which a
    /// run was given up because the server rejects the load or dies of it, nor one that outran the server. Where it is not shown
    /// that the server kept up, or every run that could count is excluded, it is undecided.
    pub fn judged(&self) -> Option<Judged> {
        let excluded = || self.excluded.iter().map(|one| &one.run);
        let is_tested = self.runs.iter().chain(&self.left_out).chain(excluded()).any(Run::is_tested);
        if !is_tested && !self.given_up.iter().any(|run| run.objective) {
            return None;
        }
        let serves = self.serves(|_| true);
        let costs: Vec<Answer> = self.runs.iter().filter_map(|run| run.cost).collect();
        Some(Judged { load: self.load, arrived_rate: self.arrived_rate(), serves, cost: decision::unanimous(&costs) })
    }

    /// Whether it serves what came within those limits of the objective that are `meant`; none where no run of it says anything.
    pub fn serves(&self, meant: impl Fn(&Limit) -> bool) -> Option<Answer> {
        if self.has_failed() || self.is_rejected() || self.is_saturated() {
            return Some(Answer::Misses);
        }
        if self.runs.is_empty() {
            return (!self.excluded.is_empty()).then_some(Answer::Undecided);
        }
        let answer = decision::all(self.limits().iter().filter(|limit| meant(limit)).map(|limit| limit.answer));
        let is_short = self.state() == Some(Saturation::NotShown) && answer == Answer::Holds;
        Some(if is_short { Answer::Undecided } else { answer })
    }

    /// The limits of the objective, each decided over its runs.
    pub fn limits(&self) -> Vec<Limit> {
        decision::limits(&self.runs)
    }

    /// What its runs say together of whether the server kept up; none in closed loops.
    pub fn saturation(&self) -> Option<saturation::Evidence> {
        saturation::Evidence::together(&self.runs.iter().filter_map(|run| run.saturation).collect::<Vec<_>>())
    }

    /// Whether the server kept up with what came; none in closed loops, and without runs.
    pub fn state(&self) -> Option<Saturation> {
        let is_open = self.runs.iter().any(|run| run.labels.qps.is_some());
        self.saturation().map(|evidence| evidence.state()).or(is_open.then_some(Saturation::NotShown))
    }

    /// Seconds of a window that would show whether the server kept up; none in closed loops, and where nothing came.
    pub fn window_to_keep_up(&self) -> Option<f64> {
        undecided::keeps_up(&self.saturation()?)
    }

    /// Whether more came than the server answered.
    pub fn is_saturated(&self) -> bool {
        self.state() == Some(Saturation::Saturated)
    }

    /// Whether it counts for knees, fronts and capacity: it has runs, and in open loops the server was shown to keep up with them.
    pub fn counts(&self) -> bool {
        !self.runs.is_empty() && self.state().is_none_or(|state| state == Saturation::KeptUp)
    }

    /// Requests per second that really came, on average over its runs; none in closed loops.
    pub fn arrived_rate(&self) -> Option<f64> {
        let rates: Vec<f64> = self.runs.iter().map(|run| Some(run.saturation?.rate())).collect::<Option<_>>()?;
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
    }

    /// The share of requests that failed, also in runs that were left out because so many of them did: without these a server that fails
    /// would have no share.
    pub fn error_share(&self) -> Option<Figure> {
        let failed = self.left_out.iter().filter(|run| run.is_failed());
        let runs: Vec<Run> = self.runs.iter().chain(failed).copied().collect();
        figure::over(&runs, Ordinate::named("error_share")?)
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

    /// Which repeats are excluded, and why: `repeat 1: paused`; none where none is.
    pub fn why_excluded(&self) -> Option<String> {
        let one = |one: &Excluded| format!("repeat {}: {}", one.run.labels.repeat, one.reason);
        let reasons: Vec<String> = self.excluded.iter().map(one).collect();
        (!reasons.is_empty()).then(|| reasons.join(", "))
    }

    /// Which invalid repeats do not count, and why: `repeat 1: client_late, errors`; none where none is.
    pub fn why_left_out(&self) -> Option<String> {
        let runs = self.left_out_repeats().into_iter().map(|(repeat, why)| format!("repeat {repeat}: {why}"));
        let runs: Vec<String> = runs.collect();
        (!runs.is_empty()).then(|| runs.join("; "))
    }

    /// The invalid repeats that do not count, each with what makes it invalid.
    pub fn left_out_repeats(&self) -> Vec<(u32, String)> {
        let one = |run: &Run| {
            let reasons: Vec<&str> = run.verdict.invalid().collect();
            (run.labels.repeat, reasons.join(", "))
        };
        self.left_out.iter().map(one).collect()
    }

    /// Requests that failed in the runs that say something of the server, and how many there were.
    pub fn failed_requests(&self) -> (u64, u64) {
        let runs = || self.runs.iter().chain(self.left_out.iter().filter(|run| run.is_failed()));
        (runs().map(|run| run.metrics.counts.failed).sum(), runs().map(|run| run.metrics.counts.requests).sum())
    }

    /// One of the [`super::FIGURES`] over its runs; none where no run has it.
    pub fn figure(&self, reading: &Ordinate) -> Option<Figure> {
        figure::over(&self.runs, reading)
    }

    /// What a percentile is above that lies among failed requests; none where it is a number, or nothing is known of it.
    pub fn at_least(&self, reading: &Ordinate) -> Option<f64> {
        figure::at_least(&self.runs, reading)
    }

    /// Output tokens of a completed request, on average over its runs; none where nobody counted them.
    pub fn output_tokens(&self) -> Option<f64> {
        let means: Vec<f64> = self.runs.iter().map(|run| run.tokens.output).collect::<Option<_>>()?;
        (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
    }

    /// Output tokens for a joule of the GPUs, over all of its runs; none where that is not known of each, or not by the same means.
    pub fn tokens_per_joule(&self) -> Option<PerJoule> {
        server::tokens_per_joule(self.runs.iter().map(|run| run.metrics.server.as_slice()))
    }

    /// How many values the run with the fewest has, where they are too few for a percentile.
    pub fn too_few(&self, reading: &Ordinate) -> Option<u64> {
        figure::too_few(&self.runs, reading)
    }

    /// Each run as a step of the curve; none where one of them lacks throughput or latency.
    pub(super) fn steps(&self) -> Option<Vec<Step>> {
        let of = |run: &Run| {
            let latency = match run.labels.qps {
                Some(_) => run.metrics.e2e_from_schedule.mean,
                None => run.metrics.e2e.mean,
            };
            let throughput = run.metrics.flow.request_throughput.filter(|rate| *rate > 0.0)?;
            let latency = latency.filter(|latency| *latency > 0.0)? / 1000.0;
            Some(Step { load: self.load, throughput, latency })
        };
        let steps: Vec<Step> = self.runs.iter().map(of).collect::<Option<_>>()?;
        (!steps.is_empty()).then_some(steps)
    }
}
