//! The inputs of a page. Every number on the page was computed before, so nothing is computed
//! twice.

use jiff::Timestamp;

use crate::analysis::comparison::Comparison;
use crate::analysis::curve::Curve;
use crate::analysis::diagnosis::Diagnosis;
use crate::analysis::ecdf::Ecdf;
use crate::analysis::{OfClass, Pulse, RunMetrics, Verdict};
use crate::plan::Plan;
use crate::report::Trail;
use crate::report::capacity::Configuration;
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
    /// The command that executes missing runs.
    pub(crate) run_again: String,
    /// The plan, its changes and its folder, as arguments of a command.
    pub(crate) plan_typed: String,
    /// The command that shows one run in full, without the argument for the run.
    pub(crate) show: String,
    /// The plan's runs with results, in its order.
    pub(crate) runs: Vec<MeasuredRun<'a>>,
    /// The plan's runs without results.
    pub(crate) without: Vec<RunWithout>,
    /// Loads with their results.
    pub(crate) curves: &'a [Curve<'a>],
    /// The capacity of one instance, as shown by each curve; empty if the plan has no objective.
    pub(crate) configurations: &'a [Configuration<'a>],
    /// The result of the plan's comparison; `None` if the plan declares none.
    pub(crate) comparison: Option<&'a Comparison>,
    /// Decoding speed compared with the limit of memory bandwidth.
    pub(crate) bound: Bound<'a>,
    /// Symptoms.
    pub(crate) diagnoses: &'a [Diagnosis],
    /// Measurements that are missing for the servers.
    pub(crate) not_measured: String,
    /// The classes of mixes; empty if no run has a mix.
    pub(crate) classes: Vec<ClassCurves<'a>>,
    /// The calibration of each client.
    pub(crate) calibrated: Vec<Calibrated>,
    /// The command that calibrates for the plan.
    pub(crate) calibrate: String,
    /// The distributions of latencies over the requests of some runs.
    pub(crate) spreads: Vec<Spread>,
    /// Number of runs whose requests are not drawn because there are too many.
    pub(crate) spreads_left: usize,
    /// Activities over time, by their start.
    pub(crate) timeline: Vec<Span>,
    /// The paths of searches and ladders.
    pub(crate) trails: &'a [Trail],
    /// Sentences about the results as a whole.
    pub(crate) notes: Vec<String>,
    /// Findings of the methodology lint about the plan.
    pub(crate) lints: Vec<String>,
}

/// One run with a result.
pub(crate) struct MeasuredRun<'a> {
    /// The plan's sweep.
    pub(crate) sweep: &'a str,
    /// Its committed record.
    pub(crate) record: &'a RunRecord,
    /// Its labels under the plan.
    pub(crate) labels: &'a RunLabels,
    /// Its metrics.
    pub(crate) metrics: &'a RunMetrics,
    /// Its verdict.
    pub(crate) verdict: &'a Verdict,
    /// The classes of its mix.
    pub(crate) classes: &'a [OfClass],
    /// Its course over time; `None` if nothing was sent.
    pub(crate) pulse: Option<&'a Pulse>,
}

/// A stretch of time in which one run, or one server, was active.
pub(crate) struct Span {
    /// The resource. Two spans in one lane never overlap.
    pub(crate) lane: String,
    /// Its endpoint.
    pub(crate) endpoint: String,
    /// Its kind.
    pub(crate) kind: SpanKind,
    /// Its name.
    pub(crate) name: String,
    /// When it began.
    pub(crate) from: Timestamp,
    /// When it ended.
    pub(crate) to: Timestamp,
}

/// The kind of a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    /// A run that was committed, with its verdict.
    Run(&'static str),
    /// A server start, until the server was ready.
    ServerStart,
    /// The environment spoiled an attempt.
    Spoiled,
    /// An attempt failed.
    Failed,
    /// An attempt was interrupted, or its process was killed.
    Interrupted,
    /// A committed run that a later run replaced.
    Replaced,
    /// An attempt in progress.
    UnderWay,
}

impl SpanKind {
    /// Its name.
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

/// The loads of mixes with their results, for the requests of one class.
pub(crate) struct ClassCurves<'a> {
    /// The class.
    pub(crate) name: String,
    /// Its curves.
    pub(crate) curves: Vec<Curve<'a>>,
}

/// A client, and its calibration.
pub(crate) struct Calibrated {
    /// The host.
    pub(crate) host: String,
    /// The calibration that applies to it.
    pub(crate) known: Known,
    /// The pressure of its runs on the generator.
    pub(crate) runs: Vec<Loaded>,
}

/// One run without a result.
pub(crate) struct RunWithout {
    /// The plan's sweep.
    pub(crate) sweep: String,
    /// Its labels.
    pub(crate) labels: RunLabels,
    /// `not measured`, `given up` or `unreadable`.
    pub(crate) state: &'static str,
    /// The reason.
    pub(crate) reason: String,
}

/// The distribution of one latency over the requests of one load of a curve.
pub(crate) struct Spread {
    /// The curve of the load, by its index.
    pub(crate) curve: usize,
    /// The load.
    pub(crate) load: f64,
    /// Why this load is drawn.
    pub(crate) chosen: Chosen,
    /// Key of the metric.
    pub(crate) metric: &'static str,
    /// The repeats, one by one.
    pub(crate) repeats: Vec<RepeatSpread>,
    /// The requests of all these repeats together.
    pub(crate) together: Ecdf,
}

/// The distribution of one latency over the requests of one run.
pub(crate) struct RepeatSpread {
    /// The repeat.
    pub(crate) repeat: u32,
    /// The run's full id.
    pub(crate) run: String,
    /// The distribution.
    pub(crate) ecdf: Ecdf,
}

/// The reason why a load's requests are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumIter)]
pub(crate) enum Chosen {
    /// It is the highest load that meets the objective.
    Holds,
    /// It is the first load that misses the objective.
    Misses,
    /// It is the heaviest load that has runs.
    Heaviest,
}
