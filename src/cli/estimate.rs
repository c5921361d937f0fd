//! What runs cost before they are measured: requests, tokens, time, money. Each figure by a rule that is shown with it;
//! what cannot be known ahead is estimated from an earlier result that is named, or said to be unknown.

use std::collections::{BTreeSet, HashMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::expand::launch::declared;
use crate::expand::{Course, Expansion, Load, PlannedRun, RunSpec};
use crate::plan::Plan;
use crate::plan::model::content::{Content, Reuse};
use crate::rows::Table;
use crate::store::RunRecord;
use crate::sweep::event::{RunView, may_be_prolonged, window_ns};
use crate::sweep::resume::OnDisk;
use crate::units::Currency;
use crate::workload::lengths::{Expected, expected};

/// How requests are counted.
pub(crate) const REQUESTS_RULE: &str = "an open loop's are its rate times stabilize, its window and half of fill, with a \
                                 profile as much as its rates come to, and times the turns where conversations arrive; \
                                 a closed loop's are those of the latest result of the same endpoint, model, scenario, axes and \
                                 batch size, scaled to the length of the phases, and unknown until measured without one";
/// How tokens are counted.
pub(crate) const TOKENS_RULE: &str = "the lengths that the scenario asks for, on average where they differ, a conversation's history with it; an answer may \
                               be shorter";
/// How time is counted.
pub(crate) const TIME_RULE: &str = "idle, fill, stabilize, measure and the cooldown of each run, without drain; where there is \
                             min_requests an open loop's window is the longer of for and the time in which so many are expected, at most \
                             at_most, and a closed loop's counts as long as for: the server decides whether it is \
                             prolonged; runs on one resource one after another, resources side by side as far as --jobs allows";
/// How money is counted.
pub(crate) const MONEY_RULE: &str =
    "price_per_hour of the endpoint times the time that its runs and their cooldowns take";

/// What a group of runs to do costs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Cost {
    /// Runs to do; a run that sweeps share counts in the first of them.
    pub runs: usize,
    /// Requests of the runs whose number of requests can be told.
    pub requests: u64,
    /// Runs whose number of requests is unknown until they are measured: closed loops without an earlier result.
    pub runs_with_unknown_requests: usize,
    /// The results from which the requests of closed loops were estimated, by short id.
    pub estimated_from: BTreeSet<String>,
    /// Prompt tokens of these requests, as the scenarios ask for them.
    pub prompt_tokens: u64,
    /// Output tokens of these requests, as the scenarios ask for them: the most that can come.
    pub output_tokens: u64,
    /// Time until the last of the runs has ended, in seconds.
    pub seconds: f64,
    /// Runs of which nobody knows how long they take: they measure a start, and no earlier result says how long one takes.
    pub runs_of_unknown_length: usize,
    /// Runs that may take longer than `seconds` and `money` count them: closed loops whose window waits for min_requests.
    pub runs_that_may_be_prolonged: usize,
    /// What the runs cost at the declared prices, in the plan's currency; none where no endpoint has a price.
    pub money: Option<f64>,
    /// Currency of `money`; null where the plan names none.
    pub currency: Option<Currency>,
    /// Endpoints of these runs without a price_per_hour, whose time is not in `money`.
    pub without_price: BTreeSet<String>,
}

/// What the earlier results of a folder say of runs like theirs.
pub(crate) struct Estimator<'a> {
    plan: &'a Plan,
    expansion: &'a Expansion,
    disk: &'a OnDisk,
    /// The latest result by what people call the run, without its repeat.
    latest: HashMap<String, &'a RunRecord>,
}

impl<'a> Estimator<'a> {
    /// Of a plan's runs, over what a folder has.
    pub(crate) fn of(plan: &'a Plan, expansion: &'a Expansion, disk: &'a OnDisk) -> Estimator<'a> {
        let mut latest: HashMap<String, &RunRecord> = HashMap::new();
        // What an open loop sends follows from its plan.
        let closed = disk.records().filter(|record| matches!(record.spec.load, Load::Closed { .. }));
        for record in closed {
            let kept = latest.entry(names(&record.spec)).or_insert(record);
            if (record.ended, &record.id) > (kept.ended, &kept.id) {
                *kept = record;
            }
        }
        Estimator { plan, expansion, disk, latest }
    }

    /// What `runs` cost with at most `jobs` of them side by side. Each id counts once, and not at all if it is in `seen`,
    /// which learns it.
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

    /// How long a run takes, in nanoseconds. Of one that measures a start earlier results tell, by their median: none without one.
    pub(super) fn expected_ns(&self, run: &PlannedRun) -> Option<u64> {
        if !run.spec.start {
            return Some(RunView::new(0, run).expected_ns());
        }
        let seconds = earlier_starts(self.disk, &run.spec.endpoint.name);
        Some((seconds.get(seconds.len() / 2)? * 1e9).round() as u64)
    }

    fn price(&self, spec: &RunSpec) -> Option<f64> {
        let endpoint = self.plan.endpoints.get(&spec.endpoint.name)?;
        declared(endpoint, spec.labels.axes.iter()).hardware.cost_per_hour()
    }

    /// How many requests a run will send up to the end of its window, and the result that says so.
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
        let record = self.latest.get(&names(spec))?;
        let rows = record.files.get(Table::Requests.file())?.rows;
        let took = record.facts.windows.measure_end_ns;
        let scale = (phases.fill.0 + full) as f64 / took as f64;
        (took > 0).then(|| ((rows as f64 * scale).round() as u64, Some(record.id[..8].to_owned())))
    }
}

/// How long each start took on which results of an endpoint were measured, in seconds, rising.
pub(super) fn earlier_starts(disk: &OnDisk, endpoint: &str) -> Vec<f64> {
    let records = disk.records().filter(|record| record.spec.endpoint.name == endpoint);
    let mut seen = HashSet::new();
    let starts = records.filter_map(|record| record.environment.server_start.as_ref());
    let mut seconds: Vec<f64> =
        starts.filter(|start| seen.insert(&start.log)).map(|start| start.ready_ns as f64 / 1e9).collect();
    seconds.sort_by(f64::total_cmp);
    seconds
}

/// How long resources are busy.
#[derive(Debug, Default)]
pub(crate) struct Spans<'a> {
    on_resource: HashMap<&'a str, u64>,
}

impl<'a> Spans<'a> {
    /// Adds a run that keeps `resource` busy for `ns` nanoseconds.
    pub(super) fn add(&mut self, resource: &'a str, ns: u64) {
        *self.on_resource.entry(resource).or_default() += ns;
    }

    /// All one after another, in nanoseconds.
    pub(super) fn one_after_another(&self) -> u64 {
        self.on_resource.values().sum()
    }

    /// With as many side by side as `jobs` and the resources allow, in nanoseconds.
    pub(super) fn side_by_side(&self, jobs: u16) -> u64 {
        let longest = self.on_resource.values().copied().max().unwrap_or(0);
        longest.max(self.one_after_another() / u64::from(jobs))
    }
}

/// Endpoint, model, scenario, further axes and load.
fn names(spec: &RunSpec) -> String {
    let labels = &spec.labels;
    format!("{:?}", (&spec.endpoint.name, &labels.model, &labels.scenario, &labels.axes, &spec.load))
}

/// Prompt and output tokens of a request of a run on average: of a mix, those of its classes by their weights.
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

/// Prompt and output tokens of a request on average. Turn k of a conversation sends the k − 1 turns and
/// answers before it, too.
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
        // Turns of 60, 210 and 360 tokens.
        assert_eq!(tokens(&content(Reuse::Conversation, 3)), (210.0, 100.0));
    }
}
