//! The client went away.

/// The client went away.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gone;
