//! The format in which records are sent between processes: an Arrow IPC stream with the journal's columns,
//! sent in pieces.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::MetadataVersion;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, SchemaRef};

use super::column::BadColumn;
use super::journal::{arrays, batch_records, schema};
use super::schema::{Record, RunLabels};

fn wrong((column, why): BadColumn) -> ArrowError {
    ArrowError::SchemaError(format!("column {column}: {why}"))
}

/// Encodes finished requests as bytes for another process.
pub struct RecordEncoder {
    schema: SchemaRef,
    writer: StreamWriter<Vec<u8>>,
}

impl RecordEncoder {
    /// Creates an encoder; its first bytes describe the columns.
    pub fn new() -> Result<RecordEncoder, ArrowError> {
        let options = IpcWriteOptions::try_new(8, false, MetadataVersion::V5)?;
        let schema: SchemaRef = Arc::new(schema(&RunLabels::default()));
        let writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options)?;
        Ok(RecordEncoder { schema, writer })
    }

    /// Encodes records as the next bytes of the stream.
    pub fn encode(&mut self, records: &[Record]) -> Result<Vec<u8>, ArrowError> {
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays(records).map_err(wrong)?)?;
        self.writer.write(&batch)?;
        Ok(std::mem::take(self.writer.get_mut()))
    }
}

/// Decodes the output of a [`RecordEncoder`].
#[derive(Default)]
pub struct RecordDecoder(StreamDecoder);

impl RecordDecoder {
    /// Decodes the requests in the next bytes of the stream.
    pub fn decode(&mut self, bytes: Vec<u8>) -> Result<Vec<Record>, ArrowError> {
        let mut bytes = Buffer::from_vec(bytes);
        let mut records = Vec::new();
        while let Some(batch) = self.0.decode(&mut bytes)? {
            records.extend(batch_records(&batch).map_err(wrong)?);
        }
        Ok(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{Outcome, RequestRow};

    #[test]
    fn records_come_out_as_they_went_in() {
        let record = |request: u64| Record {
            row: RequestRow {
                request,
                outcome: Outcome::Http(503),
                error: Some("busy".into()),
                ..RequestRow::default()
            },
            gaps_ns: (0..request).collect(),
        };
        let (mut encoder, mut decoder) = (RecordEncoder::new().unwrap(), RecordDecoder::default());
        for batch in [vec![record(3), record(0)], vec![record(7)]] {
            assert_eq!(decoder.decode(encoder.encode(&batch).unwrap()).unwrap(), batch);
        }
    }
}
