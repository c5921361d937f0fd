//! Converts the inputs of AIPerf and its predecessor genai-perf: YAML configurations with their sweeps, and
//! the command lines `aiperf profile …`, `genai-perf profile …` and `genai-perf analyze …`. A command is
//! converted to the same tree as a file, so both share one reader. Sources: github.com/ai-dynamo/aiperf
//! (`src/aiperf/config/`, `docs/cli-options.md` of 0.13, September 2026) and
//! github.com/triton-inference-server/perf_analyzer (`genai-perf/genai_perf/parser.py`, 263c5f6e, December
//! 2025).

mod command;
mod content;
mod dataset;
mod env;
mod extra;
mod file;
mod genai_perf;
mod leaves;
mod lengths;
mod load;
mod once;
mod options;
mod run;
mod server;
mod shape;
#[cfg(test)]
mod tests;
mod variables;
mod variations;

use super::draft::Draft;
use super::error::ImportError;
use super::importer::{Asked, CommandReader, Context, FileReader, Importer, Input};
use super::job::Job;
use super::launch;
use super::tables;
use leaves::Ledger;

/// The importer for files and commands of AIPerf.
pub(super) const IMPORTER: Importer = Importer {
    name: "aiperf",
    title: "AIPerf",
    takes: "AIPerf configurations (YAML) and `aiperf profile` command lines",
    file: Some(FileReader { is, known: &[], read }),
    command: Some(CommandReader { arguments: command::aiperf, read: aiperf }),
};

/// The importer for commands of genai-perf.
pub(super) const GENAI_PERF: Importer = Importer {
    name: "genai-perf",
    title: "genai-perf",
    takes: "`genai-perf profile` and `genai-perf analyze` command lines",
    file: None,
    command: Some(CommandReader { arguments: genai_perf::arguments, read: genai_perf }),
};

/// Whether a file is an AIPerf configuration: it has a benchmark, or parts of one.
fn is(input: &Input) -> bool {
    let Some(tree) = &input.tree else { return false };
    let inside = tree.peek("benchmark").filter(|inside| inside.is_table());
    let parts = ["endpoint", "phases", "profiling", "dataset", "datasets"];
    let has = |key: &str| tree.peek(key).is_some() || inside.is_some_and(|inside| inside.peek(key).is_some());
    has("endpoint") && parts.iter().filter(|key| has(key)).count() >= 2
}

fn read(input: &Input, context: &Context) -> Result<Draft, ImportError> {
    let ledger = Ledger::new(context.notes);
    let tree = ledger.tree(input.root(context)?, "");
    let jobs = run::jobs(input.name, tree, &ledger, &context.around())?;
    ledger.close();
    if jobs.is_empty() {
        return Err(nothing(input.name, context));
    }
    Ok(tables::draft(jobs, context.name.clone(), context.notes))
}

/// Returns the error for a source with nothing that can be measured.
fn nothing(name: &str, context: &Context) -> ImportError {
    let why = super::write::reasons(&context.notes.listed.borrow());
    ImportError::nothing(name, context.notes.secrets.hide(&super::text::one_line(&why)))
}

fn aiperf(asked: &Asked, context: &Context) -> Result<Vec<Job>, ImportError> {
    let ledger = Ledger::new(context.notes);
    let tree = command::tree(asked, context, &ledger)?;
    finished(asked, context, tree, ledger)
}

fn genai_perf(asked: &Asked, context: &Context) -> Result<Vec<Job>, ImportError> {
    let ledger = Ledger::new(context.notes);
    let tree = genai_perf::tree(asked, &ledger)?;
    finished(asked, context, tree, ledger)
}

fn finished(asked: &Asked, context: &Context, tree: leaves::Tree, ledger: Ledger) -> Result<Vec<Job>, ImportError> {
    let mut jobs = run::jobs(&asked.place, tree, &ledger, asked.around)?;
    for job in &mut jobs {
        job.line = asked.command.line;
        launch::add(&mut job.endpoint.1, &job.model.1[0].value, asked.around, context.notes.at(job.line));
    }
    ledger.close();
    Ok(jobs)
}
