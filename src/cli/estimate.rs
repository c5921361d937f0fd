//! The estimated cost of runs: requests, tokens, time, money. Each figure is computed by a rule that is
//! shown with it. Figures that cannot be known in advance are estimated from a named earlier result, or
//! reported as unknown.

use std::collections::{BTreeSet, HashMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::expand::launch::declared;
use crate::expand::{Course, Expansion, PlannedRun, RunSpec};
use crate::plan::Plan;
use crate::plan::model::content::{Content, Reuse};
use crate::sweep::event::{RunView, may_be_prolonged, window_ns};
use crate::sweep::on_disk::OnDisk;
use crate::units::Currency;
use crate::workload::lengths::{Expected, expected};

/// The rule by which requests are counted.
pub(crate) const REQUESTS_RULE: &str = "in an open loop, the rate multiplied by the length of stabilize, the window \
                                        and half of fill (with a profile, the total of its rates; if conversations \
                                        arrive, also multiplied by their turns); in a closed loop, an estimate from \
                                        the latest result of the same endpoint, model, scenario, axes and batch \
                                        size, scaled to the length of the phases; unknown without such a result";
/// The rule by which tokens are counted.
pub(crate) const TOKENS_RULE: &str = "the lengths that the scenario requests, on average if they vary, including a \
                                      conversation's history; an output may be shorter";
/// The rule by which time is estimated.
pub(crate) const TIME_RULE: &str = "idle, fill, stabilize, measure and the cooldown of each run, without drain; with \
                                    min_requests, an open loop's window is the longer of `for` and the expected time \
                                    of that many requests, up to `at_most`; a closed loop's window counts as `for`, \
                                    because its speed depends on the server; runs on one resource are sequential, and \
                                    up to --jobs resources run in parallel";
/// The rule by which money is estimated.
pub(crate) const MONEY_RULE: &str = "price_per_hour of the endpoint times the duration of its runs and their cooldowns";

/// The cost of a group of runs that will be executed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Cost {
    /// Number of runs that will be executed; a run that several sweeps share is counted in the first of
    /// these sweeps.
    pub runs: usize,
    /// Total number of requests, over the runs for which this number is known.
    pub requests: u64,
    /// Number of runs whose number of requests is unknown until they are measured; these are closed loops
    /// without an earlier result.
    pub runs_with_unknown_requests: usize,
    /// Short ids of the results from which the requests of closed loops were estimated.
    pub estimated_from: BTreeSet<String>,
    /// Number of prompt tokens in the requests that `requests` counts, according to the scenarios.
    pub prompt_tokens: u64,
    /// Maximum number of output tokens that the requests counted by `requests` allow, according to the
    /// scenarios.
    pub output_tokens: u64,
    /// Time until the last of the runs has ended, in seconds.
    pub seconds: f64,
    /// Number of runs of unknown duration, because they measure a start and no earlier result shows
    /// how long a start takes.
    pub runs_of_unknown_length: usize,
    /// Number of runs that may take longer than `seconds` and `money` assume, because they are closed
    /// loops whose window waits for min_requests.
    pub runs_that_may_be_prolonged: usize,
    /// The cost of the runs at the declared prices, in the plan's currency; null if no endpoint has a price.
    pub money: Option<f64>,
    /// Currency of `money`; null if the plan names none.
    pub currency: Option<Currency>,
    /// Endpoints of the runs that have no price_per_hour. The time of the runs on such endpoints is
    /// not included in `money`.
    pub without_price: BTreeSet<String>,
}

/// Estimates the cost of runs, based on the plan and on the earlier results in a folder.
pub(crate) struct Estimator<'a> {
    plan: &'a Plan,
    expansion: &'a Expansion,
    disk: &'a OnDisk,
}

impl<'a> Estimator<'a> {
    /// Creates an estimator for a plan's runs, based on the results in a folder.
    pub(crate) fn of(plan: &'a Plan, expansion: &'a Expansion, disk: &'a OnDisk) -> Estimator<'a> {
        Estimator { plan, expansion, disk }
    }

    /// Returns the cost of `runs` if at most `jobs` of them are executed at once. Each run is counted once,
    /// and not at all if its id is in `seen`. The ids of the counted runs are added to `seen`.
    pub(super) fn cost<'r>(
        &self,
        runs: impl Iterator<Item = &'r PlannedRun>,
        jobs: u16,
        seen: &mut HashSet<crate::expand::RunId>,
    ) -> Cost {
        let mut cost = Cost { currency: self.plan.currency, ..Cost::default() };
        let mut spans = Spans::default();
        for run in runs.filter(|run| seen.insert(run.id)) {
            cost.runs += 1;
            cost.runs_that_may_be_prolonged += usize::from(may_be_prolonged(&run.spec.phases, &run.spec.load));
            let ns = self.expected_ns(run).unwrap_or_else(|| {
                cost.runs_of_unknown_length += 1;
                0
            });
            let endpoint = &run.spec.endpoint.name;
            spans.add(&self.expansion.resources[endpoint], ns);
            match self.price(&run.spec) {
                Some(price) => *cost.money.get_or_insert(0.0) += price * ns as f64 / 3.6e12,
                None => drop(cost.without_price.insert(endpoint.clone())),
            }
            let Some((requests, source)) = self.requests(&run.spec) else {
                cost.runs_with_unknown_requests += 1;
                continue;
            };
            cost.estimated_from.extend(source);
            cost.requests += requests;
            let (prompt, output) = tokens_of(&run.spec);
            cost.prompt_tokens += (requests as f64 * prompt).round() as u64;
            cost.output_tokens += (requests as f64 * output).round() as u64;
        }
        cost.seconds = spans.side_by_side(jobs) as f64 / 1e9;
        cost
    }

    /// Returns the duration of a run, in nanoseconds. A run that measures a start is assumed to take
    /// the median time of earlier results; `None` if there are none.
    pub(super) fn expected_ns(&self, run: &PlannedRun) -> Option<u64> {
        if !run.spec.start {
            return Some(RunView::new(0, run).expected_ns());
        }
        let seconds = self.disk.history().starts(&run.spec.endpoint.name);
        Some((seconds.get(seconds.len() / 2)? * 1e9).round() as u64)
    }

    fn price(&self, spec: &RunSpec) -> Option<f64> {
        let endpoint = self.plan.endpoints.get(&spec.endpoint.name)?;
        declared(endpoint, spec.labels.axes.iter()).hardware.cost_per_hour()
    }

    /// Returns the number of requests that a run will send up to the end of its window, and the result from
    /// which the number was estimated, if any; `None` if the number is unknown.
    pub(super) fn requests(&self, spec: &RunSpec) -> Option<(u64, Option<String>)> {
        if spec.start {
            return Some((1, None));
        }
        let phases = &spec.phases;
        let full =
            phases.stabilize.0.saturating_add(window_ns(phases, &spec.load, spec.scenario.requests_per_arrival()));
        if let Some(course) = Course::new(&spec.load, phases) {
            let arrivals = course.expected(phases.fill.0.saturating_add(full) as f64 / 1e9);
            let requests = arrivals * spec.scenario.requests_per_arrival();
            return Some((requests.round() as u64, None));
        }
        let earlier = self.disk.history().latest(spec)?;
        let (rows, took) = (earlier.requests?, earlier.took_ns);
        let scale = (phases.fill.0 + full) as f64 / took as f64;
        (took > 0).then(|| ((rows as f64 * scale).round() as u64, Some(earlier.id[..8].to_owned())))
    }
}

/// How long each resource is busy, in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Spans<'a> {
    on_resource: HashMap<&'a str, u64>,
}

impl<'a> Spans<'a> {
    /// Adds a run that keeps `resource` busy for `ns` nanoseconds.
    pub(super) fn add(&mut self, resource: &'a str, ns: u64) {
        *self.on_resource.entry(resource).or_default() += ns;
    }

    /// Returns the total time if all runs are executed one after another, in nanoseconds.
    pub(super) fn one_after_another(&self) -> u64 {
        self.on_resource.values().sum()
    }

    /// Returns the total time if at most `jobs` runs are executed at once and resources work in
    /// parallel, in nanoseconds.
    pub(super) fn side_by_side(&self, jobs: u16) -> u64 {
        let longest = self.on_resource.values().copied().max().unwrap_or(0);
        longest.max(self.one_after_another() / u64::from(jobs))
    }
}

/// Returns the average numbers of prompt and output tokens of a run's requests. For a mix, the classes are
/// weighted.
fn tokens_of(spec: &RunSpec) -> (f64, f64) {
    if spec.mix.is_empty() {
        return tokens(&spec.scenario);
    }
    let all: f64 = spec.mix.iter().map(|class| class.weight as f64).sum();
    spec.mix.iter().fold((0.0, 0.0), |(prompt, output), class| {
        let (share, (of_prompt, of_output)) = (class.weight as f64 / all, tokens(&class.scenario));
        (prompt + share * of_prompt, output + share * of_output)
    })
}

/// Returns the average numbers of prompt and output tokens of a request. Turn k of a conversation also
/// sends the k − 1 earlier turns and responses.
fn tokens(content: &Content) -> (f64, f64) {
    let Expected { prompt, output } = expected(content);
    if let Some(data) = &content.data {
        return (prompt + data.means(content.turns).history, output);
    }
    let lead = f64::from(content.system_tokens + content.prefix.map_or(0, |prefix| prefix.tokens));
    let earlier = match content.reuse {
        Reuse::Conversation => (content.mean_turns() - 1.0) / 2.0,
        _ => 0.0,
    };
    (lead + prompt + earlier * (prompt + output), output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_run_side_by_side_as_far_as_jobs_go() {
        let mut spans = Spans::default();
        for (resource, ns) in [("a", 5), ("a", 5), ("b", 4), ("c", 4)] {
            spans.add(resource, ns);
        }
        assert_eq!([1, 2, 3, 9].map(|jobs| spans.side_by_side(jobs)), [18, 10, 10, 10]);
    }

    #[test]
    fn a_conversation_sends_its_history_again() {
        let content =
            |reuse, turns| Content { reuse, system_tokens: 10, output_tokens: 100, turns, ..Content::default() };
        assert_eq!(tokens(&content(Reuse::None, 1)), (60.0, 100.0));
        // The prompts of the three turns have 60, 210 and 360 tokens.
        assert_eq!(tokens(&content(Reuse::Conversation, 3)), (210.0, 100.0));
    }
}
