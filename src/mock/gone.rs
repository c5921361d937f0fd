//! The signal that the client has disconnected.

/// The error for a client that has disconnected.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gone;
