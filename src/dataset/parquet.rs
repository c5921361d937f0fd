//! Reads rows of a Parquet file as fields.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use jiff::Timestamp;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use serde_json::{Map, Number, Value};

use super::entry::Entry;
use super::error::{Bad, DatasetError};
use super::skipped::Reason;
use super::text;
use super::value::Fields;

/// Number of rows that are decoded together. Memory must hold this many rows of maximum length.
const BATCH_ROWS: usize = 64;

/// Maximum nesting of lists and objects.
const MOST_DEPTH: usize = 16;

/// The rows of a file, from 1.
pub(super) struct Rows {
    path: PathBuf,
    columns: Vec<String>,
    reader: ParquetRecordBatchReader,
    batch: Option<RecordBatch>,
    at: usize,
    row: u64,
    most: usize,
}

impl Rows {
    /// Opens a file and reads the requested columns of each row.
    pub(super) fn open(path: &Path, most: usize, wanted: &dyn Fn(&str) -> bool) -> Result<Rows, DatasetError> {
        let file = text::open(path)?;
        guarded(path, || {
            let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| damaged(path, &error))?;
            let columns: Vec<String> = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
            let chosen = columns.iter().enumerate().filter(|(_, name)| wanted(name)).map(|(at, _)| at);
            let mask = ProjectionMask::roots(builder.parquet_schema(), chosen.collect::<Vec<_>>());
            let reader = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build();
            let reader = reader.map_err(|error| damaged(path, &error))?;
            Ok(Rows { path: path.to_owned(), columns, reader, batch: None, at: 0, row: 0, most })
        })
    }

    /// Returns the names of all columns of the file.
    pub(super) fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Returns the next row.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, DatasetError> {
        while self.batch.as_ref().is_none_or(|batch| self.at == batch.num_rows()) {
            let (path, reader) = (&self.path, &mut self.reader);
            let next = guarded(path, || reader.next().transpose().map_err(|error| damaged(path, &error)))?;
            let Some(next) = next else { return Ok(None) };
            (self.batch, self.at) = (Some(next), 0);
        }
        let Some(batch) = &self.batch else { return Ok(None) };
        let fields = row(batch, self.at, self.most);
        self.at += 1;
        self.row += 1;
        Ok(Some(Entry { place: super::record::Place { line: self.row, entry: None }, fields }))
    }
}

/// Runs a step of the Parquet reader, which panics instead of failing on some damaged files.
fn guarded<T>(path: &Path, step: impl FnOnce() -> Result<T, DatasetError>) -> Result<T, DatasetError> {
    catch_unwind(AssertUnwindSafe(step)).unwrap_or_else(|_| Err(damaged(path, &"the Parquet reader failed")))
}

fn damaged(path: &Path, error: &dyn std::fmt::Display) -> DatasetError {
    DatasetError::file(path, format!("it is not a complete Parquet file: {error}"), "download it again")
}

/// Returns the fields of one row.
fn row(batch: &RecordBatch, at: usize, most: usize) -> Result<Fields, Bad> {
    let mut left = most;
    let mut fields = Map::new();
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        fields.insert(field.name().clone(), value(column.as_ref(), at, (field.name(), MOST_DEPTH), &mut left)?);
    }
    Ok(fields)
}

/// Returns the value of a column in a row; `left` is the remaining size limit for text in the row,
/// in bytes.
fn value(array: &dyn Array, at: usize, name: (&str, usize), left: &mut usize) -> Result<Value, Bad> {
    if array.is_null(at) {
        return Ok(Value::Null);
    }
    let number = |number: Option<Number>| Ok(number.map_or(Value::Null, Value::Number));
    match array.data_type() {
        DataType::Null => Ok(Value::Null),
        DataType::Boolean => Ok(Value::Bool(array.as_boolean().value(at))),
        DataType::Utf8 => text_value(array.as_string::<i32>().value(at), left),
        DataType::LargeUtf8 => text_value(array.as_string::<i64>().value(at), left),
        DataType::Utf8View => text_value(array.as_string_view().value(at), left),
        DataType::Int8 => whole::<Int8Type>(array, at),
        DataType::Int16 => whole::<Int16Type>(array, at),
        DataType::Int32 => whole::<Int32Type>(array, at),
        DataType::Int64 => whole::<Int64Type>(array, at),
        DataType::UInt8 => whole::<UInt8Type>(array, at),
        DataType::UInt16 => whole::<UInt16Type>(array, at),
        DataType::UInt32 => whole::<UInt32Type>(array, at),
        DataType::UInt64 => number(Some(array.as_primitive::<UInt64Type>().value(at).into())),
        DataType::Float32 => number(Number::from_f64(array.as_primitive::<Float32Type>().value(at).into())),
        DataType::Float64 => number(Number::from_f64(array.as_primitive::<Float64Type>().value(at))),
        DataType::Timestamp(unit, _) => Ok(date(array, at, *unit)),
        DataType::List(_) => list(array.as_list::<i32>().value(at).as_ref(), name, left),
        DataType::LargeList(_) => list(array.as_list::<i64>().value(at).as_ref(), name, left),
        DataType::Struct(_) => object(array, at, name, left),
        other => Err(Bad::new(Reason::WrongValue, format!("`{}` has the unsupported type {other}", name.0))),
    }
}

fn text_value(text: &str, left: &mut usize) -> Result<Value, Bad> {
    *left = left
        .checked_sub(text.len())
        .ok_or_else(|| Bad::new(Reason::TooLong, "the row's text exceeds the size limit of an entry (--max-entry)"))?;
    Ok(Value::String(text.to_owned()))
}

fn whole<T: ArrowPrimitiveType>(array: &dyn Array, at: usize) -> Result<Value, Bad>
where
    T::Native: Into<i64>,
{
    let number: i64 = array.as_primitive::<T>().value(at).into();
    Ok(Value::Number(number.into()))
}

/// Formats a time as a date, as in text files.
fn date(array: &dyn Array, at: usize, unit: TimeUnit) -> Value {
    let (count, nanos) = match unit {
        TimeUnit::Second => (array.as_primitive::<TimestampSecondType>().value(at), 1_000_000_000),
        TimeUnit::Millisecond => (array.as_primitive::<TimestampMillisecondType>().value(at), 1_000_000),
        TimeUnit::Microsecond => (array.as_primitive::<TimestampMicrosecondType>().value(at), 1_000),
        TimeUnit::Nanosecond => (array.as_primitive::<TimestampNanosecondType>().value(at), 1),
    };
    let stamp = Timestamp::from_nanosecond(i128::from(count) * nanos);
    stamp.map_or(Value::Null, |stamp| Value::String(stamp.to_string()))
}

fn deeper((name, depth): (&str, usize)) -> Result<(&str, usize), Bad> {
    let too_deep = || Bad::new(Reason::WrongValue, format!("`{name}` is nested more than {MOST_DEPTH} levels deep"));
    Ok((name, depth.checked_sub(1).ok_or_else(too_deep)?))
}

fn list(values: &dyn Array, name: (&str, usize), left: &mut usize) -> Result<Value, Bad> {
    let name = deeper(name)?;
    (0..values.len()).map(|at| value(values, at, name, left)).collect::<Result<_, _>>().map(Value::Array)
}

fn object(array: &dyn Array, at: usize, name: (&str, usize), left: &mut usize) -> Result<Value, Bad> {
    let (_, depth) = deeper(name)?;
    let array = array.as_struct();
    let names = array.fields().iter().zip(array.columns());
    let pairs = names
        .map(|(field, column)| Ok((field.name().clone(), value(column.as_ref(), at, (field.name(), depth), left)?)));
    pairs.collect::<Result<_, _>>().map(Value::Object)
}
