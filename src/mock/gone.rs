//! The signal that the client has disconnected.

/// The client has disconnected.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gone;
