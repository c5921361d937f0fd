//! Tables: CSV, JSON, Markdown, Parquet. Every table is a `Sheet`; every format is one small file behind one trait.

mod csv;
mod json;
mod markdown;
pub mod parts;
pub mod requests;
pub mod runs;
pub mod runs_parquet;
mod sheet;

pub use csv::Csv;
pub use json::Json;
pub use markdown::Markdown;
pub use sheet::{Cell, Column, Format, Sheet};
