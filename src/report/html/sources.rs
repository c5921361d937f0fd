//! What a page is made of. Every number in it was computed before: nothing is measured twice.

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

/// What a page is made of.
pub(crate) struct Sources<'a> {
    /// The plan.
    pub(crate) plan: &'a Plan,
    /// When the page is made, in words.
    pub(crate) made: String,
    /// What makes runs that are missing, as one types it.
    pub(crate) run_again: String,
    /// The plan with its changes and its folder, as one types it behind a command.
    pub(crate) plan_typed: String,
    /// What shows one run in full, as one types it, without the run.
    pub(crate) show: String,
    /// The plan's runs with results, in its order.
    pub(crate) runs: Vec<MeasuredRun<'a>>,
    /// The plan's runs without one.
    pub(crate) without: Vec<RunWithout>,
    /// Loads and what they bring.
    pub(crate) curves: &'a [Curve<'a>],
    /// What each curve says of its endpoint as an instance; empty where the plan has no objective.
    pub(crate) configurations: &'a [Configuration<'a>],
    /// What the plan declares to be compared, answered; none where it declares nothing.
    pub(crate) comparison: Option<&'a Comparison>,
    /// Decoding beside what memory bandwidth allows.
    pub(crate) bound: Bound<'a>,
    /// Symptoms.
    pub(crate) diagnoses: &'a [Diagnosis],
    /// What nobody measured of the servers.
    pub(crate) not_measured: String,
    /// The classes of mixes; empty where no run is of a mix.
    pub(crate) classes: Vec<ClassCurves<'a>>,
    /// What is known of each client that measured.
    pub(crate) calibrated: Vec<Calibrated>,
    /// What calibrates for the plan, as one types it.
    pub(crate) calibrate: String,
    /// How latencies are spread over the requests of some runs.
    pub(crate) spreads: Vec<Spread>,
    /// Runs whose requests could have been drawn and are not, for there are too many.
    pub(crate) spreads_left: usize,
    /// What ran when, by when it began.
    pub(crate) timeline: Vec<Span>,
    /// How searches and ladders came to stand where they do.
    pub(crate) trails: &'a [Trail],
    /// Sentences about the results as a whole.
    pub(crate) notes: Vec<String>,
    /// What the methodology lint says of the plan.
    pub(crate) lints: Vec<String>,
}

/// One run with a result.
pub(crate) struct MeasuredRun<'a> {
    /// The plan's sweep.
    pub(crate) sweep: &'a str,
    /// What was committed.
    pub(crate) record: &'a RunRecord,
    /// What names it, under the plan.
    pub(crate) labels: &'a RunLabels,
    /// Its metrics.
    pub(crate) metrics: &'a RunMetrics,
    /// What it is worth.
    pub(crate) verdict: &'a Verdict,
    /// The classes of its mix.
    pub(crate) classes: &'a [OfClass],
    /// How it went over time; none where nothing was sent.
    pub(crate) pulse: Option<&'a Pulse>,
}

/// A stretch of time in which one run, or one server, was at work.
pub(crate) struct Span {
    /// What it occupied: two of one lane never overlap.
    pub(crate) lane: String,
    /// Its endpoint.
    pub(crate) endpoint: String,
    /// What it was.
    pub(crate) kind: SpanKind,
    /// What it is called.
    pub(crate) name: String,
    /// When it began.
    pub(crate) from: Timestamp,
    /// When it ended.
    pub(crate) to: Timestamp,
}

/// What a stretch of time was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    /// A run that was committed, with its verdict.
    Run(&'static str),
    /// A server was started, until it was ready.
    ServerStart,
    /// The environment spoiled an attempt.
    Spoiled,
    /// An attempt failed.
    Failed,
    /// An attempt was interrupted, or its process was killed.
    Interrupted,
    /// A committed run that a later one replaced.
    Replaced,
    /// An attempt that goes on.
    UnderWay,
}

impl SpanKind {
    /// What it is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            SpanKind::Run(verdict) => verdict,
            SpanKind::ServerStart => "server start",
            SpanKind::Spoiled => "spoiled",
            SpanKind::Failed => "failed",
            SpanKind::Interrupted => "interrupted",
            SpanKind::Replaced => "replaced",
            SpanKind::UnderWay => "under way",
        }
    }
}

/// The loads of mixes and what they bring, of the requests of one class alone.
pub(crate) struct ClassCurves<'a> {
    /// The class.
    pub(crate) name: String,
    /// Its curves.
    pub(crate) curves: Vec<Curve<'a>>,
}

/// A client that measured, and what a calibration says of it.
pub(crate) struct Calibrated {
    /// The host.
    pub(crate) host: String,
    /// The calibration that applies to it.
    pub(crate) known: Known,
    /// Its runs, as the generator felt them.
    pub(crate) runs: Vec<Loaded>,
}

/// One run without a result.
pub(crate) struct RunWithout {
    /// The plan's sweep.
    pub(crate) sweep: String,
    /// What names it.
    pub(crate) labels: RunLabels,
    /// `not measured`, `given up` or `unreadable`.
    pub(crate) state: &'static str,
    /// Why.
    pub(crate) reason: String,
}

/// How one latency is spread over the requests of one load of a curve.
pub(crate) struct Spread {
    /// The curve that the load lies on, by its place among the curves.
    pub(crate) curve: usize,
    /// The load.
    pub(crate) load: f64,
    /// Why this load is drawn.
    pub(crate) chosen: Chosen,
    /// Key of the metric.
    pub(crate) metric: &'static str,
    /// The repeats, each by itself.
    pub(crate) repeats: Vec<RepeatSpread>,
    /// The requests of all these repeats together.
    pub(crate) together: Ecdf,
}

/// How one latency is spread over the requests of one run.
pub(crate) struct RepeatSpread {
    /// The repeat.
    pub(crate) repeat: u32,
    /// The run's full id.
    pub(crate) run: String,
    /// The spread.
    pub(crate) ecdf: Ecdf,
}

/// Why a load's requests are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumIter)]
pub(crate) enum Chosen {
    /// It is the highest that meets the objective.
    Holds,
    /// It is the first that misses it.
    Misses,
    /// It is the heaviest that has runs.
    Heaviest,
}
