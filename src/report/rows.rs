//! Rows of numbers with the names of what they are of: beside them where there is room for every name in one piece, else on
//! lines of their own above them.

use comfy_table::{Cell, ColumnConstraint, Width};

use super::format::{fill, width};
use super::grid;

/// One row.
pub(crate) struct Row {
    /// Its names, one for each column of names; further lines of a column behind line breaks.
    pub names: Vec<String>,
    /// Its cells behind them.
    pub cells: Vec<Cell>,
}

/// What the rows have in common.
pub(super) struct Head<'a> {
    /// The headings of the names.
    pub names: Vec<&'a str>,
    /// The headings behind them.
    pub cells: Vec<Cell>,
    /// How many columns the last one takes at least, where it may break its text.
    pub last: Option<usize>,
    /// What is done with the text of the last column's lines at the end, like painting it.
    pub(crate) paint: fn(&str) -> String,
}

/// Opens a row where names stand above: of private use, so that no text has it. It is taken out again.
const MARK: char = '\u{f8ff}';

/// The table, no wider than the screen: names beside the numbers, else above them, else each row a paragraph below its names.
pub(super) fn table(head: &Head, rows: &[Row]) -> String {
    if let Some(beside) = lines(head, rows, |row| row.names.iter().map(Cell::new).collect(), &head.names, &[]) {
        return painted(head, beside).map(|(_, line)| format!("{line}\n")).collect();
    }
    let mark = MARK.to_string();
    // The load is the only one of the other columns that comes from a plan.
    match lines(head, rows, |_| vec![Cell::new(&mark)], &[" "], &[1]) {
        Some(above) => with_names(head, rows, above),
        None => stacked(head, rows),
    }
}

/// Each row a paragraph below its names.
fn stacked(head: &Head, rows: &[Row]) -> String {
    let headings: Vec<String> = head.cells.iter().map(Cell::content).collect();
    let mut out = String::new();
    let mut before = None;
    for row in rows {
        if before != Some(&row.names) {
            out.push_str(&fill("", 4, &joined(&row.names)));
        }
        before = Some(&row.names);
        let cells: Vec<String> = row.cells.iter().map(Cell::content).collect();
        out.push_str(&grid::items("  ", 4, &grid::named(&headings, &cells)));
    }
    out
}

/// The names of a row in one line.
fn joined(names: &[String]) -> String {
    names.iter().flat_map(|name| name.lines()).collect::<Vec<_>>().join(" · ")
}

/// The rendered lines with the names in front that `named` gives; the columns in `wrap` may break their text.
fn lines(
    head: &Head,
    rows: &[Row],
    named: impl Fn(&Row) -> Vec<Cell>,
    names: &[&str],
    wrap: &[usize],
) -> Option<Vec<String>> {
    let mut table = grid::table();
    table.set_header(names.iter().map(Cell::new).chain(head.cells.iter().cloned()));
    rows.iter().for_each(|row| {
        table.add_row(named(row).into_iter().chain(row.cells.iter().cloned()));
    });
    let last = table.column_count() - 1;
    let mut wrap = wrap.to_vec();
    if let (Some(least), Some(column)) = (head.last, table.column_mut(last)) {
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least as u16 + 1)));
        wrap.push(last);
    }
    grid::fitting(table, 1, &wrap).map(|text| text.lines().map(str::to_owned).collect())
}

/// The lines with the last column painted, and whether a row begins there.
fn painted<'l>(head: &'l Head, lines: Vec<String>) -> impl Iterator<Item = (bool, String)> + 'l {
    let title = head.cells.last().map(Cell::content).unwrap_or_default();
    let column = lines.first().and_then(|line| Some(width(&line[..line.rfind(&title)?]))).unwrap_or(0);
    lines.into_iter().map(move |line| {
        let (before, last) = line.split_at(byte_at(&line, column));
        let line = format!("{before}{}", (head.paint)(last));
        (line.starts_with(MARK), line.trim_start_matches(MARK).to_owned())
    })
}

/// The byte at which a column of the terminal begins.
fn byte_at(line: &str, column: usize) -> usize {
    let starts = line.char_indices().map(|(at, _)| at);
    starts.into_iter().find(|at| width(&line[..*at]) >= column).unwrap_or(line.len())
}

fn with_names(head: &Head, rows: &[Row], lines: Vec<String>) -> String {
    let mut out = String::new();
    let (mut rows, mut before) = (rows.iter(), None);
    for (opens, line) in painted(head, lines) {
        if opens && let Some(row) = rows.next() {
            if before != Some(&row.names) {
                out.push_str(&fill("", 4, &joined(&row.names)));
            }
            before = Some(&row.names);
            out.push_str(&format!(" {line}\n"));
        } else {
            out.push_str(&format!("{line}\n"));
        }
    }
    out
}
