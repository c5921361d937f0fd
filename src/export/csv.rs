//! CSV with one header line and no comments. Null is an empty cell.
//!
//! Spreadsheets execute a cell that starts with `=`, `+`, `-`, `@`, a tab or a carriage return as a formula,
//! and model names and error texts come from untrusted sources. Texts that start with such a character get a
//! leading apostrophe, which spreadsheets hide; numbers never get one.

use std::io::{self, Write};

use super::{Cell, Format, Sheet};

/// Comma-separated values (RFC 4180).
pub(crate) struct Csv;

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

/// Returns the underlying I/O error. The csv crate's own conversion hides the error kind, which is needed
/// because a closed pipe is not treated as an error.
fn cause(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// Appends the text of a cell to `field`. Numbers are formatted with `itoa` and `zmij`: the standard library
/// writes the same text but takes twice as long.
fn put(cell: &Cell, field: &mut String) {
    match cell {
        Cell::Null => {}
        Cell::Bool(value) => field.push_str(if *value { "true" } else { "false" }),
        Cell::Int(value) => field.push_str(itoa::Buffer::new().format(*value)),
        Cell::Float(value) => float(*value, field),
        Cell::Text(text) => {
            if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
                field.push('\'');
            }
            field.push_str(text);
        }
    }
}

/// Appends the shortest text that represents the number, never with an exponent, because some spreadsheets
/// interpret an exponent as text.
fn float(value: f64, field: &mut String) {
    use std::fmt::Write;
    if value == 0.0 || (1e-4..1e15).contains(&value.abs()) {
        let mut buffer = zmij::Buffer::new();
        let text = buffer.format(value);
        field.push_str(text.strip_suffix(".0").unwrap_or(text));
    } else {
        write!(field, "{value}").expect("a string accepts any text");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::sheet::tests::{awkward, written};

    proptest::proptest! {
        /// The text of a number is as short as the standard library's, which may choose the other of two
        /// equally close texts.
        #[test]
        fn numbers_are_written_shortest_and_without_an_exponent(bits: u64, tame in -1e6..1e6f64, int: i64) {
            let written = |cell: Cell| {
                let mut field = String::new();
                put(&cell, &mut field);
                field
            };
            for value in [f64::from_bits(bits), tame, tame.round(), tame * 1e-9, tame * 1e11] {
                if value.is_finite() {
                    let text = written(Cell::Float(value));
                    proptest::prop_assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(value.to_bits()), "{}", text);
                    proptest::prop_assert_eq!(text.len(), value.to_string().len(), "{}", text);
                    proptest::prop_assert!(!text.contains(['e', 'E']), "{}", text);
                }
            }
            proptest::prop_assert_eq!(written(Cell::Int(int)), int.to_string());
        }
    }

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
