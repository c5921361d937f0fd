//! A pivot for spreadsheets, with one column per load and one row per metric. Each row contains one metric of
//! runs that differ only in their load and have the same sweep, names, axes and repeat.

use std::collections::HashMap;

use crate::rows::RunLabels;

use super::further::{Further, is_fact};
use super::run_row::RunRow;
use super::runs;
use super::{Cell, Column, Kind, Sheet, matching};

/// The reason why a pivot cannot be created.
#[derive(Debug, PartialEq, Eq)]
pub enum NoPivot {
    /// No metric matches this pattern.
    NoMetric(String),
    /// The ids of two runs that would have the same place in the pivot.
    Alike([String; 2]),
}

/// Columns of the table of runs that the pivot omits, because they contain the load or apply to a single run.
const OF_ONE_RUN: [&str; 5] = ["batch_size", "qps", "run_id", "attempt", "started"];

/// The first column in the table of runs that becomes a row of the pivot.
const FIRST_METRIC: &str = "verdict";

/// Returns the pivot of runs, with the metrics that match `patterns`, or with all metrics that any run has if
/// there are no patterns.
pub fn wide(rows: &[RunRow], patterns: &[String]) -> Result<Sheet<'static>, NoPivot> {
    let further = Further::of(rows, &[]);
    let by_class = rows.iter().any(|row| row.class.is_some());
    let Sheet { columns, rows: cells } = runs::sheet(rows, &further, by_class);
    let cells: Vec<Vec<Cell>> = cells.collect();
    let first_metric = columns.iter().position(|column| column.name == FIRST_METRIC).unwrap_or(columns.len());
    let is_head = |at: &usize| !OF_ONE_RUN.contains(&columns[*at].name.as_str());
    let heads: Vec<usize> = (0..first_metric).filter(is_head).collect();
    let down = metrics(&columns, first_metric, &cells, patterns)?;
    let mut loads: Vec<Load> = rows.iter().map(|row| Load::of(&row.labels)).collect();
    loads.sort_by(Load::order);
    loads.dedup();
    let mut lines = Vec::new();
    for places in places(rows, &cells, &heads, &loads)? {
        let of = places.iter().flatten().next().copied().unwrap_or_default();
        lines.extend(down.iter().map(|metric| {
            let mut line: Vec<Cell> = heads.iter().map(|at| cells[of][*at].clone()).collect();
            line.extend([columns[*metric].name.clone().into(), columns[*metric].unit.into()]);
            line.extend(places.iter().map(|run| run.map_or(Cell::Null, |run| cells[run][*metric].clone())));
            line
        }));
    }
    let mut across: Vec<Column> = heads.into_iter().map(|at| columns[at].clone()).collect();
    across.push(Column::new("metric", Kind::Text, "Name of the metric: a column of the table of runs."));
    across.push(Column::new("unit", Kind::Text, "Unit of the row's values."));
    across.extend(loads.iter().map(|load| load.column()));
    Ok(Sheet { columns: across, rows: Box::new(lines.into_iter()) })
}

/// Returns the indices of the selected metrics in the table of runs.
fn metrics(columns: &[Column], first: usize, cells: &[Vec<Cell>], patterns: &[String]) -> Result<Vec<usize>, NoPivot> {
    if patterns.is_empty() {
        let has_values = |at: &usize| cells.iter().any(|row| row[*at] != Cell::Null);
        let is_metric = |at: &usize| !is_fact(&columns[*at].name);
        return Ok((first..columns.len()).filter(has_values).filter(is_metric).collect());
    }
    let names: Vec<&str> = columns[first..].iter().map(|column| column.name.as_str()).collect();
    let found = matching(&names, patterns).map_err(|pattern| NoPivot::NoMetric(pattern.to_owned()))?;
    Ok(found.into_iter().map(|at| at + first).collect())
}

/// Returns, for each group of runs that share the pivot's leading columns, the index of the run at each load.
/// Groups are in the order of their first runs.
fn places(
    rows: &[RunRow],
    cells: &[Vec<Cell>],
    heads: &[usize],
    loads: &[Load],
) -> Result<Vec<Vec<Option<usize>>>, NoPivot> {
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut places: Vec<Vec<Option<usize>>> = Vec::new();
    for (run, row) in rows.iter().enumerate() {
        let key = format!("{:?}", heads.iter().map(|at| &cells[run][*at]).collect::<Vec<_>>());
        let line = *known.entry(key).or_insert(places.len());
        if line == places.len() {
            places.push(vec![None; loads.len()]);
        }
        let load = Load::of(&row.labels);
        let across = loads.iter().position(|known| *known == load).unwrap_or_default();
        if let Some(other) = places[line][across].replace(run) {
            return Err(NoPivot::Alike([&rows[other], row].map(|row| row.labels.run_id.clone())));
        }
    }
    Ok(places)
}

/// A load of the pivot, which becomes a column.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Load {
    qps: Option<f64>,
    batch_size: Option<u32>,
}

impl Load {
    fn of(labels: &RunLabels) -> Load {
        Load { qps: labels.qps, batch_size: labels.batch_size }
    }

    /// Orders loads: batch sizes come first, followed by rates; loads with the same rate are ordered by their
    /// caps on requests in flight.
    fn order(&self, other: &Load) -> std::cmp::Ordering {
        let rate = |load: &Load| load.qps.unwrap_or(f64::NEG_INFINITY);
        rate(self).total_cmp(&rate(other)).then(self.batch_size.cmp(&other.batch_size))
    }

    fn column(&self) -> Column {
        let (name, doc) = match (self.qps, self.batch_size) {
            (Some(qps), Some(cap)) => {
                (format!("qps_{qps}_cap_{cap}"), format!("At {qps} requests per second, at most {cap} in flight"))
            }
            (Some(qps), None) => (format!("qps_{qps}"), format!("At {qps} requests per second")),
            (None, Some(batch)) => (format!("batch_{batch}"), format!("With {batch} requests in flight")),
            (None, None) => ("no_load".to_owned(), "At a load without a name".to_owned()),
        };
        let doc = format!("{doc}: the value of the row's metric.");
        Column { unit: "", ..Column::new(name, Kind::Any, doc).null("no run at this load, or the metric is null") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::Csv;
    use crate::export::runs::tests::runs;
    use crate::export::sheet::tests::written;

    /// Returns runs with batch sizes 16, 4 and 8 at one output length, a run with 20 qps at another, and a
    /// second repeat of batch size 8.
    fn sweep() -> Vec<RunRow> {
        let [closed, open] = <[RunRow; 2]>::try_from(runs()).unwrap();
        let with = |batch: u32, repeat: u32| {
            let mut row = closed.clone();
            row.labels.run_id = format!("{batch}.{repeat}");
            (row.labels.batch_size, row.labels.repeat) = (Some(batch), repeat);
            row
        };
        vec![with(16, 0), with(4, 0), open, with(8, 0), with(8, 1)]
    }

    fn patterns(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn loads_go_across_and_metrics_down() {
        let sheet = wide(&sweep(), &patterns(&["verdict", "requests", "ttft_p50_ms", "ttft_p99_ms"])).unwrap();
        insta::assert_snapshot!(written(&Csv, sheet), @r#"
        plan,sweep,endpoint,model,scenario,output_tokens,repeat,analysis,metric,unit,batch_4,batch_8,batch_16,qps_20
        demo,load,mock,m,B1,,0,5,verdict,,valid,valid,valid,
        demo,load,mock,m,B1,,0,5,requests,,999,999,999,
        demo,load,mock,m,B1,,0,5,ttft_p50_ms,ms,20.076135,20.076135,20.076135,
        demo,load,mock,m,B1,,0,5,ttft_p99_ms,ms,20.959896819999997,20.959896819999997,20.959896819999997,
        demo,load,mock,m,B1,16,0,5,verdict,,,,,valid
        demo,load,mock,m,B1,16,0,5,requests,,,,,215
        demo,load,mock,m,B1,16,0,5,ttft_p50_ms,ms,,,,20.038376
        demo,load,mock,m,B1,16,0,5,ttft_p99_ms,ms,,,,
        demo,load,mock,m,B1,,1,5,verdict,,,valid,,
        demo,load,mock,m,B1,,1,5,requests,,,999,,
        demo,load,mock,m,B1,,1,5,ttft_p50_ms,ms,,20.076135,,
        demo,load,mock,m,B1,,1,5,ttft_p99_ms,ms,,20.959896819999997,,
        "#);
    }

    #[test]
    fn unasked_every_metric_with_a_value_is_there() {
        let rows = sweep();
        let sheet = wide(&rows, &[]).unwrap();
        let at = sheet.columns.iter().position(|column| column.name == "metric").unwrap();
        let names: Vec<Cell> = sheet.rows.map(|row| row[at].clone()).collect();
        assert!(names.contains(&"output_throughput_tokens_per_s".into()) && names.contains(&"verdict".into()));
        assert!(!names.contains(&"goodput_share".into()), "no thresholds, so no run has one");
        assert!(!names.contains(&"run_id".into()));
    }

    #[test]
    fn what_cannot_be_told_apart_is_not_mixed() {
        let mut rows = sweep();
        rows.push(RunRow { labels: RunLabels { run_id: "other".into(), ..rows[1].labels.clone() }, ..rows[1].clone() });
        let Err(told) = wide(&rows, &[]) else { panic!("expected an error: two runs in one place") };
        assert_eq!(told, NoPivot::Alike(["4.0".into(), "other".into()]));
        let Err(told) = wide(&sweep(), &patterns(&["ttft_p5_ms"])) else {
            panic!("expected an error: unknown percentile p5")
        };
        assert_eq!(told, NoPivot::NoMetric("ttft_p5_ms".into()));
    }

    #[test]
    fn no_runs_are_no_rows() {
        assert_eq!(wide(&[], &[]).unwrap().rows.count(), 0);
    }
}
