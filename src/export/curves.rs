//! The table of curves: one row per load of each curve, with the figures over the load's repeats.

use crate::analysis::ANALYSIS;
use crate::analysis::curve::{Curve, FIGURES, Figure, OnFronts, Ordinate, Rung, on_fronts};
use crate::analysis::quantile;
use crate::analysis::slo::Answer;
use crate::plan::Slo;

use super::runs::axis_column;
use super::{Cell, Column, Kind, Sheet, analysis_column};

/// Returns the columns; `axes` lists the further axes of all runs (`run_row::axes`).
pub fn columns(axes: &[String]) -> Vec<Column> {
    let text = |name: &str, doc: &str| Column::new(name, Kind::Text, doc);
    let mut columns = vec![
        text("plan", "Name of the plan.").null("exported without one"),
        text("sweep", "Name of the sweep.").null("exported without a plan"),
        text("endpoint", "Name of the endpoint in the plan."),
        text("model", "Name of the model in the plan."),
        text("scenario", "Name of the scenario in the plan."),
        Column::new("cap", Kind::Int, "In-flight cap of an open loop.").null("no cap, or a closed loop"),
    ];
    let mut others = vec![
        text("load_axis", "The unit of the load: qps (arrivals per second) or batch_size (requests in flight)."),
        Column::new("load", Kind::Float, "The load.").label(),
        Column::new(
            "arrived_rate_requests_per_s",
            Kind::Float,
            "Requests per second that actually arrived, on average over the runs.",
        ).null("a closed loop, or no run counts"),
        Column::new("runs", Kind::Int, "Number of runs behind the figures."),
        Column::new("left_out", Kind::Int, "Invalid runs of the load: excluded from all figures."),
        text(
            "excluded",
            "Repeats that are excluded because of a disturbance that most repeats did not have, like repeat 1: paused.",
        ).null("none"),
        Column::new("given_up", Kind::Int, "Runs of the load that were given up: they have no figures."),
        text("given_up_reason", "Why they were given up, like 429 (3 of 3).").null("none was given up"),
        Column::new("saturated", Kind::Bool, "Whether arrivals outran the server, over the runs."),
        text(
            "saturation",
            "Whether the server kept up with arrivals, over the runs: kept_up, saturated or not_shown.",
        ).null("a closed loop, or no run counts"),
        text(
            "objective",
            "Whether the plan's objective holds, decided over the runs: holds, misses or undecided. A load at \
            which a run was given up misses, except if the model is unknown (404) or the server did not start.",
        ).null("no objective"),
        text(
            "objective_observed",
            "Whether the plan's objective was met in what was seen, whether or not this is shown: holds or misses.",
        ).null("no objective, or nothing was seen"),
        Column::new(
            "on_front_user_gpu",
            Kind::Bool,
            "Whether no other load of the same model and scenario has more tokens/s per user and per accelerator.",
        ).null("the load lacks one of the two figures, was given up, or the server was not shown to keep up with it"),
        Column::new(
            "on_front_throughput_p99",
            Kind::Bool,
            "Whether no other load of the same model and scenario has more output throughput and a lower p99 of E2E.",
        ).null("the load lacks one of the two figures, was given up, or the server was not shown to keep up with it"),
        Column::new(
            "on_front_cost_latency",
            Kind::Bool,
            "Whether no other load of the same model and scenario has a lower cost per million output tokens and a lower latency: the first that the objective limits, or p50 of TPOT.",
        ).null("the load lacks one of the two figures, was given up, or the server was not shown to keep up with it"),
        text(
            "few_samples",
            "Names of the percentiles that are computed from few samples in a run of the load (p99 of fewer than 1 \
             000 values), separated by spaces.",
        ).null("none"),
    ];
    others.extend(FIGURES.iter().flat_map(of_figure));
    others.extend(of_energy());
    others.push(analysis_column());
    columns.extend(axes.iter().map(|axis| axis_column(axis, &others)));
    columns.extend(others);
    columns
}

/// The columns for the energy of the GPUs.
fn of_energy() -> [Column; 2] {
    let null = "no run counts, one of the runs has no energy (not scraped, or a gap in the window), or their energy \
                was measured in different ways";
    let tokens = "Output tokens per joule of the GPUs, over the windows of the runs.";
    [
        Column { unit: "tokens/J", ..Column::new("tokens_per_joule", Kind::Float, tokens).null(null) },
        Column::new(
            "energy_by",
            Kind::Text,
            "The source of the GPUs' energy: counter, or power (the integral of the power).",
        )
        .null(null),
    ]
}

/// The four columns of a figure. A latency percentile has one more column: the lower bound of the percentile
/// if it lies among failed requests.
fn of_figure(reading: &Ordinate) -> Vec<Column> {
    let metric = reading.metric(true);
    let suffix = metric.unit.suffix();
    let name = reading.name;
    let doc = format!(
        "{}. The value of one run, or the mean over several runs (geometric for times, rates and money).",
        meaning(reading)
    );
    let number = |name: String, doc: &str| Column { unit: metric.unit.name(), ..Column::new(name, Kind::Float, doc) };
    let end = |end: &str, doc: &str| number(format!("{name}_{end}{suffix}"), doc);
    let mut columns = vec![
        number(format!("{name}{suffix}"), &doc).null("no run counts, or one of the runs has no value"),
        end("low", "Lower end of its 95 % interval.").null("no interval"),
        end("high", "Upper end of its 95 % interval.").null("no interval"),
        Column::new(format!("{name}_interval"), Kind::Text, "The basis of the interval.").null("no interval"),
    ];
    if reading.percentile.is_some() {
        let doc = "Lower bound of the figure if it lies among failed requests in at least one run.";
        columns.push(end("at_least", doc).null("the figure is a number, or nothing is known about it"));
    }
    columns
}

/// Returns the meaning of a figure and, for latencies, the instant from which they are measured. The column
/// of the same name in `runs` always measures from the time at which a request is sent.
fn meaning(reading: &Ordinate) -> String {
    let (open, closed) = (reading.metric(true), reading.metric(false));
    let of = match reading.percentile {
        Some(percentile) => format!("{} of {}: ", quantile::name(percentile), closed.title),
        None if open.kind.is_distribution() => format!("Mean {} of completed requests: ", closed.title),
        None => return open.definition.to_owned(),
    };
    match closed.key {
        key if key != open.key => format!(
            "{of}in open loops from the schedule, {}; in closed loops {}. Note: the column of this name in `runs` \
             counts from the send in both",
            open.definition, closed.definition
        ),
        "user_throughput" => format!("{of}{}; the latency is from the send, in open loops too", open.definition),
        _ => format!("{of}{}", open.definition),
    }
}

/// Returns the table of all loads of all curves, including whether each load is on the fronts under the
/// objective `slo`. `axes` lists the further axes of all runs (`run_row::axes`).
pub(crate) fn sheet<'a>(axes: &[String], plan: Option<&str>, curves: &[Curve], slo: Option<&Slo>) -> Sheet<'a> {
    let fronts = on_fronts(curves, slo);
    let mut rows = Vec::new();
    for (curve, on) in curves.iter().zip(fronts) {
        for (rung, on) in curve.rungs.iter().zip(on) {
            rows.push(row(axes, plan, curve, (rung, on)));
        }
    }
    Sheet { columns: columns(axes), rows: Box::new(rows.into_iter()) }
}

fn row(axes: &[String], plan: Option<&str>, curve: &Curve, (rung, on): (&Rung, OnFronts)) -> Vec<Cell> {
    let series = &curve.series;
    let sweep = Some(series.sweep.clone()).filter(|sweep| !sweep.is_empty());
    let mut cells: Vec<Cell> = vec![
        plan.map(str::to_owned).into(),
        sweep.into(),
        series.endpoint.clone().into(),
        series.model.clone().into(),
        series.scenario.clone().into(),
        series.cap.into(),
    ];
    cells.extend(axes.iter().map(|axis| Cell::from(series.axes.get(axis).cloned())));
    let is_few = |reading: &&Ordinate| rung.figure(reading).is_some_and(|figure| figure.few_samples);
    let few: Vec<&str> = FIGURES.iter().filter(is_few).map(|reading| reading.name).collect();
    cells.extend([
        Cell::from(curve.axis.name()),
        Cell::from(rung.load),
        Cell::from(rung.arrived_rate()),
        Cell::from(rung.runs.len() as u64),
        Cell::from(rung.left_out.len() as u64),
        rung.why_excluded().into(),
        Cell::from(rung.given_up.len() as u64),
        rung.why_given_up().into(),
        Cell::Bool(rung.is_saturated()),
        rung.state().map(|state| state.name().to_owned()).into(),
        rung.answer().map(|answer| answer.name().to_owned()).into(),
        rung.seen().met.map(|met| Answer::observed(met).name().to_owned()).into(),
        // Null if the load lacks a figure, because it is then unknown whether the load is on the front.
        on.user_over_gpu.map_or(Cell::Null, Cell::Bool),
        on.throughput_over_p99.map_or(Cell::Null, Cell::Bool),
        on.cost_over_latency.map_or(Cell::Null, Cell::Bool),
        (!few.is_empty()).then(|| few.join(" ")).into(),
    ]);
    for reading in &FIGURES {
        let figure = rung.figure(reading);
        let ends = figure.and_then(|figure: Figure| figure.ends);
        cells.extend([
            Cell::from(figure.map(|figure| figure.value)),
            Cell::from(ends.map(|ends| ends.low)),
            Cell::from(ends.map(|ends| ends.high)),
            Cell::from(ends.map(|ends| ends.kind.name().to_owned())),
        ]);
        if reading.percentile.is_some() {
            cells.push(Cell::from(rung.at_least(reading)));
        }
    }
    let energy = rung.tokens_per_joule();
    cells.push(energy.map(|energy| energy.tokens).into());
    cells.push(energy.map(|energy| energy.by.name().to_owned()).into());
    cells.push(ANALYSIS.into());
    cells
}
