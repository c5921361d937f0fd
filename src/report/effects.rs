//! Additions to the tables of a comparison: failed requests, and effects over all cells.

use comfy_table::Cell;

use crate::analysis::comparison::{CellAnswer, Family, Outcome, Pooled};

use super::estimate::{chance, interval, titled};
use super::format::{escaped, plain};
use super::grid::{self, right};

/// Heading of the effects over all cells.
const OVER_CELLS: &str = "over all cells, equally weighted";

/// The failed requests of a cell: `none of 3140 requests failed, and none of the baseline's 2997`.
pub(crate) fn guarded(cell: &CellAnswer) -> String {
    let guardrail = &cell.guardrail;
    let (arm, baseline) = (guardrail.arm, guardrail.baseline);
    if baseline.failed + arm.failed == 0 && guardrail.outcome != Outcome::Unknown {
        return format!("none of {} requests failed, and none of the baseline's {}", arm.requests, baseline.requests);
    }
    let p = guardrail.p.map(|p| format!(", p {}", chance(Some(p)))).unwrap_or_default();
    let mark = if guardrail.outcome == Outcome::Worse { "worse: " } else { "" };
    format!("{mark}{}{p}", guardrail.words)
}

/// The same sentence in Markdown.
pub(crate) fn guarded_markdown(cell: &CellAnswer) -> String {
    let mark = if cell.guardrail.outcome == Outcome::Worse { "**" } else { "" };
    format!("errors: {mark}{}{mark}", escaped(&guarded(cell)))
}

/// The effects over all cells, with one row for each arm and metric; empty if there are too few
/// cells.
pub(super) fn text(family: &Family) -> String {
    if family.pooled.is_empty() {
        return String::new();
    }
    let mut table = grid::table();
    let (arm, change) = (Cell::new("arm"), Cell::new("change, 95 %"));
    table.set_header([arm, Cell::new("metric"), right("cells"), change, Cell::new("on average")]);
    for one in &family.pooled {
        table.add_row([
            Cell::new(plain(&one.arm)),
            Cell::new(titled(&one.metric, one.unit)),
            right(one.cells.to_string()),
            Cell::new(changed(one)),
            Cell::new(&one.words),
        ]);
    }
    format!("\n{OVER_CELLS}\n{}", grid::text(table, 2, &[0, 4]))
}

/// The same table in Markdown.
pub(super) fn markdown(family: &Family) -> String {
    if family.pooled.is_empty() {
        return String::new();
    }
    let mut out =
        format!("\n**{OVER_CELLS}**\n\n| arm | metric | cells | change, 95 % | on average |\n|---|---|--:|---|---|\n");
    for one in &family.pooled {
        let (arm, metric) = (escaped(&one.arm), escaped(&titled(&one.metric, one.unit)));
        let (change, words) = (changed(one), escaped(&one.words));
        out.push_str(&format!("| {arm} | {metric} | {} | {change} | {words} |\n", one.cells));
    }
    out
}

fn changed(pooled: &Pooled) -> String {
    interval(pooled.of, [pooled.value, pooled.low, pooled.high])
}
