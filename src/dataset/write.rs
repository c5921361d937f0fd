//! Records in sweepline's own form, as JSON lines or Parquet: read again without a mapping.

use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, StructBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde::Serialize;

use crate::units::Nanos;

use super::record::{Record, Role, Turn};

/// Records that are packed at once …
const BATCH_ROWS: usize = 256;

/// … or fewer, with about this many bytes of text.
const BATCH_BYTES: usize = 16 << 20;

/// One line.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "<[Turn]>::is_empty")]
    messages: &'a [Turn],
    #[serde(skip_serializing_if = "Option::is_none")]
    input_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset_ns: Option<u64>,
    #[serde(skip_serializing_if = "<[u64]>::is_empty")]
    hash_ids: &'a [u64],
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'a str>,
}

/// Writes a record as one line of JSON; what it lacks has no key.
pub fn json_line(out: &mut dyn Write, record: &Record) -> std::io::Result<()> {
    let Record { place: _, id, turns, input_tokens, output_tokens, offset, hash_ids, conversation, language } = record;
    let line = Line {
        id: id.as_deref(),
        messages: turns,
        input_tokens: *input_tokens,
        output_tokens: *output_tokens,
        offset_ns: offset.map(|Nanos(nanos)| nanos),
        hash_ids,
        conversation: conversation.as_deref(),
        language: language.as_deref(),
    };
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")
}

/// A Parquet file of records that is being written, some at a time.
pub struct ParquetWriter<W: Write + Send> {
    writer: ArrowWriter<W>,
    columns: Columns,
    rows: usize,
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
        let writer = ArrowWriter::try_new(out, Arc::new(schema()), Some(properties))?;
        Ok(ParquetWriter { writer, columns: Columns::new(), rows: 0, bytes: 0 })
    }

    /// Adds a record.
    pub fn add(&mut self, record: &Record) -> Result<(), ParquetError> {
        self.columns.add(record);
        self.rows += 1;
        self.bytes += record.turns.iter().map(|turn| turn.text.len()).sum::<usize>();
        if self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        (self.rows, self.bytes) = (0, 0);
        self.writer.write(&self.columns.batch()?)
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<(), ParquetError> {
        if self.rows > 0 {
            self.flush()?;
        }
        self.writer.close().map(drop)
    }
}

fn message_fields() -> Vec<Field> {
    vec![Field::new("role", DataType::Utf8, false), Field::new("content", DataType::Utf8, false)]
}

fn list(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(item, true)))
}

/// The columns, in the order in which [`Columns::batch`] gives them.
fn schema() -> Schema {
    let messages = DataType::Struct(message_fields().into());
    Schema::new(vec![
        Field::new("id", DataType::Utf8, true),
        Field::new("messages", list(messages), false),
        Field::new("input_tokens", DataType::UInt32, true),
        Field::new("output_tokens", DataType::UInt32, true),
        Field::new("offset_ns", DataType::UInt64, true),
        Field::new("hash_ids", list(DataType::UInt64), false),
        Field::new("conversation", DataType::Utf8, true),
        Field::new("language", DataType::Utf8, true),
    ])
}

/// Columns that are being filled.
struct Columns {
    id: StringBuilder,
    messages: ListBuilder<StructBuilder>,
    input_tokens: UInt32Builder,
    output_tokens: UInt32Builder,
    offset_ns: UInt64Builder,
    hash_ids: ListBuilder<UInt64Builder>,
    conversation: StringBuilder,
    language: StringBuilder,
}

impl Columns {
    fn new() -> Columns {
        let text = || Box::new(StringBuilder::new());
        Columns {
            id: StringBuilder::new(),
            messages: ListBuilder::new(StructBuilder::new(message_fields(), vec![text(), text()])),
            input_tokens: UInt32Builder::new(),
            output_tokens: UInt32Builder::new(),
            offset_ns: UInt64Builder::new(),
            hash_ids: ListBuilder::new(UInt64Builder::new()),
            conversation: StringBuilder::new(),
            language: StringBuilder::new(),
        }
    }

    fn add(&mut self, record: &Record) {
        self.id.append_option(record.id.as_deref());
        for turn in &record.turns {
            let message = self.messages.values();
            for (at, text) in [role(turn.role), &turn.text].into_iter().enumerate() {
                let column: &mut StringBuilder = message.field_builder(at).expect("both fields are text");
                column.append_value(text);
            }
            message.append(true);
        }
        self.messages.append(true);
        self.input_tokens.append_option(record.input_tokens);
        self.output_tokens.append_option(record.output_tokens);
        self.offset_ns.append_option(record.offset.map(|Nanos(nanos)| nanos));
        self.hash_ids.values().append_slice(&record.hash_ids);
        self.hash_ids.append(true);
        self.conversation.append_option(record.conversation.as_deref());
        self.language.append_option(record.language.as_deref());
    }

    fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.id.finish()),
            Arc::new(self.messages.finish()),
            Arc::new(self.input_tokens.finish()),
            Arc::new(self.output_tokens.finish()),
            Arc::new(self.offset_ns.finish()),
            Arc::new(self.hash_ids.finish()),
            Arc::new(self.conversation.finish()),
            Arc::new(self.language.finish()),
        ];
        RecordBatch::try_new(Arc::new(schema()), columns)
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}
