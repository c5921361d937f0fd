//! `sweepline check PLAN…`: is it a plan? Builds no cells.

use std::path::PathBuf;

use clap::Args;

use crate::plan::{self, Code, Report};

use super::{Colour, Exit, Failure, TextOrJson, output};

/// The arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Plan files, YAML or TOML
    #[arg(required = true, value_name = "PLAN")]
    plans: Vec<PathBuf>,
    /// Text for people, or JSON for editors and CI
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
    #[command(flatten)]
    pub colour: Colour,
}

/// The text of `schemas/check.schema.json`.
pub fn schema_text() -> String {
    super::schema::text_of::<Report>("sweepline check --format json")
}

/// Checks every plan and shows all mistakes of all of them.
pub fn run(args: CheckArgs) -> Result<Exit, Failure> {
    let mut exit = Exit::Done;
    let mut report = Report { diagnostics: Vec::new() };
    let mut first: Option<Code> = None;
    for path in &args.plans {
        match (plan::load(path), args.format) {
            (Ok(_), TextOrJson::Text) => output::print(&format!("{}: ok", path.display()))?,
            (Ok(_), TextOrJson::Json) => {}
            (Err(errors), format) => {
                exit = Exit::Usage;
                first = first.or(errors.diagnostics.first().map(|one| one.code));
                match format {
                    TextOrJson::Text => {
                        let stderr = std::io::stderr();
                        output::complain(&errors.render(args.colour.on(&stderr)));
                    }
                    TextOrJson::Json => report.diagnostics.extend(errors.json()),
                }
            }
        }
    }
    match (args.format, first) {
        (TextOrJson::Json, _) => output::json(&report)?,
        (TextOrJson::Text, Some(code)) => output::complain(&format!("\n`sweepline explain {code}` says more")),
        (TextOrJson::Text, None) => {}
    }
    Ok(exit)
}
