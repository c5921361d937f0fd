//! The journal of an attempt: an Arrow IPC stream of the rows in the order in which they are recorded. It
//! is converted to Parquet ("sealed") when the run is complete.
//!
//! Rows are not written to Parquet directly, because a Parquet file without its footer is unreadable. In a
//! truncated IPC stream, every complete batch is still readable.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::MetadataVersion;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{Schema, SchemaRef};

use super::cell::Cell;
use super::column::{BadColumn, Column, Row};
use super::error::RowsError;
use super::parquet::{TableWriter, label_arrays};
use super::schema::{EventRow, Record, RequestRow, RunLabels, Table};

/// The key of the run's labels in the journal's metadata.
const LABELS_KEY: &str = "sweepline.labels";

/// The last eight bytes of a complete Arrow IPC stream: a continuation marker and a length of 0.
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Returns the column of the gaps between token events, which the journal stores in addition to the
/// columns of a request.
fn gaps() -> &'static Column {
    EventRow::COLUMNS.last().expect("events have columns")
}

/// Returns the schema of a run's journal, with the labels in its metadata.
pub(super) fn schema(labels: &RunLabels) -> Schema {
    let fields: Vec<_> = RequestRow::COLUMNS.iter().chain([gaps()]).map(Column::field).collect();
    let labels = serde_json::to_string(labels).expect("labels are plain text and numbers");
    Schema::new(fields).with_metadata([(LABELS_KEY.to_owned(), labels)])
}

/// Returns the columns of `records`, in the order of the schema.
pub(super) fn arrays(records: &[Record]) -> Result<Vec<ArrayRef>, BadColumn> {
    let mut arrays = RequestRow::arrays(records.iter().map(|record| &record.row))?;
    let cells = records.iter().map(|record| &record.gaps_ns);
    arrays.push(Cell::store(cells).map_err(|why| (gaps().name, why))?);
    Ok(arrays)
}

/// A journal that is being written.
pub struct Journal {
    path: PathBuf,
    schema: SchemaRef,
    writer: StreamWriter<BufWriter<File>>,
}

impl Journal {
    /// Starts a journal at `path`, which must not exist yet.
    pub fn create(path: &Path, labels: &RunLabels) -> Result<Journal, RowsError> {
        let file = File::create_new(path).map_err(|error| RowsError::write(path, error))?;
        let failed = |error| RowsError::arrow_write(path, error);
        let schema: SchemaRef = Arc::new(schema(labels));
        // Because batches are small, most of the file would be padding with the default alignment of 64
        // bytes.
        let options = IpcWriteOptions::try_new(8, false, MetadataVersion::V5).map_err(failed)?;
        let writer = StreamWriter::try_new_with_options(BufWriter::new(file), &schema, options).map_err(failed)?;
        let mut journal = Journal { path: path.to_owned(), schema, writer };
        journal.writer.flush().map_err(failed)?;
        Ok(journal)
    }

    /// Writes finished requests as one batch and hands the batch to the operating system. It is then kept
    /// even if this process crashes.
    pub fn append(&mut self, records: &[Record]) -> Result<(), RowsError> {
        if records.is_empty() {
            return Ok(());
        }
        let arrays = arrays(records).map_err(|bad| RowsError::column(&self.path, bad))?;
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays);
        let written = batch.and_then(|batch| self.writer.write(&batch)).and_then(|()| self.writer.flush());
        written.map_err(|error| RowsError::arrow_write(&self.path, error))
    }

    /// Writes the end marker of the journal. A journal without this marker is never sealed.
    pub fn finish(mut self) -> Result<(), RowsError> {
        self.writer.finish().map_err(|error| RowsError::arrow_write(&self.path, error))
    }
}

/// A journal that is read batch by batch.
struct JournalReader {
    path: PathBuf,
    labels: RunLabels,
    stream: StreamReader<BufReader<File>>,
}

impl JournalReader {
    fn open(path: &Path) -> Result<JournalReader, RowsError> {
        let file = File::open(path).map_err(|error| RowsError::read(path, error))?;
        let stream =
            StreamReader::try_new_buffered(file, None).map_err(|error| unfinished(path, &error.to_string()))?;
        let labels = stream.schema().metadata().get(LABELS_KEY).and_then(|text| serde_json::from_str(text).ok());
        let labels = labels.ok_or_else(|| unfinished(path, "the run's labels are missing"))?;
        Ok(JournalReader { path: path.to_owned(), labels, stream })
    }

    /// Writes all batches to the two files and returns the number of rows. The labels, which are the same
    /// in every row, are added; the columns of the journal are passed on unchanged.
    fn seal_into(self, requests: &mut TableWriter, events: &mut TableWriter) -> Result<u64, RowsError> {
        let JournalReader { path, labels, stream } = self;
        let mut rows = 0;
        for batch in stream {
            let batch = batch.map_err(|error| unfinished(&path, &error.to_string()))?;
            let own = RequestRow::COLUMNS.iter().map(|column| batch.column_by_name(column.name).cloned());
            let events_own = EventRow::COLUMNS.iter().map(|column| batch.column_by_name(column.name).cloned());
            let missing = || unfinished(&path, "a column is missing");
            let labels = label_arrays(&path, &labels, batch.num_rows())?;
            let events_labels = labels[..Table::Events.labels()].iter().cloned().map(Some);
            let arrays: Option<_> = events_labels.chain(events_own).collect();
            events.write(arrays.ok_or_else(missing)?)?;
            let arrays: Option<_> = labels.into_iter().map(Some).chain(own).collect();
            requests.write(arrays.ok_or_else(missing)?)?;
            rows += batch.num_rows() as u64;
        }
        Ok(rows)
    }
}

fn unfinished(path: &Path, reason: &str) -> RowsError {
    RowsError::Unfinished { path: path.to_owned(), reason: reason.to_owned() }
}

/// Reads every complete batch of a journal, which may be truncated anywhere.
///
/// Fails if the journal is truncated before the end of the run's labels.
pub fn read_journal(path: &Path) -> Result<(RunLabels, Vec<Record>), RowsError> {
    let mut reader = JournalReader::open(path)?;
    let mut records = Vec::new();
    while let Some(Ok(batch)) = reader.stream.next() {
        records.extend(batch_records(&batch).map_err(|bad| RowsError::column(path, bad))?);
    }
    Ok((reader.labels, records))
}

/// Returns the records of a batch.
pub(super) fn batch_records(batch: &RecordBatch) -> Result<Vec<Record>, BadColumn> {
    let rows = RequestRow::from_batch(batch)?;
    let events = EventRow::from_batch(batch)?;
    Ok(rows.into_iter().zip(events).map(|(row, event)| Record { row, gaps_ns: event.gaps_ns }).collect())
}

/// Whether the journal has the end marker that `Journal::finish` writes. Without this check, a truncation
/// between two batches would go unnoticed.
fn has_end(path: &Path) -> std::io::Result<bool> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() < END.len() as u64 {
        return Ok(false);
    }
    let mut tail = [0; END.len()];
    file.seek(SeekFrom::End(-(END.len() as i64)))?;
    file.read_exact(&mut tail)?;
    Ok(tail == END)
}

/// Converts a finished journal to `requests.parquet` and `events.parquet` in `dir`, batch by batch, and
/// syncs both files to disk. The requests keep the order of the journal. Returns the number of requests.
pub fn seal(journal: &Path, dir: &Path) -> Result<u64, RowsError> {
    if !has_end(journal).map_err(|error| RowsError::read(journal, error))? {
        return Err(unfinished(journal, "its end is missing"));
    }
    let reader = JournalReader::open(journal)?;
    let mut requests = TableWriter::create(dir, Table::Requests)?;
    let mut events = TableWriter::create(dir, Table::Events)?;
    let rows = reader.seal_into(&mut requests, &mut events)?;
    requests.finish()?;
    events.finish()?;
    Ok(rows)
}
