//! Renders rows of numbers with their names. The names are next to the numbers if every name fits unbroken,
//! otherwise on separate lines above the numbers.

use comfy_table::{Cell, ColumnConstraint, Width};

use super::format::{fill, width};
use super::grid;

/// One row of a table.
pub(crate) struct Row {
    /// The names of the row, one per column of names; a name may have several lines.
    pub names: Vec<String>,
    /// The cells that follow the names.
    pub cells: Vec<Cell>,
}

/// The headings of a table, and the properties of its last column.
pub(super) struct Head<'a> {
    /// The headings of the names.
    pub names: Vec<&'a str>,
    /// The headings of the cells.
    pub cells: Vec<Cell>,
    /// Minimum width of the last column, if its text may be wrapped.
    pub last: Option<usize>,
    /// A function that is applied to each line of the last column after layout, for example to color it.
    pub(crate) paint: fn(&str) -> String,
}

/// Marks the start of a row whose names are above it, and is removed from the output. It is a private-use
/// character, so that no text contains it.
const MARK: char = '\u{f8ff}';

/// Renders the table, no wider than the screen. The names are next to the numbers or, if this does not fit,
/// above them; if this does not fit either, each row is a paragraph below its names.
pub(super) fn table(head: &Head, rows: &[Row]) -> String {
    if let Some(beside) = lines(head, rows, |row| row.names.iter().map(Cell::new).collect(), &head.names, &[]) {
        return painted(head, beside).map(|(_, line)| format!("{line}\n")).collect();
    }
    let mark = MARK.to_string();
    // The load (column 1) may be wrapped, because it is the only other column whose text comes from a plan.
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

/// Joins the names of a row on one line.
fn joined(names: &[String]) -> String {
    names.iter().flat_map(|name| name.lines()).collect::<Vec<_>>().join(" · ")
}

/// Renders the lines of the table, in which each row starts with the cells from `named`; the columns whose
/// indices are in `wrap` may be wrapped. `None` if the table is wider than the screen.
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

/// Applies `paint` to the last column of the lines. Returns each line, and whether it starts a row.
fn painted<'l>(head: &'l Head, lines: Vec<String>) -> impl Iterator<Item = (bool, String)> + 'l {
    let title = head.cells.last().map(Cell::content).unwrap_or_default();
    let column = lines.first().and_then(|line| Some(width(&line[..line.rfind(&title)?]))).unwrap_or(0);
    lines.into_iter().map(move |line| {
        let (before, last) = line.split_at(byte_at(&line, column));
        let line = format!("{before}{}", (head.paint)(last));
        (line.starts_with(MARK), line.trim_start_matches(MARK).to_owned())
    })
}

/// Returns the byte offset in a line at which a terminal column starts.
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
