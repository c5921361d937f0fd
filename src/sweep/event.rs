//! What a sweep says while it runs. It tells whoever listens and waits for nobody.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::Progress;
use crate::expand::{Course, Load, Phases, PlannedRun, RunId, RunSpec};
use crate::rows::SpoilCause;

use super::ready::Waiting;

/// The names by which a plan groups its runs: as few as it declares, however many runs there are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunGroup {
    /// Its sweep.
    pub sweep: Arc<str>,
    /// Its endpoint.
    pub endpoint: Arc<str>,
    /// The plan's name of its model.
    pub model: Arc<str>,
    /// The plan's name of its scenario.
    pub scenario: Arc<str>,
}

/// A run, as people name it.
#[derive(Debug, Clone)]
pub struct RunView {
    /// Its number among the runs of the selection, from 1, behind those that are not executed.
    pub number: usize,
    /// Its identity.
    pub id: RunId,
    /// What people call it.
    pub name: String,
    /// Its sweep, endpoint, model and scenario.
    pub group: RunGroup,
    /// Further axes of its cell and what they are, in the order in which the plan declares them.
    pub axes: Vec<[String; 2]>,
    /// Its phases.
    pub phases: Phases,
    /// What is asked of the server, and how fast.
    pub load: Load,
    /// How many requests an arrival brings on average: the turns of a conversation, where arrivals are conversations.
    pub(crate) requests_per_arrival: f64,
    /// The pause after it, in nanoseconds.
    pub(crate) cooldown_ns: u64,
    /// How the search or ladder stands that asked for it: `between 24 and 28 qps, 6 runs so far`; none where none did.
    pub(crate) standing: Option<String>,
}

/// What the names of a plan's runs need to tell them apart.
#[derive(Debug, Clone, Default)]
pub struct Naming {
    /// The plan has several models.
    models: bool,
    /// Sweeps of several repeats.
    repeated: HashSet<Arc<str>>,
}

impl Naming {
    /// For the runs of a plan.
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
    /// The view of run `number`, which is named among no others.
    pub fn new(number: usize, run: &PlannedRun) -> RunView {
        RunView::among(number, run, &Naming::default())
    }

    /// The view of run `number` among those of its plan: its name has the model where there are several, and the repeat,
    /// from 0, where its sweep has several.
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

    /// How long it takes with the pause after it when drain is short, in nanoseconds; its window as long as
    /// [`window_ns`] says.
    pub(crate) fn expected_ns(&self) -> u64 {
        let Phases { idle, fill, stabilize, .. } = self.phases;
        let window = window_ns(&self.phases, &self.load, self.requests_per_arrival);
        [idle.unwrap_or_default().0, stabilize.0, window, self.cooldown_ns]
            .iter()
            .fold(fill.0, |a, b| a.saturating_add(*b))
    }
}

/// How long the measure window is going to be, in nanoseconds. An open loop's `min_requests` need a time that its rate
/// tells: the longer of `for` and the time in which so many are expected, at most `at_most`. Of a closed loop the server decides, so that
/// `for` is all that is known. `requests_per_arrival` is of a server that as many conversations leave as come.
pub(crate) fn window_ns(phases: &Phases, load: &Load, requests_per_arrival: f64) -> u64 {
    let measure = &phases.measure;
    let shortest = measure.duration.0;
    match (Course::new(load, phases), measure.min_requests) {
        (Some(course), Some(requests)) => {
            let longest = measure.at_most.map_or(shortest, |at_most| at_most.0);
            let start = phases.measure_start().secs();
            let reached = course.at(course.expected(start) + requests as f64 / requests_per_arrival);
            // A rate that has sunk to 0 never brings them.
            let needed = reached.map_or(longest, |at| ((at - start) * 1e9).ceil() as u64);
            shortest.max(needed.min(longest))
        }
        _ => shortest,
    }
}

/// Whether only measuring can tell how long the window is: a closed loop that waits for `min_requests`.
pub(crate) fn may_be_prolonged(phases: &Phases, load: &Load) -> bool {
    let measure = &phases.measure;
    let can_grow = measure.at_most.is_some_and(|at_most| at_most > measure.duration);
    matches!(load, Load::Closed { .. }) && measure.min_requests.is_some() && can_grow
}

/// `batch 8`, `5 qps` or `5 qps (at most 8 in flight)`.
pub(crate) fn load_name(load: &Load) -> String {
    match load {
        Load::Closed { batch_size } => format!("batch {batch_size}"),
        Load::Open { qps, cap: None, .. } => format!("{qps} qps"),
        Load::Open { qps, cap: Some(cap), .. } => format!("{qps} qps (at most {cap} in flight)"),
    }
}

/// Endpoint, scenario, load and what else tells a run apart: `fast · B1 · batch 8 · repeat 1` (the second: from 0). Further
/// axes stand in the order of their names, for of a result no plan is known.
pub fn name(spec: &RunSpec) -> String {
    named(spec, None, spec.labels.axes.iter(), spec.repeat > 0)
}

/// As [`name`], with the further axes in the order in which the plan declares them, and after them what no axis says.
pub(crate) fn planned_name(run: &PlannedRun) -> String {
    named(&run.spec, None, in_declared_order(run), run.spec.repeat > 0)
}

/// A cell's name: that of its runs without the repeat.
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

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// The sweep begins: these runs are to do, and so many of the selection are not.
    Begin {
        /// Runs that will be executed.
        todo: Vec<RunView>,
        /// Runs of the selection that are not executed: their results are there, or they are left out.
        settled: usize,
        /// What may add runs: searches and ladders that go on, and sweeps that wait for an earlier one.
        open: Vec<String>,
    },
    /// A search or a ladder stands so now, and asks for this run next.
    Chosen {
        /// Which: its sweep, and its cell but for the load.
        pool: String,
        /// How it stands, in words.
        standing: String,
        /// The run that is asked for; none at the end.
        next: Option<RunView>,
    },
    /// A cell has ended before all of its repeats were made: these runs are left out.
    Pruned {
        /// Which: its sweep, and what people call it.
        cell: String,
        /// What was shown, in words.
        why: String,
        /// The runs that are left out.
        runs: Vec<RunView>,
    },
    /// An embedded server is being started, or a server is being asked.
    Endpoint {
        /// Its name.
        endpoint: String,
        /// What became of it: how it answers, or why its runs are left out.
        result: Result<String, String>,
    },
    /// A server is being started.
    Launching {
        /// Its endpoint.
        endpoint: String,
        /// Its command, with its settings; without secrets.
        command: String,
    },
    /// A server that was started is ready.
    Launched {
        /// Its endpoint.
        endpoint: String,
        /// How long that took.
        after: Duration,
        /// Where its output is.
        log: String,
    },
    /// A server that was started ended before it was ready; it is started again.
    Relaunching {
        /// Its endpoint.
        endpoint: String,
        /// How it ended.
        reason: String,
        /// How often it will have been tried again with the next start.
        again: u32,
        /// How often it is at most.
        of: u32,
    },
    /// A server is not near, though the plan says so.
    Far {
        /// Its endpoint.
        endpoint: String,
        /// What was measured, and what to do.
        why: String,
    },
    /// A server takes its time to answer the probe.
    Slow {
        /// Its endpoint.
        endpoint: String,
        /// Its address.
        url: String,
    },
    /// A server is not idle before a run, and it is waited for.
    Busy {
        /// Its name.
        endpoint: String,
        /// What it is busy with, and how long it is waited for.
        what: String,
    },
    /// A server is not ready, and will be asked again.
    Waiting {
        /// Its endpoint.
        endpoint: String,
        /// Why, and for how long.
        waiting: Waiting,
    },
    /// A run begins.
    Started {
        /// Which.
        run: RunView,
        /// Its live counters.
        progress: Arc<Progress>,
    },
    /// A run was committed.
    Committed {
        /// Which.
        run: RunView,
    },
    /// A run failed; what there is of it lies in its attempt.
    Failed {
        /// Which.
        run: RunView,
        /// Why.
        reason: String,
    },
    /// The environment spoiled an attempt at a run; it will be tried again.
    Again {
        /// Which.
        run: RunView,
        /// What happened.
        reason: String,
        /// How often it will have been tried again with the next attempt.
        again: u32,
        /// How often it is at most.
        of: u32,
    },
    /// The environment spoiled every attempt at a run.
    GivenUp {
        /// Which.
        run: RunView,
        /// What happened the last time, by kind.
        cause: SpoilCause,
        /// The same in words.
        reason: String,
        /// How often it was tried again.
        times: u32,
    },
    /// A run was not executed.
    Skipped {
        /// Which.
        run: RunView,
        /// Why.
        reason: String,
    },
    /// The sweep was told to stop.
    Stopping,
    /// Nothing more will happen.
    End,
}

/// Whoever listens.
pub trait Observer {
    /// Takes one event. Called on the coordinating thread, in order.
    fn event(&mut self, event: Event);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::expand::expand;
    use crate::plan::{Format, parse};

    /// Seconds of the window that an open loop of 10 per second needs for 3 000 requests of this scenario.
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
        let near = |seconds: f64, wanted: f64| assert!((seconds - wanted).abs() < 0.01, "{seconds} s, not {wanted} s");
        near(window(json!({ "base": "B1" })), 300.0);
        near(window(json!({ "base": "D", "turns": 6 })), 300.0);
        near(window(json!({ "base": "D", "turns": 6, "sessions": "open" })), 50.0);
        // Never shorter than `for`.
        near(window(json!({ "base": "D", "turns": 600, "sessions": "open" })), 10.0);
    }
}
