//! Any table as Parquet: typed columns, their meaning in the schema's metadata, and only a batch of rows in
//! memory.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::analysis::ANALYSIS;

use super::{ANALYSIS_MARK, COLUMNS_VERSION, Cell, Column, Format, Kind, MARK, Sheet};

/// Rows per batch.
const BATCH: usize = 4096;

/// Maximum number of rows in a row group.
const GROUP_ROWS: usize = 128 * 1024;

/// Approximate maximum number of encoded bytes in a row group.
const GROUP_BYTES: usize = 16 * 1024 * 1024;

/// A Parquet file.
pub struct Parquet;

impl Format for Parquet {
    fn write(&self, sheet: Sheet<'_>, out: &mut (dyn Write + Send)) -> io::Result<()> {
        let Sheet { columns, mut rows } = sheet;
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<Field>>()));
        let properties = WriterProperties::builder()
            .set_created_by("sweepline".into())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_max_row_group_bytes(Some(GROUP_BYTES))
            .set_key_value_metadata(Some(marks()))
            .build();
        let mut writer = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties)).map_err(cause)?;
        loop {
            let batch: Vec<Vec<Cell>> = rows.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                break;
            }
            let array = |(at, column): (usize, &Column)| array(column.kind, batch.iter().map(|row| &row[at]));
            let arrays = columns.iter().enumerate().map(array).collect();
            let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(io::Error::other)?;
            writer.write(&batch).map_err(cause)?;
        }
        writer.close().map(drop).map_err(cause)
    }
}

/// The metadata that identifies an export.
pub(super) fn marks() -> Vec<KeyValue> {
    let mark = |key: &str, version: u32| KeyValue::new(key.to_owned(), version.to_string());
    vec![mark(MARK, COLUMNS_VERSION), mark(ANALYSIS_MARK, ANALYSIS)]
}

/// The underlying error, if it comes from the operating system.
fn cause(error: parquet::errors::ParquetError) -> io::Error {
    match error {
        parquet::errors::ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

fn field(column: &Column) -> Field {
    let data_type = match column.kind {
        Kind::Bool => DataType::Boolean,
        Kind::Int => DataType::Int64,
        Kind::Float => DataType::Float64,
        Kind::Text | Kind::Time | Kind::Any => DataType::Utf8,
    };
    let about = [("description", &column.doc), ("null", &column.null)];
    let about: HashMap<String, String> =
        about.into_iter().filter(|(_, text)| !text.is_empty()).map(|(key, text)| (key.into(), text.clone())).collect();
    Field::new(&column.name, data_type, true).with_metadata(about)
}

/// A cell that does not have the column's type becomes null. A whole number counts as a number.
fn array<'a>(kind: Kind, cells: impl Iterator<Item = &'a Cell>) -> ArrayRef {
    match kind {
        Kind::Bool => Arc::new(BooleanArray::from_iter(cells.map(|cell| match cell {
            Cell::Bool(value) => Some(*value),
            _ => None,
        }))),
        Kind::Int => Arc::new(Int64Array::from_iter(cells.map(|cell| match cell {
            Cell::Int(value) => Some(*value),
            _ => None,
        }))),
        Kind::Float => Arc::new(Float64Array::from_iter(cells.map(|cell| match cell {
            Cell::Float(value) => Some(*value),
            Cell::Int(value) => Some(*value as f64),
            _ => None,
        }))),
        Kind::Text | Kind::Time | Kind::Any => Arc::new(StringArray::from_iter(cells.map(|cell| match cell {
            Cell::Null => None,
            Cell::Text(text) => Some(text.to_string()),
            Cell::Bool(value) => Some(value.to_string()),
            Cell::Int(value) => Some(value.to_string()),
            Cell::Float(value) => Some(value.to_string()),
        }))),
    }
}

#[cfg(test)]
mod tests {
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;

    #[test]
    fn columns_have_their_types_whatever_is_null() {
        let kinds = [("t", Kind::Text), ("i", Kind::Int), ("f_ms", Kind::Float), ("b", Kind::Bool), ("s", Kind::Time)];
        let columns = kinds.map(|(name, kind)| Column::new(name, kind, "What.").null("never")).into();
        let full = || vec!["x".into(), 5u32.into(), Cell::Int(2), Cell::Bool(true), "2026-01-01T00:00:00Z".into()];
        let rows = std::iter::repeat_with(|| vec![Cell::Null; 5]).take(BATCH).chain(std::iter::once_with(full));
        let mut bytes = Vec::new();
        Parquet.write(Sheet { columns, rows: Box::new(rows) }, &mut bytes).unwrap();
        let builder = ParquetRecordBatchReaderBuilder::try_new(::bytes::Bytes::from(bytes)).unwrap();
        let types: Vec<DataType> = builder.schema().fields().iter().map(|field| field.data_type().clone()).collect();
        use DataType::{Boolean, Float64, Int64, Utf8};
        assert_eq!(types, [Utf8, Int64, Float64, Boolean, Utf8]);
        assert_eq!(builder.schema().field(2).metadata()["null"], "never");
        let pairs = builder.metadata().file_metadata().key_value_metadata().unwrap().clone();
        assert!(pairs.iter().any(|pair| pair.key == "sweepline.columns" && pair.value.as_deref() == Some("1")));
        let batches: Vec<RecordBatch> = builder.build().unwrap().map(Result::unwrap).collect();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), BATCH + 1);
        let nulls: usize = batches.iter().map(|batch| batch.column(2).null_count()).sum();
        assert_eq!(nulls, BATCH);
    }

    #[test]
    fn an_empty_table_is_a_file() {
        let mut bytes = Vec::new();
        let columns = vec![Column::new("x", Kind::Int, "")];
        Parquet.write(Sheet { columns, rows: Box::new(std::iter::empty()) }, &mut bytes).unwrap();
        let builder = ParquetRecordBatchReaderBuilder::try_new(::bytes::Bytes::from(bytes)).unwrap();
        assert_eq!(builder.schema().fields().len(), 1);
    }
}
