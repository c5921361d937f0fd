//! `schemas/columns.md`, the documentation of every column, generated from the definitions that also
//! determine the files.

use std::fmt::Write;

use arrow_schema::DataType;

use super::column::Column;
use super::parquet::ROWS_VERSION;
use super::schema::Table;

/// The documentation of all tables, as Markdown.
pub fn columns_markdown() -> String {
    let mut text = format!(
        "# Columns\n\nThe Parquet files of a run, rows version {ROWS_VERSION}. Generated from \
         `src/rows/schema.rs`; do not edit.\n\nTimes are nanoseconds on the monotonic clock since the run's \
         start; a missing time is null, never 0. Every file has the same columns regardless of the run's axes, so \
         `runs/*/requests.parquet` is one table. Rows are in the order in which requests ended.\n"
    );
    for table in Table::ALL {
        let title = match table {
            Table::Requests => "one row per request",
            Table::Events => "one row per request: the gaps between its token events",
            Table::Samples => "time series of the generator, the server and its GPUs",
            Table::Texts => {
                "only with `record: { text: true }`: prompts and responses of requests; a request that was \
                never sent has no row"
            }
        };
        let head = "| column | type | null | unit | meaning |\n|---|---|---|---|---|";
        write!(text, "\n## `{}`: {title}\n\n{head}\n", table.file()).expect("a string accepts any text");
        table.columns().for_each(|column| text.push_str(&line(column)));
    }
    text
}

/// One line of a table; a `|` in a text is escaped because it would end the cell.
fn line(column: &Column) -> String {
    let words: Vec<&str> = column.doc.iter().map(|line| line.trim()).collect();
    let null = if column.nullable { "yes" } else { "no" };
    let meaning = words.join(" ").replace('|', "\\|");
    format!("| `{}` | {} | {null} | {} | {meaning} |\n", column.name, type_name(&(column.data_type)()), column.unit)
}

fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Int64 => "int64".to_owned(),
        DataType::Boolean => "boolean".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Utf8 => "string".to_owned(),
        DataType::List(item) => format!("list of {}", type_name(item.data_type())),
        DataType::Map(..) => "map of string to string".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/columns.md");
        if std::env::var_os("SWEEPLINE_BLESS").is_some() {
            std::fs::write(path, columns_markdown()).unwrap();
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(kept, columns_markdown(), "run SWEEPLINE_BLESS=1 cargo test rows::docs");
    }
}
