//! Markdown: an aligned table with `n/a` for null and with escaped pipes and line ends. Numbers are
//! rounded for readability.

use std::io::{self, Write};

use crate::analysis::metric::{self, Scope};
use crate::analysis::quantile;
use crate::metrics::{self, Of};
use crate::plan::Percentile;
use crate::units::text::plain;

use super::{Cell, Column, Format, Kind, Sheet};

/// The format Markdown: a table that is also readable as plain text.
pub(crate) struct Markdown;

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

/// The mark of a percentile from few samples. It is followed by a space or the end of the cell, so Markdown
/// does not interpret it as the start of emphasis.
const MARK: char = '*';
/// The legend below the table that explains the mark.
pub(super) const LEGEND: &str =
    r"\* from few samples (p99 of fewer than 1 000 values, p99.9 of fewer than 100 000, or no upper end)";

/// The indices of a percentile's column and of the columns that show how many values it is based on.
struct Counts {
    at: usize,
    n: usize,
    /// The column with the worse end of the percentile's interval: the upper end or, for rates, the lower
    /// end.
    worse: usize,
    failures: usize,
    /// For gaps: the column with the number of requests that have gaps.
    streams: Option<usize>,
    percentile: Percentile,
    fewest_requests: u64,
}

impl Counts {
    /// Returns the percentile with the mark if it is based on few values, or the reason why there is no
    /// percentile; `None` if the cell stays unchanged.
    fn mark(&self, row: &[Cell]) -> Option<Cell> {
        let Cell::Int(n) = row[self.n] else { return None };
        let need = quantile::need(self.percentile) as i64;
        let streams = self.streams.and_then(|at| match row[at] {
            Cell::Int(streams) if streams < self.fewest_requests as i64 => Some(streams),
            _ => None,
        });
        let unmarked_from = quantile::unmarked_from(self.percentile) as i64;
        // If requests failed, a missing end of the interval lies among the failures, so the interval is not
        // open.
        let is_open = matches!((&row[self.worse], &row[self.failures]), (Cell::Null, Cell::Int(0)));
        match (&row[self.at], streams) {
            (Cell::Float(value), _) if n < unmarked_from || unmarked_from > 0 && is_open => {
                Some(Cell::from(format!("{}{MARK}", rounded(*value))))
            }
            (Cell::Null, Some(streams)) if streams > 0 => {
                Some(Cell::from(format!("n/a ({streams} of {} requests)", self.fewest_requests)))
            }
            (Cell::Null, _) if 0 < n && n < need => Some(Cell::from(format!("n/a (n={n} of {need})"))),
            _ => None,
        }
    }
}

/// Marks the percentiles of a table based on its `…_n` columns: with `*` if they have few samples, and with
/// the number of samples if there are too few for a percentile. For gaps, the effective number of samples is
/// used.
pub fn marked(sheet: Sheet<'_>) -> Sheet<'_> {
    let place = |name: &str| sheet.columns.iter().position(|column| column.name == name);
    let counts = |column: &metric::Column| {
        let (key, percentile) = column.percentile()?;
        let metric = metric::find(key)?;
        let (of, fewest_requests) = match metric.kind {
            metrics::Kind::Distribution { of, fewest_requests, .. } => (of, fewest_requests),
            _ => return None,
        };
        let stem = format!("{key}_{}", quantile::column(percentile));
        let effective = format!("{stem}_effective_n");
        let n = if of == Of::Gaps { effective } else { format!("{key}_n") };
        let streams = place(&format!("{key}_streams"));
        let end = if metric.is_rate() { "low" } else { "high" };
        let worse = place(&format!("{stem}_{end}{}", metric.unit.suffix()))?;
        let [at, n, failures] = [place(&column.name)?, place(&n)?, place(&format!("{key}_failures"))?];
        Some(Counts { at, n, worse, failures, streams, percentile, fewest_requests })
    };
    let percentiles: Vec<Counts> = metric::columns(Scope::Plan).iter().filter_map(counts).collect();
    let mark = move |mut row: Vec<Cell>| {
        for counts in &percentiles {
            if let Some(marked) = counts.mark(&row) {
                row[counts.at] = marked;
            }
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
        // A label is written as in the plan: 40, not 40.00.
        Cell::Float(value) if is_label => value.to_string(),
        Cell::Float(value) => rounded(*value),
        Cell::Text(text) => escaped(text),
    }
}

/// Formats a number with four significant digits, or with more if its integer part is longer.
fn rounded(value: f64) -> String {
    let whole = if value == 0.0 { 1 } else { value.abs().log10().floor() as i32 + 1 };
    format!("{value:.*}", (4 - whole).clamp(0, 6) as usize)
}

fn escaped(text: &str) -> String {
    let one_line = plain(&text.replace(['\n', '\r', '\t'], " "));
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
