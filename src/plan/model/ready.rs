//! When a server counts as ready, and how long a sweep waits for it. This affects scheduling only and is
//! not part of a run's identity.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// When a server is ready, and how long a sweep waits for one that is not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// A path of the server that returns 2xx once it is ready, like /health; checked before the first
    /// completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^/"), example = "/health")]
    pub path: Option<String>,
    /// Total time that a sweep waits for the server, each time that the sweep runs: for a server that is
    /// absent, loading (503) or slow to respond. 0s checks once. Default 60s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "60s"), example = "15m")]
    pub within: Option<Nanos>,
}

impl Ready {
    /// Default time that a sweep waits.
    pub const WITHIN: Nanos = Nanos::from_secs(60);
}
