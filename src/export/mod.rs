//! Tables as CSV, XLSX, JSON, Markdown and Parquet. Every table is a `Sheet`, and every format is implemented
//! in one small file.

pub(crate) mod breakdown;
pub(crate) mod charts;
mod csv;
pub mod curves;
pub mod events;
pub(crate) mod facts;
pub(crate) mod further;
mod json;
mod markdown;
mod parquet;
mod recognize;
pub mod requests;
pub mod run_row;
pub mod runs;
pub(crate) mod runs_parquet;
pub mod schema;
mod sheet;
pub(crate) mod shown;
mod wide;
mod xlsx;
mod xlsx_text;

pub(crate) use csv::Csv;
pub(crate) use json::Json;
pub(crate) use markdown::Markdown;
pub use markdown::marked;
pub use parquet::Parquet;
pub(crate) use recognize::is_export;
pub use sheet::{Cell, Format, Text, fits};
pub(crate) use sheet::{Column, Kind, Sheet, matching};
pub(crate) use wide::NoPivot;
pub use wide::wide;
pub(crate) use xlsx::{TooLong, Workbook, most_rows};

/// Version of the columns of exports. It is increased when a column is renamed, removed or moved, but not
/// when a column is added.
pub(crate) const COLUMNS_VERSION: u32 = 1;

/// The metadata key that marks a Parquet file or a workbook as an export; its value is the version of the
/// columns.
const MARK: &str = "sweepline.columns";

/// The metadata key for the version of the analysis that computed the numbers.
const ANALYSIS_MARK: &str = "sweepline.analysis";

/// The column with the version of the analysis that computed the numbers of a row.
fn analysis_column() -> Column {
    let doc = "Version of the analysis that computed the row's numbers and verdict. Rows of different versions \
        are not comparable.";
    Column::new("analysis", Kind::Int, doc).label()
}
