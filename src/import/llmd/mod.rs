//! Converts workload profiles and experiment files of llm-d-benchmark. A profile is the input of a harness
//! (vllm bench serve, guidellm, inference-perf, AIPerf) with placeholders for the model and the server, and
//! is read by the importer for that tool. An experiment measures a profile several times with different
//! values. Source: github.com/llm-d/llm-d-benchmark at 8bc9f1dd (August 2026): `workload/README.md`,
//! `workload/harnesses/`, `llmdbenchmark/experiment/parser.py`.

mod experiment;
mod overrides;
mod profile;
mod refused;
mod setup;
mod together;
mod tokens;

use super::draft::Draft;
use super::error::ImportError;
use super::importer::{Context, FileReader, Importer, Input};
use profile::Made;

/// The importer for profiles and experiments.
pub(super) const IMPORTER: Importer = Importer {
    name: profile::NAME,
    title: "llm-d-benchmark",
    takes: "workload profiles and experiments of llm-d-benchmark (YAML)",
    file: Some(FileReader { is, known: &[], read }),
    command: None,
};

/// Whether a file is a profile (it has placeholders or a harness's keys), an experiment, or another known
/// file of llm-d-benchmark.
fn is(input: &Input) -> bool {
    let Some(tree) = &input.tree else { return false };
    let is_profile = tokens::has(input.text) || (tree.has(&["executable"]) && tree.has(&["model"]));
    tree.is_table() && (is_profile || experiment::is(tree) || refused::why(tree).is_some())
}

fn read(input: &Input, context: &Context) -> Result<Draft, ImportError> {
    let Some(tree) = &input.tree else { return Err(ImportError::unknown(input.name, "not YAML")) };
    if let Some(why) = refused::why(tree) {
        return Err(ImportError::shape(input.name, why, "import a workload profile, or an experiment that uses one"));
    }
    if experiment::is(tree) {
        return experiment::draft(input, context);
    }
    let made = profile::of_file(input, context)?;
    Ok(match made {
        Made::Jobs(jobs) => super::tables::draft(jobs, context.name.clone(), context.notes),
        Made::Draft(draft) => *draft,
    })
}
