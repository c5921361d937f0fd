//! The section on verdicts: which runs are trustworthy, and why others are not.

use indexmap::IndexMap;

use super::super::sources::Sources;
use super::super::view::{Block, Cell, Found, Missing, Section, Table, tone};
use crate::analysis::verdict::Reason;
use crate::report::format::counts;

const TITLE: &str = "Verdicts";

/// Builds the section, or states why it is missing.
pub(crate) fn verdicts(sources: &Sources) -> Found {
    if sources.runs.is_empty() {
        return Err(Missing { title: TITLE, why: "no run has a result".to_owned() });
    }
    let mut states = Table::new("Runs by verdict", &["verdict", "runs#", "what it means"]);
    let all =
        sources.runs.iter().map(|run| run.verdict.state.name()).chain(sources.without.iter().map(|run| run.state));
    for (state, count) in counts(all) {
        states.rows.push(vec![Cell::toned(state, tone(state)), Cell::count(count as u64), Cell::text(meaning(state))]);
    }
    let mut blocks = vec![Block::Table { table: states }];
    let mut found: IndexMap<(&str, &str), (usize, &Reason)> = IndexMap::new();
    for run in &sources.runs {
        for reason in run.verdict.reasons.iter().chain(&run.verdict.labels) {
            found.entry((reason.name, reason.state.name())).or_insert((0, reason)).0 += 1;
        }
    }
    if found.is_empty() {
        blocks.push(Block::Text { text: "None of the measured runs has a reason against it.".to_owned() });
        return Ok(Section { id: "verdicts", title: TITLE, blocks });
    }
    let mut reasons = Table::new("Findings about runs", &["reason", "makes a run", "runs#", "in the first one"]);
    for ((name, state), (count, first)) in found {
        let cells =
            [Cell::text(name), Cell::toned(state, tone(state)), Cell::count(count as u64), Cell::text(&first.text)];
        reasons.rows.push(cells.into());
    }
    blocks.push(Block::Table { table: reasons });
    Ok(Section { id: "verdicts", title: TITLE, blocks })
}

fn meaning(state: &str) -> &'static str {
    match state {
        "valid" => "no reason against it",
        "suspect" => "used, with its reason",
        "invalid" => "listed, and excluded from every figure and answer",
        "given up" => {
            "no result: every attempt was spoiled, or its server does not start; a load that the server rejected misses the \
             objective"
        }
        "unreadable" => "its result is damaged or unreadable, and is excluded",
        _ => "no result yet",
    }
}
