//! Data sets and traces: converts files in other formats to [`Record`]s.
//!
//! A file is a container of entries (a JSON array, one JSON object per line, CSV or Parquet), and its
//! entries have a [`Format`]. Container and format are detected independently, so a ShareGPT file may be a
//! JSON array or JSON lines, for example. Entries are read one at a time, so memory is bounded by the
//! largest allowed entry, not by the size of the file; only ids, which must be unique, are kept, with eight
//! bytes for each. Files are untrusted input: errors are reported with their line and a remedy, or the
//! entry is counted and skipped if the caller allows that. Nothing is downloaded, and this module is
//! independent of plans and requests.

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
