//! Converts master files of InferenceX (formerly InferenceMAX). Each entry of a file is a model on a machine,
//! with sequence lengths, settings of the server and ladders of concurrency. An entry becomes scenarios,
//! closed loops, and an endpoint that is started with these settings. Source:
//! github.com/SemiAnalysisAI/InferenceX at 843c6254 (August 2026): `configs/CONFIGS.md`,
//! `utils/matrix_logic/`, `benchmarks/benchmark_lib.sh` and `utils/bench_serving/benchmark_serving.py`.

mod choice;
mod entry;
mod jobs;
mod ladder;
mod row;
mod server;

use super::draft::{Draft, Field};
use super::error::ImportError;
use super::importer::{Context, FileReader, Importer, Input};
use super::tables;
use super::text::{name_of, one_line, text_value};
use choice::Chosen;

/// The importer for master files.
pub(super) const IMPORTER: Importer = Importer {
    name: "inferencex",
    title: "InferenceX master file",
    takes: "the master files of InferenceX (YAML)",
    file: Some(FileReader { is, known: &[], read }),
    command: None,
};

/// Whether a file is a master file: a table that contains only entries.
fn is(input: &Input) -> bool {
    let Some(tree) = &input.tree else { return false };
    let entries = tree.children();
    let is_entry = |keys: &[&str]| keys.contains(&"model") && keys.contains(&"framework");
    tree.is_table() && !entries.is_empty() && entries.iter().all(|entry| is_entry(&entry.keys()))
}

fn read(input: &Input, context: &Context) -> Result<Draft, ImportError> {
    let chosen = Chosen::of(input.root(context)?, context)?;
    let mut jobs = Vec::new();
    for entry in &chosen.entries {
        jobs.extend(jobs::jobs(entry, context)?);
    }
    if jobs.is_empty() {
        return Err(ImportError::shape(input.name, "no entry remains that a plan can start", "see the reasons above"));
    }
    let mut draft = tables::draft(jobs, chosen.name(context), context.notes);
    let mut scripts: Vec<String> = Vec::new();
    for script in chosen.entries.iter().map(entry::Entry::script) {
        if !scripts.contains(&script) {
            scripts.push(script);
        }
    }
    let notes = format!(
        "InferenceX starts each entry by a script with further flags that are not in the master file: {}. Add them to \
         server.flags before you compare its numbers.",
        one_line(&scripts.join(", "))
    );
    draft.head.push(Field::new("notes", text_value(&notes), "missing from the master file"));
    Ok(draft)
}

impl Chosen<'_> {
    /// Returns the plan's name: the entry's name if there is only one entry, otherwise the patterns of
    /// `--entry` if there are any.
    fn name(&self, context: &Context) -> Field {
        match self.entries.as_slice() {
            [one] => Field::new("name", text_value(&name_of(one.key, "imported")), "the entry's name"),
            _ => match context.wishes.entries.as_slice() {
                [] => context.name.clone(),
                patterns => {
                    let words = patterns.join("-").replace(['*', '?'], "");
                    Field::new("name", text_value(&name_of(&words, "imported")), "--entry")
                }
            },
        }
    }
}
