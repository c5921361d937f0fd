//! The hooks of a run and their results.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// One hook of a run, or the reset of its server.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookRun {
    /// When the hook ran: before_cell, before_run, reset, after_run or after_cell.
    pub when: String,
    /// The hook's action, as in the plan: `POST /reset_prefix_cache`, or a command.
    pub what: String,
    /// The outcome of the hook.
    pub outcome: HookOutcome,
    /// The exit code of a command; null if it did not exit normally.
    pub exit_code: Option<i32>,
    /// The HTTP status of the response to a request; null for a command, or if there was no response.
    pub status: Option<u16>,
    /// Why there is neither an exit code nor a status; null if there is an exit code or a status.
    pub detail: Option<String>,
    /// Duration of the hook, in nanoseconds.
    pub took_ns: u64,
    /// The last 2 KiB of the command's output or of the response, without secrets.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

/// The outcome of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookOutcome {
    /// Exit code 0, or HTTP 2xx.
    Ok,
    /// Another exit code or HTTP status, or neither, because the command did not exit normally or no
    /// response arrived.
    Failed,
    /// The hook timed out.
    TimedOut,
}

impl HookRun {
    /// Whether the hook succeeded.
    pub fn is_ok(&self) -> bool {
        self.outcome == HookOutcome::Ok
    }

    /// Returns how the hook ended, in short form: `exit code 3`, `HTTP 404`, `did not end within 60s`.
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
    /// Writes the hook and its result: `before_run: POST /reset_prefix_cache (HTTP 200, 3ms)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let took = Nanos::from_millis(self.took_ns.div_ceil(1_000_000));
        let failed = if self.is_ok() { "" } else { "failed: " };
        write!(f, "{}: {} ({failed}{}, {took})", self.when, self.what, self.ended())
    }
}
