//! The table of lengths: each run's metrics by bucket of prompt and output tokens, a row for each bucket.

use crate::analysis::lengths::Bucket;
use crate::analysis::metric::{self, Scope};
use crate::analysis::{PlanMetrics, RunMetrics};
use crate::rows::RunLabels;

use super::runs::{label_cells, label_columns};
use super::{Cell, Column, Kind, Sheet};

/// A run's labels and its buckets, measured.
pub type BucketsOfRun = (RunLabels, Vec<(Bucket, RunMetrics)>);

/// Columns that a person reads: what Markdown shows.
pub const BRIEF: [&str; 15] = [
    "endpoint",
    "model",
    "scenario",
    "batch_size",
    "qps",
    "repeat",
    "by",
    "tokens",
    "requests",
    "ttft_p50_ms",
    "ttft_p99_ms",
    "tpot_p50_ms",
    "itl_p50_ms",
    "e2e_p50_ms",
    "output_throughput_tokens_per_s",
];

/// The columns; `axes` are the further axes of any of the runs (`runs::axes`).
pub fn columns(axes: &[String]) -> Vec<Column> {
    let mut others = vec![
        Column::new("by", Kind::Text, "What the requests of the row have in common: prompt_tokens or output_tokens."),
        Column::new("tokens", Kind::Text, "How many: meant to be sent, or asked for; first and last of the bucket."),
    ];
    others.extend(metric::columns(Scope::Rows).iter().map(Column::of));
    let mut columns = label_columns(axes, &others);
    columns.extend(others);
    columns
}

/// All buckets of runs, in the order given. `axes` are the further axes of any of the runs (`runs::axes`); `runs` may read
/// each run as it is asked for, so that only one is in memory.
pub fn sheet<'a>(axes: &[String], runs: impl Iterator<Item = BucketsOfRun> + 'a) -> Sheet<'a> {
    let metrics = metric::columns(Scope::Rows);
    let (columns, axes) = (columns(axes), axes.to_vec());
    let rows = runs.flat_map(move |(labels, buckets)| {
        let labels = label_cells(&labels, &axes);
        let row = |(bucket, measured): (Bucket, RunMetrics)| {
            let mut cells = labels.clone();
            cells.extend([Cell::from(bucket.by.name()), bucket.name().into()]);
            let none = PlanMetrics::default();
            cells.extend(metrics.iter().map(|column| Cell::from(column.read(&measured, &none))));
            cells
        };
        buckets.into_iter().map(row).collect::<Vec<_>>()
    });
    Sheet { columns, rows: Box::new(rows) }
}
