//! The settings of the client itself: how requests get their connections, their timeouts, and the settings of
//! the load generator.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// How requests get their connections. This affects all results, because a handshake delays the first token
/// of a request that waits for a connection.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Connections {
    /// Opened before the run starts, then kept alive and reused.
    #[default]
    Warm,
    /// Opened by the first request that needs one, then kept alive and reused.
    Cold,
    /// A new connection for each request, closed after it.
    PerRequest,
}

impl Connections {
    /// All variants, in documentation order.
    pub const ALL: [Connections; 3] = [Connections::Warm, Connections::Cold, Connections::PerRequest];

    /// The name in plans.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The behavior of runs that were made before plans had this field, and whose `run.json` therefore does
    /// not contain it.
    pub(crate) fn before_plans_said() -> Connections {
        Connections::Cold
    }
}

/// How the load generator waits for the next dispatch of its schedule.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "snake_case")]
pub enum Timer {
    /// An absolute kernel timer, set 50 µs early, followed by busy-waiting on the clock if the wait is
    /// long enough. This takes at most a tenth of a core.
    #[default]
    Timerfd,
    /// Busy-waits on the clock for the last 200 µs of every wait. This is a few microseconds more precise but
    /// takes up to a whole core.
    Spin,
}

impl Timer {
    /// The name in plans and facts.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Settings of the load generator that the plan or a sweep specifies. They determine how much load one
/// machine can generate. They are not part of a run's identity, so existing results stay valid when the
/// settings change.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadEnginePatch {
    /// Number of threads that send and receive, each with its share of the connections. Default 1.
    #[schemars(range(min = 1, max = 256))]
    #[schemars(extend("default" = 1))]
    #[schemars(example = 4)]
    pub threads: Option<u32>,
    /// How the generator waits for the next dispatch of the schedule. Default timerfd.
    #[schemars(extend("default" = "timerfd"))]
    pub timer: Option<Timer>,
    /// Processes that send the load together, on this machine or, with `start`, on others. Default 1.
    #[schemars(extend("default" = 1), example = 4)]
    pub workers: Option<Workers>,
}

/// Processes that send the load of each run together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workers {
    /// Number of processes. Each sends its share of one schedule.
    #[schemars(range(min = 1, max = 256), example = 4)]
    pub count: u32,
    /// The command that starts sweepline, one for each process or one for all; ` worker` is appended, and a
    /// shell runs it. Default: this program, on this machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = serde_json::json!(["ssh client-1 sweepline", "ssh client-2 sweepline"]))]
    pub start: Vec<String>,
}

impl Workers {
    /// Maximum number of processes; a larger number is probably a typo.
    pub(crate) const MOST: u32 = 256;

    /// A single process, on this machine.
    pub(crate) fn alone() -> Workers {
        Workers { count: 1, start: Vec::new() }
    }

    /// The command of process `index`, counted from 0; `None` if the plan sets no command.
    pub fn command(&self, index: u32) -> Option<&str> {
        let at = if self.start.len() == 1 { 0 } else { index as usize };
        self.start.get(at).map(String::as_str)
    }

    /// Whether the number of commands is valid: one for each process, one for all, or none.
    pub(crate) fn has_a_command_for_each(&self) -> bool {
        matches!(self.start.len(), 0 | 1) || self.start.len() == self.count as usize
    }

    /// Sets the number of processes, and drops the commands for processes beyond this number.
    pub(crate) fn set_count(&mut self, count: u32) {
        self.count = count;
        self.start.truncate(count.max(1) as usize);
    }
}

impl LoadEnginePatch {
    /// Maximum number of threads; a larger number is probably a typo.
    pub(crate) const MOST_THREADS: u32 = 256;
}

/// When a request is given up; its outcome is then `timeout`, `connect` or `stalled`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// Limit for opening a connection. Default 10s.
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero")]
    pub connect: Nanos,
    /// Limit for the whole request. Default 10m.
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero")]
    pub request: Nanos,
    /// Limit for the time between two chunks of a response, and until the first one. Default 60s.
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero")]
    pub stall: Nanos,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts { connect: Nanos::from_secs(10), request: Nanos::from_secs(600), stall: Nanos::from_secs(60) }
    }
}
