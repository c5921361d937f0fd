//! What a load pattern decides about a request: when the request starts, or that it never started.

/// The start of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    /// The request's number, counted from 0.
    pub request: u64,
    /// When the request was due according to the load pattern, in nanoseconds since the run's
    /// start.
    pub scheduled: u64,
    /// When the in-flight cap let the request start, in nanoseconds since the run's start; without a cap,
    /// the same as `scheduled`.
    pub released: u64,
    /// The slot in a closed loop, or the conversation's number in an open loop of conversations; otherwise
    /// `None`.
    pub slot: Option<u32>,
}

/// A request that was due but never started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unstarted {
    /// The request's number.
    pub request: u64,
    /// When the request was due according to the load pattern, in nanoseconds since the run's start.
    pub scheduled: u64,
    /// Whether the request still waited for the in-flight cap; if not, the generator failed to send it in
    /// time.
    pub(crate) held_by_cap: bool,
}
