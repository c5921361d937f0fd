//! The connections of one thread, for either HTTP version.

use crate::expand::RunSpec;

use super::clock::Clock;
use super::connector::Connector;
use super::http2::Sessions;
use super::pool::Pool;

/// The connections of one thread.
pub(crate) enum Links {
    /// HTTP/1.1: one request at a time on each connection.
    One(Pool),
    /// HTTP/2: several requests at a time on each connection.
    Two(Sessions),
}

impl Links {
    /// Creates an empty set of connections for a run of `spec`.
    pub(crate) fn new(spec: &RunSpec, connector: Connector) -> Links {
        match spec.endpoint.http {
            None => Links::One(Pool::new(spec, connector)),
            Some(http2) => Links::Two(Sessions::new(spec, http2, connector)),
        }
    }

    /// Opens connections for `places` concurrent requests, as far as possible.
    pub(crate) async fn open_ahead(&self, places: u32) {
        match self {
            Links::One(pool) => pool.open_ahead(places).await,
            Links::Two(sessions) => sessions.open_ahead(places).await,
        }
    }

    /// Sends no further request, because the run has ended.
    pub(crate) fn end(&self) {
        match self {
            // A request on its own connection is written by its own task, which is cancelled.
            Links::One(_) => {}
            Links::Two(sessions) => sessions.end(),
        }
    }

    /// Sets the run's clock, which has started.
    pub(crate) fn begin(&mut self, clock: Clock) {
        match self {
            Links::One(pool) => pool.begin(clock),
            Links::Two(sessions) => sessions.begin(clock),
        }
    }
}
