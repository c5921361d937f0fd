//! What requests that the client sent late may have changed in the figures of a run.
//!
//! The model: the other requests were not affected, so that figures without the late ones are those of a punctual
//! client. Latencies from the schedule contain the lateness itself, which is subtracted. In a closed loop, the
//! request behind a late one is excluded, too, because it met a server that had less to do (if users think between
//! requests, it is not known which one that is), and the loop as a whole lost the time that its slots spent waiting for
//! the client. If more than half of the requests are affected, the others cannot stand for the run.

use std::collections::HashSet;

use crate::plan::Slo;
use crate::rows::{Facts, Measured};
use crate::units::text::digits;

use super::queue::Queue;
use super::request::{Metric, Observation, summarize};
use super::slo::{self, Answer, SloTest};
use super::stats::{Estimate, Summary};
use super::worth::{Sample, Turns};
use super::{quantile, window};

/// The smallest change of a figure that matters, as a share of the figure.
const MATTERS: f64 = 0.02;

/// What late requests may have changed.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Effect {
    /// No figure by more than its interval or 2 %, whichever is larger.
    Nothing,
    /// A figure, in words.
    Figure(String),
    /// Whether a limit of the objective is met, in words.
    Answer(String),
}

/// The requests of a window that may have been affected.
struct Touched<'a> {
    members: Vec<&'a Measured>,
    facts: &'a Facts,
    allowed_ms: f64,
    /// When the late requests of a closed loop ended, which is when the requests behind them were due.
    ends: HashSet<u64>,
}

/// Returns what the requests of the window that were sent more than `allowed_ms` late may have changed.
pub(super) fn effect(rows: &[Measured], facts: &Facts, allowed_ms: f64, slo: Option<&Slo>) -> Effect {
    let touched = Touched::of(rows, facts, allowed_ms);
    let turns = Queue::of(rows, facts).turns;
    let tests = slo.map_or_else(Vec::new, |slo| slo::of_requests(rows, facts, slo).concat());
    if let Some(why) = touched.changes_answer(&tests, turns) {
        return Effect::Answer(why);
    }
    let figure = touched.most().or_else(|| touched.lost_time()).or_else(|| touched.moved(turns));
    figure.map_or(Effect::Nothing, Effect::Figure)
}

impl<'a> Touched<'a> {
    fn of(rows: &'a [Measured], facts: &'a Facts, allowed_ms: f64) -> Touched<'a> {
        let members = window::in_order(rows, facts);
        let mut touched = Touched { members, facts, allowed_ms, ends: HashSet::new() };
        if !facts.open_loop {
            touched.ends =
                touched.members.iter().filter(|row| touched.is_late(row)).filter_map(|row| row.ended_ns()).collect();
        }
        touched
    }

    /// Returns the time by which a request was sent late, in ms; 0 if it was never sent.
    fn lateness(&self, row: &Measured) -> f64 {
        window::request(row, self.facts).observe(Metric::Lateness).value().unwrap_or(0.0)
    }

    fn is_late(&self, row: &Measured) -> bool {
        self.lateness(row) > self.allowed_ms
    }

    /// Whether a request was late or, in a closed loop, followed a late one.
    fn includes(&self, row: &Measured) -> bool {
        self.is_late(row) || self.ends.contains(&row.scheduled_ns)
    }

    /// The latencies of the run: those from the schedule exist in open loops only.
    fn metrics(&self) -> &'static [Metric] {
        match self.facts.open_loop {
            true => &[Metric::TtftFromSchedule, Metric::E2eFromSchedule, Metric::Ttft, Metric::Tpot, Metric::E2e],
            false => &[Metric::Ttft, Metric::Tpot, Metric::E2e],
        }
    }

    /// Returns the distribution of a latency as a punctual client would have measured it.
    fn punctual(&self, metric: Metric, turns: Turns) -> Summary {
        let is_from_schedule = matches!(metric, Metric::TtftFromSchedule | Metric::E2eFromSchedule);
        let value = |row: &&'a Measured| {
            if !is_from_schedule && self.includes(row) {
                return None;
            }
            let late = if is_from_schedule && self.is_late(row) { self.lateness(row) } else { 0.0 };
            match window::request(row, self.facts).observe(metric) {
                Observation::Value(value) => Some(value - late),
                Observation::Failed(_) => Some(f64::INFINITY),
                Observation::Undefined => None,
            }
        };
        Summary::of_sample(&Sample::new(self.members.iter().filter_map(value).collect(), turns), None)
    }

    /// Reports that more than half of the requests were affected.
    fn most(&self) -> Option<String> {
        let count = self.members.iter().filter(|row| self.includes(row)).count();
        (2 * count > self.members.len()).then(|| "too few others show the figures of a punctual client".to_owned())
    }

    /// Reports that the slots of a closed loop waited for the client for more than 2 % of the time of its requests,
    /// so that a punctual client would have sent that many more.
    fn lost_time(&self) -> Option<String> {
        if self.facts.open_loop {
            return None;
        }
        let lost: f64 = self.members.iter().map(|row| self.lateness(row).max(0.0)).sum();
        let end = |row: &Measured| window::request(row, self.facts).end_ns();
        let taken: f64 = self.members.iter().map(|row| end(row).saturating_sub(row.scheduled_ns) as f64 / 1e6).sum();
        let share = if taken > 0.0 { lost / taken } else { 0.0 };
        (share > MATTERS).then(|| format!("{}% of the time of all requests", digits(share * 100.0)))
    }

    /// Reports the first percentile that a punctual client would have measured differently, by more than its
    /// interval and 2 %.
    fn moved(&self, turns: Turns) -> Option<String> {
        let requests = || self.members.iter().map(|row| window::request(row, self.facts));
        let of_metric = |metric: &Metric| {
            let (measured, punctual) = (summarize(requests(), *metric, turns), self.punctual(*metric, turns));
            quantile::ALL.into_iter().find_map(|percentile| {
                let without = punctual.percentile(percentile);
                let (value, would_be) = (measured.percentile(percentile).exact()?, without.exact()?);
                let by = (value - would_be).abs();
                (by > MATTERS * would_be && by > half_width(&without)?).then(|| {
                    let name = quantile::name(percentile);
                    format!("{} {name} would be {} instead of {} ms", metric.key(), digits(would_be), digits(value))
                })
            })
        };
        self.metrics().iter().find_map(of_metric)
    }

    /// Reports the first limit of the objective that is decided, and that a punctual client would have observed on
    /// the other side.
    fn changes_answer(&self, tests: &[SloTest], turns: Turns) -> Option<String> {
        let turned = |test: &SloTest| {
            let metric = self.metrics().iter().find(|metric| metric.key() == test.metric)?;
            let would_be = self.punctual(*metric, turns).percentile(test.percentile).exact()?;
            let holds = would_be <= test.limit.millis();
            (holds != (test.answer == Answer::Holds))
                .then(|| format!("{} would be {} ms", test.name(), digits(would_be)))
        };
        tests.iter().filter(|test| test.answer != Answer::Undecided).find_map(turned)
    }
}

/// Returns the distance from a percentile to the farther end of its interval, in ms; to the known end if the other
/// is open. `None` if the percentile has no interval.
fn half_width(estimate: &Estimate) -> Option<f64> {
    let (value, interval) = (estimate.exact()?, estimate.interval()?);
    let ends = [interval.low_number(), interval.high_number()];
    ends.into_iter().flatten().map(|end| (end - value).abs()).reduce(f64::max)
}
