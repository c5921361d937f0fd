//! When a server counts as ready, and how long a sweep waits for it. Scheduling only: nothing of it is a part of what a run is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// When a server is ready, and how long a sweep waits for one that is not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// A path of the server that answers with 2xx once it is ready, like /health; asked before the first completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^/"), example = "/health")]
    pub path: Option<String>,
    /// How long a sweep waits for the server in all, each time that it runs: for one that is absent, loading (503) or slow to
    /// answer. 0s asks once. Default 60s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "60s"), example = "15m")]
    pub within: Option<Nanos>,
}

impl Ready {
    /// How long a sweep waits where the plan does not say.
    pub const WITHIN: Nanos = Nanos::from_secs(60);
}
