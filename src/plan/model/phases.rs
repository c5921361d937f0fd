//! The phases of a run, as set by a plan or a sweep, and the pause after a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Decimal, Nanos};

/// Default of fill (METRICS, phases).
pub const FILL: Nanos = Nanos::from_secs(30);
/// Default of stabilize.
pub const STABILIZE: Nanos = Nanos::from_secs(60);
/// Default of the measure window.
pub const MEASURE: Nanos = Nanos::from_secs(120);

/// The length of each phase, if the plan or a sweep sets it; unset phases keep their defaults.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhasesPatch {
    /// The server receives no requests for this long before the load begins; the latency of the first
    /// request is then a separate result (`idle_start_ttft`, `idle_start_e2e`). Default 0s.
    #[schemars(extend("default" = "0s"), example = "5m")]
    pub idle: Option<Nanos>,
    /// Load ramps up: closed loops add one slot at a time, open loops ramp from 0. Default 30s.
    #[schemars(extend("default" = "30s"))]
    pub fill: Option<Fill>,
    /// Full load, not measured. Default 60s.
    #[schemars(extend("default" = "60s"))]
    pub stabilize: Option<Nanos>,
    /// Full load, measured. Default 120s.
    #[schemars(extend("default" = "120s"))]
    pub measure: Option<Measure>,
    /// Waits until every measured request has ended, at most this long. Default 30s.
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

/// Fill: how the load ramps up.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub struct Fill {
    /// Length of the phase; absent if `per_second` determines it (closed loops: slots / rate).
    #[serde(rename = "for")]
    #[schemars(example = &"30s")]
    pub duration: Option<Nanos>,
    /// Closed loops: slots added per second; if absent, they are spread evenly over the phase.
    #[schemars(extend("exclusiveMinimum" = 0))]
    #[schemars(example = 2)]
    pub per_second: Option<Decimal>,
}

/// Measure: the measured window.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Length of the window.
    #[serde(rename = "for")]
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero")]
    pub duration: Nanos,
    /// The window is extended until this many requests have been scheduled in it.
    #[schemars(range(min = 1))]
    #[schemars(example = 1000)]
    pub min_requests: Option<u64>,
    /// Maximum length of an extended window. Default: five times `for`.
    #[schemars(example = &"10m")]
    pub at_most: Option<Nanos>,
}

/// Drain: how to treat measured requests that are still in flight when the window ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drain {
    /// Maximum length of this phase.
    #[serde(rename = "for")]
    #[schemars(example = &"30s")]
    pub duration: Nanos,
    /// Whether load continues during the drain.
    #[serde(default)]
    pub mode: DrainMode,
}

/// Whether load continues during the drain.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum DrainMode {
    /// Load continues until every measured request has ended.
    #[default]
    Keep,
    /// In-flight requests are aborted immediately.
    Stop,
}
