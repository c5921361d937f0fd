//! Tables of text without borders.

use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};

use super::format::WIDTH;

fn borderless(arrangement: ContentArrangement) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(arrangement);
    table
}

/// An empty table with a header; cells are never wrapped.
pub fn grid<const N: usize>(header: [&str; N]) -> Table {
    let mut table = borderless(ContentArrangement::Disabled);
    table.set_header(header);
    table
}

/// An empty table that fits the width of a screen.
pub fn table() -> Table {
    let mut table = borderless(ContentArrangement::Dynamic);
    table.set_width(WIDTH);
    table
}

/// The table's text without trailing blanks, columns `gap` blanks apart. Only columns named in `wrap` (from 0) may break
/// their text.
pub fn text(mut table: Table, gap: u16, wrap: &[usize]) -> String {
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, gap));
        if !wrap.contains(&index) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The lines of a table, without spaces at their ends.
pub fn lines(mut table: Table) -> Vec<String> {
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 2));
    });
    table.to_string().lines().map(|line| line.trim_end().to_owned()).collect()
}

/// A cell at the right of its column.
pub(crate) fn right(text: impl Into<String>) -> Cell {
    Cell::new(text.into()).set_alignment(CellAlignment::Right)
}
