//! The way to an endpoint's server: its address, a proxy or a Unix socket in between, the name that the client
//! asks for, and TLS. Measured connections and all other requests to the server use the same [`Route`] and
//! open their connections with the same functions, so that a check cannot reach another server than a run.

mod client;
mod dial;
mod route;
mod stream;

pub use client::{Client, ClientError, Limits, Request, Response};
pub use dial::{Dialed, Opened, Transport, dial, open};
pub use route::Route;
pub use stream::Stream;
