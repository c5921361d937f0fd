//! Events that a sweep sends to observers while it runs.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::Progress;
use crate::expand::{Course, Load, Phases, PlannedRun, RunId, RunSpec};
use crate::rows::SpoilCause;

use super::ready::Waiting;

/// The names by which runs are grouped. They are shared by many runs, so there are only a few
/// different groups.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunGroup {
    /// The name of the run's sweep.
    pub sweep: Arc<str>,
    /// The name of the run's endpoint.
    pub endpoint: Arc<str>,
    /// The name of the run's model in the plan.
    pub model: Arc<str>,
    /// The name of the run's scenario in the plan.
    pub scenario: Arc<str>,
}

/// A run, as shown to users.
#[derive(Debug, Clone)]
pub struct RunView {
    /// The number of the run in the selection, from 1. Runs that are not executed are numbered first.
    pub number: usize,
    /// The id of the run.
    pub id: RunId,
    /// The name of the run for display.
    pub name: String,
    /// The run's sweep, endpoint, model and scenario.
    pub group: RunGroup,
    /// The values of the run's cell on axes other than endpoint, model, scenario and load, in the
    /// order in which the plan declares the axes.
    pub axes: Vec<[String; 2]>,
    /// The phases of the run.
    pub phases: Phases,
    /// The load on the server.
    pub load: Load,
    /// Average number of requests per arrival. If arrivals are conversations, this is the average number of
    /// turns.
    pub(crate) requests_per_arrival: f64,
    /// The pause after the run, in nanoseconds.
    pub(crate) cooldown_ns: u64,
    /// The state of the search or ladder that requested the run, such as `between 24 and 28 qps, 6 runs so
    /// far`; `None` for other runs.
    pub(crate) standing: Option<String>,
}

/// The optional parts that the names of runs must have, so that the runs of a plan can be told apart.
#[derive(Debug, Clone, Default)]
pub struct Naming {
    /// Whether the plan has several models.
    models: bool,
    /// The sweeps with several repeats.
    repeated: HashSet<Arc<str>>,
}

impl Naming {
    /// Determines the parts that the names of these runs need.
    pub fn of(runs: &[PlannedRun]) -> Naming {
        let model = |run: &PlannedRun| run.spec.labels.model.to_string();
        let first = runs.first().map(model);
        Naming {
            models: runs.iter().any(|run| Some(model(run)) != first),
            repeated: runs.iter().filter(|run| run.repeat > 0).map(|run| Arc::clone(&run.sweep)).collect(),
        }
    }
}

impl RunView {
    /// Returns the view of run `number`. Its name contains neither the model nor the repeat.
    pub fn new(number: usize, run: &PlannedRun) -> RunView {
        RunView::among(number, run, &Naming::default())
    }

    /// Returns the view of run `number` among the runs of its plan. Its name contains the model if the plan
    /// has several models, and the repeat, from 0, if its sweep has several repeats.
    pub fn among(number: usize, run: &PlannedRun, naming: &Naming) -> RunView {
        let model = naming.models.then(|| run.spec.labels.model.to_string());
        let is_repeated = naming.repeated.contains(&run.sweep);
        RunView {
            number,
            id: run.id,
            name: named(&run.spec, model, in_declared_order(run), is_repeated),
            group: RunGroup {
                sweep: Arc::clone(&run.sweep),
                endpoint: run.spec.endpoint.name.as_str().into(),
                model: Arc::clone(&run.spec.labels.model),
                scenario: Arc::clone(&run.spec.labels.scenario),
            },
            axes: in_declared_order(run).map(|(axis, value)| [axis, value].map(str::to_owned)).collect(),
            phases: run.spec.phases,
            load: run.spec.load.clone(),
            requests_per_arrival: run.spec.scenario.requests_per_arrival(),
            cooldown_ns: run.spec.between.cooldown.0,
            standing: None,
        }
    }

    /// Returns the expected duration of the run, including the pause after it, in nanoseconds. The measure
    /// window is assumed to last for [`window_ns`], and the drain to be short.
    pub(crate) fn expected_ns(&self) -> u64 {
        self.with_window(window_ns(&self.phases, &self.load, self.requests_per_arrival))
    }

    /// Like [`RunView::expected_ns`], but for a closed loop that waits for `min_requests`, with the longest window
    /// that the plan allows.
    pub(crate) fn most_ns(&self) -> u64 {
        match self.phases.measure.at_most {
            Some(at_most) if may_be_prolonged(&self.phases, &self.load) => self.with_window(at_most.0),
            _ => self.expected_ns(),
        }
    }

    fn with_window(&self, window: u64) -> u64 {
        let Phases { idle, fill, stabilize, .. } = self.phases;
        [idle.unwrap_or_default().0, stabilize.0, window, self.cooldown_ns]
            .iter()
            .fold(fill.0, |a, b| a.saturating_add(*b))
    }
}

/// Returns the expected length of the measure window, in nanoseconds. For an open loop, this is `for`, or the
/// time in which `min_requests` requests are expected at its rate if that is longer, but at most `at_most`.
/// For a closed loop, the time for `min_requests` depends on the server, so `for` is returned.
/// `requests_per_arrival` is the average number of requests per arrival in the steady state, in which as many
/// conversations end as begin.
pub(crate) fn window_ns(phases: &Phases, load: &Load, requests_per_arrival: f64) -> u64 {
    let measure = &phases.measure;
    let shortest = measure.duration.0;
    match (Course::new(load, phases), measure.min_requests) {
        (Some(course), Some(requests)) => {
            let longest = measure.at_most.map_or(shortest, |at_most| at_most.0);
            let start = phases.measure_start().secs();
            let reached = course.at(course.expected(start) + requests as f64 / requests_per_arrival);
            // If the rate falls to 0, `min_requests` may never be reached.
            let needed = reached.map_or(longest, |at| ((at - start) * 1e9).ceil() as u64);
            shortest.max(needed.min(longest))
        }
        _ => shortest,
    }
}

/// Whether the measure window may take longer than [`window_ns`], which is the case for a closed loop that
/// waits for `min_requests`.
pub(crate) fn may_be_prolonged(phases: &Phases, load: &Load) -> bool {
    let measure = &phases.measure;
    let can_grow = measure.at_most.is_some_and(|at_most| at_most > measure.duration);
    matches!(load, Load::Closed { .. }) && measure.min_requests.is_some() && can_grow
}

/// Returns the name of a load: `batch 8`, `5 qps` or `5 qps (at most 8 in flight)`.
pub(crate) fn load_name(load: &Load) -> String {
    match load {
        Load::Closed { batch_size } => format!("batch {batch_size}"),
        Load::Open { qps, cap: None, .. } => format!("{qps} qps"),
        Load::Open { qps, cap: Some(cap), .. } => format!("{qps} qps (at most {cap} in flight)"),
    }
}

/// Returns the name of a run, which consists of its endpoint, scenario, load, other axes and repeat, such
/// as `fast · B1 · batch 8 · repeat 1`. Repeats are counted from 0. The other axes are sorted by name,
/// because the plan to which a result belongs is unknown.
pub fn name(spec: &RunSpec) -> String {
    named(spec, None, spec.labels.axes.iter(), spec.repeat > 0)
}

/// Like [`name`], but with the other axes in the order in which the plan declares them, followed by
/// settings that are not on an axis.
pub(crate) fn planned_name(run: &PlannedRun) -> String {
    named(&run.spec, None, in_declared_order(run), run.spec.repeat > 0)
}

/// Returns a cell's name, which is the name of its runs without the repeat.
pub(crate) fn planned_cell(run: &PlannedRun) -> String {
    named(&run.spec, None, in_declared_order(run), false)
}

fn in_declared_order(run: &PlannedRun) -> impl Iterator<Item = (&str, &str)> {
    let labels = &run.spec.labels.axes;
    let of_axis = move |axis| labels.iter().find(|(label, _)| *label == axis);
    let of_sweep = labels.iter().filter(|(label, _)| run.cell.get(label).is_none());
    run.cell.iter().filter_map(move |(axis, _)| of_axis(axis)).chain(of_sweep)
}

fn named<'a>(
    spec: &RunSpec,
    model: Option<String>,
    axes: impl Iterator<Item = (&'a str, &'a str)>,
    with_repeat: bool,
) -> String {
    let mut parts = vec![spec.endpoint.name.clone()];
    parts.extend(model);
    match spec.start {
        true => parts.push("start".to_owned()),
        false => parts.extend([spec.labels.scenario.to_string(), load_name(&spec.load)]),
    }
    parts.extend(axes.map(|(axis, value)| format!("{axis} {value}")));
    if with_repeat {
        parts.push(format!("repeat {}", spec.repeat));
    }
    parts.join(" · ")
}

/// An event of a sweep.
#[derive(Debug, Clone)]
pub enum Event {
    /// The sweep begins.
    Begin {
        /// The runs to execute.
        todo: Vec<RunView>,
        /// Number of selected runs that are not executed, because their results exist or because they are
        /// skipped.
        settled: usize,
        /// Sources of further runs: searches and ladders in progress, and sweeps that wait for an earlier
        /// sweep.
        open: Vec<String>,
        /// The endpoint of each start of a server that the runs need.
        starts: Vec<String>,
    },
    /// A search or a ladder has a new state, and requests its next run or has ended.
    Chosen {
        /// The name of the pool: its sweep and its cell, without the load.
        pool: String,
        /// The state, as text.
        standing: String,
        /// The requested run; `None` if the pool has ended.
        next: Option<RunView>,
    },
    /// A cell ended before all of its repeats were executed. The remaining repeats are skipped.
    Pruned {
        /// The sweep and the name of the cell.
        cell: String,
        /// The reason, as text.
        why: String,
        /// The skipped runs.
        runs: Vec<RunView>,
    },
    /// An embedded server was started, or a server was probed.
    Endpoint {
        /// The server's endpoint.
        endpoint: String,
        /// The result as text: what the server reported, or why its runs are skipped.
        result: Result<String, String>,
    },
    /// A server is being started.
    Launching {
        /// The server's endpoint.
        endpoint: String,
        /// The command that starts the server, without secrets.
        command: String,
    },
    /// A launched server is ready.
    Launched {
        /// The server's endpoint.
        endpoint: String,
        /// The time that the start took.
        after: Duration,
        /// The path of the server's log.
        log: String,
    },
    /// A launched server exited before it was ready, and is started again.
    Relaunching {
        /// The server's endpoint.
        endpoint: String,
        /// How the server ended.
        reason: String,
        /// The number of the next retry, from 1.
        again: u32,
        /// The maximum number of retries.
        of: u32,
    },
    /// A server is not near, although the plan declares that it is.
    Far {
        /// The server's endpoint.
        endpoint: String,
        /// The measurement and the remedy.
        why: String,
    },
    /// A server refuses to list its models, although it generates.
    ListRefused {
        /// The server's endpoint.
        endpoint: String,
        /// The note, with the HTTP status of the response.
        note: String,
    },
    /// A server is slow to respond to the probe.
    Slow {
        /// The server's endpoint.
        endpoint: String,
        /// The server's address.
        url: String,
    },
    /// A server is not idle before a run, and the run waits until the server is idle.
    Busy {
        /// The server's endpoint.
        endpoint: String,
        /// Why the server is busy, and the maximum time for which the run waits.
        what: String,
    },
    /// A server is not ready and will be probed again.
    Waiting {
        /// The server's endpoint.
        endpoint: String,
        /// Why the server is not ready, and how long the sweep has waited for it.
        waiting: Waiting,
    },
    /// A run begins.
    Started {
        /// The run.
        run: RunView,
        /// The live counters of the run.
        progress: Arc<Progress>,
    },
    /// A run was committed.
    Committed {
        /// The run.
        run: RunView,
    },
    /// A run failed; its partial data remains in its attempt.
    Failed {
        /// The run.
        run: RunView,
        /// The reason.
        reason: String,
    },
    /// The environment spoiled an attempt at a run; it will be retried.
    Again {
        /// The run.
        run: RunView,
        /// The cause.
        reason: String,
        /// The number of the next retry, from 1.
        again: u32,
        /// The maximum number of retries.
        of: u32,
    },
    /// A run was given up, because the environment spoiled every attempt.
    GivenUp {
        /// The run.
        run: RunView,
        /// The cause that spoiled the last attempt.
        cause: SpoilCause,
        /// The details of the last cause, as text.
        reason: String,
        /// The number of retries.
        times: u32,
    },
    /// A run was not executed.
    Skipped {
        /// The run.
        run: RunView,
        /// The reason.
        reason: String,
    },
    /// The sweep is stopping, because a stop was requested.
    Stopping,
    /// No further events follow.
    End,
}

/// A receiver of events.
pub trait Observer {
    /// Receives an event. Called in the order of the events, on the scheduler's thread.
    fn event(&mut self, event: Event);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::expand::expand;
    use crate::plan::{Format, parse};

    /// Returns the length, in seconds, of the window in which an open loop with 10 arrivals per second
    /// sends 3 000 requests of this scenario.
    fn window(scenario: serde_json::Value) -> f64 {
        let plan = json!({
            "sweepline": 1, "name": "t", "endpoints": { "e": { "engine": "mock" } }, "models": { "m": { "id": "x" } },
            "scenarios": { "s": scenario },
            "phases": { "fill": { "for": "0s" }, "measure": { "for": "10s", "min_requests": 3_000, "at_most": "1h" } },
            "sweeps": { "s": { "matrix": { "endpoint": "e", "model": "m", "scenario": "s", "qps": 10 } } },
        });
        let plan = parse("plan.yaml".as_ref(), &plan.to_string(), Format::Yaml).expect("a plan").plan;
        let run = &expand(&plan).expect("expands").runs[0];
        let view = RunView::new(1, run);
        let around = view.expected_ns() - view.phases.stabilize.0 - view.cooldown_ns;
        let window = window_ns(&view.phases, &view.load, view.requests_per_arrival);
        assert_eq!(around, window);
        window as f64 / 1e9
    }

    #[test]
    fn an_arrival_that_is_a_conversation_brings_all_its_turns() {
        let near =
            |seconds: f64, wanted: f64| assert!((seconds - wanted).abs() < 0.01, "{seconds} s, expected {wanted} s");
        near(window(json!({ "base": "B1" })), 300.0);
        near(window(json!({ "base": "D", "turns": 6 })), 300.0);
        near(window(json!({ "base": "D", "turns": 6, "sessions": "open" })), 50.0);
        // The window is never shorter than `for`.
        near(window(json!({ "base": "D", "turns": 600, "sessions": "open" })), 10.0);
    }
}
