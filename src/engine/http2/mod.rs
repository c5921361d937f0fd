//! Measured requests over HTTP/2 (RFC 9113). The `h2` crate implements the protocol on top of the engine's
//! own socket; data is stamped frame by frame as it passes through the socket (`watched`, `ledger`,
//! `frames`).
//!
//! A connection carries many requests and is driven by its own task (`session`); each request uses one
//! stream of the connection (`exchange`). `sessions` decides which connection a request gets. `heads`
//! creates the heads of requests.

mod exchange;
mod failure;
mod frames;
mod heads;
mod ledger;
mod session;
mod sessions;
mod watched;

pub(crate) use exchange::{Exchange, Written};
pub(crate) use heads::Heads;
pub(crate) use session::Lease;
pub(crate) use sessions::Sessions;
