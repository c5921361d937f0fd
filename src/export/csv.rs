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
        let mut field = String::new();
        for row in sheet.rows {
            for cell in &row {
                field.clear();
                put(cell, &mut field);
                writer.write_field(&field).map_err(cause)?;
            }
            writer.write_record(None::<&[u8]>).map_err(cause)?;
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

/// The text of a cell, behind what `field` holds.
fn put(cell: &Cell, field: &mut String) {
    use std::fmt::Write;
    let written = match cell {
        Cell::Null => Ok(()),
        Cell::Bool(value) => write!(field, "{value}"),
        Cell::Int(value) => write!(field, "{value}"),
        Cell::Float(value) => write!(field, "{value}"),
        Cell::Text(text) if text.starts_with(['=', '+', '-', '@', '\t', '\r']) => write!(field, "'{}", &**text),
        Cell::Text(text) => field.write_str(text),
    };
    written.expect("a string takes all");
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
