//! What a sweep says while it runs. It tells whoever listens and waits for nobody.

use std::sync::Arc;

use crate::engine::Progress;
use crate::expand::{Load, Phases, PlannedRun, RunId, RunSpec};

/// A run, as people name it.
#[derive(Debug, Clone)]
pub struct RunView {
    /// Its number among the runs of this invocation, from 1.
    pub number: usize,
    /// Its identity.
    pub id: RunId,
    /// Its sweep.
    pub sweep: String,
    /// What people call it, by [`name`].
    pub name: String,
    /// Its phases.
    pub phases: Phases,
    /// The pause after it, in nanoseconds.
    pub cooldown_ns: u64,
}

impl RunView {
    /// The view of run `number`.
    pub fn new(number: usize, run: &PlannedRun) -> RunView {
        RunView {
            number,
            id: run.id,
            sweep: run.sweep.to_string(),
            name: name(&run.spec),
            phases: run.spec.phases,
            cooldown_ns: run.spec.between.cooldown.0,
        }
    }

    /// How long it takes with the pause after it when its window is not prolonged and drain is short, in nanoseconds.
    pub fn expected_ns(&self) -> u64 {
        self.phases.fill.0 + self.phases.stabilize.0 + self.phases.measure.duration.0 + self.cooldown_ns
    }
}

/// `batch 8`, `5 qps` or `5 qps (at most 8 in flight)`.
pub fn load_name(load: Load) -> String {
    match load {
        Load::Closed { batch_size } => format!("batch {batch_size}"),
        Load::Open { qps, cap: None, .. } => format!("{qps} qps"),
        Load::Open { qps, cap: Some(cap), .. } => format!("{qps} qps (at most {cap} in flight)"),
    }
}

/// Endpoint, scenario, load and what else tells a run apart: `fast · B1 · batch 8 · repeat 1` (the second: from 0).
pub fn name(spec: &RunSpec) -> String {
    let mut parts = vec![spec.endpoint.name.clone(), spec.labels.scenario.to_string(), load_name(spec.load)];
    parts.extend(spec.labels.axes.iter().map(|(axis, value)| format!("{axis} {value}")));
    if spec.repeat > 0 {
        parts.push(format!("repeat {}", spec.repeat));
    }
    parts.join(" · ")
}

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// The sweep begins: so many runs of the plan are to do, so many are there already.
    Begin {
        /// Runs that will be executed.
        todo: Vec<RunView>,
        /// Runs whose results are there.
        cached: usize,
    },
    /// An embedded server is being started, or a server is being asked.
    Endpoint {
        /// Its name.
        endpoint: String,
        /// What became of it: how it answers, or why its runs are left out.
        result: Result<String, String>,
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
