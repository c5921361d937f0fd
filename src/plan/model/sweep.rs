//! A sweep as the user writes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::model::allow::Allow;
use crate::plan::model::arrivals::Arrivals;
use crate::plan::model::client::{Connections, LoadEnginePatch};
use crate::plan::model::compare::Compare;
use crate::plan::model::gate::{Gate, SkipIf};
use crate::plan::model::matrix::{Axis, Condition, Extend};
use crate::plan::model::optimize::Optimize;
use crate::plan::model::phases::{Between, PhasesPatch};
use crate::plan::model::record::RecordPatch;
use crate::plan::model::repeats::Repeats;
use crate::plan::model::scalar::Scalar;
use crate::plan::model::search::Search;
use crate::plan::model::shorthand::OneOrMany;
use crate::plan::model::stop::StopRule;
use crate::plan::model::table::Table;
use crate::units::Decimal;

/// What the runs of a sweep measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SweepMeasure {
    /// What the server does under a load.
    Load,
    /// How long the server takes to start.
    Start,
}

/// One sweep: a matrix of cells, each run `repeats` times.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// The axes, each a list of values, a range like { from: 1, to: 256, times: 2 }, or several axes that go together
    /// ({ zip: … } or a list of tables) under a name of your own. `endpoint`, `model` and `scenario` name tables of the
    /// plan; `batch_size` alone is a closed loop, `qps` alone an open loop, both an open loop with an in-flight cap; any
    /// field of a request is an axis too. Axes multiply in the order written, the last one fastest.
    #[schemars(schema_with = "crate::plan::model::matrix::schema::matrix_schema")]
    pub matrix: Table<Axis>,
    /// The cells to keep: every field given must match. A list matches any of its values, { from: 8, to: 64 } any
    /// number within. Default: all.
    #[serde(default)]
    #[schemars(schema_with = "crate::plan::model::matrix::schema::condition_schema")]
    pub when: Option<Condition>,
    /// Cells to leave out: every field given must match. A list matches any of its values, { from: 8, to: 64 } any
    /// number within.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::plan::model::matrix::schema::excludes_schema")]
    pub exclude: Vec<Condition>,
    /// Fields that matching cells get besides their own: { when: { endpoint: vllm }, with: { temperature: 0.7 } }. Makes
    /// no cell and changes no value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::plan::model::matrix::schema::extends_schema")]
    pub extend: Vec<Extend>,
    /// Further cells, each written out: { endpoint: vllm, batch_size: 512 }. They come after those of the matrix, which
    /// they leave as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::plan::model::matrix::schema::adds_schema")]
    pub add: Vec<Table<Scalar>>,
    /// What is measured: `load` (default), what the server does under the load of each cell; or `start`, how long a launched server takes
    /// until it is ready and has answered, each run a start of its own. Beside `start` there is no load and no scenario.
    #[schemars(extend("default" = "load"), example = &"start")]
    pub measure: Option<SweepMeasure>,
    /// Search the highest load of each cell that meets the objective, instead of naming loads: { qps: { from: 1, to: 200, within: 5% } }.
    /// Which loads are run, and how often, follows from what was measured.
    pub search: Option<Search>,
    /// End a ladder of loads early: they run from the lightest up, all repeats of one together, and end behind the first of which
    /// this is shown. slo_missed: it misses the plan's `slo`; saturated: more comes than is answered; errors: so many requests fail that
    /// a run is invalid, or the server rejects the load.
    #[schemars(example = &"slo_missed")]
    pub stop: Option<StopRule>,
    /// Find the settings of the server that are best at the loads of the sweep, over its `server` axes: all settings have a short run, the
    /// better ones go on to longer runs, within a budget of time: { for: goodput, budget: 2h }.
    pub optimize: Option<Optimize>,
    /// How often each cell is run: a number of times, or until its means are known. Default 1.
    #[serde(default)]
    #[schemars(example = 3, example = serde_json::json!({ "until": "2%", "at_most": 12 }))]
    pub repeats: Repeats,
    /// Leave this sweep out where the plan's `budget` does not suffice for it. Of several the last declared one goes first.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    #[schemars(example = true)]
    pub optional: bool,
    /// Sweeps that end before this one starts.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    #[schemars(example = &"saturation")]
    pub after: OneOrMany<String>,
    /// Leave cells out by what an earlier sweep found in the cell with the same values on the axes that both have:
    /// { sweep: limit, metric: max_qps_under_slo, below: 2 }.
    pub skip_if: Option<SkipIf>,
    /// What an earlier sweep must have found, in each of its cells, before this sweep and those that come after it run:
    /// { sweep: limit, metric: max_qps_under_slo, at_least: 20 }. Where it did not, `run` exits with 4.
    pub gate: Option<Gate>,
    /// How arrivals of an open loop are spaced: poisson, constant or { gamma: { cv: 2 } }; or how their rate changes over
    /// the run, by a ramp, steps, bursts or a curve. Default poisson.
    #[schemars(extend("default" = "poisson"))]
    pub arrivals: Option<Arrivals>,
    /// Phases of this sweep, merged field by field over the plan's.
    #[serde(default)]
    pub phases: PhasesPatch,
    /// The pause between runs of this sweep; default: the plan's.
    pub between: Option<Between>,
    /// How requests get their connections; default: the plan's.
    #[schemars(example = &"cold")]
    pub connections: Option<Connections>,
    /// How the load generator is built, merged field by field over the plan's.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub engine: LoadEnginePatch,
    /// What runs keep besides their numbers, merged field by field over the plan's.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub record: RecordPatch,
    /// Ask for answers token by token; default: the plan's.
    #[schemars(example = false)]
    pub stream: Option<bool>,
    /// Which cells of this sweep will be compared; default: what the plan says.
    pub compare: Option<Compare>,
    /// Rules of the methodology lint that do not hold for this sweep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Allow>,
    /// What you expect to see.
    #[schemars(example = "It bends at 20 requests per second.")]
    pub hypothesis: Option<String>,
    /// Anything a reader of the results should know.
    #[schemars(example = "run after the nightly deploy")]
    pub notes: Option<String>,
}

impl Sweep {
    /// Whether its runs measure how a server starts.
    pub fn measures_start(&self) -> bool {
        self.measure == Some(SweepMeasure::Start)
    }

    /// Whether what was measured decides which of its runs are made: by a search, by a ladder that ends early, or by looking for the best
    /// settings of a server.
    pub fn chooses_runs(&self) -> bool {
        self.search.is_some() || self.stop.is_some() || self.optimize.is_some()
    }

    /// How arrivals are spaced where neither an axis nor a scenario says it.
    pub fn spacing(&self) -> Arrivals {
        self.arrivals.clone().unwrap_or_default()
    }

    /// The highest rate of a profile of the rate that brings its own.
    pub fn own_rate(&self) -> Option<Decimal> {
        self.arrivals.as_ref()?.own_rate()
    }
}
