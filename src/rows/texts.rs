//! What was sent and answered word by word, in a file of its own, where a plan asks for it.

use std::path::Path;

use arrow_array::{ArrayRef, RecordBatch};

use super::cell::Cell;
use super::error::RowsError;
use super::parquet::{TableWriter, label_arrays, read};
use super::schema::{BadColumn, Column, Pack, Row, RunLabels, Table, load, table};

table! {
    /// What one request said and was answered.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct TextRow {
        /// Number of the request in its run, from 0.
        request: u64 [Delta ""],
        /// Number of the conversation, from 0.
        conversation: Option<u64> [Delta ""],
        /// Turn of the conversation, from 0.
        turn: Option<u32> [Dictionary ""],
        /// What was sent, nonce, system message and history included: the list of messages as JSON (chat), or the text
        /// (completions).
        prompt: String [Plain ""],
        /// The answer's content, as far as it came; none where none came.
        answer: Option<String> [Plain ""],
        /// The answer's reasoning, as far as it came; none where none came.
        reasoning: Option<String> [Plain ""],
        /// The answer's tool calls as JSON: a list of `name` and `arguments` (a text), put together from their pieces; none
        /// where none came.
        tool_calls: Option<String> [Plain ""],
        /// Whether one of these texts is longer than 1 MiB and stands here without what comes after that.
        truncated: bool [Dictionary ""],
    }
}

/// A `texts.parquet` that is being written while its run goes on.
pub struct TextWriter {
    labels: RunLabels,
    writer: TableWriter,
    rows: u64,
}

impl TextWriter {
    /// Starts the file in `dir`.
    pub fn create(dir: &Path, labels: RunLabels) -> Result<TextWriter, RowsError> {
        Ok(TextWriter { labels, writer: TableWriter::create(dir, Table::Texts)?, rows: 0 })
    }

    /// Adds the texts of some requests.
    pub fn append(&mut self, texts: &[TextRow]) -> Result<(), RowsError> {
        let path = self.writer.path();
        let mut arrays = label_arrays(path, &self.labels, texts.len())?;
        arrays.truncate(Table::Texts.labels());
        arrays.extend(TextRow::arrays(texts.iter()).map_err(|bad| RowsError::column(path, bad))?);
        self.rows += texts.len() as u64;
        self.writer.write(arrays)
    }

    /// Ends the file, down to the disk, and returns its number of rows.
    pub fn finish(self) -> Result<u64, RowsError> {
        self.writer.finish()?;
        Ok(self.rows)
    }
}

/// Reads a `texts.parquet`, in the order in which requests ended.
pub fn read_texts(path: &Path) -> Result<Vec<TextRow>, RowsError> {
    read(path, TextRow::from_batch)
}
