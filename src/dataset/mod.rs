//! Data sets and traces: files of others become [`Record`]s.
//!
//! A file is a container (an array of JSON, one JSON object a line, CSV, Parquet) of entries, and an entry has a shape (the
//! [`Format`]): the two are found apart, so that a ShareGPT file may be an array or lines. Entries are read one at a time:
//! memory is bounded by the longest entry that is allowed, not by the file; only the ids that must not come twice are kept,
//! eight bytes each. A file is hostile input: what is wrong is told with its line and a remedy, or counted and skipped where
//! the caller allows that. Nothing is downloaded, and nothing is known here of plans or requests.

mod array;
mod csv;
mod detect;
mod entries;
mod entry;
mod error;
mod filter;
mod lines;
mod mapping;
mod options;
mod parquet;
pub mod profile;
mod read;
mod record;
pub mod sample;
mod shape;
mod skipped;
mod summary;
mod text;
mod value;
pub mod write;

pub use entries::digest;
pub use error::DatasetError;
pub use filter::{Filter, Range};
pub use mapping::{Field, Mapping, TimeUnit};
pub use options::{Format, OnBad, Options};
pub use read::Dataset;
pub(crate) use record::{BLOCK_TOKENS, estimated_tokens};
pub use record::{Exchange, Place, Record, Role, Turn};
pub use skipped::{Reason, Skipped, Skips};
pub use summary::{Figures, Summarizer, Summary};
