//! The columns of facts in a table of runs: columns that every table has, and columns that exist only if some
//! run has the fact, such as server flags.

use std::collections::BTreeSet;

use crate::analysis::slo::Answer;
use crate::plan::model::axis::SERVER_PREFIX;

use super::facts::{DeclaredFacts, FoundHosts, VERSION};
use super::run_row::{GivenUpRow, RunRow, axes};
use super::{Cell, Column, Kind};

/// Prefix of the columns for declared facts of the server: `declared.flags.max_num_seqs`,
/// `declared.tensor_parallel`.
const DECLARED: &str = "declared.";

/// Prefix of the columns for flags that the server reported: `read_back.max_model_len`.
const READ_BACK: &str = "read_back.";

/// Prefix of the columns that each count one kind of failure: `failed.http_500`.
const FAILED: &str = "failed.";

/// Prefix of the columns for metrics that the server reported: `server.requests_running_mean`.
const SERVER: &str = "server.";

/// Prefix of the columns for parts of latencies: `parts.ttft_queue_ms`.
const PARTS: &str = "parts.";

/// Prefix of a flag among the declared facts of a server.
const FLAGS: &str = "flags.";

/// Columns of facts that differ between runs only if the servers, models or requests differ. Tables show
/// these columns if they distinguish rows.
pub(crate) const TELLING: [&str; 19] = [
    "engine",
    "engine_version",
    "api",
    "gpu",
    "gpus",
    "model_id",
    "precision",
    "tokenizer",
    "prompt_length",
    "output_length",
    "price_per_hour",
    "currency",
    "objective_limits",
    "server_engine",
    "server_version",
    "served_model",
    "context_length",
    "client_gpus",
    "client_gpu_driver",
];

/// The columns that only some runs have: further axes, facts of servers, kinds of failures, server metrics
/// and parts of latencies. Lists of names are sorted by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Further {
    /// Further axes of the cells.
    pub(crate) axes: Vec<String>,
    declared: Vec<String>,
    read_back: Vec<String>,
    failures: Vec<String>,
    /// Metrics reported by servers, in the order of the canonical table: name, unit and meaning.
    server: Vec<(String, &'static str, String)>,
    /// Mean latencies and their parts, in canonical order.
    parts: Vec<(String, &'static str, String)>,
}

impl Further {
    /// Returns the columns that at least one of these runs has.
    pub(crate) fn of(runs: &[RunRow], given_up: &[GivenUpRow]) -> Further {
        let labels = runs.iter().map(|run| &run.labels).chain(given_up.iter().map(|run| &run.labels));
        let declared = runs.iter().map(|run| &run.declared).chain(given_up.iter().map(|run| &run.declared));
        let declared = declared.flat_map(|facts| facts.server.keys()).filter(|fact| *fact != VERSION);
        let read_back = runs.iter().flat_map(|run| run.found.server.flags.keys());
        let failures = runs.iter().flat_map(|run| &run.metrics.failures.0).map(|failure| failure.outcome.to_string());
        Further {
            axes: axes(labels),
            declared: sorted(declared.cloned()),
            read_back: sorted(read_back.cloned()),
            failures: sorted(failures),
            server: figures(runs),
            parts: parts(runs),
        }
    }

    /// The names of the columns that distinguish servers: declared facts, and flags that were read back.
    /// Declared flags that are axes are omitted, because they already have a column.
    pub(crate) fn telling(&self) -> impl Iterator<Item = String> {
        let is_axis = |fact: &str| {
            fact.strip_prefix(FLAGS).is_some_and(|flag| self.axes.contains(&format!("{SERVER_PREFIX}{flag}")))
        };
        let declared = self.declared.iter().filter(move |fact| !is_axis(fact)).map(|fact| of_declared(fact));
        declared.chain(self.read_back.iter().map(|flag| of_read_back(flag)))
    }

    fn columns(&self) -> Vec<Column> {
        let text = |name, doc, null| Column { unit: "", ..Column::new(name, Kind::Text, doc).null(null) };
        let declared = self.declared.iter().map(|fact| {
            let doc = format!("`{fact}` of the server as the plan declares it, adjusted by the cell.");
            text(of_declared(fact), doc, "not declared")
        });
        let read_back = self
            .read_back
            .iter()
            .map(|flag| text(of_read_back(flag), format!("`{flag}` as reported by the server."), "not reported"));
        let failures = self.failures.iter().map(|kind| {
            let doc = format!("Failed requests of the window that ended as {kind}.");
            let column = Column::new(format!("{FAILED}{kind}"), Kind::Int, doc);
            Column { unit: "", ..column.null("the run was given up") }
        });
        let server = self.server.iter().map(|(name, unit, doc)| {
            let column = Column::new(format!("{SERVER}{name}"), Kind::Float, doc.clone());
            Column { unit, ..column.null("not scraped, or a gap or a restart in the window") }
        });
        let parts = self.parts.iter().map(|(name, unit, doc)| {
            let column = Column::new(format!("{PARTS}{name}"), Kind::Float, doc.clone());
            Column { unit, ..column.null("neither scraped nor reported by responses, or unknown: see `show`") }
        });
        declared.chain(read_back).chain(failures).chain(server).chain(parts).collect()
    }

    fn cells(&self, declared: &DeclaredFacts, measured: Option<&RunRow>) -> Vec<Cell> {
        let flags = measured.map(|run| &run.found.server.flags);
        let facts = self.declared.iter().map(|fact| Cell::from(declared.server.get(fact).cloned()));
        let read_back = self.read_back.iter().map(|flag| Cell::from(flags.and_then(|flags| flags.get(flag)).cloned()));
        let failures = self.failures.iter().map(|kind| {
            let Some(run) = measured else { return Cell::Null };
            let failures = run.metrics.failures.0.iter().filter(|failure| failure.outcome.to_string() == *kind);
            Cell::from(failures.map(|failure| failure.count).sum::<u64>())
        });
        let server = self.server.iter().map(|(name, ..)| {
            let figure = measured.and_then(|run| run.metrics.server.iter().find(|figure| figure.name == *name));
            Cell::from(figure.and_then(|figure| figure.value.as_ref().ok().copied()))
        });
        let of_run: Vec<_> =
            measured.iter().flat_map(|run| &run.metrics.wholes).flat_map(|whole| whole.columns()).collect();
        let parts = self.parts.iter().map(|(name, ..)| {
            Cell::from(of_run.iter().find(|(other, ..)| other == name).and_then(|(.., value)| *value))
        });
        facts.chain(read_back).chain(failures).chain(server).chain(parts).collect()
    }
}

/// Returns the columns for the parts of latencies that at least one run has.
fn parts(runs: &[RunRow]) -> Vec<(String, &'static str, String)> {
    let mut parts: Vec<(String, &'static str, String)> = Vec::new();
    for (name, unit, doc, _) in runs.iter().flat_map(|run| &run.metrics.wholes).flat_map(|whole| whole.columns()) {
        if parts.iter().all(|(other, ..)| *other != name) {
            parts.push((name, unit, doc));
        }
    }
    parts
}

/// Returns the server metrics that at least one run has. The order is the same in all runs; additional
/// metrics of a later run are appended.
fn figures(runs: &[RunRow]) -> Vec<(String, &'static str, String)> {
    let mut figures: Vec<(String, &'static str, String)> = Vec::new();
    for figure in runs.iter().flat_map(|run| &run.metrics.server) {
        if figures.iter().all(|(name, ..)| *name != figure.name) {
            figures.push((figure.name.clone(), figure.unit.symbol(), figure.doc.clone()));
        }
    }
    figures
}

fn of_declared(fact: &str) -> String {
    format!("{DECLARED}{fact}")
}

fn of_read_back(flag: &str) -> String {
    format!("{READ_BACK}{flag}")
}

fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    names.collect::<BTreeSet<String>>().into_iter().collect()
}

/// Whether only some exports have a column with this name, because the column depends on the facts, failures
/// or metrics of the runs.
pub(crate) fn is_of_some(name: &str) -> bool {
    [DECLARED, READ_BACK, FAILED, SERVER, PARTS].iter().any(|start| name.starts_with(start))
}

/// Whether a column contains a fact of the run rather than a metric. A pivot includes a fact only if a
/// pattern selects it.
pub(crate) fn is_fact(name: &str) -> bool {
    let declared = DeclaredFacts::columns();
    declared.iter().any(|column| column.name == name) || name.starts_with(DECLARED) || name.starts_with(READ_BACK)
}

/// All columns of facts; the columns of `further` come last.
pub(crate) fn columns(further: &Further) -> Vec<Column> {
    let mut columns: Vec<Column> = FoundHosts::columns().into();
    columns.extend(DeclaredFacts::columns());
    columns.push(Column {
        unit: "s",
        ..Column::new("window_s", Kind::Float, "Length of the window in which requests were measured, in seconds.")
            .null("nothing was measured")
    });
    let answer = "Whether the plan's objective holds in this run alone: holds, misses or undecided. Over \
        repeats, `curves` decides.";
    columns.push(
        Column::new("objective", Kind::Text, answer)
            .null("no objective, the run does not count, was given up, or the row is a class"),
    );
    columns.extend(further.columns());
    columns
}

/// The cells of a run.
pub(crate) fn cells(run: &RunRow, further: &Further) -> Vec<Cell> {
    let mut cells: Vec<Cell> = run.found.cells().into();
    cells.extend(run.declared.cells());
    cells.push(run.metrics.flow.seconds.into());
    cells.push(run.objective.map(Answer::name).into());
    cells.extend(further.cells(&run.declared, Some(run)));
    cells
}

/// The cells of a run that was given up, with declared but no observed facts.
pub(crate) fn cells_of_given_up(run: &GivenUpRow, further: &Further) -> Vec<Cell> {
    let mut cells: Vec<Cell> = FoundHosts::columns().iter().map(|_| Cell::Null).collect();
    cells.extend(run.declared.cells());
    cells.extend([Cell::Null, Cell::Null]);
    cells.extend(further.cells(&run.declared, None));
    cells
}
