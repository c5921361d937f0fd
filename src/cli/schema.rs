//! `sweepline schema` prints the formats of plans, JSON outputs and Parquet files, generated from
//! the types.

use clap::{Args, ValueEnum};
use schemars::JsonSchema;

use crate::analysis::comparison::Comparison;
use crate::cli::cluster::{batch, cancel, status};
use crate::cli::dataset::inspect::Inspection;
use crate::cli::diff::show::Diff;
use crate::cli::failure::{Exit, Failure};
use crate::cli::preview::entries::Preview;
use crate::cli::{calibrate, capacity, curves, decide, diagnose, list, output, probe, show, transfer, verify, why};
use crate::dataset::profile::Profile;
use crate::graph::drawn::Drawing;
use crate::plan::Report;
use crate::report::progress::{EventLine, LiveFile, ProgressLine};

/// The arguments of `schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// What to print
    #[arg(value_enum, default_value = "plan")]
    what: What,
}

/// What can be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// The JSON Schema of plans (schemas/plan.schema.json).
    Plan,
    /// The JSON Schema of `check --format json` (schemas/check.schema.json).
    Check,
    /// The meaning of the Parquet columns (schemas/columns.md).
    Columns,
    /// The JSON Schema of `preview --format json` (schemas/preview.schema.json).
    Preview,
    /// The JSON Schema of `diff --format json` (schemas/diff.schema.json).
    Diff,
    /// The JSON Schema of `compare --format json` (schemas/compare.schema.json).
    Compare,
    /// The JSON Schema of `show --format json` (schemas/show.schema.json).
    Show,
    /// The JSON Schema of `export --format json`, with every column (schemas/export.schema.json).
    Export,
    /// The JSON Schema of the profiles that `dataset profile` writes (schemas/profile.schema.json).
    Profile,
    /// The JSON Schema of `curves --format json` (schemas/curves.schema.json).
    Curves,
    /// The JSON Schema of `capacity --format json` (schemas/capacity.schema.json).
    Capacity,
    /// The JSON Schema of `decide --format json` (schemas/decide.schema.json).
    Decide,
    /// The JSON Schema of `diagnose --format json` (schemas/diagnose.schema.json).
    Diagnose,
    /// The JSON Schema of `list --format json` (schemas/list.schema.json).
    List,
    /// The JSON Schema of `why --format json` (schemas/why.schema.json).
    Why,
    /// The JSON Schema of `verify --format json` (schemas/verify.schema.json).
    Verify,
    /// The JSON Schema of `push --format json` and of `pull --format json` (schemas/transfer.schema.json).
    Transfer,
    /// The JSON Schema of `probe --format json` (schemas/probe.schema.json).
    Probe,
    /// The JSON Schema of `calibrate --format json` (schemas/calibrate.schema.json).
    Calibrate,
    /// The JSON Schema of a line of `run --progress json` (schemas/progress.schema.json).
    Progress,
    /// The JSON Schema of a line in the file of `run --events` (schemas/events.schema.json).
    Events,
    /// The JSON Schema of `graph --format json` (schemas/graph.schema.json).
    Graph,
    /// The JSON Schema of `dataset inspect --format json` (schemas/inspect.schema.json).
    Inspect,
    /// The JSON Schema of `submit --format json` (schemas/submit.schema.json).
    Submit,
    /// The JSON Schema of `status --format json` (schemas/status.schema.json).
    Status,
    /// The JSON Schema of `cancel --format json` (schemas/cancel.schema.json).
    Cancel,
    /// The JSON Schema of live.json, which a running sweep keeps in the results folder (schemas/live.schema.json)
    Live,
}

impl What {
    fn text(self) -> String {
        match self {
            What::Plan => crate::plan::schema_text(),
            What::Check => text_of::<Report>("sweepline check --format json"),
            What::Columns => crate::rows::columns_markdown(),
            What::Preview => text_of::<Preview>("what sweepline preview --format json prints"),
            What::Diff => text_of::<Diff>("what sweepline diff --format json prints"),
            What::Compare => text_of::<Comparison>("what sweepline compare --format json prints"),
            What::Show => text_of::<show::document::Document>("sweepline show --format json"),
            What::Export => crate::export::schema::text(),
            What::Profile => text_of::<Profile>("sweepline profile"),
            What::Curves => text_of::<curves::document::Document>("sweepline curves --format json"),
            What::Capacity => text_of::<capacity::document::Document>("sweepline capacity --format json"),
            What::Decide => text_of::<decide::document::Document>("sweepline decide --format json"),
            What::Diagnose => text_of::<diagnose::document::Document>("sweepline diagnose --format json"),
            What::List => text_of::<list::Document>("sweepline list --format json"),
            What::Why => text_of::<why::Document>("sweepline why --format json"),
            What::Verify => text_of::<verify::Document>("sweepline verify --format json"),
            What::Transfer => text_of::<transfer::document::Document>("sweepline push or pull --format json"),
            What::Probe => text_of::<probe::Document>("sweepline probe --format json"),
            What::Calibrate => text_of::<calibrate::Document>("sweepline calibrate --format json"),
            What::Progress => text_of::<ProgressLine>("a line of sweepline run --progress json"),
            What::Events => text_of::<EventLine>("a line of the file of sweepline run --events"),
            What::Graph => text_of::<Drawing>("sweepline graph --format json"),
            What::Inspect => text_of::<Inspection>("sweepline dataset inspect --format json"),
            What::Submit => text_of::<batch::Document>("sweepline submit --format json"),
            What::Status => text_of::<status::Document>("sweepline status --format json"),
            What::Cancel => text_of::<cancel::Document>("sweepline cancel --format json"),
            What::Live => text_of::<LiveFile>("live.json of a results folder"),
        }
    }
}

/// Returns the JSON Schema (draft 2020-12) of a command's output, generated from its type.
fn text_of<T: JsonSchema>(title: &str) -> String {
    let generator = schemars::generate::SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// Prints a schema.
pub(super) fn run(args: SchemaArgs) -> Result<Exit, Failure> {
    output::print(&args.what.text())?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::{Command, CommandFactory, ValueEnum};

    use super::What;

    /// `SWEEPLINE_BLESS=1 cargo test --lib` regenerates the files.
    #[test]
    fn schemas_of_output_in_the_repository_are_current() {
        // The schemas of plans, columns and exports are tested where they are generated.
        let elsewhere = [What::Plan, What::Columns, What::Export];
        for what in What::value_variants().iter().filter(|what| !elsewhere.contains(what)) {
            let name = what.to_possible_value().expect("none is hidden").get_name().to_owned();
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("schemas/{name}.schema.json"));
            let text = what.text();
            if std::env::var_os("SWEEPLINE_BLESS").is_some() {
                std::fs::write(&path, &text).expect("the schema can be written");
            }
            assert_eq!(
                std::fs::read_to_string(&path).unwrap_or_default(),
                text,
                "{name}: run it with SWEEPLINE_BLESS=1"
            );
        }
    }

    /// Returns the names of the commands that take `--format json`.
    fn in_json(command: &Command) -> Vec<String> {
        let formats = command.get_arguments().filter(|arg| arg.get_id() == "format");
        let is = formats.flat_map(|arg| arg.get_possible_values()).any(|value| value.get_name() == "json");
        let own = is.then(|| command.get_name().to_owned());
        own.into_iter().chain(command.get_subcommands().flat_map(in_json)).collect()
    }

    #[test]
    fn every_answer_in_json_has_a_schema() {
        let names = in_json(&crate::cli::Cli::command());
        assert!(names.len() > 10, "{names:?}");
        // `push` and `pull` print the same document.
        let schema = |name: &str| if matches!(name, "push" | "pull") { "transfer".to_owned() } else { name.to_owned() };
        let lacking: Vec<&String> = names.iter().filter(|name| What::from_str(&schema(name), false).is_err()).collect();
        assert!(lacking.is_empty(), "{lacking:?}");
    }
}
