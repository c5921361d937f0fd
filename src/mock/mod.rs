//! An OpenAI-compatible server with a timing model and faults: the stand-in that tests and the quickstart measure.
//!
//! It writes its own bytes and shares no codec with the engine, so that a mistake in one cannot hide the same mistake
//! in the other. What it really did goes to its log, stamped by the monotonic clock that a client on the same host
//! reads too. One thread serves everything: a second one would only add wake-ups to the instants it promises.
//!
//! `config` says what the server is like, `fault` what goes wrong and when, `pace` when each token is due; `timer`
//! wakes all streams from one timerfd; `arrival` stamps what is read; `conn` reads requests, `answer` routes them,
//! `slot` is what one holds while it is served, `job` the generation that has it; `stream` and `whole` answer them through
//! `event` (the JSON), `head` and `wire` (the framing and the cuts); `shared` is what all connections have in common;
//! `log` writes down what happened. `http2` reads connections of HTTP/2, and `answering`
//! makes frames of what is answered there. `chain` makes blocks of a prompt's tokens, `cache` keeps them, `served` counts what it did,
//! `metrics` tells that, and `tell` what became of one request.

mod answer;
mod answering;
mod arrival;
mod cache;
mod chain;
mod config;
mod conn;
mod event;
mod fault;
mod gone;
mod head;
mod http2;
mod job;
mod log;
mod metrics;
mod pace;
mod part;
mod random;
mod request;
mod responses;
mod serve;
mod served;
mod shared;
mod slot;
mod stream;
mod tell;
mod timer;
mod tokenize;
mod tokens;
mod values;
mod whole;
mod wire;

pub use config::{
    Config, Cut, FirstChunk, LISTENING, ReasoningField, TellTimes, Tokenize, UsagePosition, Vocabulary, WIRE,
};
pub use fault::{Fault, Kind, When};
pub use serve::{Ended, Server};
