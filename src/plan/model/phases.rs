//! The phases of a run, as far as a plan or a sweep says so, and the pause after it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Decimal, Nanos};

/// Fill, where nobody says otherwise (METRICS, phases).
pub const FILL: Nanos = Nanos::from_secs(30);
/// Stabilize, where nobody says otherwise.
pub const STABILIZE: Nanos = Nanos::from_secs(60);
/// The window, where nobody says otherwise.
pub const MEASURE: Nanos = Nanos::from_secs(120);

/// How long each phase lasts, where the plan or a sweep says so; the rest keeps its default.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhasesPatch {
    /// The server is left alone for this long before the load begins; the latency of the first request is then a result of
    /// its own (`idle_start_ttft`, `idle_start_e2e`). Default 0s.
    #[schemars(extend("default" = "0s"), example = "5m")]
    pub idle: Option<Nanos>,
    /// Load rises: closed loops add one slot at a time, open loops ramp from 0. Default 30s.
    #[schemars(extend("default" = "30s"))]
    pub fill: Option<Fill>,
    /// Full load, not measured. Default 60s.
    #[schemars(extend("default" = "60s"))]
    pub stabilize: Option<Nanos>,
    /// Full load, measured. Default 120s.
    #[schemars(extend("default" = "120s"))]
    pub measure: Option<Measure>,
    /// Until every measured request has ended, at most this long. Default 30s.
    #[schemars(extend("default" = "30s"))]
    pub drain: Option<Drain>,
}

/// The pause between two runs on the same resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Between {
    /// How long to wait after a run. Default 0s.
    pub cooldown: Nanos,
}

/// Fill: how the load rises.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub struct Fill {
    /// Length of the phase; absent where `per_second` decides it (closed loops: slots / rate).
    #[serde(rename = "for")]
    #[schemars(example = &"30s")]
    pub duration: Option<Nanos>,
    /// Closed loops: how many slots join per second; absent: evenly over the phase.
    #[schemars(extend("exclusiveMinimum" = 0))]
    #[schemars(example = 2)]
    pub per_second: Option<Decimal>,
}

/// Measure: the window that counts.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Length of the window.
    #[serde(rename = "for")]
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero")]
    pub duration: Nanos,
    /// The window is prolonged until this many requests were scheduled in it.
    #[schemars(range(min = 1))]
    #[schemars(example = 1000)]
    pub min_requests: Option<u64>,
    /// The longest a prolonged window may get. Default: five times its length.
    #[schemars(example = &"10m")]
    pub at_most: Option<Nanos>,
}

/// Drain: what happens to measured requests that are still under way when the window ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drain {
    /// The longest this phase may last.
    #[serde(rename = "for")]
    #[schemars(example = &"30s")]
    pub duration: Nanos,
    /// Whether load is kept up meanwhile.
    #[serde(default)]
    pub mode: DrainMode,
}

/// Whether load is kept up in drain.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum DrainMode {
    /// Load goes on until every measured request has ended.
    #[default]
    Keep,
    /// What is in flight is cut at once.
    Stop,
}
