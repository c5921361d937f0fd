//! An OpenAI-compatible server with a timing model and faults, used by tests and the quickstart.
//!
//! The server writes its own bytes and shares no codec with the engine, so that an error in one
//! cannot hide the same error in the other. Its log records the actual events, with timestamps from
//! the monotonic clock, which a client on the same host also reads. One thread serves everything,
//! because a second thread would only make instants less precise through additional wake-ups.
//!
//! `config` contains the configuration, `fault` the faults and when they occur, and `pace` computes when
//! each token is due. `timer` wakes all streams from one timerfd, and `arrival` timestamps received data.
//! `conn` reads requests, `answer` routes them, `slot` is the state of a request while it is served, and
//! `job` its generation. `stream` and `whole` write responses, using `event` (the JSON), `head`, and `wire`
//! (the framing and the splits). `shared` is the common state of all connections, and `log` writes the log.
//! `http2` reads HTTP/2 connections, and `answering` converts their responses to frames. `chain` groups a
//! prompt's tokens into blocks, `cache` keeps them, `served` counts the server's work, and `metrics`
//! reports it.

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
mod messages;
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
