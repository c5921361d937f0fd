//! Settings for reading the GPUs of this machine.

use std::sync::Arc;

use super::choose::Which;
use super::source::Tool;

/// Whether a process of this machine is one of the server's.
pub type IsOwn = Arc<dyn Fn(u32) -> bool + Send + Sync>;

/// Which GPUs are read, and by which tools.
#[derive(Clone)]
pub struct Wanted {
    /// The tools that are tried, in this order; the first that has a GPU reads all of them.
    pub tools: Vec<Tool>,
    /// Whether GPUs are optional: without any, there is no page for them.
    pub may_be_none: bool,
    /// The selection.
    pub which: Which,
    /// Which processes are the server's own; `None` if unknown.
    pub is_own: Option<IsOwn>,
}
