//! Writes records in sweepline's own format, as JSON lines or Parquet. They can be read again
//! without a mapping.

use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, StructBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::units::Nanos;

use super::record::Record;

/// Number of records that are packed together.
const BATCH_ROWS: usize = 256;

/// Records are also packed as soon as they have about this many bytes of text.
const BATCH_BYTES: usize = 16 << 20;

/// Writes a record as one line of JSON; absent values get no key.
pub fn json_line(out: &mut dyn Write, record: &Record) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, record)?;
    out.write_all(b"\n")
}

/// A Parquet file of records that is being written, in batches.
pub struct ParquetWriter<W: Write + Send> {
    writer: ArrowWriter<W>,
    records: Vec<Record>,
    bytes: usize,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Starts a file.
    pub fn new(out: W) -> Result<ParquetWriter<W>, ParquetError> {
        let properties = WriterProperties::builder()
            .set_created_by("sweepline".into())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_bytes(Some(BATCH_BYTES))
            .build();
        let writer = ArrowWriter::try_new(out, batch(&[])?.schema(), Some(properties))?;
        Ok(ParquetWriter { writer, records: Vec::new(), bytes: 0 })
    }

    /// Adds a record.
    pub fn add(&mut self, record: &Record) -> Result<(), ParquetError> {
        self.records.push(record.clone());
        self.bytes += record.turns.iter().map(|turn| turn.text.len()).sum::<usize>();
        if self.records.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        let batch = batch(&self.records)?;
        self.records.clear();
        self.bytes = 0;
        self.writer.write(&batch)
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<(), ParquetError> {
        if !self.records.is_empty() {
            self.flush()?;
        }
        self.writer.close().map(drop)
    }
}

/// Converts records to columns.
fn batch(records: &[Record]) -> Result<RecordBatch, ArrowError> {
    let texts = |of: fn(&Record) -> &Option<String>| -> ArrayRef {
        Arc::new(records.iter().map(|record| of(record).as_deref()).collect::<StringArray>())
    };
    let tokens =
        |of: fn(&Record) -> Option<u32>| -> ArrayRef { Arc::new(records.iter().map(of).collect::<UInt32Array>()) };
    let offsets = records.iter().map(|record| record.offset.map(|Nanos(nanos)| nanos));
    let fields = ["role", "content"].map(|name| Field::new(name, DataType::Utf8, false));
    let mut messages = ListBuilder::new(StructBuilder::from_fields(fields.to_vec(), 0));
    let mut hash_ids = ListBuilder::new(UInt64Builder::new());
    for record in records {
        for turn in &record.turns {
            let message = messages.values();
            for (at, text) in [turn.role.into(), turn.text.as_str()].into_iter().enumerate() {
                let column: &mut StringBuilder = message.field_builder(at).expect("both fields are text");
                column.append_value(text);
            }
            message.append(true);
        }
        messages.append(true);
        hash_ids.values().append_slice(&record.hash_ids);
        hash_ids.append(true);
    }
    let columns: [(&str, ArrayRef, bool); 8] = [
        ("id", texts(|record| &record.id), true),
        ("messages", Arc::new(messages.finish()), false),
        ("input_tokens", tokens(|record| record.input_tokens), true),
        ("output_tokens", tokens(|record| record.output_tokens), true),
        ("offset_ns", Arc::new(offsets.collect::<UInt64Array>()), true),
        ("hash_ids", Arc::new(hash_ids.finish()), false),
        ("conversation", texts(|record| &record.conversation), true),
        ("language", texts(|record| &record.language), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns)
}
