//! CSV: one header line, no comments, empty where null.
//!
//! Spreadsheets run a cell that starts with `=`, `+`, `-`, `@`, a tab or a carriage return as a formula, and model names
//! and error texts come from outside. Such texts get a leading apostrophe, which spreadsheets hide; numbers never do.

use std::io::{self, Write};

use super::{Cell, Format, Sheet};

/// Comma-separated values (RFC 4180).
pub struct Csv;

impl Format for Csv {
    fn write(&self, sheet: Sheet<'_>, out: &mut (dyn Write + Send)) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(sheet.columns.iter().map(|column| &column.name)).map_err(cause)?;
        for row in sheet.rows {
            writer.write_record(row.into_iter().map(text)).map_err(cause)?;
        }
        writer.flush()
    }
}

/// The error underneath: csv's own conversion hides its kind, and a reader that went away is no error.
fn cause(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

fn text(cell: Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Bool(value) => value.to_string(),
        Cell::Int(value) => value.to_string(),
        Cell::Float(value) => value.to_string(),
        Cell::Text(text) if text.starts_with(['=', '+', '-', '@', '\t', '\r']) => format!("'{text}"),
        Cell::Text(text) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::sheet::tests::{awkward, written};

    #[test]
    fn texts_cannot_be_formulas() {
        insta::assert_snapshot!(written(&Csv, awkward()).replace('\t', "<tab>"), @r#"
        name,value_ms
        plain,
        '=1+1,true
        '-5 °C,-3
        a|b,0.30000000000000004
        "say ""hi"",
        and go",-1.5
        '@cmd,
        '+1,true
        '<tab>x,-3
        ,0.30000000000000004
        "#);
    }
}
