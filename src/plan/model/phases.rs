//! The phases of a run, as far as a plan or a sweep says so, and the pause after it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::model::shorthand::{Drain, Fill, Measure};
use crate::units::Nanos;

/// How long each phase lasts, where the plan or a sweep says so; the rest keeps its default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhasesPatch {
    /// The server is left alone for this long before the load begins; the latency of the first request is then a result of
    /// its own (`idle_start_ttft`, `idle_start_e2e`). Default 0s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "0s"), example = "5m")]
    pub idle: Option<Nanos>,
    /// Load rises: closed loops add one slot at a time, open loops ramp from 0. Default 30s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "30s"))]
    pub fill: Option<Fill>,
    /// Full load, not measured. Default 60s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "60s"))]
    pub stabilize: Option<Nanos>,
    /// Full load, measured. Default 120s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "120s"))]
    pub measure: Option<Measure>,
    /// Until every measured request has ended, at most this long. Default 30s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
