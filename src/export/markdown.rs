//! Markdown: an aligned table, `n/a` for null, pipes and line ends escaped. Numbers are rounded to be read.

use std::io::{self, Write};

use crate::analysis::metric::{self, Scope};
use crate::analysis::quantile;
use crate::plan::Percentile;

use super::{Cell, Column, Format, Kind, Sheet};

/// A table that reads well as text too.
pub struct Markdown;

impl Format for Markdown {
    fn write(&self, sheet: Sheet<'_>, out: &mut (dyn Write + Send)) -> io::Result<()> {
        let header: Vec<String> = sheet.columns.iter().map(|column| escaped(&column.name)).collect();
        let cells: Vec<Vec<Cell>> = sheet.rows.collect();
        let is_number = |kind: Kind| matches!(kind, Kind::Int | Kind::Float);
        let texts = |index: usize| cells.iter().any(|row| matches!(row[index], Cell::Text(_)));
        let numeric = |index: usize| is_number(sheet.columns[index].kind) || !texts(index);
        let numeric: Vec<bool> = (0..header.len()).map(|index| numeric(index) && !cells.is_empty()).collect();
        let shown = |(cell, column): (&Cell, &Column)| text(cell, column.is_label);
        let rows: Vec<Vec<String>> =
            cells.iter().map(|row| row.iter().zip(&sheet.columns).map(shown).collect()).collect();
        let lengths =
            |index: usize| rows.iter().chain([&header]).map(|row| row[index].chars().count()).fold(3, usize::max);
        let widths: Vec<usize> = (0..header.len()).map(lengths).collect();
        line(out, &header, &widths, &numeric)?;
        let rule = |(width, numeric): (&usize, &bool)| {
            if *numeric { format!("{}:", "-".repeat(width - 1)) } else { "-".repeat(*width) }
        };
        line(out, &widths.iter().zip(&numeric).map(rule).collect::<Vec<_>>(), &widths, &numeric)?;
        rows.iter().try_for_each(|row| line(out, row, &widths, &numeric))?;
        let is_marked =
            |row: &Vec<String>| row.iter().zip(&numeric).any(|(cell, numeric)| *numeric && cell.ends_with(MARK));
        if rows.iter().any(is_marked) { writeln!(out, "\n{LEGEND}") } else { Ok(()) }
    }
}

/// Behind a percentile of few samples. A space or the end follows, so it begins no emphasis.
const MARK: char = '*';
/// What the mark means, below the table.
pub(super) const LEGEND: &str = r"\* from few samples (p99 of fewer than 1 000 values, p99.9 of fewer than 100 000)";

/// The table with what its columns `…_n` say of its percentiles: a mark where samples are few, n where there are too few.
pub fn marked(sheet: Sheet<'_>) -> Sheet<'_> {
    let place = |name: &str| sheet.columns.iter().position(|column| column.name == name);
    let of_metrics = metric::columns(Scope::Plan);
    let percentiles: Vec<(usize, usize, Percentile)> = of_metrics
        .iter()
        .filter_map(|column| {
            let (key, percentile) = column.percentile()?;
            Some((place(&column.name)?, place(&format!("{key}_n"))?, percentile))
        })
        .collect();
    let mark = move |mut row: Vec<Cell>| {
        for (at, n, percentile) in &percentiles {
            let Cell::Int(n) = row[*n] else { continue };
            let need = quantile::need(*percentile) as i64;
            row[*at] = match &row[*at] {
                Cell::Float(value) if n < quantile::unmarked_from(*percentile) as i64 => {
                    Cell::from(format!("{}{MARK}", rounded(*value)))
                }
                Cell::Null if 0 < n && n < need => Cell::from(format!("n/a (n={n} of {need})")),
                other => other.clone(),
            };
        }
        row
    };
    Sheet { columns: sheet.columns, rows: Box::new(sheet.rows.map(mark)) }
}

fn line(out: &mut (dyn Write + Send), cells: &[String], widths: &[usize], numeric: &[bool]) -> io::Result<()> {
    for ((cell, width), numeric) in cells.iter().zip(widths).zip(numeric) {
        if *numeric { write!(out, "| {cell:>width$} ")? } else { write!(out, "| {cell:<width$} ")? }
    }
    writeln!(out, "|")
}

fn text(cell: &Cell, is_label: bool) -> String {
    match cell {
        Cell::Null => "n/a".into(),
        Cell::Bool(value) => value.to_string(),
        Cell::Int(value) => value.to_string(),
        // A value of an axis is a name: 40 is not 40.00.
        Cell::Float(value) if is_label => value.to_string(),
        Cell::Float(value) => rounded(*value),
        Cell::Text(text) => escaped(text),
    }
}

/// Four significant digits, whole numbers in full.
fn rounded(value: f64) -> String {
    let whole = if value == 0.0 { 1 } else { value.abs().log10().floor() as i32 + 1 };
    format!("{value:.*}", (4 - whole).clamp(0, 6) as usize)
}

fn escaped(text: &str) -> String {
    let one_line = text.replace(['\n', '\r', '\t'], " ");
    one_line.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::sheet::tests::{awkward, written};

    #[test]
    fn a_table_is_aligned_and_escaped() {
        insta::assert_snapshot!(written(&Markdown, awkward()), @r#"
        | name             | value_ms |
        | ---------------- | -------: |
        | plain            |      n/a |
        | =1+1             |     true |
        | -5 °C            |       -3 |
        | a\|b             |   0.3000 |
        | say "hi", and go |   -1.500 |
        | @cmd             |      n/a |
        | +1               |     true |
        |  x               |       -3 |
        |                  |   0.3000 |
        "#);
    }

    #[test]
    fn numbers_are_rounded_to_be_read() {
        let texts = [0.0, 0.012345, 1.23456, 123.456, 123456.7].map(rounded);
        assert_eq!(texts, ["0.000", "0.01235", "1.235", "123.5", "123457"]);
    }
}
