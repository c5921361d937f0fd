//! `run --markdown FILE`: what was found, what followed from it and what the gate says, for a pull request.

use std::path::Path;

use super::gate::Gate;
use super::replace::{begins_with, cannot_write, replace};
use super::stages;
use super::workspace::Workspace;
use crate::cli::failure::Failure;
use crate::expand::Waits;
use crate::report::comparison;
use crate::report::format::escaped;

/// How such a file begins.
const HEAD: &str = "<!-- written by sweepline run --markdown -->";

/// Refuses to overwrite what is no such file.
pub(super) fn check(path: &Path) -> Result<(), Failure> {
    let is_free = std::fs::metadata(path).map_or(true, |found| !found.is_file() || found.len() == 0);
    if is_free || begins_with(path, |text| text.starts_with(HEAD)) {
        return Ok(());
    }
    let text = format!("--markdown: {} already exists and is no such page: choose another name", path.display());
    Err(Failure::Usage(text))
}

/// Writes the page.
pub(super) fn write(path: &Path, workspace: &Workspace, gate: &Gate) -> Result<(), Failure> {
    let text = text(workspace, gate);
    replace(path, |out| out.write_all(text.as_bytes())).map_err(|error| cannot_write(Some(path), &error))
}

fn text(workspace: &Workspace, gate: &Gate) -> String {
    let plan = workspace.plan();
    let mut out = format!("{HEAD}\n### {}: {}\n", escaped(&plan.name), verdict(workspace, gate));
    let mut list = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            let lines: String = lines.iter().map(|line| format!("- {}\n", escaped(line))).collect();
            out.push_str(&format!("\n**{title}**\n\n{lines}"));
        }
    };
    list("Missed", gate.missed.clone());
    list("Undecided", gate.undecided.iter().chain(&gate.untested).cloned().collect());
    list("Excluded", gate.excluded.clone());
    let found = workspace.expansion.pools.iter().zip(&workspace.chosen);
    list("Found", found.map(|(pool, chosen)| format!("{}: {chosen}", pool.title())).collect());
    list("What follows", stages::all_taken(workspace).into_iter().chain(stages::pending(workspace)).collect());
    if let Some(compared) = &gate.comparison {
        out.push_str(&format!("\n{}", comparison::markdown(compared)));
    }
    out
}

/// What it comes to, in the order of exit codes.
fn verdict(workspace: &Workspace, gate: &Gate) -> &'static str {
    let is_so = |state| workspace.expansion.pending.iter().any(|pending| pending.state == state);
    if !gate.missed.is_empty() || is_so(Waits::Stopped) {
        "the gate says no"
    } else if is_so(Waits::Pending) || is_so(Waits::Blocked) {
        "not all of it could be measured"
    } else if gate.is_undecided() || is_so(Waits::Undecided) {
        "the gate cannot tell"
    } else {
        "nothing is missed"
    }
}
