//! What hooks did beside a run.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// One hook that happened beside a run, or the reset of its server.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookRun {
    /// When: before_cell, before_run, reset, after_run or after_cell.
    pub when: String,
    /// What, as the plan has it: `POST /reset_prefix_cache`, or a command.
    pub what: String,
    /// How it came out.
    pub outcome: HookOutcome,
    /// The exit code of a command that ended by itself.
    pub exit_code: Option<i32>,
    /// The HTTP status of a request that was answered.
    pub status: Option<u16>,
    /// Why it has neither, where it does not.
    pub detail: Option<String>,
    /// How long it took, in nanoseconds.
    pub took_ns: u64,
    /// The end of what it printed or answered, 2 KiB at most, without secrets.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

/// How a hook came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookOutcome {
    /// Exit code 0, or HTTP 2xx.
    Ok,
    /// Anything else.
    Failed,
    /// It was given up.
    TimedOut,
}

impl HookRun {
    /// Whether it did what it was to do.
    pub fn is_ok(&self) -> bool {
        self.outcome == HookOutcome::Ok
    }

    /// How it ended, in a few words: `exit code 3`, `HTTP 404`, `no end within 60s`.
    pub fn ended(&self) -> String {
        match (self.exit_code, self.status, &self.detail) {
            (.., Some(detail)) => detail.clone(),
            (Some(code), ..) => format!("exit code {code}"),
            (_, Some(status), _) => format!("HTTP {status}"),
            (None, None, None) => "no reason recorded".to_owned(),
        }
    }
}

impl fmt::Display for HookRun {
    /// `before_run: POST /reset_prefix_cache (HTTP 200, 3ms)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let took = Nanos::from_millis(self.took_ns.div_ceil(1_000_000));
        let failed = if self.is_ok() { "" } else { "failed: " };
        write!(f, "{}: {} ({failed}{}, {took})", self.when, self.what, self.ended())
    }
}
