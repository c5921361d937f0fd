//! What a run wants of the GPUs of this machine.

use std::sync::Arc;

use super::choose::Which;
use super::source::Tool;

/// Whether a process of this machine is one of the server's.
pub type IsOwn = Arc<dyn Fn(u32) -> bool + Send + Sync>;

/// Which GPUs are to be read, and by what.
#[derive(Clone)]
pub struct Wanted {
    /// The tools that are tried, in this order; the first that has a GPU reads all of them.
    pub tools: Vec<Tool>,
    /// Whether it is well that there is none: then there is no page of them.
    pub may_be_none: bool,
    /// Which of them.
    pub which: Which,
    /// Which processes are the server's own; none where that is not known.
    pub is_own: Option<IsOwn>,
}
