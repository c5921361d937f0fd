//! Why a run does not come to its end.

use crate::rows::Spoiled;
use crate::workload::tokenizer::TokenizerError;

use super::sink::SinkError;

/// Why a run did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// It was told to stop.
    #[error("stopped")]
    Stopped,
    /// The system refused something that every run needs.
    #[error("cannot start the run: {0}; check the limit of open files (ulimit -n)")]
    Setup(#[source] std::io::Error),
    /// The model's tokenizer, or its chat template, is no use.
    #[error("prompts cannot be counted: {0}")]
    Tokenizer(#[from] TokenizerError),
    /// No prompt can be as short as all are asked to be.
    #[error(
        "no prompt has {asked} tokens: what the model is given around a text, and one token of text, have {shortest}; ask \
         for {shortest} or more"
    )]
    TooShort {
        /// Tokens of the longest prompt that is asked for.
        asked: u32,
        /// Tokens of the shortest one that can be made.
        shortest: u32,
    },
    /// The server was away, or turned the load away: what was measured says nothing of it.
    #[error("{}", .0.detail)]
    Spoiled(Spoiled),
    /// This machine has no room for the connections.
    #[error("20 connections in a row could not be opened; the last: {0}")]
    NoRoom(String),
    /// The thread that prepares requests is gone.
    #[error("the thread that prepares requests ended early; this is a bug in sweepline")]
    Content,
    /// The writer has given up; the executor puts its reason in the place of this.
    #[error("the writer has stopped")]
    WriterGone,
    /// Rows cannot be written.
    #[error("{0}")]
    Sink(SinkError),
}
