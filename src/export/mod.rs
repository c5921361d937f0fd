//! Tables: CSV, XLSX, JSON, Markdown, Parquet. Every table is a `Sheet`; every format is one small file.

pub mod breakdown;
mod csv;
pub mod curves;
pub mod events;
mod json;
mod markdown;
mod parquet;
mod recognize;
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
pub use recognize::is_export;
pub use sheet::{Cell, Column, Format, Kind, Sheet, Text, fits, matching};
pub use wide::{NoPivot, wide};
pub use xlsx::Workbook;

/// Version of the columns: raised when one is renamed, removed or moved. One that is added does not raise it.
pub const COLUMNS_VERSION: u32 = 1;

/// What marks a Parquet file or a workbook as an export; its value is the version of the columns.
const MARK: &str = "sweepline.columns";

/// Beside the mark: the version of the analysis that made the numbers.
const ANALYSIS_MARK: &str = "sweepline.analysis";

/// The column that says which version of the analysis made the numbers of a row.
fn analysis_column() -> Column {
    let doc = "Version of the analysis that made the row's numbers and verdict. Rows of different versions are not comparable.";
    Column::new("analysis", Kind::Int, doc).label()
}
