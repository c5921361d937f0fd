//! The protocols of language-model servers, one file each. A protocol determines where a request is sent,
//! what its body contains, how its response is read, and whether there are tokens to measure.
//!
//! To add a protocol, add a file with an implementation of `Protocol`, and a line in [`Api`]. A protocol
//! handles only texts and JSON: `workload` provides the texts, `engine` decides when they are sent and how
//! they are measured, and `plan` checks what a plan may set.

mod answer;
mod api;
mod chat;
mod choices;
mod completions;
mod contract;
mod embeddings;
mod headers;
mod lenient;
mod messages;
mod request;
mod rerank;
mod responses;
mod said;
mod timings;
mod usage;

pub(crate) use answer::{CallPiece, Channel, excerpt, server_words};
pub use answer::{Part, Wrong};
pub use api::Api;
pub(crate) use contract::Protocol;
pub use contract::{Framing, Task};
pub use headers::{KeyHeader, RequestHeader};
pub(crate) use lenient::joined_halves;
pub use request::{Field, Object, Request};
pub use said::{Message, Said};
pub use timings::Timings;
pub(crate) use timings::nanos;
pub use usage::Usage;
