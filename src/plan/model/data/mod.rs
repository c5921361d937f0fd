//! Data sets in plans: scenarios that send their texts, and lengths that are drawn from them.
//!
//! When a plan is loaded, each file is read once, however many scenarios refer to it in the same way.
//! The data that is derived from it (texts, or pairs of lengths) is part of a run's identity; the
//! location of the file is not.

pub(crate) mod corpus;
pub(crate) mod data_file;
pub mod left_out;
pub(crate) mod length_pairs;
pub(crate) mod overlay;
pub(crate) mod reports;

pub use crate::plan::model::data::corpus::{Exchange, Order, Source};
pub use crate::plan::model::data::reports::{DataNote, data_notes};
