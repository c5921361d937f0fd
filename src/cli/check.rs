//! `sweepline check PLAN…`: is it a plan? Builds no cells.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::changes::Changes;
use super::{Colour, Exit, Failure, TextOrJson, output};

/// The arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Plan files, YAML or TOML
    #[arg(required = true, value_name = "PLAN")]
    plans: Vec<PathBuf>,
    #[command(flatten)]
    changes: Changes,
    /// Text for people, or JSON for editors and CI
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
    #[command(flatten)]
    pub colour: Colour,
}

/// Checks every plan and shows all mistakes of all of them.
pub fn run(args: CheckArgs) -> Result<Exit, Failure> {
    let mut exit = Exit::Done;
    let mut found: Vec<serde_json::Value> = Vec::new();
    for path in &args.plans {
        match (args.changes.load(path), args.format) {
            (Ok(_), TextOrJson::Text) => output::print(&format!("{}: ok", path.display()))?,
            (Ok(_), TextOrJson::Json) => {}
            (Err(errors), format) => {
                exit = Exit::Usage;
                match format {
                    TextOrJson::Text => {
                        let stderr = std::io::stderr();
                        output::complain(&errors.render(args.colour.on(&stderr)));
                    }
                    TextOrJson::Json => found.extend(errors.json().iter().map(|one| json!(one))),
                }
            }
        }
    }
    if args.format == TextOrJson::Json {
        output::json(&json!({ "diagnostics": found }))?;
    }
    Ok(exit)
}
