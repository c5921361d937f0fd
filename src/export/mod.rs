//! Tables: CSV, XLSX, JSON, Markdown, Parquet. Every table is a `Sheet`; every format is one small file.

mod csv;
pub mod curves;
pub mod events;
mod json;
mod markdown;
mod parquet;
pub mod parts;
pub mod requests;
pub mod runs;
pub mod runs_parquet;
pub mod schema;
mod sheet;
mod wide;
mod xlsx;

pub use csv::Csv;
pub use json::Json;
pub use markdown::{Markdown, marked};
pub use parquet::Parquet;
pub use sheet::{Cell, Column, Format, Kind, Sheet, Text, fits, matching};
pub use wide::{NoPivot, wide};
pub use xlsx::Workbook;

/// Version of the columns: raised when one is renamed, removed or moved. One that is added does not raise it.
pub const COLUMNS_VERSION: u32 = 1;
