//! `run --markdown FILE` writes the results, the decisions based on them, and the gate's verdict, for
//! a pull request.

use std::path::Path;

use super::gate::Gate;
use super::replace::{begins_with, cannot_write, replace};
use super::stages;
use super::workspace::Workspace;
use crate::cli::failure::Failure;
use crate::expand::{GateState, GateValue, Pending, Waits};
use crate::report::comparison;
use crate::report::format::escaped;

/// The first line of every file that `--markdown` writes.
const HEAD: &str = "<!-- written by sweepline run --markdown -->";

/// Fails if a file that `--markdown` did not write would be overwritten.
pub(super) fn check(path: &Path) -> Result<(), Failure> {
    let is_free = std::fs::metadata(path).map_or(true, |found| !found.is_file() || found.len() == 0);
    if is_free || begins_with(path, |text| text.starts_with(HEAD)) {
        return Ok(());
    }
    let text =
        format!("--markdown: {} already exists and was not written by --markdown: choose another name", path.display());
    Err(Failure::Usage(text))
}

/// Writes the page.
pub(super) fn write(path: &Path, workspace: &Workspace, found: (&Gate, &[Pending])) -> Result<(), Failure> {
    let text = text(workspace, found);
    replace(path, |out| out.write_all(text.as_bytes())).map_err(|error| cannot_write(Some(path), &error))
}

fn text(workspace: &Workspace, (gate, waiting): (&Gate, &[Pending])) -> String {
    let plan = workspace.plan();
    let mut out = format!("{HEAD}\n### {}: {}\n", escaped(&plan.name), verdict(gate, waiting));
    out.push_str(&gates(&gate.gates));
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
    list("What follows", stages::all_taken(workspace).into_iter().chain(stages::pending(waiting)).collect());
    if let Some(compared) = &gate.comparison {
        out.push_str(&format!("\n{}", comparison::markdown(compared)));
    }
    out
}

/// Returns a table of the values that the gates of the plan's sweeps use, compared with their bounds; empty
/// if no sweep has a gate.
fn gates(gates: &[GateState]) -> String {
    if gates.is_empty() {
        return String::new();
    }
    let row = |cells: [&str; 7]| format!("| {} |\n", cells.map(escaped).join(" | "));
    let mut out = "\n**Gates**\n\n| gate of | source | metric | value | 95 % interval | bound | answer |\n".to_owned();
    out.push_str("|---|---|---|---|---|---|---|\n");
    for GateState { sweep, bound, values, answer } in gates {
        if values.is_empty() {
            out.push_str(&row([sweep, "found nothing", "", "n/a", "n/a", bound, answer.words()]));
        }
        for GateValue { of, metric, value, interval, note, answer, .. } in values {
            let value = match (value, note) {
                (Some(value), Some(note)) => format!("{value} ({note})"),
                (Some(one), None) | (None, Some(one)) => one.clone(),
                (None, None) => "n/a".to_owned(),
            };
            let interval = interval.as_deref().unwrap_or("n/a");
            out.push_str(&row([sweep, of, metric, &value, interval, bound, answer.words()]));
        }
    }
    out
}

/// Returns the overall verdict. A failure takes precedence over missing results, and missing results take
/// precedence over undecided questions.
fn verdict(gate: &Gate, waiting: &[Pending]) -> &'static str {
    let is_so = |state: Waits| waiting.iter().any(|pending| pending.state == state);
    if !gate.missed.is_empty() || is_so(Waits::Stopped) {
        "the gate failed"
    } else if is_so(Waits::Pending) || is_so(Waits::Blocked) {
        "not everything could be measured"
    } else if gate.is_undecided() || is_so(Waits::Undecided) {
        "the gate is undecided"
    } else {
        "the gate passed"
    }
}
