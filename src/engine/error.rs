//! Errors of runs.

use crate::rows::Spoiled;
use crate::workload::tokenizer::TokenizerError;

use super::sink::SinkError;

/// Why a run did not complete.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The run was stopped.
    #[error("stopped")]
    Stopped,
    /// The system refused a resource that every run needs.
    #[error("cannot start the run: {0}; check the limit of open files (ulimit -n)")]
    Setup(#[source] std::io::Error),
    /// The model's tokenizer or its chat template cannot be used.
    #[error("cannot count the tokens of prompts: {0}")]
    Tokenizer(#[from] TokenizerError),
    /// No prompt can be as short as requested.
    #[error(
        "no prompt can have {asked} tokens: the text that the server adds to each prompt, plus a single token, already \
         takes {shortest} tokens; request {shortest} or more"
    )]
    TooShort {
        /// Number of tokens of the longest requested prompt.
        asked: u32,
        /// Number of tokens of the shortest possible prompt.
        shortest: u32,
    },
    /// The server was unreachable or rejected the load, so the measurements do not describe it.
    #[error("{}", .0.detail)]
    Spoiled(Spoiled),
    /// This machine cannot open more connections.
    #[error("20 connections in a row could not be opened; the last error: {0}")]
    NoRoom(String),
    /// The thread that prepares requests is gone.
    #[error("the thread that prepares requests ended early; this is a bug in sweepline")]
    Content,
    /// The writer has failed; the executor replaces this error with the writer's own.
    #[error("the writer has stopped")]
    WriterGone,
    /// The worker processes that share the load cannot send it.
    #[error("{0}")]
    Workers(String),
    /// The run's rows, samples or texts cannot be written.
    #[error("{0}")]
    Sink(SinkError),
}
