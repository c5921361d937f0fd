//! The estimated cost of runs: requests, tokens, time, money. Each figure is computed by a rule that is
//! shown with it. Figures that cannot be known in advance are estimated from a named earlier result, or
//! reported as unknown.

use std::collections::{BTreeSet, HashMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::expand::launch::declared;
use crate::expand::{Course, Expansion, PlannedRun, RunId, RunSpec};
use crate::graph::build;
use crate::plan::Plan;
use crate::plan::model::content::{Content, Reuse};
use crate::report::format::duration;
use crate::report::progress::Outlook;
use crate::sweep::event::{RunView, may_be_prolonged, window_ns};
use crate::sweep::on_disk::OnDisk;
use crate::units::Currency;
use crate::units::text::counted;
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
    /// Time until the last of the runs has ended, in seconds, including the starts of servers whose duration
    /// is known.
    pub seconds: f64,
    /// How long all resources are busy in total, in seconds; more than `seconds` if resources work in
    /// parallel.
    #[serde(skip)]
    pub busy: f64,
    /// Number of times that a server is started for the runs.
    pub starts: usize,
    /// Number of starts of unknown duration, because no earlier result shows how long a start takes. Their
    /// time is not included in `seconds`.
    pub starts_of_unknown_length: usize,
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

impl Cost {
    /// Whether the duration of every run and of every start is known.
    pub(crate) fn has_known_time(&self) -> bool {
        self.runs_of_unknown_length == 0 && self.starts_of_unknown_length == 0
    }

    /// Returns the time, including what is unknown about it: `about 4m30s, with 2 server starts` or `about 45s,
    /// plus 21 server starts, not yet measured (2 runs may be extended)`.
    pub(crate) fn time_words(&self) -> String {
        let longer = match self.runs_that_may_be_prolonged {
            0 => String::new(),
            count => format!(" ({} may be extended)", counted(count, "run")),
        };
        self.least_time_words() + &longer
    }

    /// Returns the time if no run is extended.
    fn least_time_words(&self) -> String {
        let unknown = self.starts_of_unknown_length;
        let known = self.starts - unknown;
        let starts = counted(unknown, "server start");
        if unknown > 0 && self.seconds == 0.0 {
            return format!("{starts}, not yet measured");
        }
        let mut words = format!("about {}", duration(self.seconds.ceil() as u64));
        if known > 0 {
            words.push_str(&format!(", with {}", counted(known, "server start")));
        }
        if unknown > 0 {
            words.push_str(&format!(", plus {starts}, not yet measured"));
        }
        words
    }
}

/// One start of a server that the plan launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    /// The first run that needs the server, as a position in the runs of the expansion.
    pub run: usize,
    /// Whether the run measures this start, so that the duration of the run is that of the start.
    is_measured: bool,
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

    /// Returns the cost of the runs at these positions of the expansion, including the starts of their servers,
    /// if at most `jobs` runs are executed at once. Every command that states a duration uses this estimate.
    pub(super) fn total(&self, todo: &HashSet<usize>, jobs: u16) -> Cost {
        self.part(todo, &self.starts(todo), jobs, &mut HashSet::new())
    }

    /// Like [`Estimator::total`], but without requests and tokens, for which all results may have to be read.
    pub(super) fn time(&self, todo: &HashSet<usize>, jobs: u16) -> Cost {
        self.timed(Cost::default(), &self.unique(todo, &mut HashSet::new()), &self.starts(todo), jobs)
    }

    /// Returns the cost of those runs at the positions `todo` whose id is not in `seen`, and of `starts`. The ids
    /// of the counted runs are added to `seen`.
    pub(super) fn part(&self, todo: &HashSet<usize>, starts: &[Start], jobs: u16, seen: &mut HashSet<RunId>) -> Cost {
        let runs = self.unique(todo, seen);
        self.timed(self.amounts(&runs), &runs, starts, jobs)
    }

    /// Returns the cost of `runs` without the starts of their servers if the runs are executed one after another.
    /// Each run is counted once.
    pub(super) fn without_starts<'r>(&self, runs: impl Iterator<Item = &'r PlannedRun>) -> Cost {
        let mut seen = HashSet::new();
        let runs: Vec<&PlannedRun> = runs.filter(|run| seen.insert(run.id)).collect();
        self.timed(self.amounts(&runs), &runs, &[], 1)
    }

    /// Returns the runs at these positions whose id is not in `seen`, each once, in the order of execution.
    fn unique(&self, todo: &HashSet<usize>, seen: &mut HashSet<RunId>) -> Vec<&'a PlannedRun> {
        let mut positions: Vec<usize> = todo.iter().copied().collect();
        positions.sort_unstable();
        let runs = positions.into_iter().map(|at| &self.expansion.runs[at]);
        runs.filter(|run| seen.insert(run.id)).collect()
    }

    /// Returns the starts of servers that the runs at these positions need, in the order of `run`. If the graph
    /// cannot be built, `run` rejects the plan with its own message.
    pub(super) fn starts(&self, todo: &HashSet<usize>) -> Vec<Start> {
        let runs = &self.expansion.runs;
        if todo.iter().all(|at| runs[*at].spec.endpoint.launch.is_none()) {
            return Vec::new();
        }
        let Ok(graph) = build(self.expansion, &|at| todo.contains(&at)) else { return Vec::new() };
        let start = |run: usize| Start { run, is_measured: runs[run].spec.start };
        graph.launches(self.expansion).map(start).collect()
    }

    /// Returns the expectations about a sweep of the runs with this cost.
    pub(super) fn outlook(&self, cost: &Cost) -> Outlook {
        // If no server is started, the results need not be read.
        let launched = self.plan.endpoints.keys().filter(|_| cost.starts > 0);
        let starts = launched.map(|name| (name.clone(), self.disk.history().starts(name).to_vec())).collect();
        Outlook { pace: if cost.busy > 0.0 { cost.seconds / cost.busy } else { 1.0 }, starts }
    }

    /// Returns the requests and tokens of `runs`.
    fn amounts(&self, runs: &[&PlannedRun]) -> Cost {
        let mut cost = Cost { runs: runs.len(), currency: self.plan.currency, ..Cost::default() };
        for run in runs {
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
        cost
    }

    /// Adds the time of `runs` and `starts` to a cost, and the money of `runs`.
    fn timed(&self, mut cost: Cost, runs: &[&PlannedRun], starts: &[Start], jobs: u16) -> Cost {
        let mut spans = Spans::default();
        for run in runs {
            cost.runs_that_may_be_prolonged += usize::from(may_be_prolonged(&run.spec.phases, &run.spec.load));
            let ns = self.expected_ns(run);
            cost.runs_of_unknown_length += usize::from(ns.is_none());
            let (endpoint, ns) = (&run.spec.endpoint.name, ns.unwrap_or(0));
            spans.add(&self.expansion.resources[endpoint], ns);
            match self.price(&run.spec) {
                Some(price) => *cost.money.get_or_insert(0.0) += price * ns as f64 / 3.6e12,
                None => drop(cost.without_price.insert(endpoint.clone())),
            }
        }
        cost.starts = starts.len();
        for start in starts {
            let endpoint = &self.expansion.runs[start.run].spec.endpoint.name;
            match self.start_ns(endpoint) {
                None => cost.starts_of_unknown_length += 1,
                Some(_) if start.is_measured => {}
                Some(ns) => spans.add(&self.expansion.resources[endpoint], ns),
            }
        }
        cost.seconds = spans.side_by_side(jobs) as f64 / 1e9;
        cost.busy = spans.one_after_another() as f64 / 1e9;
        cost
    }

    /// Returns the duration of a run, in nanoseconds. A run that measures a start is assumed to take
    /// the median time of earlier results; `None` if there are none.
    fn expected_ns(&self, run: &PlannedRun) -> Option<u64> {
        if !run.spec.start {
            return Some(RunView::new(0, run).expected_ns());
        }
        self.start_ns(&run.spec.endpoint.name)
    }

    /// Returns the median duration of the earlier starts of an endpoint's servers, in nanoseconds; `None` if
    /// there are none.
    fn start_ns(&self, endpoint: &str) -> Option<u64> {
        let seconds = self.disk.history().starts(endpoint);
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
struct Spans<'a> {
    on_resource: HashMap<&'a str, u64>,
}

impl<'a> Spans<'a> {
    /// Adds a run that keeps `resource` busy for `ns` nanoseconds.
    fn add(&mut self, resource: &'a str, ns: u64) {
        *self.on_resource.entry(resource).or_default() += ns;
    }

    /// Returns the total time if all runs are executed one after another, in nanoseconds.
    fn one_after_another(&self) -> u64 {
        self.on_resource.values().sum()
    }

    /// Returns the total time if at most `jobs` runs are executed at once and resources work in
    /// parallel, in nanoseconds.
    fn side_by_side(&self, jobs: u16) -> u64 {
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
    fn a_time_states_its_starts_and_which_of_them_are_unknown() {
        let words = |seconds: f64, starts, starts_of_unknown_length| {
            Cost { seconds, starts, starts_of_unknown_length, ..Cost::default() }.time_words()
        };
        assert_eq!(words(45.0, 0, 0), "about 45s");
        assert_eq!(words(577.0, 21, 0), "about 9m37s, with 21 server starts");
        assert_eq!(words(45.0, 21, 21), "about 45s, plus 21 server starts, not yet measured");
        assert_eq!(words(45.0, 3, 1), "about 45s, with 2 server starts, plus 1 server start, not yet measured");
        assert_eq!(words(0.0, 4, 4), "4 server starts, not yet measured");
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
