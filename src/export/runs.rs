//! The table of runs: each run's names in the plan, its verdict and its metrics.

use crate::analysis::ANALYSIS;
use crate::analysis::metric::{self, Scope};
use crate::rows::RunLabels;

use super::further::{self, Further};
use super::run_row::{GivenUpRow, RunRow};
use super::{Cell, Column, Kind, Sheet, analysis_column};

/// Returns the columns. `further` contains the columns that only some runs have; `by_class` means that each
/// row is a class of a mix instead of a whole run.
pub(crate) fn columns(further: &Further, by_class: bool) -> Vec<Column> {
    let text = |name, doc| Column::new(name, Kind::Text, doc);
    let mut others = vec![
        Column::new("started", Kind::Time, "When the run started, RFC 3339."),
        analysis_column(),
        text("verdict", VERDICTS[usize::from(by_class)]),
        text("reasons", "Names of the reasons against the run, separated by spaces.").null("no reason"),
        text("labels", "Labels of a valid run, like saturated.").null("no label"),
        text("errors", "Outcomes of the failed requests of the window, like 10 http_500, 2 reset.").null("none failed"),
        text("first_error", "Message of the first of the most frequent errors.").null("none failed, or no message"),
        text("finish_reasons", "Why the server ended the completed responses, like 95 stop, 5 content_filter.")
            .null("none stated"),
    ];
    if !by_class {
        let doc = "Why the run was given up, and how often it was retried, out of how many allowed retries, \
                   like 429 (3 of 3). The server's message is in first_error.";
        others.push(text("given_up", doc).null("it has a result"));
        let doc = "Number of failed hooks during the run, including the reset of its server.";
        others.push(Column::new("hooks_failed", Kind::Int, doc).null("no hook ran during it"));
    }
    others.extend(further::columns(further));
    let metrics = metric::columns(Scope::Plan);
    others.extend(metrics.iter().map(if by_class { of_part } else { of_run }));
    let mut columns = name_columns();
    if by_class {
        columns.push(text("class", "Class of the mix: the name of its scenario in the plan."));
    }
    columns.extend(label_columns(&further.axes, &others));
    columns.extend(others);
    columns
}

/// Descriptions of the possible verdicts of a run, and of a class.
const VERDICTS: [&str; 2] = [
    "valid, suspect or invalid; given_up if the run has no result and is not retried automatically.",
    "valid, suspect or invalid.",
];

/// Returns the column of a metric of a run, which is null if the run was given up.
fn of_run(metric: &metric::Column) -> Column {
    let column = Column::of(metric);
    let is_always_there = column.null.is_empty();
    let null = if is_always_there { "the run was given up".to_owned() } else { column.null };
    Column { null, ..column }
}

/// Returns the column of a metric of a part of a run; some metrics are always null for parts.
pub(super) fn of_part(metric: &metric::Column) -> Column {
    let column = Column::of(metric);
    let null = match column.name.as_str() {
        "derived_server_throughput_tokens_per_s" => "always: it needs all requests of the run",
        "cost_per_million_output_tokens" | "tokens_per_unit_of_money" => {
            "always: the endpoint's price is for all requests together"
        }
        _ => return column,
    };
    Column { null: null.to_owned(), ..column }
}

/// Returns the table of all runs, in the order given, followed by the runs that were given up.
pub(crate) fn with_given_up<'a>(runs: &'a [RunRow], given_up: &'a [GivenUpRow]) -> Sheet<'a> {
    let further = Further::of(runs, given_up);
    let Sheet { columns, rows } = sheet(runs, &further, false);
    let width = columns.len();
    let row = move |run: &GivenUpRow| {
        let mut cells = name_cells(run.plan.as_deref(), run.sweep.as_deref()).to_vec();
        cells.extend(label_cells(&run.labels, &further.axes));
        cells.push(run.started.clone().into());
        cells.push(ANALYSIS.into());
        cells.push("given_up".into());
        // Reasons, labels and errors exist only for runs with measured requests.
        cells.extend([Cell::Null, Cell::Null, Cell::Null]);
        cells.push(run.given_up.spoiled.detail.clone().into());
        cells.extend([Cell::Null, run.given_up.reason().into(), Cell::Null]);
        cells.extend(further::cells_of_given_up(run, &further));
        cells.resize(width, Cell::Null);
        cells
    };
    Sheet { columns, rows: Box::new(rows.chain(given_up.iter().map(row))) }
}

/// Returns the table of all runs, or of all classes if `by_class` is set, in the order given. `further`
/// contains the columns that only some runs have.
pub(crate) fn sheet<'a>(runs: &'a [RunRow], further: &Further, by_class: bool) -> Sheet<'a> {
    let metrics = metric::columns(Scope::Plan);
    let (columns, further) = (columns(further, by_class), further.clone());
    let row = move |run: &RunRow| {
        let mut cells = name_cells(run.plan.as_deref(), run.sweep.as_deref()).to_vec();
        cells.extend(by_class.then(|| run.class.clone().into()));
        cells.extend(label_cells(&run.labels, &further.axes));
        cells.push(run.started.clone().into());
        cells.push(ANALYSIS.into());
        cells.push(run.verdict.state.name().into());
        cells.push(names(run.verdict.reasons.iter().map(|reason| reason.name)));
        cells.push(names(run.verdict.labels.iter().map(|label| label.name)));
        let failures = &run.metrics.failures;
        cells.push((!failures.0.is_empty()).then(|| failures.kinds()).into());
        cells.push(failures.message().map(str::to_owned).into());
        cells.push(Some(run.metrics.finish_reasons.kinds()).filter(|kinds| !kinds.is_empty()).into());
        if !by_class {
            cells.extend([Cell::Null, run.hooks_failed.into()]);
        }
        cells.extend(further::cells(run, &further));
        cells.extend(metrics.iter().map(|column| Cell::from(column.read(&run.metrics, &run.plan_metrics))));
        cells
    };
    Sheet { columns, rows: Box::new(runs.iter().map(row)) }
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> Cell {
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| names.join(" ")).into()
}

/// Returns the column of a further axis. If another column has the axis's name, the prefix `axis_` is added.
pub(super) fn axis_column(axis: &str, others: &[Column]) -> Column {
    let taken = others.iter().any(|column| column.name == axis);
    let name = if taken { format!("axis_{axis}") } else { axis.to_owned() };
    let doc = format!("The cell's value on the axis {axis}.");
    Column { unit: "", ..Column::new(name, Kind::Text, doc).null("the axis does not apply") }
}

/// The columns for the run's plan and sweep. A run that belongs to two sweeps has a row for each of them.
pub(super) fn name_columns() -> Vec<Column> {
    let text = |name, doc| Column::new(name, Kind::Text, doc);
    vec![
        text("plan", "Name of the plan.").null("exported without one"),
        text("sweep", "Name of the sweep.").null("exported without a plan"),
    ]
}

/// The cells of the columns from `name_columns`.
pub(super) fn name_cells(plan: Option<&str>, sweep: Option<&str>) -> [Cell; 2] {
    [plan.map(str::to_owned).into(), sweep.map(str::to_owned).into()]
}

/// The columns of a run's labels; an axis with the same name as another column gets the prefix `axis_`.
pub(super) fn label_columns(axes: &[String], others: &[Column]) -> Vec<Column> {
    let text = |name, doc| Column::new(name, Kind::Text, doc);
    let mut columns = vec![
        text("endpoint", "Name of the endpoint in the plan."),
        text("model", "Name of the model in the plan."),
        text("scenario", "Name of the scenario in the plan."),
        Column::new(
            "batch_size",
            Kind::Int,
            "Requests in flight in a closed loop, or the in-flight cap of an open loop.",
        )
        .null("an open loop without a cap"),
        Column::new("qps", Kind::Float, "Declared arrivals per second.").null("a closed loop").label(),
    ];
    columns.extend(axes.iter().map(|axis| axis_column(axis, others)));
    columns.push(Column::new("repeat", Kind::Int, "Number of the repeat within its cell, from 0."));
    columns.push(text("run_id", "The full RunId."));
    columns.push(Column::new("attempt", Kind::Int, "Number of the attempt at the run, from 1."));
    columns
}

pub(super) fn label_cells(labels: &RunLabels, axes: &[String]) -> Vec<Cell> {
    let mut cells: Vec<Cell> = vec![
        labels.endpoint.clone().into(),
        labels.model.clone().into(),
        labels.scenario.clone().into(),
        labels.batch_size.into(),
        labels.qps.into(),
    ];
    cells.extend(axes.iter().map(|axis| Cell::from(labels.axes.get(axis).cloned())));
    cells.push(labels.repeat.into());
    cells.push(labels.run_id.clone().into());
    cells.push(labels.attempt.into());
    cells
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::analysis::synthetic::{Run, measured, verdict};
    use crate::analysis::{MeanTokens, PlanMetrics};
    use crate::export::facts::{DeclaredFacts, FoundHosts};
    use crate::export::sheet::tests::written;
    use crate::export::shown::{Choice, RUNS, Values};
    use crate::export::{Csv, Markdown, marked};
    use crate::plan::Validity;

    /// Returns a closed-loop run and an open-loop run; only the second has a further axis, `output_tokens`.
    pub(crate) fn runs() -> Vec<RunRow> {
        let make = |run: Run, axis: Option<&str>| {
            let (records, facts) = run.make();
            RunRow {
                plan: Some("demo".into()),
                sweep: Some("load".into()),
                labels: RunLabels {
                    run_id: format!("{:064x}", run.seed),
                    attempt: 1,
                    endpoint: "mock".into(),
                    model: "m".into(),
                    scenario: "B1".into(),
                    batch_size: run.batch_size,
                    qps: run.qps,
                    repeat: 0,
                    axes: axis.map(|value| ("output_tokens".to_string(), value.to_string())).into_iter().collect(),
                },
                class: None,
                started: "2026-11-21T12:00:00Z".into(),
                verdict: verdict(&records, &facts, &Validity::default(), None),
                metrics: measured(&records, &facts),
                plan_metrics: PlanMetrics::default(),
                slo: Vec::new(),
                hooks_failed: None,
                cost: None,
                tokens: MeanTokens::default(),
                found: FoundHosts::default(),
                declared: DeclaredFacts::default(),
                objective: None,
            }
        };
        vec![make(Run::default(), None), make(Run { seed: 2, ..Run::open(20.0) }, Some("16"))]
    }

    fn all(runs: &[RunRow]) -> Sheet<'_> {
        sheet(runs, &Further::of(runs, &[]), false)
    }

    #[test]
    fn labels_come_first_and_null_is_empty() {
        let runs = runs();
        let text = written(&Csv, all(&runs));
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers().unwrap().clone();
        let first: Vec<&str> = header.iter().take(16).collect();
        insta::assert_snapshot!(first.join(" "), @r#"plan sweep endpoint model scenario batch_size qps output_tokens repeat run_id attempt started analysis verdict reasons labels"#);
        let at = |name: &str| header.iter().position(|column| column == name).unwrap();
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!([&rows[0][at("qps")], &rows[0][at("batch_size")], &rows[1][at("qps")]], ["", "8", "20"]);
        assert_eq!([&rows[0][at("output_tokens")], &rows[1][at("output_tokens")]], ["", "16"]);
        assert_eq!([&rows[1][at("derived_server_throughput_tokens_per_s")], &rows[0][at("reasons")]], ["", ""]);
        assert!(rows[0][at("ttft_p50_ms")].parse::<f64>().unwrap() > 19.0);
        // The run's 215 requests are too few for p99.
        assert_eq!([&rows[1][at("ttft_p99_ms")], &rows[1][at("goodput_share")]], ["", ""]);
    }

    #[test]
    fn a_table_without_names_is_for_people() {
        let runs = runs();
        let further = Further::of(&runs, &[]);
        let telling = further.telling().collect();
        let values = Some(Values::of(all(&runs)));
        let choice = Choice { names: &RUNS, axes: &further.axes, limited: Vec::new(), telling, values };
        let table = marked(all(&runs));
        let places = choice.places(&table.columns);
        let text = written(&Markdown, table.keep(places));
        let cells =
            |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
        let lines: Vec<Vec<String>> = text.lines().map(cells).collect();
        insta::assert_snapshot!(lines[0].join(" "), @"sweep endpoint engine model scenario output_tokens batch_size qps repeat verdict requests arrived_rate_requests_per_s request_throughput_requests_per_s output_throughput_tokens_per_s ttft_p50_ms ttft_p50_low_ms ttft_p50_high_ms ttft_p99_ms ttft_p99_low_ms ttft_from_schedule_p99_ms tpot_p50_ms tpot_p50_low_ms tpot_p50_high_ms e2e_p50_ms e2e_p99_ms jitter_ratio failed run_id");
        let at = |row: usize, name: &str| &lines[row][lines[0].iter().position(|column| column == name).unwrap()];
        assert_eq!([at(2, "output_throughput_tokens_per_s"), at(2, "ttft_p99_ms")], ["1600", "20.96*"]);
        assert_eq!([at(3, "ttft_p99_ms"), at(3, "batch_size"), at(2, "qps")], ["n/a (n=215 of 368)", "n/a", "n/a"]);
        assert!(text.trim_end().ends_with("or no upper end)"), "{text}");
    }

    #[test]
    fn no_column_name_comes_twice() {
        let labels = RunLabels {
            axes: [("requests", "1"), ("temperature", "0")].map(|(k, v)| (k.into(), v.into())).into(),
            ..RunLabels::default()
        };
        let mut runs = runs();
        runs[0].labels = labels;
        let names: Vec<String> = all(&runs).columns.into_iter().map(|column| column.name).collect();
        let unique: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(unique.len(), names.len());
    }
}
