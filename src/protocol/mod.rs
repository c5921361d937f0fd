//! The protocols that servers of language models speak, one file each: where a request goes, what its body is, how an answer is read,
//! and whether there are tokens to measure.
//!
//! A protocol is added by a file with its `Protocol` and a line of [`Api`]. It knows texts and JSON and nothing else: what is said
//! comes from `workload`, when it is sent and how it is measured is `engine`'s, and what a plan may ask of it is checked by `plan`.

mod answer;
mod api;
mod chat;
mod choices;
mod completions;
mod contract;
mod embeddings;
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
pub use request::{Field, Object, Request};
pub use said::{Message, Said};
pub use timings::Timings;
pub(crate) use timings::nanos;
pub use usage::Usage;
