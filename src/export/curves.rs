//! The table of curves: a row for each load of a curve, its figures over the repeats with their intervals.

use crate::analysis::curve::{Curve, FIGURES, Reading, Rung};

use super::{Cell, Column, Kind, Sheet};

/// Columns that a person reads: what Markdown shows.
pub const BRIEF: [&str; 13] = [
    "sweep",
    "endpoint",
    "model",
    "scenario",
    "load_axis",
    "load",
    "runs",
    "output_throughput_tokens_per_s",
    "ttft_p50_ms",
    "ttft_p99_ms",
    "tpot_p50_ms",
    "saturated",
    "slo",
];

/// The columns; `axes` are the further axes of any of the runs (`runs::axes`).
pub fn columns(axes: &[String]) -> Vec<Column> {
    let text = |name: &str, doc: &str| Column::new(name, Kind::Text, doc);
    let int = |name: &str, doc: &str| Column::new(name, Kind::Int, doc);
    let mut others = vec![
        text("load_axis", "What the load is counted in: qps (open loops, latencies from the schedule) or batch_size."),
        Column::new("load", Kind::Float, "The load."),
        int("runs", "Runs that the figures are of: the repeats of the load."),
        int("left_out", "Repeats that are invalid, and count for nothing."),
        Column::new("saturated", Kind::Bool, "Whether arrivals outran the server in more than half of the runs."),
        text("slo", "holds, misses or undecided: what the runs say together of the objective. Null: none, or no runs."),
    ];
    for figure in &FIGURES {
        let metric = figure.metric(false);
        let number =
            |name: String, doc: String| Column { unit: metric.unit.name(), ..Column::new(name, Kind::Float, doc) };
        let (name, unit, title) = (figure.name, metric.unit.suffix(), metric.title);
        let of = figure
            .percentile
            .map_or_else(|| title.to_owned(), |p| format!("{title} {}", crate::analysis::quantile::name(p)));
        others.push(number(
            format!("{name}{unit}"),
            format!("{of}: of one run, or the mean over several. Null: a run has none."),
        ));
        others.push(number(
            format!("{name}_low{unit}"),
            format!("Lower end of the 95 % interval of {of}. Null: no interval."),
        ));
        others.push(number(
            format!("{name}_high{unit}"),
            format!("Upper end of the 95 % interval of {of}. Null: no interval."),
        ));
        others.push(text(
            &format!("{name}_interval"),
            &format!("What the interval of {of} rests on. Null: no interval."),
        ));
    }
    let mut columns = vec![
        text("sweep", "Name of the sweep."),
        text("endpoint", "The plan's name of the endpoint."),
        text("model", "The plan's name of the model."),
        text("scenario", "The plan's name of the scenario."),
        int("cap", "The in-flight cap of an open loop. Null: none, or a closed loop."),
    ];
    columns.extend(axes.iter().map(|axis| {
        let taken = others.iter().any(|column| column.name == *axis);
        let name = if taken { format!("axis_{axis}") } else { axis.clone() };
        let doc = format!("The curve's value on the axis {axis}. Null: the axis does not apply.");
        Column { unit: "", ..Column::new(name, Kind::Text, doc) }
    }));
    columns.extend(others);
    columns
}

/// All curves, load by load.
pub fn sheet(curves: &[Curve], axes: &[String]) -> Sheet<'static> {
    let rows = curves.iter().flat_map(|curve| curve.rungs.iter().map(move |rung| row(curve, rung, axes)));
    let rows: Vec<Vec<Cell>> = rows.collect();
    Sheet { columns: columns(axes), rows: Box::new(rows.into_iter()) }
}

fn row(curve: &Curve, rung: &Rung, axes: &[String]) -> Vec<Cell> {
    let series = &curve.series;
    let names = [&series.sweep, &series.endpoint, &series.model, &series.scenario];
    let mut cells: Vec<Cell> = names.map(|name| name.clone().into()).into();
    cells.push(series.cap.into());
    let value = |axis: &String| series.axes.iter().find(|(name, _)| name == axis).map(|(_, value)| value.clone());
    cells.extend(axes.iter().map(|axis| Cell::from(value(axis))));
    let count = |runs: usize| Cell::from(runs as u64);
    cells.extend([curve.axis.name().into(), rung.load.into(), count(rung.runs.len()), count(rung.left_out.len())]);
    cells.extend([Cell::Bool(rung.is_saturated()), rung.answer().map(|answer| answer.name()).into()]);
    cells.extend(FIGURES.iter().flat_map(|figure| figure_cells(rung, figure)));
    cells
}

fn figure_cells(rung: &Rung, reading: &Reading) -> [Cell; 4] {
    let figure = rung.figure(reading);
    let ends = figure.and_then(|figure| figure.ends);
    [
        figure.map(|figure| figure.value).into(),
        ends.map(|ends| ends.low).into(),
        ends.map(|ends| ends.high).into(),
        ends.map(|ends| ends.kind.name()).into(),
    ]
}
