//! `runs.parquet`: one row per run with every metric that needs no plan. It is derived only from stored
//! data, sorted by run and written with fixed writer properties, so a rebuilt file is identical byte
//! for byte.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{MapBuilder, MapFieldNames, StringBuilder};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::analysis::metric::{self, Number, Scope};
use crate::analysis::{ANALYSIS, PlanMetrics, RunMetrics};
use crate::rows::RunLabels;

use super::parquet::marks;

/// One committed run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredRun {
    /// The labels in the run's rows.
    pub labels: RunLabels,
    /// When the run started, as in `run.json`.
    pub started: String,
    /// Its metrics.
    pub metrics: RunMetrics,
}

/// The bytes of `runs.parquet`, independent of the order of the runs.
pub(crate) fn bytes(mut runs: Vec<StoredRun>) -> Result<Vec<u8>, ParquetError> {
    runs.sort_by(|a, b| (&a.labels.run_id, a.labels.attempt).cmp(&(&b.labels.run_id, b.labels.attempt)));
    let batch = batch(&runs)?;
    let properties = WriterProperties::builder()
        .set_created_by("sweepline".into())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_key_value_metadata(Some(marks()))
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(bytes)
}

/// The rows as columns: the labels of a run, then its metrics.
fn batch(runs: &[StoredRun]) -> Result<RecordBatch, ArrowError> {
    let mut columns = label_columns(runs)?;
    columns.extend(metric::columns(Scope::Rows).iter().map(|column| {
        let numbers = runs.iter().map(|run| column.read(&run.metrics, &PlanMetrics::default()));
        (column.name.clone(), column.described(), array(column.counts(), numbers))
    }));
    let field = |(name, doc, array): &(String, String, ArrayRef)| {
        let about = [("description".to_string(), doc.clone())];
        let nullable = !matches!(array.data_type(), arrow_schema::DataType::UInt64);
        Field::new(name, array.data_type().clone(), nullable).with_metadata(HashMap::from(about))
    };
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<Field>>());
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, _, array)| array).collect())
}

fn array(counts: bool, numbers: impl Iterator<Item = Number>) -> ArrayRef {
    let float = |number| match number {
        Number::Count(count) => Some(count as f64),
        Number::Float(value) => value,
    };
    let count = |number| match number {
        Number::Count(count) => Some(count),
        Number::Float(_) => None,
    };
    if counts {
        Arc::new(UInt64Array::from_iter(numbers.map(count)))
    } else {
        Arc::new(Float64Array::from_iter(numbers.map(float)))
    }
}

fn label_columns(runs: &[StoredRun]) -> Result<Vec<(String, String, ArrayRef)>, ArrowError> {
    let text = |get: fn(&StoredRun) -> &str| Arc::new(StringArray::from_iter_values(runs.iter().map(get))) as ArrayRef;
    let whole = |get: fn(&RunLabels) -> Option<u32>| {
        Arc::new(UInt32Array::from_iter(runs.iter().map(|run| get(&run.labels)))) as ArrayRef
    };
    let qps = Float64Array::from_iter(runs.iter().map(|run| run.labels.qps));
    let columns = [
        ("run_id", "The full RunId.", text(|run| &run.labels.run_id)),
        ("attempt", "Number of the attempt at the run, from 1.", whole(|labels| Some(labels.attempt))),
        ("endpoint", "Name of the endpoint in the plan.", text(|run| &run.labels.endpoint)),
        ("model", "Name of the model in the plan.", text(|run| &run.labels.model)),
        ("scenario", "Name of the scenario in the plan.", text(|run| &run.labels.scenario)),
        (
            "batch_size",
            "Requests in flight, or the in-flight cap of an open loop. Null if there is no cap.",
            whole(|labels| labels.batch_size),
        ),
        ("qps", "Declared arrivals per second. Null in a closed loop.", Arc::new(qps)),
        ("repeat", "Number of the repeat within its cell, from 0.", whole(|labels| Some(labels.repeat))),
        ("axes", "The cell's values on the other axes.", axes(runs)?),
        ("started", "When the run started, RFC 3339.", text(|run| &run.started)),
        ("analysis", "Version of the analysis that computed the row's numbers.", whole(|_| Some(ANALYSIS))),
    ];
    Ok(columns.map(|(name, doc, array)| (name.to_string(), doc.to_string(), array)).into())
}

fn axes(runs: &[StoredRun]) -> Result<ArrayRef, ArrowError> {
    // Parquet's own names for the parts of a map.
    let names = MapFieldNames { entry: "key_value".into(), key: "key".into(), value: "value".into() };
    let mut builder = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
    for run in runs {
        for (axis, value) in &run.labels.axes {
            builder.keys().append_value(axis);
            builder.values().append_value(value);
        }
        builder.append(true)?;
    }
    Ok(Arc::new(builder.finish()))
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Float64Type;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;
    use crate::export::runs::tests::runs;

    fn stored() -> Vec<StoredRun> {
        let stored = |run: crate::export::run_row::RunRow| StoredRun {
            labels: run.labels,
            started: run.started,
            metrics: run.metrics,
        };
        runs().into_iter().map(stored).collect()
    }

    #[test]
    fn it_comes_back_identical() {
        let (runs, mut reversed) = (stored(), stored());
        reversed.reverse();
        assert_eq!(bytes(runs).unwrap(), bytes(reversed).unwrap());
    }

    #[test]
    fn what_is_written_is_read() {
        let runs = stored();
        let file = bytes::Bytes::from(super::bytes(runs.clone()).unwrap());
        let mut reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
        let batch = reader.next().unwrap().unwrap();
        let column = |name: &str| batch.column_by_name(name).unwrap().clone();
        assert_eq!(batch.num_rows(), 2);
        let medians = column("ttft_p50_ms");
        let expected = runs[0].metrics.ttft.percentiles[0].exact().unwrap();
        assert_eq!(medians.as_primitive::<Float64Type>().value(0), expected);
        assert!(column("ttft_p99_ms").is_null(1) && column("qps").is_null(0) && column("batch_size").is_null(1));
        assert_eq!(column("axes").as_map().value(1).len(), 1);
    }

    #[test]
    fn no_runs_are_an_empty_table() {
        assert!(!bytes(Vec::new()).unwrap().is_empty());
    }
}
