//! Data sets and traces: converts files in other formats to [`Record`]s.
//!
//! A file is a container (a JSON array, one JSON object per line, CSV, Parquet) of entries, and an entry
//! has a shape (the [`Format`]). Container and shape are detected independently, so that a ShareGPT file
//! may be an array or lines. Entries are read one at a time, so memory is bounded by the longest allowed
//! entry rather than by the file; only ids that must be unique are kept, with eight bytes for each. Files
//! are untrusted input, so errors are reported with their line and a remedy, or counted and skipped if the
//! caller allows that. Nothing is downloaded, and this module is independent of plans and requests.

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
