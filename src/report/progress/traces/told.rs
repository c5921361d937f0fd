//! Messages to the trace thread.

use crate::report::progress::events::Headline;
use crate::sweep::event::Event;

/// An event, its time in nanoseconds since 1970, and the main numbers of the run that the event commits.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) event: Event,
    pub(super) at_ns: u64,
    pub(super) headline: Option<Headline>,
}
