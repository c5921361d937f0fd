//! Renders text tables without borders. If a table does not fit the screen without breaking words, each row
//! becomes a paragraph in which every value follows its heading ("stacked").

use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, Width, presets};

use super::format::{fill, width};
use super::screen;

fn borderless(arrangement: ContentArrangement) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(arrangement);
    table
}

/// Creates an empty table with a header; cells are never wrapped.
pub fn grid<const N: usize>(header: [&str; N]) -> Table {
    let mut table = borderless(ContentArrangement::Disabled);
    table.set_header(header);
    table
}

/// Creates an empty table that fits the width of a screen.
pub fn table() -> Table {
    let mut table = borderless(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(screen::columns()).unwrap_or(screen::MOST));
    table
}

/// Renders the table without trailing blanks, with columns that are `gap` blanks apart; stacked if the table
/// is wider than the screen. Only the columns whose indices are in `wrap` may be wrapped, and only between
/// words.
pub fn text(table: Table, gap: u16, wrap: &[usize]) -> String {
    let plain = table.clone();
    fitting(table, gap, wrap).unwrap_or_else(|| stacked(&plain))
}

/// Renders the table that `make` returns for a set of dropped columns. To fit the screen, drops as many of
/// the columns `less_needed` as necessary, starting with the first, and names them below the table. If the
/// table does not fit even without all of these columns, the complete table is stacked.
pub(crate) fn text_of_fewer(
    less_needed: &[&str],
    (gap, wrap): (u16, &[usize]),
    make: impl Fn(&[&str]) -> Table,
) -> String {
    for count in 0..=less_needed.len() {
        let left_out = &less_needed[..count];
        let Some(text) = fitting(make(left_out), gap, wrap) else { continue };
        let note = format!("no room for {}: use a wider terminal or `--format json`", left_out.join(", "));
        return if count == 0 { text } else { format!("{text}{}", fill(" ", 4, &note)) };
    }
    stacked(&make(&[]))
}

/// Returns the indices of the columns that are kept. `left_out` contains the headings of dropped columns,
/// with the lines of a heading joined into one.
pub(crate) fn places<'h>(headings: impl IntoIterator<Item = &'h str>, left_out: &[&str]) -> Vec<usize> {
    let in_a_line = |heading: &str| heading.replace("\n/", "/").replace('\n', " ");
    let headings = headings.into_iter().enumerate();
    headings.filter(|(_, heading)| !left_out.contains(&in_a_line(heading).as_str())).map(|(at, _)| at).collect()
}

/// Renders the table like [`text`]; `None` if it is wider than the screen.
pub(super) fn fitting(mut table: Table, gap: u16, wrap: &[usize]) -> Option<String> {
    let least: Vec<usize> = (0..table.column_count()).map(|column| longest_word(&table, column)).collect();
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, gap));
        if !wrap.contains(&index) {
            column.set_constraint(ColumnConstraint::ContentWidth);
            continue;
        }
        let asked = match column.constraint() {
            Some(ColumnConstraint::LowerBoundary(Width::Fixed(columns))) => usize::from(*columns),
            _ => 0,
        };
        let least = asked.max(least[index] + usize::from(gap));
        let least = u16::try_from(least).unwrap_or(u16::MAX);
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    let fits = lines.iter().all(|line| width(line) <= screen::columns());
    fits.then(|| lines.iter().map(|line| format!("{line}\n")).collect())
}

/// Returns the width of the longest word of a column, including its heading.
fn longest_word(table: &Table, column: usize) -> usize {
    let rows = table.header().into_iter().chain(table.row_iter());
    let words = rows.flat_map(|row| row.cell_iter().nth(column)).map(Cell::content);
    words.map(|text| text.split_whitespace().map(width).max().unwrap_or(0)).max().unwrap_or(0)
}

/// Renders the rows one below the other, each as a paragraph of its cells in the form `heading value`.
fn stacked(table: &Table) -> String {
    let headings: Vec<String> = table.header().map(cells).unwrap_or_default();
    let of_row = |row: &Row| {
        let mut cells = cells(row);
        // The first cell names the row, and has several lines only to keep the column narrow.
        cells.first_mut().into_iter().for_each(|name| *name = name.replace('\n', " "));
        items("", 2, &named(&headings, &cells))
    };
    table.row_iter().map(of_row).collect()
}

fn cells(row: &Row) -> Vec<String> {
    row.cell_iter().map(Cell::content).collect()
}

/// Returns the cells of a row, each after its heading; empty cells are omitted. The lines of a cell are
/// separated by a slash.
pub(super) fn named(headings: &[String], cells: &[String]) -> Vec<String> {
    let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let below = |text: &str| {
        let lines = text.lines().map(line).filter(|text| !text.is_empty());
        lines.reduce(|above, below| match below.starts_with('(') {
            true => format!("{above} {below}"),
            false => format!("{above} / {below}"),
        })
    };
    let blank = String::new();
    let headings = headings.iter().chain(std::iter::repeat(&blank));
    let named = cells.iter().zip(headings).map(|(cell, heading)| (line(heading), below(cell).unwrap_or_default()));
    named
        .filter(|(_, cell)| !cell.is_empty())
        .map(|(heading, cell)| format!("{heading} {cell}").trim().to_owned())
        .collect()
}

/// Arranges items, which follow `first`, in lines that fit the screen; later lines are indented by `indent`.
/// An item is broken only if it is longer than a line.
pub(super) fn items(first: &str, indent: usize, items: &[String]) -> String {
    let most = screen::columns();
    let mut out = String::new();
    let mut line = first.to_owned();
    let mut is_fresh = true;
    for item in items {
        let separator = if is_fresh { "" } else { " · " };
        if !is_fresh && width(&line) + width(separator) + width(item) > most {
            out.push_str(&format!("{line}\n"));
            (line, is_fresh) = (" ".repeat(indent), true);
        }
        let separator = if is_fresh { "" } else { separator };
        if width(&line) + width(separator) + width(item) > most {
            let filled = fill(&line, indent + 2, item);
            let (whole, last) = filled.trim_end().rsplit_once('\n').unwrap_or(("", filled.trim_end()));
            out.push_str(whole);
            out.push_str(if whole.is_empty() { "" } else { "\n" });
            (line, is_fresh) = (last.to_owned(), false);
            continue;
        }
        line.push_str(separator);
        line.push_str(item);
        is_fresh = false;
    }
    out.push_str(&line);
    out.push('\n');
    out
}

/// Returns the lines of a table, without trailing blanks.
pub fn lines(mut table: Table) -> Vec<String> {
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 2));
    });
    table.to_string().lines().map(|line| line.trim_end().to_owned()).collect()
}

/// Renders rows of one-line cells like [`lines`], but with little memory.
pub(crate) fn long<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = header.map(width);
    for row in rows {
        row.iter().zip(&mut widths).for_each(|(cell, most)| *most = width(cell).max(*most));
    }
    let mut text = String::new();
    let mut line = |cells: [&str; N]| {
        let from = text.len();
        for (cell, most) in cells.into_iter().zip(widths) {
            text.push_str(cell);
            text.extend(std::iter::repeat_n(' ', most + 2 - width(cell)));
        }
        text.truncate(from + text[from..].trim_end().len());
        text.push('\n');
    };
    line(header);
    rows.iter().for_each(|row| line(row.each_ref().map(String::as_str)));
    text
}

/// Creates a right-aligned cell.
pub(crate) fn right(text: impl Into<String>) -> Cell {
    Cell::new(text.into()).set_alignment(CellAlignment::Right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::screen::tests::on_screen;

    fn some(name: &str) -> Table {
        let mut table = table();
        table.set_header(vec![Cell::new("name"), right("output\ntok/s"), Cell::new("verdict")]);
        table.add_row(vec![Cell::new(name), right("812\n790–840"), Cell::new("valid, saturated and slow")]);
        table
    }

    #[test]
    fn a_table_that_does_not_fit_is_stacked() {
        let name = "a-name-of-one-long-word";
        let shown = |columns| on_screen(columns, || text(some(name), 1, &[0, 2]));
        insta::assert_snapshot!(shown(60), @r"
        name                     output verdict
                                  tok/s
        a-name-of-one-long-word     812 valid, saturated and slow
                                790–840
        ");
        insta::assert_snapshot!(shown(44), @r"
        name                     output verdict
                                  tok/s
        a-name-of-one-long-word     812 valid,
                                790–840 saturated
                                        and slow
        ");
        insta::assert_snapshot!(shown(40), @r"
        name a-name-of-one-long-word
          output tok/s 812 / 790–840
          verdict valid, saturated and slow
        ");
    }

    #[test]
    fn only_a_word_that_is_longer_than_a_line_is_broken() {
        let text = on_screen(40, || text(some(&"x".repeat(60)), 1, &[0, 2]));
        assert!(text.lines().all(|line| width(line) <= 40), "{text}");
        assert_eq!(text.matches('x').count(), 60, "{text}");
        assert!(text.contains("verdict valid, saturated and slow"), "{text}");
    }
}
