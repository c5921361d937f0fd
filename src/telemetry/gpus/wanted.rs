//! Settings for reading the GPUs of this machine.

use std::sync::Arc;

use super::choose::Which;
use super::source::Tool;

/// Checks whether a process of this machine belongs to the server.
pub type IsOwn = Arc<dyn Fn(u32) -> bool + Send + Sync>;

/// Which GPUs are read, and by which tools.
#[derive(Clone)]
pub struct Wanted {
    /// The tools that are tried, in this order; the first tool that has a GPU reads all GPUs.
    pub tools: Vec<Tool>,
    /// Whether GPUs are optional. If they are and there are none, there is no page for them.
    pub may_be_none: bool,
    /// The selected GPUs.
    pub which: Which,
    /// Determines which processes belong to the server; `None` if unknown.
    pub is_own: Option<IsOwn>,
}
