//! `sweepline verify`: every file of every committed run against its digest.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::store::{RunReport, State, Store};

use super::schema::text_of;
use super::{Exit, Failure, Folder, TextOrJson, output};

/// The arguments of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    folder: Folder,
    /// Text for people, or JSON for programs
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
}

/// Every committed run against its digests.
#[derive(Debug, Serialize, JsonSchema)]
struct Document<'a> {
    /// Each run of the folder.
    runs: Vec<OneRun<'a>>,
}

/// One run.
#[derive(Debug, Serialize, JsonSchema)]
struct OneRun<'a> {
    /// The name of its folder: the beginning of its id.
    id: &'a str,
    /// Whether nothing is wrong with any of its files.
    whole: bool,
    /// Its files.
    files: Vec<OneFile<'a>>,
}

/// One file of a run.
#[derive(Debug, Serialize, JsonSchema)]
struct OneFile<'a> {
    /// Its name.
    name: &'a str,
    /// What is wrong with it; null where nothing is.
    problem: Option<&'a str>,
}

/// The schema, as text.
pub fn schema_text() -> String {
    text_of::<Document>("sweepline verify --format json")
}

impl<'a> OneRun<'a> {
    fn of(report: &'a RunReport) -> OneRun<'a> {
        let files = report.files.iter().map(|file| OneFile { name: &file.name, problem: file.problem.as_deref() });
        OneRun { id: &report.id, whole: report.is_whole(), files: files.collect() }
    }
}

/// Reads every file, says what is wrong, and exits 5 where anything is.
pub fn run(args: VerifyArgs) -> Result<Exit, Failure> {
    args.folder.must_exist()?;
    let store = Store::open(&args.folder.results);
    let reports = store.verify(|_| {})?;
    let bad = reports.iter().filter(|report| !report.is_whole()).count();
    match args.format {
        TextOrJson::Text => {
            for report in reports.iter().filter(|report| !report.is_whole()) {
                for file in &report.files {
                    if let Some(problem) = &file.problem {
                        output::print(&format!("{} {}: {problem}", report.id, file.name))?;
                    }
                }
            }
            let rest = if bad == 0 { "all whole".to_owned() } else { format!("{bad} damaged") };
            output::print(&format!("{} runs in {}: {rest}", reports.len(), args.folder.results.display()))?;
            for line in remedies(&store, &reports, &args.folder.typed())? {
                output::print(&line)?;
            }
        }
        TextOrJson::Json => output::json(&Document { runs: reports.iter().map(OneRun::of).collect() })?,
    }
    Ok(if bad == 0 { Exit::Done } else { Exit::Store })
}

/// What to do about the damage: a sweep looks at `run.json` and sizes only, so other damage needs to be forced.
fn remedies(store: &Store, reports: &[RunReport], folder: &str) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    let mut hidden = Vec::new();
    let mut plain = 0;
    for report in reports.iter().filter(|report| !report.is_whole()) {
        match store.run(&report.id)? {
            Some(listed) if listed.state == State::Whole => hidden.push(format!("'{}'", report.id)),
            _ => plain += 1,
        }
    }
    if plain > 0 {
        lines.push(format!(
            "`sweepline run PLAN{folder}` does {plain} of them again, as their run.json or sizes are wrong"
        ));
    }
    if !hidden.is_empty() {
        let (count, ids) = (hidden.len(), hidden.join(", "));
        lines.push(format!(
            "`sweepline run PLAN{folder} --force --only \"id[:16] in [{ids}]\"` does {count} of them again"
        ));
    }
    Ok(lines)
}
