//! XLSX: a workbook with a sheet for each table, a sheet that defines every column, and a sheet that
//! describes the export.
//!
//! Rows are written to a temporary file, so memory use does not grow with the number of rows. There are no
//! formulas, and a string stays a string, even if it begins with `=`. A table that is too long for a sheet is refused.

use std::io::{self, Write};

use jiff::Timestamp;
use rust_xlsxwriter::{DocProperties, Format as Look, FormatAlign, Worksheet, XlsxError};

use crate::analysis::ANALYSIS;

use super::charts::{CHARTS, Charts, NUMBERS};
use super::xlsx_text::cut;
use super::{ANALYSIS_MARK, COLUMNS_VERSION, Cell, Column, Kind, MARK, Sheet};

/// Maximum number of rows, without the header, in a sheet that Excel can open.
const MOST_ROWS: u32 = 1_048_575;

/// Returns the maximum number of rows of a table in a workbook. In builds with debug assertions, tests can lower it
/// with an environment variable.
pub(crate) fn most_rows() -> u32 {
    let chosen = || std::env::var("SWEEPLINE_XLSX_ROWS").ok()?.parse().ok();
    if cfg!(debug_assertions) { chosen().unwrap_or(MOST_ROWS) } else { MOST_ROWS }
}

/// A table has more rows than a sheet can hold.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{rows}` has more rows than fit in a sheet of a workbook ({most}): export to a .csv or .parquet file, or select \
     fewer runs with --only"
)]
pub(crate) struct TooLong {
    /// The kind of rows.
    pub(crate) rows: String,
    /// Maximum number of rows of a sheet.
    pub(crate) most: u32,
}

/// Number of days from Excel's day 0 to 1970-01-01.
const EPOCH: f64 = 25_569.0;

/// A workbook being built.
pub(crate) struct Workbook {
    book: rust_xlsxwriter::Workbook,
    header: Look,
    /// The columns of the tables that have been added so far, each with its sheet and whether the sheet
    /// contains it.
    defined: Vec<(String, Column, bool)>,
    most_rows: u32,
}

impl Default for Workbook {
    fn default() -> Self {
        Workbook::new()
    }
}

impl Workbook {
    /// Creates an empty workbook.
    pub(crate) fn new() -> Workbook {
        let header = Look::new().set_bold().set_text_wrap().set_align(FormatAlign::Top);
        Workbook { book: rust_xlsxwriter::Workbook::new(), header, defined: Vec::new(), most_rows: most_rows() }
    }

    /// Adds a table as the sheet `name`.
    #[cfg(test)]
    pub(crate) fn add(&mut self, name: &str, table: Sheet<'_>) -> io::Result<()> {
        self.add_part(name, table, Vec::new())
    }

    /// Adds a table as the sheet `name`. Columns of `all` that are not in the table are listed in the
    /// definitions after the table's columns. Fails with [`TooLong`] if the sheet cannot hold all rows.
    pub(crate) fn add_part(&mut self, name: &str, table: Sheet<'_>, all: Vec<Column>) -> io::Result<()> {
        let Sheet { columns, mut rows } = table;
        self.fill(name, &columns, &mut rows)?;
        if rows.next().is_some() {
            return Err(io::Error::other(TooLong { rows: name.to_owned(), most: self.most_rows }));
        }
        let others: Vec<Column> =
            all.into_iter().filter(|one| columns.iter().all(|column| column.name != one.name)).collect();
        self.defined.extend(columns.into_iter().map(|column| (name.to_owned(), column, true)));
        self.defined.extend(others.into_iter().map(|column| (name.to_owned(), column, false)));
        Ok(())
    }

    /// Adds a sheet and fills it with as many rows as it can hold.
    fn fill(&mut self, title: &str, columns: &[Column], rows: &mut dyn Iterator<Item = Vec<Cell>>) -> io::Result<()> {
        let looks: Vec<Look> = columns.iter().map(look).collect();
        let sheet = self.book.add_worksheet_with_constant_memory().map_err(cause)?;
        sheet.set_name(title).map_err(cause)?;
        let last_column = u16::try_from(columns.len().saturating_sub(1)).map_err(io::Error::other)?;
        for (at, column) in (0..).zip(columns) {
            sheet.set_column_width(at, width(column)).map_err(cause)?;
            sheet.write_string_with_format(0, at, cut(&column.name), &self.header).map_err(cause)?;
        }
        sheet.set_freeze_panes(1, 0).map_err(cause)?;
        let mut last = 0;
        for (row, cells) in (1..=self.most_rows).zip(rows) {
            for ((at, cell), (column, look)) in (0..).zip(cells).zip(columns.iter().zip(&looks)) {
                put(sheet, (row, at), cell, (column.kind, look)).map_err(cause)?;
            }
            last = row;
        }
        sheet.autofilter(0, 0, last, last_column).map_err(cause)?;
        Ok(())
    }

    /// Adds the sheet of charts and the sheet of their numbers. These sheets are built in memory, because
    /// charts contain a copy of their numbers.
    pub(crate) fn add_charts(&mut self, charts: &Charts) -> io::Result<()> {
        let sheet = self.book.add_worksheet();
        sheet.set_name(CHARTS).map_err(cause)?;
        charts.draw(sheet).map_err(cause)?;
        let sheet = self.book.add_worksheet();
        sheet.set_name(NUMBERS).map_err(cause)?;
        charts.write_numbers(sheet, &self.header).map_err(cause)
    }

    /// Finishes the workbook by adding the definitions of all columns and the facts in `about`. The first
    /// sheet becomes active.
    pub(crate) fn write(mut self, about: &[(&'static str, String)], out: &mut (dyn Write + Send)) -> io::Result<()> {
        let text = |name: &str, doc: &str| Column::new(name, Kind::Text, doc);
        let columns = vec![
            text("sheet", ""),
            text("column", ""),
            text("shown", ""),
            text("unit", ""),
            text("definition", ""),
            text("null when", ""),
        ];
        let defined = std::mem::take(&mut self.defined);
        let row = |(sheet, column, is_shown): &(String, Column, bool)| -> Vec<Cell> {
            let Column { name, unit, doc, null, .. } = column;
            let shown = if *is_shown { "yes" } else { "no: --columns all" };
            [sheet.as_str(), name, shown, unit, doc, null]
                .map(|text| (!text.is_empty()).then(|| text.to_owned()).into())
                .into()
        };
        self.fill("definitions", &columns, &mut defined.iter().map(row))?;
        let columns = vec![text("what", ""), Column::new("value", Kind::Any, "")];
        let mut rows = about.iter().map(|(what, value)| vec![Cell::from(*what), Cell::from(value.clone())]);
        self.fill("about", &columns, &mut rows)?;
        let properties = DocProperties::new()
            .set_custom_property(MARK, COLUMNS_VERSION.to_string())
            .set_custom_property(ANALYSIS_MARK, ANALYSIS.to_string());
        self.book.set_properties(&properties);
        self.book.save_to_writer(out).map_err(cause)
    }
}

/// Returns the underlying I/O error if there is one, so that callers can check its kind.
fn cause(error: XlsxError) -> io::Error {
    match error {
        XlsxError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

fn put(sheet: &mut Worksheet, (row, at): (u32, u16), cell: Cell, (kind, look): (Kind, &Look)) -> Result<(), XlsxError> {
    match cell {
        Cell::Null => {}
        Cell::Bool(value) => drop(sheet.write_boolean(row, at, value)?),
        Cell::Int(value) => drop(sheet.write_number_with_format(row, at, value as f64, look)?),
        Cell::Float(value) => drop(sheet.write_number_with_format(row, at, value, look)?),
        Cell::Text(text) => match serial(&text).filter(|_| kind == Kind::Time) {
            Some(days) => drop(sheet.write_number_with_format(row, at, days, look)?),
            None => drop(sheet.write_string(row, at, cut(&text))?),
        },
    }
    Ok(())
}

/// Converts a time to Excel's number of days (UTC); `None` if Excel cannot represent it.
fn serial(text: &str) -> Option<f64> {
    let instant: Timestamp = text.parse().ok()?;
    let days = instant.as_nanosecond() as f64 / 86_400e9 + EPOCH;
    (1.0..2_958_466.0).contains(&days).then_some(days)
}

/// Returns the number format of a column; it affects only how values are displayed.
fn look(column: &Column) -> Look {
    let format = match (column.kind, column.unit) {
        (Kind::Time, _) => "yyyy-mm-dd hh:mm:ss",
        (Kind::Int, _) => "0",
        (Kind::Float, "share") => "0.00%",
        (Kind::Float, "ms" | "money") => "0.000",
        (Kind::Float, "tokens/s" | "requests/s") => "0.00",
        (Kind::Float, _) if column.name == "qps" => "General",
        (Kind::Float, _) => "0.000",
        (Kind::Text | Kind::Bool | Kind::Any, _) => "General",
    };
    Look::new().set_num_format(format)
}

/// Returns the width of a column in characters, based on its header and the typical size of its cells.
fn width(column: &Column) -> f64 {
    let cells = match (column.kind, column.name.as_str()) {
        (_, "definition") => 90.0,
        (_, "column" | "null when" | "value" | "metric") => 40.0,
        (Kind::Time, _) => 19.0,
        (Kind::Text, _) => 14.0,
        (Kind::Bool | Kind::Int | Kind::Float | Kind::Any, _) => 9.0,
    };
    let header = column.name.chars().count() as f64 + 3.0;
    header.clamp(cells, f64::max(cells, 34.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::sheet::tests::awkward;

    fn saved(book: Workbook) -> Vec<u8> {
        let mut bytes = Vec::new();
        book.write(&[("plan", "=cmd".to_owned())], &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_table_that_is_longer_than_a_sheet_is_refused() {
        for (most_rows, fits) in [(4, false), (8, false), (9, true), (10, true)] {
            let mut book = Workbook { most_rows, ..Workbook::new() };
            let added = book.add("runs", awkward());
            let is_too_long = |error: &io::Error| error.get_ref().is_some_and(|cause| cause.is::<TooLong>());
            assert_eq!(added.is_ok(), fits, "{most_rows}");
            assert!(added.as_ref().err().is_none_or(is_too_long), "{added:?}");
            assert_eq!(book.book.worksheets().len(), 1);
        }
    }

    #[test]
    fn no_rows_are_a_header() {
        let mut book = Workbook::new();
        book.add("runs", Sheet { columns: awkward().columns, rows: Box::new(std::iter::empty()) }).unwrap();
        assert!(saved(book).starts_with(b"PK"));
    }

    #[test]
    fn an_instant_is_days() {
        assert_eq!(serial("1970-01-02T12:00:00Z"), Some(25_570.5));
        assert_eq!(serial("2026-11-21T12:00:00.123456789Z").map(f64::trunc), Some(46_347.0));
        assert_eq!([serial("tomorrow"), serial("-009999-01-02T01:59:59Z")], [None, None]);
    }
}
