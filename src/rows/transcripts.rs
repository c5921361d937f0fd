//! Writes and reads the complete prompts and responses of a run, which are stored in a separate file if a
//! plan requests this.

use std::path::Path;

use super::column::Row;
use super::error::RowsError;
use super::parquet::{TableWriter, label_arrays, read};
use super::schema::{RunLabels, Table, TextRow};

/// A `texts.parquet` that is being written during its run.
pub struct TextWriter {
    labels: RunLabels,
    writer: TableWriter,
    rows: u64,
}

impl TextWriter {
    /// Creates the file in `dir`.
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

    /// Finishes the file, syncs it to disk, and returns its number of rows.
    pub fn finish(self) -> Result<u64, RowsError> {
        self.writer.finish()?;
        Ok(self.rows)
    }
}

/// Reads a `texts.parquet`, in the order in which requests ended.
pub fn read_texts(path: &Path) -> Result<Vec<TextRow>, RowsError> {
    read(path, TextRow::from_batch)
}
