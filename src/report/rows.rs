//! Rows of numbers with their names. Names are next to the numbers if every name fits unbroken, otherwise
//! on separate lines above them.

use comfy_table::{Cell, ColumnConstraint, Width};

use super::format::{fill, width};
use super::grid;

/// One row.
pub(crate) struct Row {
    /// Its names, one per column of names. If a column has further lines, they follow after line breaks.
    pub names: Vec<String>,
    /// Its cells after the names.
    pub cells: Vec<Cell>,
}

/// The attributes that the rows share.
pub(super) struct Head<'a> {
    /// The headings of the names.
    pub names: Vec<&'a str>,
    /// The headings of the cells.
    pub cells: Vec<Cell>,
    /// Minimum width of the last column, if its text may be wrapped.
    pub last: Option<usize>,
    /// A function that is applied to the lines of the last column at the end, for example to paint them.
    pub(crate) paint: fn(&str) -> String,
}

/// Marks the start of a row whose names are above it. It is a private-use character, so that no text
/// contains it, and is removed again.
const MARK: char = '\u{f8ff}';

/// Renders the table, no wider than the screen. Names are next to the numbers or else above them; if this
/// does not fit, each row is a paragraph below its names.
pub(super) fn table(head: &Head, rows: &[Row]) -> String {
    if let Some(beside) = lines(head, rows, |row| row.names.iter().map(Cell::new).collect(), &head.names, &[]) {
        return painted(head, beside).map(|(_, line)| format!("{line}\n")).collect();
    }
    let mark = MARK.to_string();
    // Among the other columns, only the load comes from a plan.
    match lines(head, rows, |_| vec![Cell::new(&mark)], &[" "], &[1]) {
        Some(above) => with_names(head, rows, above),
        None => stacked(head, rows),
    }
}

/// Renders each row as a paragraph below its names.
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

/// The names of a row on one line.
fn joined(names: &[String]) -> String {
    names.iter().flat_map(|name| name.lines()).collect::<Vec<_>>().join(" · ")
}

/// The rendered lines, preceded by the names from `named`; the columns in `wrap` may be wrapped.
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

/// The lines with the last column painted, each with whether a row starts there.
fn painted<'l>(head: &'l Head, lines: Vec<String>) -> impl Iterator<Item = (bool, String)> + 'l {
    let title = head.cells.last().map(Cell::content).unwrap_or_default();
    let column = lines.first().and_then(|line| Some(width(&line[..line.rfind(&title)?]))).unwrap_or(0);
    lines.into_iter().map(move |line| {
        let (before, last) = line.split_at(byte_at(&line, column));
        let line = format!("{before}{}", (head.paint)(last));
        (line.starts_with(MARK), line.trim_start_matches(MARK).to_owned())
    })
}

/// The byte offset at which a terminal column starts.
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
