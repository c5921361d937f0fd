//! Data sets in plans: scenarios that send their texts, and lengths that are drawn from them.
//!
//! When a plan is loaded each file is read once, however many scenarios name it in one way. What was made of it (texts, or
//! pairs of lengths) is part of what a run is; the file's place is not.

pub mod corpus;
pub mod data_file;
pub mod left_out;
pub mod length_pairs;
pub mod overlay;
pub mod reports;

pub use crate::plan::model::data::corpus::{Corpus, Dialogue, Exchange, Means, Order, Source};
pub use crate::plan::model::data::data_file::{Bounds, DataFile, DataFilter};
pub use crate::plan::model::data::length_pairs::LengthsFile;
pub use crate::plan::model::data::reports::{DataNote, data_notes};
