//! The repeats of one load, and their combined result.

use crate::analysis::highest::Seen;
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
    /// The runs from which the figures of the rung are computed.
    pub runs: Vec<Run<'a>>,
    /// Invalid runs, which do not count.
    pub left_out: Vec<Run<'a>>,
    /// Repeats with an event that most repeats did not have; these do not count either.
    pub excluded: Vec<Excluded<'a>>,
    /// Runs that were given up, which have no figures.
    pub given_up: Vec<GivenUpRun<'a>>,
}

/// A repeat that does not count.
#[derive(Debug, Clone, Copy)]
pub struct Excluded<'a> {
    /// The run.
    pub run: Run<'a>,
    /// The reason, as in the run's verdict.
    pub reason: &'static str,
}

impl<'a> Rung<'a> {
    /// Creates a rung of a load, without runs.
    pub(super) fn new(load: f64) -> Rung<'a> {
        Rung { load, runs: Vec::new(), left_out: Vec::new(), excluded: Vec::new(), given_up: Vec::new() }
    }

    /// Creates a rung from the runs of one load, whatever the unit of the load is.
    pub fn of(load: f64, points: impl IntoIterator<Item = Point<'a>>) -> Rung<'a> {
        let mut rung = Rung::new(load);
        points.into_iter().for_each(|point| rung.add(point, false));
        rung.exclude_exceptions();
        rung
    }

    /// Adds a run; an invalid one counts only if `keep_invalid` is set.
    pub(super) fn add(&mut self, point: Point<'a>, keep_invalid: bool) {
        match point {
            Point::GivenUp(run) => self.given_up.push(run),
            Point::Measured(run) if run.verdict.state == State::Invalid && !keep_invalid => self.left_out.push(run),
            Point::Measured(run) => self.runs.push(run),
        }
    }

    /// Excludes the repeats with a pause or a burst of errors if fewer than half of the repeats have one,
    /// because such an event is then not typical of the server at this load. The share is taken of all
    /// measured repeats, including invalid ones, which also show whether there was a pause. Repeats that were
    /// given up are not included, because they provide no evidence of a pause or a burst.
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

    /// Returns the combined result of the runs for the objective; `None` if there is no objective or
    /// there are no runs.
    pub fn answer(&self) -> Option<Answer> {
        self.judged()?.answer()
    }

    /// Returns the combined results of the runs for the parts of the objective; `None` without an
    /// objective. A load misses, without a verdict on its latencies, if the server failed so many
    /// requests that a run is invalid. A load also misses if a run was given up because the server
    /// rejects the load or crashes under it, and if the load saturated the server. A load is undecided
    /// if the server is not shown to have kept up, or if every run that could count is excluded.
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

    /// Returns whether the server keeps up with the load and meets the limits of the objective that
    /// `meant` selects; `None` if no run provides evidence.
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

    /// Returns whether the load met the limits that `meant` selects in what was seen, whether or not this is
    /// shown; `None` if nothing was seen. A load that is shown to meet or to miss them was seen to do so.
    pub fn met(&self, meant: impl Fn(&Limit) -> bool) -> Option<bool> {
        match self.serves(&meant)? {
            Answer::Holds => Some(true),
            Answer::Misses => Some(false),
            Answer::Undecided => {
                let met: Option<Vec<bool>> =
                    self.limits().iter().filter(|limit| meant(limit)).map(Limit::met).collect();
                met.filter(|_| !self.runs.is_empty()).map(|met| met.into_iter().all(|met| met))
            }
        }
    }

    /// Returns the factor by which the runs of this load must become longer to show whether the load meets the
    /// limits that `meant` selects, if the share above each limit stays the same. `None` if this is shown, if
    /// nothing was seen, or if no factor of reasonable size suffices.
    pub fn grows(&self, meant: impl Fn(&Limit) -> bool) -> Option<f64> {
        if self.serves(&meant) != Some(Answer::Undecided) {
            return None;
        }
        let met = self.met(&meant)?;
        let limits = self.limits();
        let open = limits.iter().filter(|limit| meant(limit) && limit.answer == Answer::Undecided);
        if !met {
            // A single limit that is shown to be missed is enough.
            return open.filter(|limit| limit.met() == Some(false)).filter_map(Limit::grows).reduce(f64::min);
        }
        let times: Option<Vec<f64>> = open.map(Limit::grows).collect();
        let mut times = times?;
        if self.state() == Some(Saturation::NotShown) {
            let evidence = self.saturation()?;
            times.push(undecided::keeps_up(&evidence)? / evidence.seconds);
        }
        times.into_iter().reduce(f64::max)
    }

    /// Returns how many further seconds of measurement would show whether the load meets the limits that `meant`
    /// selects; `None` in the cases in which [`Rung::grows`] returns `None`.
    pub fn more_seconds(&self, meant: impl Fn(&Limit) -> bool) -> Option<f64> {
        let seconds: Vec<f64> = self.runs.iter().filter_map(|run| run.metrics.flow.seconds).collect();
        Some((self.grows(meant)? - 1.0) * seconds.iter().sum::<f64>())
    }

    /// Returns what the runs of this load show together about the whole objective.
    pub fn seen(&self) -> Seen {
        let answer = self.answer();
        let met = match answer {
            Some(Answer::Undecided) => {
                let is_dear = self.runs.iter().any(|run| run.cost.is_some_and(|cost| cost != Answer::Holds));
                self.met(|_| true).map(|met| met && !is_dear)
            }
            Some(answer) => Some(answer == Answer::Holds),
            None => None,
        };
        Seen { load: self.load, answer, met }
    }

    /// Returns the limits of the objective, each decided over the runs of this load.
    pub fn limits(&self) -> Vec<Limit> {
        decision::limits(&self.runs)
    }

    /// Returns the runs' combined evidence on whether the server kept up; `None` in closed loops.
    pub fn saturation(&self) -> Option<saturation::Evidence> {
        saturation::Evidence::together(&self.runs.iter().filter_map(|run| run.saturation).collect::<Vec<_>>())
    }

    /// Returns whether the server kept up with the arrivals; `None` in closed loops, or without runs.
    pub fn state(&self) -> Option<Saturation> {
        let is_open = self.runs.iter().any(|run| run.labels.qps.is_some());
        self.saturation().map(|evidence| evidence.state()).or(is_open.then_some(Saturation::NotShown))
    }

    /// Returns the window in seconds that would show whether the server kept up; `None` in closed loops,
    /// or without arrivals.
    pub fn window_to_keep_up(&self) -> Option<f64> {
        undecided::keeps_up(&self.saturation()?)
    }

    /// Describes the window of [`Rung::window_to_keep_up`].
    pub fn would_show_keeping_up(&self) -> Option<String> {
        undecided::would_show_keeping_up(&self.saturation()?, self.runs.len())
    }

    /// Returns whether more requests arrived than the server served.
    pub fn is_saturated(&self) -> bool {
        self.state() == Some(Saturation::Saturated)
    }

    /// Returns whether the rung counts for knees, fronts and capacity: it must have runs and, in open loops,
    /// the server must be shown to have kept up.
    pub fn counts(&self) -> bool {
        !self.runs.is_empty() && self.state().is_none_or(|state| state == Saturation::KeptUp)
    }

    /// Returns the actual arrivals per second, averaged over the rung's runs; `None` in closed loops.
    pub fn arrived_rate(&self) -> Option<f64> {
        let rates: Vec<f64> = self.runs.iter().map(|run| Some(run.saturation?.rate())).collect::<Option<_>>()?;
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
    }

    /// Returns the share of failed requests. Includes runs that were excluded because too many requests
    /// failed; otherwise a failing server would have no share.
    pub fn error_share(&self) -> Option<Figure> {
        let failed = self.left_out.iter().filter(|run| run.is_failed());
        let runs: Vec<Run> = self.runs.iter().chain(failed).copied().collect();
        figure::over(&runs, Ordinate::named("error_share")?)
    }

    /// Returns whether a run of the rung was excluded because the server failed so many of the run's
    /// requests.
    pub fn has_failed(&self) -> bool {
        self.left_out.iter().any(Run::is_failed)
    }

    /// Returns whether a run of the rung was given up because the server does not sustain the load.
    pub fn is_rejected(&self) -> bool {
        self.given_up.iter().any(|run| run.given_up.is_a_miss())
    }

    /// Returns why runs of the rung were given up, listing each reason once: `429 (3 of 3)`; `None` if
    /// none was given up.
    pub fn why_given_up(&self) -> Option<String> {
        let mut reasons: Vec<String> = self.given_up.iter().map(|run| run.given_up.reason()).collect();
        reasons.sort();
        reasons.dedup();
        (!reasons.is_empty()).then(|| reasons.join(", "))
    }

    /// Returns which repeats are excluded, and why: `repeat 1: paused`; `None` if no repeat is excluded.
    pub fn why_excluded(&self) -> Option<String> {
        let one = |one: &Excluded| format!("repeat {}: {}", one.run.labels.repeat, one.reason);
        let reasons: Vec<String> = self.excluded.iter().map(one).collect();
        (!reasons.is_empty()).then(|| reasons.join(", "))
    }

    /// Returns which invalid repeats do not count, and why: `repeat 1: client_late, errors`; `None` if
    /// there are none.
    pub fn why_left_out(&self) -> Option<String> {
        let runs = self.left_out_repeats().into_iter().map(|(repeat, why)| format!("repeat {repeat}: {why}"));
        let runs: Vec<String> = runs.collect();
        (!runs.is_empty()).then(|| runs.join("; "))
    }

    /// Returns the invalid repeats that do not count, each with its reasons.
    pub fn left_out_repeats(&self) -> Vec<(u32, String)> {
        let one = |run: &Run| {
            let reasons: Vec<&str> = run.verdict.invalid().collect();
            (run.labels.repeat, reasons.join(", "))
        };
        self.left_out.iter().map(one).collect()
    }

    /// Returns how many requests failed, and how many there were, in the runs that provide evidence on
    /// the server.
    pub fn failed_requests(&self) -> (u64, u64) {
        let runs = || self.runs.iter().chain(self.left_out.iter().filter(|run| run.is_failed()));
        (runs().map(|run| run.metrics.counts.failed).sum(), runs().map(|run| run.metrics.counts.requests).sum())
    }

    /// Returns one of the figures in [`super::FIGURES`] over the rung's runs; `None` if one of the
    /// runs lacks it, or if there are no runs.
    pub fn figure(&self, reading: &Ordinate) -> Option<Figure> {
        figure::over(&self.runs, reading)
    }

    /// Returns the lower bound of a percentile that lies among failed requests; `None` if it is a
    /// number, or unknown.
    pub fn at_least(&self, reading: &Ordinate) -> Option<f64> {
        figure::at_least(&self.runs, reading)
    }

    /// Returns the output tokens of a completed request, averaged over the rung's runs; `None` if a
    /// run has no token count.
    pub fn output_tokens(&self) -> Option<f64> {
        let means: Vec<f64> = self.runs.iter().map(|run| run.tokens.output).collect::<Option<_>>()?;
        (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
    }

    /// Returns the output tokens per joule of the GPUs, over all runs of the rung; `None` unless the
    /// energy is known for every run and was measured by the same method.
    pub fn tokens_per_joule(&self) -> Option<PerJoule> {
        server::tokens_per_joule(self.runs.iter().map(|run| run.metrics.server.as_slice()))
    }

    /// Returns the number of values in the run that has the fewest values, if these are too few for
    /// a percentile.
    pub fn too_few(&self, reading: &Ordinate) -> Option<u64> {
        figure::too_few(&self.runs, reading)
    }

    /// Returns each run as a point of the curve; `None` if one of the runs lacks throughput or latency.
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
