//! The table of groups: each run's metrics by class of a mix and by length of prompts and answers, a row for each group.

use crate::analysis::groups::Group;
use crate::analysis::metric::{self, Scope};
use crate::analysis::{PlanMetrics, RunMetrics};
use crate::rows::RunLabels;

use super::runs::{label_cells, label_columns};
use super::{Cell, Column, Sheet};

/// A run's labels and its groups, measured.
pub type GroupsOfRun = (RunLabels, Vec<(Group, RunMetrics)>);

/// Columns that a person reads: what Markdown shows.
pub const BRIEF: [&str; 15] = [
    "endpoint",
    "model",
    "scenario",
    "batch_size",
    "qps",
    "repeat",
    "group_by",
    "group",
    "requests",
    "ttft_p50_ms",
    "ttft_p99_ms",
    "tpot_p50_ms",
    "itl_p50_ms",
    "e2e_p50_ms",
    "output_throughput_tokens_per_s",
];

/// All groups of runs, in the order given. `axes` are the further axes of any of the runs (`runs::axes`); `runs` may read
/// each run as it is asked for, so that only one is in memory.
pub fn sheet<'a>(axes: &[String], runs: impl Iterator<Item = GroupsOfRun> + 'a) -> Sheet<'a> {
    let metrics = metric::columns(Scope::Rows);
    let mut others = vec![
        Column::new("group_by", "What the group's requests have in common: class, prompt_tokens or output_tokens."),
        Column::new("group", "The class; or the tokens meant to be sent or asked for, first and last of the bucket."),
    ];
    others.extend(metrics.iter().map(|column| Column::new(&column.name, &column.doc)));
    let mut columns = label_columns(axes, &others);
    columns.extend(others);
    let axes = axes.to_vec();
    let rows = runs.flat_map(move |(labels, groups)| {
        let labels = label_cells(&labels, &axes);
        let row = |(group, measured): (Group, RunMetrics)| {
            let mut cells = labels.clone();
            cells.extend([Cell::from(group.by().name()), group.name().into()]);
            let none = PlanMetrics::default();
            cells.extend(metrics.iter().map(|column| Cell::from(column.read(&measured, &none))));
            cells
        };
        groups.into_iter().map(row).collect::<Vec<_>>()
    });
    Sheet { columns, rows: Box::new(rows) }
}
