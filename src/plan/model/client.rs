//! What a plan says about the client itself: how requests get their connections, when they are given up, and how the
//! load generator is built.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// How requests get their connections. It is in every number: a handshake lies before the first token of a request that
/// waits for one.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Connections {
    /// Opened before the run starts, then kept and used again.
    #[default]
    Warm,
    /// Opened by the first request that needs one, then kept and used again.
    Cold,
    /// A new one for each request, closed after it.
    PerRequest,
}

impl Connections {
    /// All of them, as they are documented.
    pub const ALL: [Connections; 3] = [Connections::Warm, Connections::Cold, Connections::PerRequest];

    /// The name in plans.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What runs did before plans could say it; `run.json` of such a run has no field for it.
    pub(crate) fn before_plans_said() -> Connections {
        Connections::Cold
    }
}

/// What the load generator waits with for the next instant of its schedule.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "snake_case")]
pub enum Timer {
    /// An absolute timer of the kernel, set 50 µs early, and looks at the clock for the rest of waits that are long enough
    /// to bear it: at most a tenth of a core.
    #[default]
    Timerfd,
    /// Looks at the clock for the last 200 µs of every wait: punctual by some microseconds more, for up to a whole core.
    Spin,
}

impl Timer {
    /// The name in plans and facts.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// How the load generator is built, where the plan or a sweep says so. It decides how much load one machine can make, not
/// what a run is: a run keeps its result when this changes.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadEnginePatch {
    /// Threads that send and receive, each with its share of the connections. Default 1.
    #[schemars(range(min = 1, max = 256))]
    #[schemars(extend("default" = 1))]
    #[schemars(example = 4)]
    pub threads: Option<u32>,
    /// What is waited with for the next instant of the schedule. Default timerfd.
    #[schemars(extend("default" = "timerfd"))]
    pub timer: Option<Timer>,
}

impl LoadEnginePatch {
    /// More threads than this are a slip of the pen.
    pub(crate) const MOST_THREADS: u32 = 256;
}

/// When a request is given up; the outcome is then `timeout`, `connect` or `stalled`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// For a connection to open. Default 10s.
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero")]
    pub connect: Nanos,
    /// For the whole request. Default 10m.
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero")]
    pub request: Nanos,
    /// For the time between two pieces of an answer, and until its first. Default 60s.
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero")]
    pub stall: Nanos,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts { connect: Nanos::from_secs(10), request: Nanos::from_secs(600), stall: Nanos::from_secs(60) }
    }
}
