//! Provides metrics of a running sweep for Prometheus: `run --metrics-addr`. docs/LIVE.md describes the
//! metrics.
//!
//! This module receives the events of the sweep and reads the counters that the engine keeps for all
//! observers. The engine does not depend on this module.

mod text;
mod totals;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use text::{Exposition, Kind};
use totals::{Times, Totals};

use super::outlook::Outlook;
use super::state::LiveRun;
use super::tracker::{RECENT, Tracker};
use crate::engine::{Progress, Times as AnswerTimes};
use crate::sweep::event::{Event, RunGroup, RunView};

/// Maximum number of groups of runs that get their own time series. The number is limited because Prometheus
/// keeps each series for a long time; further groups share one series with `other` in all labels.
const MOST_GROUPS: usize = 500;

/// The quantiles that summaries contain, as label and as share.
const QUANTILES: [(&str, f64); 4] = [("0.5", 0.5), ("0.9", 0.9), ("0.95", 0.95), ("0.99", 0.99)];

/// The metrics of the sweeps of one command, over all of their stages.
pub(crate) struct SweepMetrics {
    plan: String,
    /// Tracks the state of the current stage.
    tracker: Tracker,
    groups: BTreeMap<RunGroup, Totals>,
    running: Vec<(RunView, Arc<Progress>)>,
}

/// A latency that is exposed as a summary.
struct Latency {
    name: &'static str,
    help: &'static str,
    /// Returns the number and the sum of the latencies of all requests that have ended.
    total: fn(&Totals) -> Times,
    /// Returns the latency of one response, in nanoseconds, if it has one.
    time: fn(&AnswerTimes) -> Option<u64>,
}

const LATENCIES: [Latency; 3] = [
    Latency {
        name: "sweepline_time_to_first_token_seconds",
        help: "Time to first token of successful responses, from the send; quantiles of the last 5 seconds.",
        total: |totals| totals.ttft,
        time: |times| times.ttft,
    },
    Latency {
        name: "sweepline_time_per_output_token_seconds",
        help: "Time per output token after the first, of successful responses; quantiles of the last 5 seconds.",
        total: |totals| totals.tpot,
        time: |times| times.tpot,
    },
    Latency {
        name: "sweepline_client_lateness_seconds",
        help: "Lateness of the client's sends, for successful requests; quantiles of the last 5 seconds.",
        total: |totals| totals.late,
        time: |times| Some(times.late),
    },
];

impl SweepMetrics {
    /// Creates the metrics for the sweeps of a plan.
    pub(crate) fn new(plan: &str) -> SweepMetrics {
        let tracker = Tracker::new(Outlook::default());
        SweepMetrics { plan: plan.to_owned(), tracker, groups: BTreeMap::new(), running: Vec::new() }
    }

    /// Starts a stage.
    pub(crate) fn begin(&mut self, outlook: Outlook) {
        self.tracker = Tracker::new(outlook);
        self.running.clear();
    }

    /// Updates the metrics with an event.
    pub(crate) fn take(&mut self, event: &Event) {
        self.tracker.take(event);
        match event {
            Event::Started { run, progress } => {
                self.of(&run.group);
                self.running.push((run.clone(), Arc::clone(progress)));
            }
            Event::Committed { run } => self.ended(run, "committed"),
            Event::Failed { run, .. } => self.ended(run, "failed"),
            Event::GivenUp { run, .. } => self.ended(run, "given_up"),
            Event::Skipped { run, .. } => self.ended(run, "skipped"),
            Event::Again { run, .. } => {
                self.off(run);
                self.of(&run.group).spoiled += 1;
            }
            _ => {}
        }
    }

    /// Returns the counters of a group.
    fn of(&mut self, group: &RunGroup) -> &mut Totals {
        let group = self.kept(group);
        self.groups.entry(group).or_default()
    }

    /// Returns the group whose series a group uses: its own or, if there are too many groups, the shared
    /// group `other`.
    fn kept(&self, group: &RunGroup) -> RunGroup {
        if self.groups.len() < MOST_GROUPS || self.groups.contains_key(group) {
            return group.clone();
        }
        let other = || Arc::from("other");
        RunGroup { sweep: other(), endpoint: other(), model: other(), scenario: other() }
    }

    fn ended(&mut self, run: &RunView, how: &'static str) {
        self.off(run);
        *self.of(&run.group).runs.entry(how).or_default() += 1;
    }

    /// Removes a run from the active runs and adds its counts to its group.
    fn off(&mut self, run: &RunView) {
        while let Some(at) = self.running.iter().position(|(running, _)| running.number == run.number) {
            let (_, progress) = self.running.swap_remove(at);
            self.of(&run.group).add(&progress);
        }
    }

    /// Returns the counters of all groups, including those of active runs.
    fn totals(&self) -> BTreeMap<RunGroup, Totals> {
        let mut totals = self.groups.clone();
        for (run, progress) in &self.running {
            totals.entry(self.kept(&run.group)).or_default().add(progress);
        }
        totals
    }

    /// Updates the tracker, so that rates cover the last seconds even if nothing is scraped. Called about
    /// once per second.
    pub(crate) fn look(&mut self) {
        self.tracker.now();
    }

    /// Returns the text for a scrape.
    pub(crate) fn text(&mut self) -> String {
        let mut text = Exposition::default();
        self.sweep(&mut text);
        self.under_way(&mut text);
        let totals = self.totals();
        counters(&totals, &mut text);
        for latency in &LATENCIES {
            self.latency(latency, &totals, &mut text);
        }
        text.text()
    }

    fn sweep(&mut self, text: &mut Exposition) {
        let now = self.tracker.now();
        let running = now.running.len();
        text.family("sweepline_build_info", Kind::Gauge, "Always 1; the version of sweepline is in the label.");
        text.sample("sweepline_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        text.family("sweepline_plan_info", Kind::Gauge, "Always 1; the name of the plan is in the label.");
        text.sample("sweepline_plan_info", &[("plan", &self.plan)], 1.0);
        text.family("sweepline_runs", Kind::Gauge, "Runs of the current stage, by state.");
        let states = [
            ("pending", now.runs.saturating_sub(now.done() + running)),
            ("running", running),
            ("settled", now.settled),
            ("committed", now.committed),
            ("failed", now.failed),
            ("given_up", now.given_up),
            ("skipped", now.skipped),
        ];
        for (state, count) in states {
            text.sample("sweepline_runs", &[("state", state)], count as f64);
        }
        let help = "Endpoints that the sweep waits for: their servers are starting, busy or not yet responding.";
        text.family("sweepline_endpoints_waited_for", Kind::Gauge, help);
        text.sample("sweepline_endpoints_waited_for", &[], now.waiting.len() as f64);
        if let Some(left) = now.left_s {
            let help = "Remaining time of the current stage, as far as the plan determines it.";
            text.family("sweepline_remaining_seconds", Kind::Gauge, help);
            text.sample("sweepline_remaining_seconds", &[], left);
        }
    }

    /// Writes the metrics of the current state of active runs.
    fn under_way(&mut self, text: &mut Exposition) {
        let now: HashMap<usize, LiveRun> =
            self.tracker.now().running.into_iter().map(|run| (run.number, run)).collect();
        // Several runs of one group may be active at the same time if the plan declares that endpoints are
        // independent.
        let mut groups: BTreeMap<RunGroup, Vec<&LiveRun>> = BTreeMap::new();
        for (run, _) in &self.running {
            groups.entry(self.kept(&run.group)).or_default().extend(now.get(&run.number));
        }
        let mut gauge = |name: &str, help: &str, value: &dyn Fn(&[&LiveRun]) -> Option<f64>| {
            text.family(name, Kind::Gauge, help);
            for (group, runs) in &groups {
                value(runs).into_iter().for_each(|value| text.sample(name, &labels(group), value));
            }
        };
        gauge("sweepline_requests_in_flight", "Requests in flight.", &|runs| {
            Some(runs.iter().map(|run| run.in_flight).sum::<u64>() as f64)
        });
        gauge("sweepline_requests_waiting", "Requests that are due and wait for the in-flight cap.", &|runs| {
            Some(runs.iter().map(|run| run.waiting).sum::<u64>() as f64)
        });
        let help = "Requests per second that the plan currently requires; absent in a closed loop.";
        gauge("sweepline_target_requests_per_second", help, &|runs| {
            runs.iter().map(|run| run.wanted_per_s).sum::<Option<f64>>()
        });
        let help = "Always 1; the current activity of the run is in the label phase.";
        text.family("sweepline_run_phase", Kind::Gauge, help);
        for (group, runs) in &groups {
            let mut phases: Vec<&str> = runs.iter().map(|run| run.phase.into()).collect();
            phases.sort_unstable();
            phases.dedup();
            for phase in phases {
                text.sample("sweepline_run_phase", &[&labels(group)[..], &[("phase", phase)]].concat(), 1.0);
            }
        }
    }

    fn latency(&self, latency: &Latency, totals: &BTreeMap<RunGroup, Totals>, text: &mut Exposition) {
        let Latency { name, help, total, time } = latency;
        let mut recent: BTreeMap<RunGroup, Vec<u64>> = BTreeMap::new();
        for (run, progress) in &self.running {
            let since = progress.elapsed_ns().saturating_sub((RECENT * 1e9) as u64);
            let times = progress.recent.times(since);
            recent.entry(self.kept(&run.group)).or_default().extend(times.iter().filter_map(time));
        }
        text.family(name, Kind::Summary, help);
        for (group, totals) in totals {
            let labels = labels(group);
            let mut times = recent.remove(group).unwrap_or_default();
            times.sort_unstable();
            // Without recent values, no quantiles are written.
            for (quantile, share) in QUANTILES.iter().filter(|_| !times.is_empty()) {
                let rank = (share * times.len() as f64).ceil() as usize;
                let value = times[rank.clamp(1, times.len()) - 1];
                text.sample(name, &[&labels[..], &[("quantile", quantile)]].concat(), value as f64 / 1e9);
            }
            let Times { count, nanos } = total(totals);
            text.sample(&format!("{name}_sum"), &labels, nanos as f64 / 1e9);
            text.sample(&format!("{name}_count"), &labels, count as f64);
        }
    }
}

fn labels(group: &RunGroup) -> [(&'static str, &str); 4] {
    let RunGroup { sweep, endpoint, model, scenario } = group;
    [("sweep", &**sweep), ("endpoint", &**endpoint), ("model", &**model), ("scenario", &**scenario)]
}

fn counters(totals: &BTreeMap<RunGroup, Totals>, text: &mut Exposition) {
    let name = "sweepline_requests_ended_total";
    text.family(name, Kind::Counter, "Requests that have ended, by outcome: ok, or how they failed.");
    for (group, totals) in totals {
        for (outcome, count) in &totals.ended {
            text.sample(name, &[&labels(group)[..], &[("outcome", outcome)]].concat(), *count as f64);
        }
    }
    let name = "sweepline_token_events_total";
    text.family(name, Kind::Counter, "Token events received.");
    for (group, totals) in totals {
        text.sample(name, &labels(group), totals.token_events as f64);
    }
    let name = "sweepline_attempts_spoiled_total";
    text.family(name, Kind::Counter, "Attempts at runs that the environment spoiled and that were retried.");
    for (group, totals) in totals {
        text.sample(name, &labels(group), totals.spoiled as f64);
    }
    let name = "sweepline_runs_ended_total";
    text.family(name, Kind::Counter, "Runs that have ended since the command began, by outcome.");
    for (group, totals) in totals {
        for (how, count) in &totals.runs {
            text.sample(name, &[&labels(group)[..], &[("result", *how)]].concat(), *count as f64);
        }
    }
}
