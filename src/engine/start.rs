//! What a load pattern says of a request: that it starts, or that it never did.

/// The start of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    /// Its number, from 0.
    pub request: u64,
    /// When the load pattern wanted it, in nanoseconds since the run's start.
    pub scheduled: u64,
    /// When the cap let it through.
    pub released: u64,
    /// The slot of a closed loop; where conversations arrive, the conversation's number.
    pub slot: Option<u32>,
}

/// A request that was wanted and never started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unstarted {
    /// Its number.
    pub request: u64,
    /// When the load pattern wanted it.
    pub scheduled: u64,
    /// Whether the in-flight cap held it back; otherwise the generator failed to send it.
    pub(crate) held_by_cap: bool,
}
