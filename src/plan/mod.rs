//! Reads the user's text into a `Plan`. All errors of a file are found in one pass, each with its
//! place and its remedy.
//!
//! `pipeline` turns a file into a checked plan: `files` reads the plan's text and its fragments, from
//! which `syntax` builds one tree of values with their places (`text`); `read` reads the types of
//! `model` from this tree, continuing after errors; `files` finds the files that the plan names;
//! `check` validates the plan as a whole and normalizes every matrix. `diagnostic` prints the errors
//! and masks anything that may be a secret. ARCHITECTURE.md lists which module may use which.

mod check;
pub(crate) mod diagnostic;
mod files;
pub mod foreign;
mod loaded;
pub mod matrix;
pub mod model;
mod pipeline;
mod read;
mod schema;
mod syntax;
pub(crate) mod template;
pub(crate) mod text;

#[cfg(test)]
mod tests;

pub use diagnostic::error::{Code, PlanErrors};
pub use diagnostic::report::{Finding, Related, Report, Severity};
pub use files::disk::{Disk, Files};
pub use files::loader::Options;
pub use files::relocation::Unreachable;
pub use files::tokenizers::TokenizerFiles;
pub use loaded::Loaded;
pub use model::axis::is_axis;
pub use model::extra::json::Json;
pub use model::*;
pub use pipeline::{load, load_with, parse, parse_with};
pub use schema::{schema, schema_text};
pub use text::format::Format;
pub use text::place::Place;
pub use text::tree::Step;
