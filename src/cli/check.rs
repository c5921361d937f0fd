//! `sweepline check PLAN…` reports errors in plans, and methodology problems that make results misleading.
//! The cells of a plan are expanded only to check them against its budgets.

use std::path::{Path, PathBuf};

use clap::Args;

use super::changes::Changes;
use crate::cli::colour::Colour;
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::{Folder, TextOrJson};
use crate::cli::{budget, lints, output, stderr, undivided};
use crate::lint::{self, Lint};
use crate::plan::{Code, DataNote, Report, Severity, data_notes};
use crate::report::format::{fill, plain};
use crate::units::text::counted;

/// The arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Plan files, YAML or TOML
    #[arg(required = true, value_name = "PLAN")]
    plans: Vec<PathBuf>,
    /// Exit with 2 if the methodology lint reports a warning
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    changes: Changes,
    /// Text for people, or JSON for editors and CI
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    pub colour: Colour,
}

/// A plan without errors, with its lints and notes on its data sets.
type Linted<'a> = (&'a Path, Vec<Lint>, Vec<DataNote>);

/// Checks every plan and shows all errors of all plans, then the lints of the valid plans.
pub(super) fn run(args: CheckArgs) -> Result<Exit, Failure> {
    let mut report = Report { diagnostics: Vec::new() };
    let mut linted: Vec<Linted> = Vec::new();
    let mut first: Option<Code> = None;
    for path in &args.plans {
        let loaded = args.changes.load(path).and_then(|loaded| {
            match budget::refused(&loaded).or_else(|| undivided::refused(&loaded)) {
                Some(errors) => Err(errors),
                None => Ok(loaded),
            }
        });
        match loaded {
            Ok(loaded) => linted.push((path, lints::of(&loaded, &args.folder), data_notes(&loaded.plan))),
            Err(errors) => {
                first = first.or(errors.diagnostics.first().map(|one| one.code));
                match args.format {
                    TextOrJson::Text => stderr::complain(&errors.render(args.colour.on(&std::io::stderr()))),
                    TextOrJson::Json => report.diagnostics.extend(errors.json()),
                }
            }
        }
    }
    match (args.format, first) {
        (TextOrJson::Json, _) => {
            let of =
                |(path, lints, _): &Linted| lints.iter().map(|lint| lints::finding(lint, path)).collect::<Vec<_>>();
            report.diagnostics.extend(linted.iter().flat_map(of));
            output::json(&report)?;
        }
        (TextOrJson::Text, first) => {
            if let Some(code) = first {
                stderr::complain(&format!("\n`sweepline explain {code}` has details"));
            }
            output::print(&text(&linted, args.colour.on(&std::io::stdout())))?;
        }
    }
    let warned = linted.iter().flat_map(|(_, lints, _)| lints).any(|lint| lint.severity == Severity::Warning);
    Ok(if first.is_some() || (args.strict && warned) { Exit::Usage } else { Exit::Done })
}

/// Returns the text about the valid plans: for each plan, the notes on its data sets and its lints; at the
/// end, the number of lints.
fn text(linted: &[Linted], colour: bool) -> String {
    let mut text = String::new();
    for (path, lints, notes) in linted {
        text.push_str(&format!("{}: ok\n", path.display()));
        for DataNote { scenario, used_for, words, .. } in notes {
            text.push_str(&fill("  ", 4, &plain(&format!("{used_for} of {scenario}: {words}"))));
        }
        if !lints.is_empty() {
            text.push_str(&format!("\n{}\n\n", lint::text(lints, colour)));
        }
    }
    let all: Vec<Lint> = linted.iter().flat_map(|(_, lints, _)| lints.clone()).collect();
    if let (Some(counts), Some(first)) = (lint::counts(&all), all.first()) {
        let (code, lints) = (first.code, counted(all.len(), "lint"));
        text.push_str(&format!(
            "{lints} ({counts}); details: sweepline explain {code}; to accept one: allow: [{{ code: {code}, because: … }}]\n"
        ));
    }
    text
}
