//! Messages to the trace thread.

use crate::report::progress::events::Headline;
use crate::sweep::event::Event;

/// An event, its time, and the numbers of the run that it commits.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) event: Event,
    pub(super) at_ns: u64,
    pub(super) headline: Option<Headline>,
}
