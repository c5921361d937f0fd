//! Rows as Parquet files: packing, writing and reading.
//!
//! The number of rows and bytes of a row group is limited, so the memory that writing needs does not
//! depend on the length of a run.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, SchemaRef};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::column::{BadColumn, Column, Pack, Row};
use super::error::RowsError;
use super::schema::{EventRow, RequestRow, RunLabels, Sample, Table};

/// Version of the columns; files of a later version are rejected.
pub(crate) const ROWS_VERSION: u32 = 1;

/// The key in a file's metadata under which `ROWS_VERSION` is stored.
const VERSION_KEY: &str = "sweepline.rows";

/// Maximum number of rows in a row group.
const GROUP_ROWS: usize = 128 * 1024;

/// Approximate maximum number of encoded bytes in a row group.
const GROUP_BYTES: usize = 8 * 1024 * 1024;

/// Maximum number of rows decoded at once.
const BATCH_ROWS: usize = 1024;

/// Approximate maximum number of values of one column that are decoded at once. This limit is needed
/// because a row of events may have thousands of gaps.
const BATCH_VALUES: i64 = 128 * 1024;

/// Approximate maximum number of bytes that are decoded at once. This limit is needed because a row of
/// texts may have millions of bytes.
const BATCH_BYTES: i64 = 16 * 1024 * 1024;

/// Returns the path of a column's values in Parquet's schema tree; `None` if the column has the default
/// encoding.
fn leaf(column: &Column) -> Option<ColumnPath> {
    let parts: &[&str] = match column.pack {
        Pack::Dictionary => return None,
        Pack::Delta | Pack::Plain => &[column.name],
        Pack::Gaps => &[column.name, "list", "element"],
    };
    Some(ColumnPath::new(parts.iter().map(|part| (*part).to_owned()).collect()))
}

fn properties(table: Table) -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_max_row_group_bytes(Some(GROUP_BYTES))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_key_value_metadata(Some(vec![KeyValue::new(VERSION_KEY.to_owned(), ROWS_VERSION.to_string())]));
    for (column, leaf) in table.columns().filter_map(|column| Some((column, leaf(column)?))) {
        builder = builder.set_column_dictionary_enabled(leaf.clone(), false);
        if matches!(column.pack, Pack::Delta | Pack::Gaps) {
            builder = builder.set_column_encoding(leaf.clone(), Encoding::DELTA_BINARY_PACKED);
        }
        if column.pack == Pack::Gaps {
            builder = builder.set_column_statistics_enabled(leaf, EnabledStatistics::None);
        }
    }
    builder.build()
}

/// A Parquet file that is being written.
pub(crate) struct TableWriter {
    path: PathBuf,
    schema: SchemaRef,
    /// Our own handle to the file, used to sync it. The writer could return its handle, but would then lose
    /// the operating system's error after a failed write.
    file: Arc<File>,
    writer: ArrowWriter<Arc<File>>,
}

impl TableWriter {
    /// Creates the file of `table` in `dir`, replacing an existing one.
    pub(crate) fn create(dir: &Path, table: Table) -> Result<TableWriter, RowsError> {
        let path = dir.join(table.file());
        let file = Arc::new(File::create(&path).map_err(|error| RowsError::write(&path, error))?);
        let schema: SchemaRef = Arc::new(table.schema());
        let writer = ArrowWriter::try_new(Arc::clone(&file), Arc::clone(&schema), Some(properties(table)))
            .map_err(|error| RowsError::parquet_write(&path, error))?;
        Ok(TableWriter { path, schema, file, writer })
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds rows, given as one array for each column.
    pub(crate) fn write(&mut self, arrays: Vec<ArrayRef>) -> Result<(), RowsError> {
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays)
            .map_err(|error| RowsError::arrow_write(&self.path, error))?;
        self.writer.write(&batch).map_err(|error| RowsError::parquet_write(&self.path, error))
    }

    /// Writes the footer and syncs the file to disk.
    pub(crate) fn finish(self) -> Result<(), RowsError> {
        self.writer.close().map_err(|error| RowsError::parquet_write(&self.path, error))?;
        self.file.sync_all().map_err(|error| RowsError::write(&self.path, error))
    }
}

/// Returns the run's labels as columns with the same value in each of `rows` rows.
pub(crate) fn label_arrays(path: &Path, labels: &RunLabels, rows: usize) -> Result<Vec<ArrayRef>, RowsError> {
    RunLabels::arrays(std::iter::repeat_n(labels, rows)).map_err(|bad| RowsError::column(path, bad))
}

/// A `samples.parquet` that is being written during its run.
pub struct SampleWriter {
    labels: RunLabels,
    writer: TableWriter,
    rows: u64,
}

impl SampleWriter {
    /// Creates the file in `dir`.
    pub fn create(dir: &Path, labels: RunLabels) -> Result<SampleWriter, RowsError> {
        Ok(SampleWriter { labels, writer: TableWriter::create(dir, Table::Samples)?, rows: 0 })
    }

    /// Adds samples.
    pub fn append(&mut self, samples: &[Sample]) -> Result<(), RowsError> {
        let path = &self.writer.path;
        let mut arrays = label_arrays(path, &self.labels, samples.len())?;
        arrays.truncate(Table::Samples.labels());
        arrays.extend(Sample::arrays(samples.iter()).map_err(|bad| RowsError::column(path, bad))?);
        self.rows += samples.len() as u64;
        self.writer.write(arrays)
    }

    /// Finishes the file, syncs it to disk, and returns its number of samples.
    pub fn finish(self) -> Result<u64, RowsError> {
        self.writer.finish()?;
        Ok(self.rows)
    }
}

/// Runs a step of the Parquet reader, and turns a panic into an error, because the reader panics on some
/// damaged files.
fn guarded<T>(path: &Path, step: impl FnOnce() -> Result<T, RowsError>) -> Result<T, RowsError> {
    catch_unwind(AssertUnwindSafe(step)).unwrap_or_else(|_| {
        Err(RowsError::Damaged { path: path.to_owned(), reason: "the Parquet reader panicked".to_owned() })
    })
}

/// A row file to read: its path, and the open file if there is one. All data read through an open file
/// belongs to the same commit, even if the file at this path is replaced in the meantime.
#[derive(Debug)]
pub struct RowFile {
    path: PathBuf,
    file: Option<File>,
}

impl RowFile {
    /// Wraps the already open `file` at `path`.
    pub fn opened(path: PathBuf, file: File) -> RowFile {
        RowFile { path, file: Some(file) }
    }

    /// Returns the requests in the file, decoded lazily.
    pub fn requests(self) -> Result<impl Iterator<Item = Result<RequestRow, RowsError>> + use<>, RowsError> {
        stream(self, RequestRow::from_batch)
    }

    /// Reads the samples in the file.
    pub fn samples(self) -> Result<Vec<Sample>, RowsError> {
        read(self, Sample::from_batch)
    }

    /// Returns the token events in the file, decoded lazily.
    pub fn events(self) -> Result<impl Iterator<Item = Result<EventRow, RowsError>> + use<>, RowsError> {
        stream(self, EventRow::from_batch)
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file for another reader. Readers of the same open file share its position; this is safe
    /// because they are used one after the other, and each one seeks before it reads.
    fn open(&self) -> Result<File, RowsError> {
        let file = self.file.as_ref().map_or_else(|| File::open(&self.path), File::try_clone);
        file.map_err(|error| RowsError::read(&self.path, error))
    }
}

impl<P: AsRef<Path>> From<P> for RowFile {
    fn from(path: P) -> RowFile {
        RowFile { path: path.as_ref().to_owned(), file: None }
    }
}

/// Returns the batches of a row file, in order.
pub(super) fn batches(
    file: &RowFile,
) -> Result<impl Iterator<Item = Result<RecordBatch, RowsError>> + use<>, RowsError> {
    let path = file.path();
    let reader = guarded(path, || build(path, open(file)?))?;
    Ok(all(path, reader))
}

/// Returns the number of rows in a row file, and its batches without some of its columns.
pub(super) fn batches_without(
    file: &RowFile,
    columns: &[&str],
) -> Result<(usize, impl Iterator<Item = Result<RecordBatch, RowsError>> + use<>), RowsError> {
    let path = file.path();
    let builder = guarded(path, || open(file))?;
    let rows = usize::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0);
    let wanted = |(at, field): (usize, &Arc<Field>)| (!columns.contains(&field.name().as_str())).then_some(at);
    let wanted: Vec<usize> = builder.schema().fields().iter().enumerate().filter_map(wanted).collect();
    let mask = ProjectionMask::roots(builder.parquet_schema(), wanted);
    let reader = guarded(path, || build(path, builder.with_projection(mask)))?;
    Ok((rows, all(path, reader)))
}

/// Returns an iterator over the batches of a reader.
fn all(
    path: &Path,
    mut reader: ParquetRecordBatchReader,
) -> impl Iterator<Item = Result<RecordBatch, RowsError>> + use<> {
    let path = path.to_owned();
    let next = move || {
        let batch = || reader.next().transpose().map_err(|error| RowsError::damaged(&path, error));
        guarded(&path, batch).transpose()
    };
    std::iter::from_fn(next)
}

/// Opens a row file. Fails if a later version of the program wrote it.
fn open(file: &RowFile) -> Result<ParquetRecordBatchReaderBuilder<File>, RowsError> {
    let path = file.path();
    let builder =
        ParquetRecordBatchReaderBuilder::try_new(file.open()?).map_err(|error| RowsError::damaged(path, error))?;
    let pairs = builder.metadata().file_metadata().key_value_metadata();
    let version = pairs.into_iter().flatten().find(|pair| pair.key == VERSION_KEY);
    let found = version.and_then(|pair| pair.value.as_deref()?.parse().ok()).unwrap_or(ROWS_VERSION);
    if found > ROWS_VERSION {
        return Err(RowsError::Newer { path: path.to_owned(), found, known: ROWS_VERSION });
    }
    let batch = batch_rows(builder.metadata());
    Ok(builder.with_batch_size(batch))
}

fn build(path: &Path, builder: ParquetRecordBatchReaderBuilder<File>) -> Result<ParquetRecordBatchReader, RowsError> {
    builder.build().map_err(|error| RowsError::damaged(path, error))
}

/// Returns the number of rows to decode at once. Larger rows are decoded in smaller batches, to limit
/// memory use.
fn batch_rows(metadata: &ParquetMetaData) -> usize {
    let values = metadata
        .row_groups()
        .iter()
        .flat_map(|group| group.columns().iter().map(|column| column.num_values() / group.num_rows().max(1)));
    let by_values = BATCH_VALUES / values.max().unwrap_or(1).max(1);
    let bytes = metadata.row_groups().iter().map(|group| group.total_byte_size() / group.num_rows().max(1));
    let by_bytes = BATCH_BYTES / bytes.max().unwrap_or(1).max(1);
    usize::try_from(by_values.min(by_bytes)).unwrap_or(1).clamp(1, BATCH_ROWS)
}

/// Reads all rows of a file. `rows` converts one batch to rows.
pub(crate) fn read<T>(
    file: impl Into<RowFile>,
    rows: impl Fn(&RecordBatch) -> Result<Vec<T>, BadColumn>,
) -> Result<Vec<T>, RowsError> {
    let file = file.into();
    let mut all = Vec::new();
    for batch in batches(&file)? {
        all.extend(rows(&batch?).map_err(|bad| RowsError::column(file.path(), bad))?);
    }
    Ok(all)
}

/// Reads every page of a row file and returns its number of rows.
///
/// Fails if the file is damaged or its columns differ from those of `table`.
pub fn check(path: &Path, table: Table) -> Result<u64, RowsError> {
    check_open(&path.into(), table)
}

/// Does the same as [`check`] for a file that may already be open.
pub(crate) fn check_open(file: &RowFile, table: Table) -> Result<u64, RowsError> {
    let path = file.path();
    let schema = guarded(path, || Ok(Arc::clone(open(file)?.schema())))?;
    for column in table.columns() {
        let found = schema.field_with_name(column.name).ok();
        let not_known_then = found.is_none() && column.nullable;
        if !not_known_then && found != Some(&column.field()) {
            let problem = "is missing or has another type".to_owned();
            return Err(RowsError::Column { path: path.to_owned(), column: column.name, problem });
        }
    }
    let mut rows = 0;
    for batch in batches(file)? {
        rows += batch?.num_rows() as u64;
    }
    Ok(rows)
}

/// Reads a `requests.parquet`: the run's labels and its requests in the order in which they ended. The
/// labels are empty if the file has no rows.
pub fn read_requests(path: &Path) -> Result<(RunLabels, Vec<RequestRow>), RowsError> {
    let labels = labels(&RowFile::from(path))?.unwrap_or_default();
    Ok((labels, read(path, RequestRow::from_batch)?))
}

/// Returns the labels in the first row of a file of requests or events; `None` if the file has no rows.
pub fn labels(file: &RowFile) -> Result<Option<RunLabels>, RowsError> {
    let Some(batch) = batches(file)?.next() else { return Ok(None) };
    let found = RunLabels::from_batch(&batch?.slice(0, 1)).map_err(|bad| RowsError::column(file.path(), bad))?;
    Ok(found.into_iter().next())
}

/// Reads a `samples.parquet`, in the order in which samples were taken.
pub fn read_samples(path: &Path) -> Result<Vec<Sample>, RowsError> {
    read(path, Sample::from_batch)
}

/// Returns the rows of a file, decoded lazily. The file stays open until the iterator is dropped.
fn stream<T, F>(file: RowFile, rows: F) -> Result<impl Iterator<Item = Result<T, RowsError>> + use<T, F>, RowsError>
where
    F: Fn(&RecordBatch) -> Result<Vec<T>, BadColumn>,
{
    let (batches, path) = (batches(&file)?, file.path);
    Ok(batches.flat_map(move |batch| {
        let read = batch.and_then(|batch| rows(&batch).map_err(|bad| RowsError::column(&path, bad)));
        let (rows, error) = match read {
            Ok(rows) => (rows, None),
            Err(error) => (Vec::new(), Some(Err(error))),
        };
        rows.into_iter().map(Ok).chain(error)
    }))
}

/// Reads a `requests.parquet` lazily.
pub fn stream_requests(path: &Path) -> Result<impl Iterator<Item = Result<RequestRow, RowsError>> + use<>, RowsError> {
    stream(path.into(), RequestRow::from_batch)
}

/// Reads an `events.parquet` lazily.
pub fn stream_events(path: &Path) -> Result<impl Iterator<Item = Result<EventRow, RowsError>> + use<>, RowsError> {
    stream(path.into(), EventRow::from_batch)
}
