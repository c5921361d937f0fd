//! Stored data of a run: request rows, samples, facts, and their Parquet files. This is the narrow
//! interface between the engine, which writes the data, and analysis, which reads it.
//!
//! `column` defines how columns are described, and `schema` declares each column once. `journal` collects
//! rows during a run, and `parquet` writes their final form. `replay` streams the gaps of a run that is too
//! long for memory.

mod cell;
mod column;
mod docs;
mod error;
mod fingerprint;
mod finish;
mod given_up;
mod hook;
mod idle_before;
mod journal;
mod measured;
mod observed;
mod parquet;
mod reader;
mod replay;
mod request;
mod run;
mod schema;
mod server_start;
mod server_times;
mod spoiled;
mod subset;
mod telemetry;
#[cfg(test)]
mod tests;
mod transcripts;
mod usage;
mod wire;
mod worker;

pub use self::parquet::*;
pub use column::*;
pub use docs::*;
pub use error::*;
pub use fingerprint::{Changed, Fingerprint, same_release};
pub use finish::Finish;
pub use given_up::GivenUp;
pub use hook::{HookOutcome, HookRun};
pub use idle_before::{Began, Seen, ServerLoad};
pub use journal::*;
pub use measured::Measured;
pub use observed::*;
pub use reader::RunReader;
pub use replay::{Records, Replay};
pub use request::*;
pub use run::*;
pub use schema::*;
pub use server_start::ServerStart;
pub use server_times::ServerTimes;
pub use spoiled::{BEFORE_READY, LAST_LINES, SpoilCause, Spoiled};
pub use subset::Only;
pub use telemetry::{Counted, GpuReadings, OtherProcess, Telemetry};
pub use transcripts::*;
pub use usage::{ReportedCounts, TextSize};
pub use wire::{RecordDecoder, RecordEncoder};
pub use worker::{ClockOffset, Worker};
