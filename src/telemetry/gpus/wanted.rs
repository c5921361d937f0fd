//! Settings for reading the GPUs of this machine.

use std::sync::Arc;

use super::choose::Which;
use super::source::Tool;

/// A function that checks whether the process with this id belongs to the server.
pub type IsOwn = Arc<dyn Fn(u32) -> bool + Send + Sync>;

/// Which GPUs are read, and by which tools.
#[derive(Clone)]
pub struct Wanted {
    /// The tools that are tried, in this order. The first tool that lists a GPU reads all GPUs.
    pub tools: Vec<Tool>,
    /// Whether GPUs are optional. If they are optional and the machine has none, no page is recorded for
    /// them.
    pub may_be_none: bool,
    /// How the GPUs to read are selected.
    pub which: Which,
    /// Checks whether a process belongs to the server; `None` if this cannot be determined.
    pub is_own: Option<IsOwn>,
}
