//! Additions to the tables of a comparison: failed requests, and effects over all cells.

use comfy_table::Cell;

use crate::analysis::comparison::{CellAnswer, Family, MarginAnswer, Outcome, Pooled};

use super::estimate::{chance, interval, titled};
use super::format::{escaped, plain};
use super::grid::{self, right};

/// Heading of the effects over all cells.
pub(crate) const OVER_CELLS: &str = "over all cells, equally weighted";

/// Describes the failed requests of a cell: `none of 3140 requests failed, and none of the baseline's 2997`.
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

/// Returns the same sentence as [`guarded`], in Markdown.
pub(crate) fn guarded_markdown(cell: &CellAnswer) -> String {
    let mark = if cell.guardrail.outcome == Outcome::Worse { "**" } else { "" };
    format!("errors: {mark}{}{mark}", escaped(&guarded(cell)))
}

/// Returns a table of the effects over all cells, with one row for each arm and metric; empty if there are
/// too few cells.
pub(super) fn text(family: &Family) -> String {
    if family.pooled.is_empty() {
        return String::new();
    }
    let mut table = grid::table();
    let (arm, change) = (Cell::new("arm"), Cell::new("change, 95 %"));
    table.set_header([
        arm,
        Cell::new("metric"),
        right("cells"),
        change,
        right("p"),
        right("adj."),
        Cell::new("on average"),
    ]);
    for one in &family.pooled {
        table.add_row([
            Cell::new(plain(&one.arm)),
            Cell::new(titled(&one.metric, one.unit)),
            right(one.cells.to_string()),
            Cell::new(changed(one)),
            right(chance(Some(one.p))),
            right(chance(one.p_adjusted)),
            Cell::new(on_average(one)),
        ]);
    }
    format!("\n{OVER_CELLS}\n{}", grid::text(table, 2, &[0, 6]))
}

/// Returns the same table as [`text`], in Markdown.
pub(super) fn markdown(family: &Family) -> String {
    if family.pooled.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "\n**{OVER_CELLS}**\n\n| arm | metric | cells | change, 95 % | p | adjusted | on average |\n\
         |---|---|--:|---|--:|--:|---|\n"
    );
    for one in &family.pooled {
        let (arm, metric) = (escaped(&one.arm), escaped(&titled(&one.metric, one.unit)));
        let [p, adjusted] = [Some(one.p), one.p_adjusted].map(|p| chance(p).replace('<', "\\<"));
        let (change, words) = (changed(one), escaped(&on_average(one)));
        let mark = if one.outcome == Outcome::NotShown { "" } else { "**" };
        let verdict = format!("{mark}{words}{mark}");
        out.push_str(&format!("| {arm} | {metric} | {} | {change} | {p} | {adjusted} | {verdict} |\n", one.cells));
    }
    out
}

/// Formats the change of an effect over all cells, with its interval.
pub(crate) fn changed(pooled: &Pooled) -> String {
    interval(pooled.of, [pooled.value, pooled.low, pooled.high])
}

/// Returns the verdict of an effect over all cells, including the result for its margin.
pub(crate) fn on_average(pooled: &Pooled) -> String {
    let judged = pooled.margin.as_ref().filter(|margin| margin.answer != MarginAnswer::NotJudged);
    let margin = judged.map(|margin| format!("; {}", margin.words)).unwrap_or_default();
    format!("{}{margin}", pooled.words)
}
