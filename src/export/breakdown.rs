//! A table of parts of runs: the metrics of each run for groups of its requests, with one row per group.

use crate::analysis::lengths::Bucket;
use crate::analysis::metric::{self, Scope};
use crate::analysis::{ANALYSIS, PlanMetrics, RunMetrics};
use crate::rows::RunLabels;

use super::runs::{label_cells, label_columns, name_cells, name_columns, of_part};
use super::{Cell, Column, Kind, Sheet, analysis_column};

/// The attribute that the requests of a group have in common.
pub(crate) trait Part {
    /// The columns that identify a group.
    fn columns() -> Vec<Column>;
    /// The cells of the group in the columns that [`Part::columns`] returns.
    fn cells(&self) -> Vec<Cell>;
}

impl Part for Bucket {
    fn columns() -> Vec<Column> {
        vec![
            Column::new(
                "by",
                Kind::Text,
                "The property that the requests of the row have in common: prompt_tokens or output_tokens.",
            ),
            Column::new(
                "tokens",
                Kind::Text,
                "The bucket's first and last number of tokens: intended prompt tokens, or requested output tokens.",
            ),
        ]
    }

    fn cells(&self) -> Vec<Cell> {
        vec![self.by.name().into(), self.name().into()]
    }
}

/// A turn of a conversation, from 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn(pub u32);

impl Part for Turn {
    fn columns() -> Vec<Column> {
        vec![Column::new("turn", Kind::Int, "Turn of the conversation of the row's requests, from 0.")]
    }

    fn cells(&self) -> Vec<Cell> {
        vec![self.0.into()]
    }
}

/// A run: its sweep in the plan (`None` without a plan), and its labels.
pub(crate) type Named = (Option<String>, RunLabels);

/// A run with its measured parts.
pub(crate) type PartsOfRun<P> = (Named, Vec<(P, RunMetrics)>);

/// Returns the columns; `axes` lists the further axes of all runs (`run_row::axes`).
pub(crate) fn columns<P: Part>(axes: &[String]) -> Vec<Column> {
    let mut others = P::columns();
    others.push(analysis_column());
    others.extend(metric::columns(Scope::Rows).iter().map(of_part));
    let mut columns = name_columns();
    columns.extend(label_columns(axes, &others));
    columns.extend(others);
    columns
}

/// Returns the table of all parts of `runs`, in the order given. `axes` lists the further axes of all runs
/// (`run_row::axes`). `runs` may read each run lazily, so that only one run is in memory at a time.
pub(crate) fn sheet<'a, P: Part>(
    axes: &[String],
    plan: Option<&'a str>,
    runs: impl Iterator<Item = PartsOfRun<P>> + 'a,
) -> Sheet<'a> {
    let metrics = metric::columns(Scope::Rows);
    let (columns, axes) = (columns::<P>(axes), axes.to_vec());
    let rows = runs.flat_map(move |((sweep, labels), parts)| {
        let mut names = name_cells(plan, sweep.as_deref()).to_vec();
        names.extend(label_cells(&labels, &axes));
        let row = |(part, measured): (P, RunMetrics)| {
            let mut cells = names.clone();
            cells.extend(part.cells());
            cells.push(ANALYSIS.into());
            let none = PlanMetrics::default();
            cells.extend(metrics.iter().map(|column| Cell::from(column.read(&measured, &none))));
            cells
        };
        parts.into_iter().map(row).collect::<Vec<_>>()
    });
    Sheet { columns, rows: Box::new(rows) }
}
