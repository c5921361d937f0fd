//! Measured requests over HTTP/2 (RFC 9113). The `h2` crate reads and writes it, below it lies the engine's own socket; what
//! passes is stamped frame by frame where it passes (`watched`, `ledger`, `frames`).
//!
//! A connection carries many requests (`session`), and is driven by a task of its own; a request talks to it through a stream
//! (`exchange`). Which connection a request gets is the matter of `sessions`. `heads` makes what requests begin with.

mod exchange;
mod failure;
mod frames;
mod heads;
mod ledger;
mod session;
mod sessions;
mod watched;

pub(crate) use exchange::Exchange;
pub(crate) use heads::Heads;
pub(crate) use session::Lease;
pub(crate) use sessions::Sessions;
