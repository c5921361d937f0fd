//! What is known of launched servers that ended before they were ready.

use crate::expand::LaunchSpec;
use crate::server::launch::EarlyEnd;

/// The starts of a server that ended before it was ready.
#[derive(Debug, Default)]
pub(super) struct FailedStarts {
    /// The number of these starts.
    pub(super) count: u32,
    /// How the last one ended; `None` if this is unknown.
    pub(super) last: Option<EarlyEnd>,
}

/// A launched server and the model that its runs request: the endpoint, the settings of the start, and the id of the
/// model.
pub(super) type ServerOfModel = (String, Option<LaunchSpec>, String);

/// Why a server is not started again.
#[derive(Debug, Clone)]
pub(super) enum Hopeless {
    /// The server rejects its settings, so its runs are given up. The text quotes the server.
    Rejects(String),
    /// The plan or the machine must be changed, for the given reason.
    WantsAChange(String),
}
