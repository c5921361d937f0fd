//! What the user writes, read into a `Plan`: all mistakes of a file in one pass, each at its place with its remedy.
//!
//! `pipeline` goes from a file to a checked plan: `files` reads the plan's text and its fragments, of which `syntax` makes one tree of
//! values that know where they were written (`text`); `read` reads the types of `model` from it and goes on after a mistake; `files` finds
//! what the plan names; `check` looks at the plan as a whole and gives every matrix its one form. `diagnostic` shows what was found,
//! without what it takes for a secret. ARCHITECTURE.md says which room may use which.

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
