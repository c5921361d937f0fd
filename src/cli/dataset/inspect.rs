//! `sweepline dataset inspect` shows the format and contents of a file.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::source::{Source, each, left_out};
use crate::cli::dataset::source::failure;
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::TextOrJson;
use crate::cli::output;
use crate::dataset::{Figures, Skipped, Summarizer, Summary, digest};
use crate::report::format::{digits, plain};
use crate::report::grid::{grid, lines};

/// The arguments of `dataset inspect`.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    source: Source,
    /// Text for people, or JSON for programs
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
}

/// The description of a file.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Inspection {
    /// The file, as named on the command line.
    file: String,
    /// The format of its entries, like sharegpt.
    format: String,
    /// The container format, like `JSON lines`.
    container: &'static str,
    /// The size of the file, in bytes.
    bytes: u64,
    /// SHA-256 of the file's bytes, in hexadecimal.
    sha256: String,
    #[serde(flatten)]
    summary: Summary,
    /// Entries that are not valid records, by reason.
    left_out: Skipped,
}

/// Maximum number of languages listed in text.
const MOST_LANGUAGES: usize = 12;

/// Reads the file and prints its contents.
pub(crate) fn run(args: &InspectArgs) -> Result<Exit, Failure> {
    let file = &args.source.file;
    let mut dataset = args.source.open()?;
    let mut summarizer = Summarizer::default();
    each(&mut dataset, |record| {
        summarizer.add(&record);
        Ok(())
    })?;
    let inspection = Inspection {
        file: file.display().to_string(),
        format: dataset.format().to_string(),
        container: dataset.container(),
        bytes: std::fs::metadata(file).map_err(|error| Failure::Unexpected(error.into()))?.len(),
        sha256: digest(file).map_err(failure)?,
        summary: summarizer.finish(),
        left_out: dataset.skipped().clone(),
    };
    match args.format {
        TextOrJson::Json => output::json(&inspection)?,
        TextOrJson::Text => output::print(&text(&inspection))?,
    }
    Ok(Exit::Done)
}

fn text(inspection: &Inspection) -> String {
    let Inspection { file, format, container, bytes, sha256, summary, left_out: skipped } = inspection;
    let mut out = format!("{}: {format}, {container}, {bytes} bytes\nsha256 {sha256}\n\n", plain(file));
    let Summary { records, requests, with_text, .. } = summary;
    out.push_str(&format!("{records} records with {requests} requests; {with_text} with text\n"));
    out.push_str(&figures(summary));
    out.push_str(&further(summary));
    if let Some(lines) = left_out(skipped) {
        out.push_str(&format!("\n{lines}\n"));
    }
    out
}

/// Properties that only some files have.
fn further(summary: &Summary) -> String {
    let mut out = String::new();
    if let Some(seconds) = summary.span_s {
        let rate = if seconds > 0.0 {
            format!(", {} records/s", digits(summary.records as f64 / seconds))
        } else {
            String::new()
        };
        out.push_str(&format!("times: {} s from first to last{rate}\n", digits(seconds)));
    }
    if let Some(conversations) = summary.conversations {
        out.push_str(&format!("conversations named by records: {conversations}\n"));
    }
    if let Some(blocks) = summary.blocks {
        out.push_str(&format!("distinct blocks of 512 tokens: {blocks}\n"));
    }
    if !summary.languages.is_empty() {
        out.push_str(&languages(summary));
    }
    if out.is_empty() { out } else { format!("\n{out}") }
}

/// Returns one line for each quantity.
fn figures(summary: &Summary) -> String {
    let mut table = grid(["", "records", "min", "p50", "mean", "p90", "p99", "max", ""]);
    let rows = [
        ("requests of a record", &summary.turns, false),
        ("prompt tokens", &summary.prompt_tokens, true),
        ("output tokens", &summary.output_tokens, true),
    ];
    for (name, figures, is_estimate) in rows {
        let Some(Figures { records, min, p50, mean, p90, p99, max, declared }) = figures else { continue };
        let how = match (is_estimate, declared) {
            (false, _) => String::new(),
            (true, 0) => "estimated: characters / 4".to_owned(),
            (true, declared) if declared == records => "declared by the file".to_owned(),
            (true, declared) => format!("{declared} declared by the file, the others characters / 4"),
        };
        let numbers = [*records, u64::from(*min), u64::from(*p50)].map(|number| number.to_string());
        let high = [p90, p99, max].map(u32::to_string);
        let row = [name.to_owned()].into_iter().chain(numbers).chain([digits(*mean)]).chain(high).chain([how]);
        table.add_row(row.collect::<Vec<_>>());
    }
    let lines = lines(table);
    if lines.len() > 1 { format!("\n{}\n", lines.join("\n")) } else { String::new() }
}

fn languages(summary: &Summary) -> String {
    let mut languages: Vec<_> = summary.languages.iter().collect();
    languages.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let more = languages.len().saturating_sub(MOST_LANGUAGES);
    languages.truncate(MOST_LANGUAGES);
    let named: Vec<String> = languages.iter().map(|(name, count)| format!("{} {count}", plain(name))).collect();
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("languages as declared: {}{more}\n", named.join(", "))
}
