//! Data sets in plans: scenarios that send their texts, and lengths that are drawn from them.
//!
//! When a plan is loaded each file is read once, however many scenarios name it in one way. What was made of it (texts, or
//! pairs of lengths) is part of what a run is; the file's place is not.

pub mod corpus;
pub mod laid;
pub mod left_out;
pub mod pairs;
pub mod told;
pub mod written;

pub use crate::plan::model::data::corpus::{Asked, Corpus, Dialogue, Means, Order, Source};
pub use crate::plan::model::data::pairs::LengthsFile;
pub use crate::plan::model::data::told::{DataNote, data_notes};
pub use crate::plan::model::data::written::{Bounds, DataFile, DataFilter};
