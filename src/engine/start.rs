//! The result of a load pattern for a request: when it starts, or that it never started.

/// The start of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    /// The request's number, from 0.
    pub request: u64,
    /// When the request was due according to the load pattern, in nanoseconds since the run's
    /// start.
    pub scheduled: u64,
    /// When the cap let the request through.
    pub released: u64,
    /// The slot of a closed loop; if conversations arrive, the conversation's number.
    pub slot: Option<u32>,
}

/// A request that was due and never started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unstarted {
    /// The request's number.
    pub request: u64,
    /// When the request was due according to the load pattern.
    pub scheduled: u64,
    /// Whether the in-flight cap held the request back; if not, the generator failed to send it.
    pub(crate) held_by_cap: bool,
}
