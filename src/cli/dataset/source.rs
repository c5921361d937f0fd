//! The input file of a command, and how to read it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::failure::Failure;
use crate::cli::stderr;
use crate::dataset::{
    Dataset, DatasetError, Field, Filter, Format, Mapping, OnBad, Options, Range, Record, Skipped, TimeUnit,
};
use crate::report::format::plain;

/// The flags that select the input file of a command, and how the file is read.
#[derive(Debug, Args)]
pub(crate) struct Source {
    /// A data set, log or trace: JSON, JSON lines, CSV or Parquet, detected by content
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Format of the entries; by default detected from the first entry
    #[arg(long = "as", value_enum, value_name = "FORMAT")]
    shape: Option<Shape>,
    /// The meaning of columns, like prompt=question,output=reply; a dot selects a field of an object.
    /// Fields: prompt, output, system, messages, input_tokens, output_tokens, time, hash_ids, conversation,
    /// id, language
    #[arg(long, value_name = "FIELD=COLUMN", value_delimiter = ',', value_parser = column)]
    map: Vec<(Field, String)>,
    /// Unit of a mapped numeric time column; dates need no unit
    #[arg(long, value_enum, default_value = "s")]
    time_unit: Unit,
    /// Skip entries that violate the format, and count them
    #[arg(long)]
    skip_bad: bool,
    /// Maximum size of an entry (line, element of an array, row), in bytes
    #[arg(long, value_name = "BYTES", default_value = "10MB", value_parser = bytes)]
    max_entry: usize,
    #[command(flatten)]
    filter: Kept,
}

/// The filters for records.
#[derive(Debug, Args)]
struct Kept {
    /// Keep prompts with this many tokens, like 100..4000; if the file does not declare the number, it is
    /// estimated as characters / 4
    #[arg(long, value_name = "RANGE", help_heading = "Filters")]
    prompt_tokens: Option<Range>,
    /// Keep prompts with this many characters
    #[arg(long, value_name = "RANGE", help_heading = "Filters")]
    prompt_chars: Option<Range>,
    /// Keep outputs with this many tokens; if the file does not declare the number, it is estimated as
    /// characters / 4
    #[arg(long, value_name = "RANGE", help_heading = "Filters")]
    output_tokens: Option<Range>,
    /// Keep conversations with this many requests
    #[arg(long, value_name = "RANGE", help_heading = "Filters")]
    turns: Option<Range>,
    /// Keep records that the file declares to be in one of these languages; undeclared languages are not
    /// guessed
    #[arg(long, value_name = "LANGUAGE", value_delimiter = ',', help_heading = "Filters")]
    language: Vec<String>,
}

/// The format of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// ShareGPT conversations.
    Sharegpt,
    /// LongBench-v2.
    Longbench,
    /// OpenAssistant message trees.
    Oasst,
    /// Mooncake trace.
    Mooncake,
    /// BurstGPT trace.
    Burstgpt,
    /// Azure LLM inference trace, 2023 or 2024.
    Azure,
    /// Columns by name, see --map.
    Columns,
}

/// The unit of a time column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Unit {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
}

/// Parses a mapping like `prompt=question`.
fn column(text: &str) -> Result<(Field, String), String> {
    let wrong = || format!("`{text}` is not a mapping: write FIELD=COLUMN, like prompt=question");
    let (field, column) = text.split_once('=').filter(|(_, column)| !column.is_empty()).ok_or_else(wrong)?;
    Ok((field.trim().parse().map_err(|error| format!("{error}"))?, column.to_owned()))
}

/// Parses a size like `10MB`, `64MiB` or a plain number of bytes. Returns the size in bytes.
fn bytes(text: &str) -> Result<usize, String> {
    let wrong = || format!("`{text}` is not a size: write it like 10MB, 64MiB or 5000000");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match text[digits..].trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "GiB" => 1 << 30,
        _ => return Err(wrong()),
    };
    let number: usize = text[..digits].parse().map_err(|_| wrong())?;
    number.checked_mul(unit).filter(|bytes| *bytes > 0).ok_or_else(wrong)
}

impl Source {
    /// Returns the options set by the flags.
    fn options(&self) -> Options {
        let Kept { prompt_tokens, prompt_chars, output_tokens, turns, language } = &self.filter;
        Options {
            format: self.shape.map(|shape| match shape {
                Shape::Sharegpt => Format::ShareGpt,
                Shape::Longbench => Format::LongBench,
                Shape::Oasst => Format::Oasst,
                Shape::Mooncake => Format::Mooncake,
                Shape::Burstgpt => Format::BurstGpt,
                Shape::Azure => Format::Azure,
                Shape::Columns => Format::Columns,
            }),
            mapping: Mapping {
                columns: self.map.iter().cloned().collect(),
                time_unit: match self.time_unit {
                    Unit::S => TimeUnit::S,
                    Unit::Ms => TimeUnit::Ms,
                    Unit::Us => TimeUnit::Us,
                    Unit::Ns => TimeUnit::Ns,
                },
            },
            on_bad: if self.skip_bad { OnBad::Skip } else { OnBad::Fail },
            most_bytes: self.max_entry,
            filter: Filter {
                prompt_chars: *prompt_chars,
                prompt_tokens: *prompt_tokens,
                output_tokens: *output_tokens,
                turns: *turns,
                languages: language.iter().cloned().collect(),
            },
        }
    }

    /// Opens the file.
    pub(crate) fn open(&self) -> Result<Dataset, Failure> {
        Dataset::open(&self.file, &self.options()).map_err(failure)
    }

    /// Returns an error if no record of the file was kept.
    pub(crate) fn need_some(&self, dataset: &Dataset) -> Result<(), Failure> {
        if dataset.kept() > 0 {
            return Ok(());
        }
        let left_out = left_out(dataset.skipped()).unwrap_or_default();
        let file = self.file.display();
        Err(Failure::Usage(format!("{file}: no records remain; check the filters and the skipped entries\n{left_out}")))
    }
}

/// Passes every record to `each`.
pub(crate) fn each(dataset: &mut Dataset, mut each: impl FnMut(Record) -> Result<(), Failure>) -> Result<(), Failure> {
    dataset.try_for_each(|record: Result<Record, DatasetError>| each(record.map_err(failure)?))
}

/// Returns the skipped entries, one line for each reason; `None` if nothing was skipped.
pub(crate) fn left_out(skipped: &Skipped) -> Option<String> {
    let line = |(reason, skips): (&crate::dataset::Reason, &crate::dataset::Skips)| {
        let (count, words, first) = (skips.count, reason.words(), skips.place());
        format!("skipped {count}: {words} (first at {first}: {})", plain(&skips.example))
    };
    let lines: Vec<String> = skipped.0.iter().map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Reports skipped entries on stderr.
pub(crate) fn tell_left_out(dataset: &Dataset) {
    if let Some(lines) = left_out(dataset.skipped()) {
        stderr::complain(&lines);
    }
}

/// Converts an error of a data set. A file that cannot be read counts as a usage error, whatever the cause.
pub(super) fn failure(error: DatasetError) -> Failure {
    Failure::Usage(error.to_string())
}
