//! The inputs of a page. Every number on the page was computed elsewhere, so that nothing is computed twice.

use jiff::Timestamp;

use crate::analysis::comparison::Comparison;
use crate::analysis::curve::Curve;
use crate::analysis::diagnosis::Diagnosis;
use crate::analysis::ecdf::Ecdf;
use crate::analysis::{OfClass, Pulse, RunMetrics, Verdict};
use crate::plan::Plan;
use crate::report::Trail;
use crate::report::configuration::Configuration;
use crate::report::diagnosis::Bound;
use crate::rows::RunLabels;
use crate::store::RunRecord;
use crate::sweep::calibrate::{Known, Loaded};

/// The inputs of a page.
pub(crate) struct Sources<'a> {
    /// The plan.
    pub(crate) plan: &'a Plan,
    /// When the page was created, as text.
    pub(crate) made: String,
    /// The command that executes the missing runs.
    pub(crate) run_again: String,
    /// The plan, the `--set` changes and the results folder, as arguments for a command.
    pub(crate) plan_typed: String,
    /// The command that shows one run in full, without the argument for the run.
    pub(crate) show: String,
    /// The runs with results, in the order of the plan.
    pub(crate) runs: Vec<MeasuredRun<'a>>,
    /// The runs of the plan without results.
    pub(crate) without: Vec<RunWithout>,
    /// The curves: loads with their results.
    pub(crate) curves: &'a [Curve<'a>],
    /// The capacity of one instance, as shown by each curve; empty if the plan has no objective.
    pub(crate) configurations: &'a [Configuration<'a>],
    /// The result of the plan's comparison; `None` if the plan declares none.
    pub(crate) comparison: Option<&'a Comparison>,
    /// Decoding speed compared with the limit of memory bandwidth.
    pub(crate) bound: Bound<'a>,
    /// The symptoms that were checked, with the findings.
    pub(crate) diagnoses: &'a [Diagnosis],
    /// A description of which measurements of the servers are missing.
    pub(crate) not_measured: String,
    /// The classes of mixes; empty if no run has a mix.
    pub(crate) classes: Vec<ClassCurves<'a>>,
    /// The calibration of the load generator on each client machine.
    pub(crate) calibrated: Vec<Calibrated>,
    /// The command that calibrates the load generator for the plan.
    pub(crate) calibrate: String,
    /// The distributions of latencies over the requests of some runs.
    pub(crate) spreads: Vec<Spread>,
    /// Number of runs whose distributions are not drawn because there are too many runs.
    pub(crate) spreads_left: usize,
    /// The activities over time, ordered by their start.
    pub(crate) timeline: Vec<Span>,
    /// The paths of searches and ladders.
    pub(crate) trails: &'a [Trail],
    /// Sentences about the results as a whole.
    pub(crate) notes: Vec<String>,
    /// Findings of the methodology lint about the plan.
    pub(crate) lints: Vec<String>,
}

/// A run with a result.
pub(crate) struct MeasuredRun<'a> {
    /// Name of the sweep in the plan.
    pub(crate) sweep: &'a str,
    /// The committed record of the run.
    pub(crate) record: &'a RunRecord,
    /// The labels of the run under the plan.
    pub(crate) labels: &'a RunLabels,
    /// The metrics of the run.
    pub(crate) metrics: &'a RunMetrics,
    /// The verdict of the run.
    pub(crate) verdict: &'a Verdict,
    /// The classes of the run's mix; empty without a mix.
    pub(crate) classes: &'a [OfClass],
    /// The run over time; `None` if nothing was sent.
    pub(crate) pulse: Option<&'a Pulse>,
}

/// A stretch of time in which one run was active, or one server was starting.
pub(crate) struct Span {
    /// The resource that is occupied, which has its own lane. Two spans in one lane never overlap.
    pub(crate) lane: String,
    /// The endpoint of the run or the server.
    pub(crate) endpoint: String,
    /// The kind of activity.
    pub(crate) kind: SpanKind,
    /// The name of the run or the server.
    pub(crate) name: String,
    /// Start of the activity.
    pub(crate) from: Timestamp,
    /// End of the activity.
    pub(crate) to: Timestamp,
}

/// The kind of a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    /// A run that was committed, with its verdict.
    Run(&'static str),
    /// A server start, until the server was ready.
    ServerStart,
    /// An attempt that the environment spoiled.
    Spoiled,
    /// An attempt that failed.
    Failed,
    /// An attempt that was interrupted, or whose process was killed.
    Interrupted,
    /// A committed run that a later run replaced.
    Replaced,
    /// An attempt in progress.
    UnderWay,
}

impl SpanKind {
    /// Returns the name of the kind.
    pub(crate) fn name(self) -> &'static str {
        match self {
            SpanKind::Run(verdict) => verdict,
            SpanKind::ServerStart => "server start",
            SpanKind::Spoiled => "spoiled",
            SpanKind::Failed => "failed",
            SpanKind::Interrupted => "interrupted",
            SpanKind::Replaced => "replaced",
            SpanKind::UnderWay => "in progress",
        }
    }
}

/// The curves of mixes, restricted to the requests of one class.
pub(crate) struct ClassCurves<'a> {
    /// The name of the class.
    pub(crate) name: String,
    /// The curves of the class.
    pub(crate) curves: Vec<Curve<'a>>,
}

/// A client machine and the calibration of its load generator.
pub(crate) struct Calibrated {
    /// The name of the machine.
    pub(crate) host: String,
    /// The calibration that applies to the machine.
    pub(crate) known: Known,
    /// The runs of the machine, with their demands on the generator.
    pub(crate) runs: Vec<Loaded>,
}

/// A run without a result.
pub(crate) struct RunWithout {
    /// Name of the sweep in the plan.
    pub(crate) sweep: String,
    /// The labels of the run.
    pub(crate) labels: RunLabels,
    /// The state: `not measured`, `given up` or `unreadable`.
    pub(crate) state: &'static str,
    /// The reason for the state.
    pub(crate) reason: String,
}

/// The distribution of one latency over the requests of one load of a curve.
pub(crate) struct Spread {
    /// The index of the curve that the load belongs to.
    pub(crate) curve: usize,
    /// The load of the runs.
    pub(crate) load: f64,
    /// Why this load is drawn.
    pub(crate) chosen: Chosen,
    /// Key of the latency's metric.
    pub(crate) metric: &'static str,
    /// The distribution of each repeat.
    pub(crate) repeats: Vec<RepeatSpread>,
    /// The distribution over the requests of all these repeats together.
    pub(crate) together: Ecdf,
}

/// The distribution of one latency over the requests of one run.
pub(crate) struct RepeatSpread {
    /// The number of the repeat.
    pub(crate) repeat: u32,
    /// The run's full id.
    pub(crate) run: String,
    /// The distribution of the latency.
    pub(crate) ecdf: Ecdf,
}

/// The reason why the distributions of a load are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumIter)]
pub(crate) enum Chosen {
    /// The highest load that meets the objective.
    Holds,
    /// The first load that misses the objective.
    Misses,
    /// The heaviest load that has runs.
    Heaviest,
}
