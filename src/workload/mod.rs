//! Creates the content of requests, which is determined by scenario, seed and request number.
//!
//! A [`Generator`] writes the text of request k, which depends only on seed, scenario, repeat and k. All
//! endpoints and all loads receive the same text. Only the nonce at the beginning of a prompt differs between
//! runs, so that no run benefits from a cache that another run has warmed. A [`Conversation`] grows with the
//! server's own responses. A [`BodyWriter`] converts the texts to bytes. This module does not determine when
//! requests are sent. With a [`Tokenizer`], prompts have exactly the requested number of tokens.

pub mod body;
mod conversation;
mod counting;
mod digest;
mod estimated;
mod exact;
mod exchange;
mod generator;
pub mod lengths;
mod mix;
mod nonce;
mod pauses;
mod prefix;
mod prompt;
mod prose;
mod replay;
mod says;
mod sharing;
pub mod tokenizer;
pub mod tokens;
mod trail;
mod vocabulary;

#[cfg(test)]
mod talk_tests;
#[cfg(test)]
mod tests;

pub use body::{BodyWriter, RequestShape};
pub use conversation::Conversation;
pub use counting::Counting;
pub use exchange::Exchange;
pub use generator::Generator;
pub(crate) use mix::{Lineup, Mix};
#[cfg(test)]
pub(crate) use nonce::NONCE_TOKENS;
pub use nonce::NonceKey;
pub use prompt::{Common, Lengths, Prompt};
pub use says::Says;
pub use tokenizer::Tokenizer;
pub use tokens::estimate;
pub use trail::Role;
pub(crate) use trail::Trail;
