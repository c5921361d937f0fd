//! Recognizes files that were written by an export. The next export may replace such a file, but no other
//! file.
//!
//! CSV, JSON and Markdown cannot contain a mark, so they are recognized by their columns: either the first
//! columns are the first columns of a table with all columns, or every name is a column of an export and
//! at least one name is unique to exports. Workbooks and Parquet files contain a mark.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::{Map, Value};

use super::further::is_of_some;
use super::markdown::LEGEND;
use super::schema::tables;
use super::{Column, MARK};

/// Number of bytes that are read from a file: enough for a header, or for the first row of a JSON list.
const HEAD: u64 = 1 << 20;

/// Number of leading columns that distinguish a table with all columns from tables of other programs.
const UNMISTAKABLE: usize = 4;

/// Suffixes of column names that only exports have.
const OUR_ENDS: [&str; 3] = ["_ms", "_per_s", "_share"];
/// Column names that only exports have.
const OUR_NAMES: [&str; 4] = ["run_id", "verdict", "intended_prompt_tokens", "metric"];

/// Columns that only a pivot has; they are followed by the loads.
const OF_PIVOT: [&str; 2] = ["metric", "unit"];

/// Whether the file at `path` was written by an export or is empty. `columns` lists the columns to be
/// written now, including the names of the plan's axes.
///
/// Returns an error if the file cannot be read.
pub(crate) fn is_export(path: &Path, columns: &[Column]) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let mut head = Vec::new();
    file.by_ref().take(HEAD).read_to_end(&mut head)?;
    if head.starts_with(b"PK") {
        file.seek(SeekFrom::Start(0))?;
        return Ok(is_marked_workbook(file));
    }
    if head.starts_with(b"PAR1") {
        return Ok(is_marked_parquet(file));
    }
    let Some(names) = names(&head) else { return Ok(false) };
    Ok(names.is_empty() || are_ours(&names, columns))
}

fn is_marked_workbook(file: File) -> bool {
    let Ok(mut archive) = zip::ZipArchive::new(file) else { return false };
    let mut properties = String::new();
    let read = archive.by_name("docProps/custom.xml").map_err(io::Error::other);
    let read = read.and_then(|entry| entry.take(HEAD).read_to_string(&mut properties));
    read.is_ok() && properties.contains(MARK)
}

fn is_marked_parquet(file: File) -> bool {
    let Ok(reader) = SerializedFileReader::new(file) else { return false };
    let entries = reader.metadata().file_metadata().key_value_metadata();
    entries.is_some_and(|entries| entries.iter().any(|entry| entry.key == MARK))
}

/// The column names of a text that may be a table; empty for an empty text, or a list without rows. `None`
/// if it is not a table.
fn names(head: &[u8]) -> Option<Vec<String>> {
    // The last character may be truncated, but column names come long before it.
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start();
    match text.chars().next() {
        None => Some(Vec::new()),
        Some('[') => of_json(&text[1..]),
        Some('|') => of_markdown(text),
        Some(_) => of_csv(text),
    }
}

fn of_json(rows: &str) -> Option<Vec<String>> {
    if rows.trim_start().starts_with(']') {
        return Some(Vec::new());
    }
    let first = serde_json::Deserializer::from_str(rows).into_iter::<Map<String, Value>>().next()?;
    Some(first.ok()?.into_iter().map(|(name, _)| name).collect())
}

/// `None` if there is text after the table, because that text belongs to the user.
fn of_markdown(text: &str) -> Option<Vec<String>> {
    let is_ours = |line: &str| line.is_empty() || line.starts_with('|') || line == LEGEND;
    let header = text.lines().next().filter(|_| text.lines().all(is_ours))?;
    let cells = header.trim_matches(|c| c == '|' || c == ' ').split('|');
    Some(cells.map(|cell| cell.trim().to_owned()).collect())
}

fn of_csv(text: &str) -> Option<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let header = reader.headers().ok()?;
    Some(header.iter().map(str::to_owned).collect())
}

fn are_ours(names: &[String], now: &[Column]) -> bool {
    let tables = tables();
    let begins_like = |columns: &Vec<Column>| {
        let first = columns.iter().take(UNMISTAKABLE).map(|column| column.name.as_str());
        names.len() >= UNMISTAKABLE && first.eq(names.iter().take(UNMISTAKABLE).map(String::as_str))
    };
    if tables.iter().any(|(_, columns)| begins_like(columns)) {
        return true;
    }
    let all = tables.iter().flat_map(|(_, columns)| columns).chain(now);
    let mut known: HashSet<&str> = all.map(|column| column.name.as_str()).collect();
    known.extend(OF_PIVOT);
    let is_only_ours =
        |name: &String| OUR_NAMES.contains(&name.as_str()) || OUR_ENDS.iter().any(|end| name.ends_with(end));
    names.iter().all(|name| known.contains(name.as_str()) || name.starts_with("axis_") || is_of_some(name))
        && names.iter().any(is_only_ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::further::Further;
    use crate::export::runs::tests::runs;
    use crate::export::sheet::tests::written;
    use crate::export::{Csv, Format, Json, Markdown, Parquet, Sheet, Workbook, runs as table, runs_parquet, wide};

    fn is_ours(bytes: &[u8]) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, bytes).unwrap();
        is_export(&path, &[]).unwrap()
    }

    #[test]
    fn every_format_is_known_again() {
        let rows = runs();
        let mut rows = rows;
        rows[0].labels.axes.insert("my_axis".to_owned(), "1".to_owned());
        let further = Further::of(&rows, &[]);
        let sheet = || table::sheet(&rows, &further, false);
        let texts: [&dyn Format; 3] = [&Csv, &Json, &Markdown];
        for format in texts {
            assert!(is_ours(written(format, sheet()).as_bytes()));
            assert!(is_ours(written(format, sheet().select(&["endpoint", "ttft_p50_ms"])).as_bytes()));
            let none = Sheet { columns: sheet().columns, rows: Box::new(std::iter::empty()) };
            assert!(is_ours(written(format, none).as_bytes()));
            assert!(is_ours(written(format, wide(&rows, &[]).unwrap()).as_bytes()));
        }
        let mut parquet = Vec::new();
        Parquet.write(sheet(), &mut parquet).unwrap();
        assert!(is_ours(&parquet) && is_ours(&runs_parquet::bytes(Vec::new()).unwrap()));
        let mut book = Workbook::new();
        book.add("runs", sheet()).unwrap();
        let mut bytes = Vec::new();
        book.write(&[], &mut bytes).unwrap();
        assert!(is_ours(&bytes));
        assert!(is_ours(b"") && is_ours(b"\n"));
    }

    #[test]
    fn files_of_others_are_not_taken_for_exports() {
        let others: [&[u8]; 13] = [
            b"prompt_tokens,output_tokens\n12,34\n",
            b"model\nllama\n",
            b"[{\"model\": \"x\", \"prompt_tokens\": 3}]",
            b"| endpoint | ttft_p50_ms |\n|---|---|\n| a | 1 |\n\n# My notes\n",
            b"name: mine\nendpoints: {}\n",
            b"prompt,output_tokens\nhello,12\n",
            b"TIMESTAMP,ContextTokens,GeneratedTokens\n",
            b"[{\"conversations\": []}]",
            b"{\"model\": \"m\"}\n{\"model\": \"m\"}\n",
            b"[1, 2]",
            b"| model | mine |\n|---|---|\n",
            b"PK\x03\x04 and no archive",
            b"PAR1 and no table",
        ];
        for bytes in others {
            assert!(!is_ours(bytes), "{}", String::from_utf8_lossy(bytes));
        }
        let mut book = rust_xlsxwriter::Workbook::new();
        book.add_worksheet().write_string(0, 0, "sweepline").unwrap();
        assert!(!is_ours(&book.save_to_buffer().unwrap()));
    }
}
