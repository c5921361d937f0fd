//! A sweep as written by the user.

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

/// The quantity that the runs of a sweep measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SweepMeasure {
    /// The behavior of the server under a load.
    Load,
    /// The time that the server takes to start.
    Start,
}

/// One sweep: a matrix of cells, each run `repeats` times.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// The axes, each a list of values, a range like { from: 1, to: 256, times: 2 }, or several axes that
    /// vary together ({ zip: … } or a list of tables) under a name of your choice. `endpoint`, `model` and
    /// `scenario` name tables of the plan. `batch_size` alone is a closed loop, `qps` alone is an open loop,
    /// and both together are an open loop with an in-flight cap. Any field of a request can be an axis too.
    /// Axes multiply in written order, with the last one varying fastest.
    #[schemars(schema_with = "crate::plan::model::matrix::schema::matrix_schema")]
    pub matrix: Table<Axis>,
    /// The cells to keep: every given field must match. A list matches any of its values; { from: 8, to: 64 }
    /// matches any number in the range. Default: all.
    #[serde(default)]
    #[schemars(schema_with = "crate::plan::model::matrix::schema::condition_schema")]
    pub when: Option<Condition>,
    /// The cells to exclude: every given field must match. A list matches any of its values; { from: 8, to:
    /// 64 } matches any number in the range.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::plan::model::matrix::schema::excludes_schema")]
    pub exclude: Vec<Condition>,
    /// Additional fields for matching cells: { when: { endpoint: vllm }, with: { temperature: 0.7 } }.
    /// Adds no cell and changes no value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::plan::model::matrix::schema::extends_schema")]
    pub extend: Vec<Extend>,
    /// Additional cells, each written out: { endpoint: vllm, batch_size: 512 }. They come after those of
    /// the matrix and leave the matrix unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::plan::model::matrix::schema::adds_schema")]
    pub add: Vec<Table<Scalar>>,
    /// What to measure: `load` (default) measures the behavior of the server under the load of each cell;
    /// `start` measures how long a launched server takes until it is ready and has responded, with a new
    /// start for each run. `start` allows no load and no scenario.
    #[schemars(extend("default" = "load"), example = &"start")]
    pub measure: Option<SweepMeasure>,
    /// Search for the highest load of each cell that meets the objective, instead of listing loads: {
    /// qps: { from: 1, to: 200, within: 5% } }. Which loads run, and how often, depends on the
    /// measurements.
    pub search: Option<Search>,
    /// End a series of loads early: loads run from the lightest up, all repeats of a load together, and the
    /// series ends after the first load that is shown to meet the rule. slo_missed: the load misses the
    /// plan's `slo`; saturated: requests arrive faster than the server completes them; errors: so many
    /// requests fail that a run is invalid, or the server rejects the load.
    #[schemars(example = &"slo_missed")]
    pub stop: Option<StopRule>,
    /// Find the best settings of the server at the loads of the sweep, over its `server` axes: all
    /// settings have a short run, and the better ones continue with longer runs, within a time budget: {
    /// for: goodput, budget: 2h }.
    pub optimize: Option<Optimize>,
    /// How often each cell runs: a number of times, or until its means are known precisely enough. Default 1.
    #[serde(default)]
    #[schemars(example = 3, example = serde_json::json!({ "until": "2%", "at_most": 12 }))]
    pub repeats: Repeats,
    /// Skip this sweep if the plan's `budget` does not suffice for it. Of several optional sweeps, the
    /// last declared one is skipped first.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    #[schemars(example = true)]
    pub optional: bool,
    /// Sweeps that must end before this one starts.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    #[schemars(example = &"saturation")]
    pub after: OneOrMany<String>,
    /// Skip cells based on the result of an earlier sweep in the cell with the same values on all common
    /// axes: { sweep: limit, metric: max_qps_under_slo, below: 2 }.
    pub skip_if: Option<SkipIf>,
    /// The result that an earlier sweep must have in each of its cells before this sweep and the sweeps after
    /// it run: { sweep: limit, metric: max_qps_under_slo, at_least: 20 }. If the condition fails, `run`
    /// exits with 4.
    pub gate: Option<Gate>,
    /// How arrivals of an open loop are spaced: poisson, constant or { gamma: { cv: 2 } }; or how their
    /// rate changes over the run: a ramp, steps, bursts or a curve. Default poisson.
    #[schemars(extend("default" = "poisson"))]
    pub arrivals: Option<Arrivals>,
    /// Phases of this sweep, merged field by field with the plan's.
    #[serde(default)]
    pub phases: PhasesPatch,
    /// The pause between runs of this sweep; default: the plan's.
    pub between: Option<Between>,
    /// How requests get their connections; default: the plan's.
    #[schemars(example = &"cold")]
    pub connections: Option<Connections>,
    /// Settings of the load generator, merged field by field with the plan's.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub engine: LoadEnginePatch,
    /// The data that runs record in addition to their numbers, merged field by field with the plan's.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub record: RecordPatch,
    /// Stream responses token by token; default: the plan's.
    #[schemars(example = false)]
    pub stream: Option<bool>,
    /// The cells of this sweep to compare; default: the plan's.
    pub compare: Option<Compare>,
    /// Rules of the methodology lint that do not apply to this sweep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Allow>,
    /// The result that you expect.
    #[schemars(example = "It bends at 20 requests per second.")]
    pub hypothesis: Option<String>,
    /// Further information for readers of the results.
    #[schemars(example = "run after the nightly deploy")]
    pub notes: Option<String>,
}

impl Sweep {
    /// Whether the sweep's runs measure how a server starts.
    pub fn measures_start(&self) -> bool {
        self.measure == Some(SweepMeasure::Start)
    }

    /// Whether measurements decide which of the sweep's runs are executed. This is the case for a search, for
    /// a series of loads that ends early, and for an optimization of server settings.
    pub fn chooses_runs(&self) -> bool {
        self.search.is_some() || self.stop.is_some() || self.optimize.is_some()
    }

    /// How arrivals are spaced if neither an axis nor a scenario determines this.
    pub fn spacing(&self) -> Arrivals {
        self.arrivals.clone().unwrap_or_default()
    }

    /// The highest rate of a rate profile in requests per second; `None` if the sweep has no such profile.
    pub fn own_rate(&self) -> Option<Decimal> {
        self.arrivals.as_ref()?.own_rate()
    }
}
