//! Tables of text without borders.

use comfy_table::{ContentArrangement, Table, presets};

/// An empty table with a header; cells are never wrapped.
pub fn grid<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled).set_header(header);
    table
}

/// The lines of a table, without spaces at their ends.
pub fn lines(mut table: Table) -> Vec<String> {
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 2));
    });
    table.to_string().lines().map(|line| line.trim_end().to_owned()).collect()
}
