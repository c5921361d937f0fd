//! The plan as the user writes it: one Rust type per table of the file. The doc comments here are the
//! descriptions in `schemas/plan.schema.json`. Defaults that depend on nothing else are filled in on
//! reading; those that depend on the sweep, the engine or the scenario are filled in by `expand`.

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::plan::model::allow::Allow;
use crate::plan::model::budget::Budget;
use crate::plan::model::client::{Connections, LoadEnginePatch, Timeouts};
use crate::plan::model::compare::Compare;
use crate::plan::model::content::BUILT_IN;
use crate::plan::model::endpoint::Endpoint;
use crate::plan::model::field_schema::NAME;
use crate::plan::model::nonce::NonceMode;
use crate::plan::model::objective::{Goodput, Slo, Validity};
use crate::plan::model::phases::{Between, PhasesPatch};
use crate::plan::model::record::RecordPatch;
use crate::plan::model::scenario::Scenario;
use crate::plan::model::shorthand::OneOrMany;
use crate::plan::model::sweep::Sweep;
use crate::plan::model::table::Table;
use crate::plan::model::under_test::Model;
use crate::units::{Currency, Seed};

/// A resolved plan without errors: every matrix has the axes `endpoint`, `model` and `scenario`, all axes
/// have their primary names, and each reference to a file holds the content of the file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(Deserialize))]
#[serde(transparent)]
pub struct ResolvedPlan(Plan);

impl ResolvedPlan {
    /// Wraps a plan that is already resolved.
    pub(crate) fn new(plan: Plan) -> ResolvedPlan {
        ResolvedPlan(plan)
    }
}

impl std::ops::Deref for ResolvedPlan {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.0
    }
}

/// A sweepline plan: the endpoints, models and scenarios to measure, the loads, and how the results are
/// judged.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "sweepline plan")]
pub struct Plan {
    /// Version of the plan format: 1.
    #[schemars(range(min = 1, max = 1))]
    #[schemars(extend("const" = 1))]
    pub sweepline: u32,
    /// Name of the plan, shown in tables and reports.
    #[schemars(regex(pattern = r"\S"))]
    #[schemars(example = "chat-70b")]
    pub name: String,
    /// The result that you expect, written before you measure.
    #[schemars(example = "Prefix caching halves p99 TTFT at equal goodput.")]
    pub hypothesis: Option<String>,
    /// Further information for readers of the results.
    #[schemars(example = "shared node, nightly batch may run")]
    pub notes: Option<String>,
    /// Currency of every price in the plan, as a three-letter code; shown with amounts of money. Nothing
    /// is converted.
    #[schemars(example = &"EUR")]
    pub currency: Option<Currency>,
    /// Fragments: files with parts of a plan, relative to this file. Values in this file override those
    /// of fragments, and later fragments override earlier ones; tables are merged key by key.
    #[serde(rename = "use", default, skip_serializing_if = "OneOrMany::is_empty")]
    #[schemars(example = serde_json::json!(["fragments/h100.yaml"]))]
    pub uses: OneOrMany<String>,
    /// Variables for expressions in values, like "{{ measure }}" or "{{ n * 2 }}s"; they may refer to
    /// each other.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub vars: Table<serde_json::Value>,
    /// Seed of arrival times, prompt texts and run order.
    #[serde(default)]
    #[schemars(example = 42)]
    pub seed: Seed,
    /// The servers under test, by name.
    #[schemars(schema_with = "crate::plan::model::field_schema::named::<Endpoint>")]
    pub endpoints: Table<Endpoint>,
    /// The models, by name.
    #[schemars(schema_with = "crate::plan::model::field_schema::named::<Model>")]
    pub models: Table<Model>,
    /// Your scenarios, by name. The built-ins A1, A2, B1, B2, C and D need no entry.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(schema_with = "crate::plan::model::plan::own_scenarios")]
    pub scenarios: Table<Scenario>,
    /// Length of each phase of a run.
    #[serde(default)]
    pub phases: PhasesPatch,
    /// The pause between two runs on the same resource.
    #[serde(default)]
    pub between: Between,
    /// When a request is given up.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// How requests get their connections. Can also be set per sweep, or as an axis.
    #[serde(default)]
    pub connections: Connections,
    /// Settings of the load generator. They determine how much load this machine can generate, and are not
    /// part of a run's identity.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub engine: LoadEnginePatch,
    /// The data that runs record in addition to their numbers. Does not affect measurements, so existing
    /// results stay valid.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub record: RecordPatch,
    /// Stream responses token by token. Can also be set per scenario, or as an axis.
    #[serde(default = "yes")]
    pub stream: bool,
    /// Start every prompt with a few tokens that no other run used, so that no run hits a cache that another
    /// one warmed (`on`). `run` uses the same tokens for all prompts of an attempt, so that recorded texts
    /// keep the prefixes that they share. Can also be set per scenario, or as an axis.
    #[serde(default)]
    pub nonce: NonceMode,
    /// The action if a server differs from the one on which the existing results were measured:
    /// another engine, release or served model. `match` repeats the measurements, `pin` ends the
    /// sweep before any request is sent, `ignore` skips the comparison. Not part of a run's identity.
    #[serde(default)]
    pub environment: EnvironmentPolicy,
    /// Thresholds of the verdict's reasons.
    #[serde(default)]
    pub validity: Validity,
    /// The service level objective: limits on percentiles of a run.
    pub slo: Option<Slo>,
    /// Limits that a single request must meet to count as good. Default: the thresholds of `slo`.
    pub goodput: Option<Goodput>,
    /// Maximum number of cells of all sweeps together, each counted once per repeat, before `when` and
    /// `exclude`. A plan with more cells is rejected. Default 1000000.
    #[serde(default = "max_cells", skip_serializing_if = "is_max_cells")]
    #[schemars(range(min = 1, max = 10_000_000), example = 5_000)]
    pub max_cells: u32,
    /// The cells to compare, in every sweep that has the axis and the baseline. Can also be set per
    /// sweep.
    pub compare: Option<Compare>,
    /// The budget for all runs together: { time: 2h, tokens: 20M, money: 50 }. To stay within it, sweeps
    /// marked `optional` are skipped, the last declared one first. Does not affect measurements, so existing
    /// results stay valid.
    #[schemars(example = serde_json::json!({ "time": "2h" }))]
    pub budget: Option<Budget>,
    /// Location of the results, unless `--results` is given: a folder, relative to the current one, or the address
    /// of object storage that several machines share. It affects no number, so results stay valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "s3://bench/chat-70b")]
    pub results: Option<String>,
    /// Rules of the methodology lint that do not apply to this plan. Can also be set per sweep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Allow>,
    /// The sweeps, by name, in the order in which they run.
    #[schemars(schema_with = "crate::plan::model::field_schema::named::<Sweep>")]
    pub sweeps: Table<Sweep>,
}

/// The default of `max_cells`. This many cells are expanded within seconds and fit into the memory of any
/// machine; a larger number is probably a typo.
fn max_cells() -> u32 {
    1_000_000
}

fn is_max_cells(value: &u32) -> bool {
    *value == max_cells()
}

fn yes() -> bool {
    true
}

/// The action if the server differs from the one measured before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EnvironmentPolicy {
    /// Repeats the measurements made on another server, and reports this.
    #[default]
    Match,
    /// Ends the sweep before any request is sent.
    Pin,
    /// Skips the comparison, so existing results stay valid.
    Ignore,
}

/// The plan's own scenarios, whose names must differ from the built-in ones.
pub(super) fn own_scenarios(generator: &mut SchemaGenerator) -> Schema {
    let taken: Vec<&str> = BUILT_IN.iter().map(|(name, ..)| *name).collect();
    let entry = generator.subschema_for::<Scenario>();
    json_schema!({
        "type": "object",
        "propertyNames": { "pattern": NAME, "not": { "enum": taken } },
        "additionalProperties": entry,
        "default": {},
    })
}
