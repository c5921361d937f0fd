//! The section on the comparison of arms: a forest plot for each metric, and all results of `compare`.

use super::super::chart::{Axis, Row, forest};
use super::super::error::PageError;
use super::super::sources::Sources;
use super::super::view::{Block, Caption, Cell, Figure, Found, Link, Missing, Section, Table, tone};
use crate::analysis::comparison::{CellAnswer, Family, Outcome, Test};
use crate::metrics;
use crate::plan::MetricName;
use crate::report::comparison::{changed, conclusion, heading, left_out, named, verdict};
use crate::report::effects::{self, guarded};
use crate::report::estimate::titled;
use crate::report::format::plain;
use crate::units::text::counted;

const TITLE: &str = "Comparison";

/// Maximum number of rows of one forest plot.
const MOST_ROWS: usize = 16;

/// Maximum number of forest plots in this section; further metrics have only a table.
const MOST_FIGURES: usize = 24;

/// Maximum number of tests whose numbers are on a page. The page states how many further tests there are.
const MOST_TESTS: usize = 600;

/// Builds the section, or states why it is missing.
pub(crate) fn comparison(sources: &Sources) -> Result<Found, PageError> {
    let Some(comparison) = sources.comparison.filter(|one| one.families.iter().any(|family| !family.cells.is_empty()))
    else {
        let why = match sources.comparison {
            Some(_) => "no cell has both arms yet",
            None => "the plan declares no comparison: compare: { by: AXIS, baseline: VALUE }",
        };
        return Ok(Err(Missing { title: TITLE, why: why.to_owned() }));
    };
    let mut blocks = vec![Block::Text { text: format!("{}.", conclusion(comparison)) }];
    let (mut drawn, mut listed, mut left) = (0, 0, 0);
    for (number, family) in comparison.families.iter().enumerate() {
        blocks.push(Block::Heading { text: format!("By {}, against {}", plain(&family.by), plain(&family.baseline)) });
        blocks.extend(notes(family));
        let mut figures = Vec::new();
        for metric in metrics_of(family) {
            let rows: Vec<(&CellAnswer, &Test)> = rows(family, &metric);
            for (part, rows) in rows.chunks(MOST_ROWS).enumerate() {
                if listed + rows.len() > MOST_TESTS {
                    left += rows.len();
                    continue;
                }
                listed += rows.len();
                let one = One { family, rows, id: format!("compare-{}-{metric}-{}", number + 1, part + 1) };
                let figure = if drawn < MOST_FIGURES { one.figure()? } else { None };
                drawn += usize::from(figure.is_some());
                match figure {
                    Some(figure) => figures.push(figure),
                    None => blocks.push(Block::Table { table: one.table() }),
                }
            }
        }
        if !figures.is_empty() {
            blocks.push(Block::Figures { figures });
        }
        blocks.extend(over_cells(family));
        blocks.push(failures(family));
    }
    if left > 0 {
        blocks.push(Block::Text {
            text: format!("{left} more tests are not on this page: `sweepline compare` has them all."),
        });
    }
    Ok(Ok(Section { id: "comparison", title: TITLE, blocks }))
}

/// Maximum number of notes on cells that are shown as a list; more notes are collapsed.
const MOST_NOTES: usize = 4;

/// Returns the notes on a family of tests, and the runs that it excludes.
fn notes(family: &Family) -> Vec<Block> {
    let of_cell = |cell: &CellAnswer| {
        let left_out = left_out(cell).into_iter().map(|line| format!("excluded: {line}"));
        let heading = heading(family, cell);
        let lines = cell.notes.iter().cloned().chain(left_out);
        lines.map(|line| plain(&format!("{heading}: {line}"))).collect::<Vec<_>>()
    };
    let common: Vec<String> = family.notes.iter().map(|note| plain(note)).collect();
    let of_cells: Vec<String> = family.cells.iter().flat_map(of_cell).collect();
    let common = (!common.is_empty()).then_some(Block::List { items: common });
    let of_cells = match of_cells.len() {
        0 => None,
        1..=MOST_NOTES => Some(Block::List { items: of_cells }),
        count => Some(Block::Folded { title: format!("{count} notes on runs of this comparison"), items: of_cells }),
    };
    common.into_iter().chain(of_cells).collect()
}

/// Returns the metrics of a family, in the order of its tests.
fn metrics_of(family: &Family) -> Vec<String> {
    let tests = family.cells.iter().flat_map(|cell| &cell.tests);
    tests.map(|test| test.metric.clone()).collect::<indexmap::IndexSet<String>>().into_iter().collect()
}

fn rows<'f>(family: &'f Family, metric: &str) -> Vec<(&'f CellAnswer, &'f Test)> {
    let of =
        |cell: &'f CellAnswer| cell.tests.iter().filter(|test| test.metric == metric).map(move |test| (cell, test));
    family.cells.iter().flat_map(of).collect()
}

/// The tests of one metric in several cells, which are drawn as one forest plot.
struct One<'s, 'f> {
    family: &'f Family,
    rows: &'s [(&'f CellAnswer, &'f Test)],
    id: String,
}

impl One<'_, '_> {
    fn tested(&self) -> impl Iterator<Item = (&CellAnswer, &Test)> {
        self.rows.iter().filter(|(_, test)| test.change.is_some()).map(|(cell, test)| (*cell, *test))
    }

    fn name(&self, cell: &CellAnswer) -> String {
        let several = self.family.cells.iter().any(|other| other.sweep != cell.sweep);
        let sweep = if several { format!("{}: ", cell.sweep) } else { String::new() };
        let name = if cell.name.is_empty() { String::new() } else { format!("{}, ", cell.name) };
        plain(&format!("{sweep}{name}{}", cell.arm))
    }

    /// Builds the forest plot; `None` if nothing could be tested.
    fn figure(&self) -> Result<Option<Figure>, PageError> {
        let Some((_, first)) = self.tested().next() else { return Ok(None) };
        let change = first.change.as_ref().map_or("ratio", |change| change.of);
        let ends =
            || self.tested().filter_map(|(_, test)| test.change.as_ref()).flat_map(|change| [change.low, change.high]);
        let baseline = plain(&self.family.baseline);
        let (axis, none) = match change {
            "ratio" => (Axis::of_ratios(&format!("ratio to {baseline}, log scale"), ends()), 1.0),
            _ => (Axis::of_differences(&format!("minus {baseline}, {}", first.unit).replace(", )", ""), ends()), 0.0),
        };
        let row = |(cell, test): (&CellAnswer, &Test)| {
            let change = test.change.as_ref()?;
            let name = self.name(cell);
            Some(Row {
                text: format!("{name}: {} (95 %), {}", changed(change), plain(&test.words)),
                name,
                value: change.value,
                ends: [change.low, change.high],
                shown: matches!(test.outcome, Outcome::Better | Outcome::Worse | Outcome::Differs),
            })
        };
        let rows: Vec<Row> = self.tested().filter_map(row).collect();
        let key = first.metric.parse::<MetricName>().ok().and_then(|name| metrics::find(name.key));
        Ok(Some(Figure {
            id: self.id.clone(),
            title: self.finding(first),
            caption: self.caption(first),
            metric: key.map(|metric| Link { key: metric.key, title: metric.title }),
            drawing: forest(&axis, &rows, Some(none))?,
            table: self.table(),
        }))
    }

    fn count(&self, outcome: Outcome) -> usize {
        self.rows.iter().filter(|(_, test)| test.outcome == outcome).count()
    }

    fn finding(&self, first: &Test) -> String {
        if let [(cell, test)] = self.rows {
            return format!("{}: {} {}", named(test), plain(&cell.arm), plain(&test.words));
        }
        let said = [
            (Outcome::Better, "better"),
            (Outcome::Worse, "worse"),
            (Outcome::Differs, "different"),
            (Outcome::NotShown, "without a shown difference"),
        ];
        let parts =
            said.into_iter().map(|(outcome, words)| (self.count(outcome), words)).filter(|(count, _)| *count > 0);
        let parts: Vec<String> =
            parts.map(|(count, words)| format!("{words} in {count} of {}", self.rows.len())).collect();
        let what = if parts.is_empty() { "nothing shown".to_owned() } else { parts.join(", ") };
        format!("{}: {what}", named(first))
    }

    fn caption(&self, first: &Test) -> Caption {
        let untested = self.rows.len() - self.tested().count();
        let rounds: Vec<u32> = self.tested().map(|(_, test)| test.rounds).collect();
        let (least, most) = (rounds.iter().min().copied().unwrap_or(0), rounds.iter().max().copied().unwrap_or(0));
        let n = if least == most { counted(least, "round") } else { format!("{least} to {most} rounds") };
        let kind = match self.tested().filter(|(_, test)| test.sequence.is_some()).count() {
            0 => "Student's t over rounds",
            count if count == self.tested().count() => "group-sequential t over rounds: they hold at every look",
            _ => "Student's t over rounds, group-sequential where the cell says so",
        };
        let mut said = vec![format!("n: {n} a row.")];
        let details = vec![
            format!("Bars are 95 % intervals of the paired change ({kind}), not adjusted for other tests."),
            "Filled: a difference is shown among all tests of the declaration; hollow: no difference is shown. \
            Dashed: no change."
                .to_owned(),
        ];
        said.push(match first.better {
            metrics::Better::Lower => "Left is better.".to_owned(),
            metrics::Better::Higher => "Right is better.".to_owned(),
            metrics::Better::Neither => "Neither side is better.".to_owned(),
        });
        if untested > 0 {
            said.push(format!(
                "{untested} of {} could not be tested and are not drawn: see the numbers.",
                self.rows.len()
            ));
        }
        Caption { shown: said, details }
    }

    fn table(&self) -> Table {
        let columns = [
            "cell",
            "arm",
            "baseline#",
            "arm's value#",
            "change is a",
            "change#",
            "low#",
            "high#",
            "p#",
            "p adjusted#",
            "verdict",
        ];
        let title = self.rows.first().map(|(_, test)| named(test)).unwrap_or_default();
        let mut table = Table::new(format!("{title} against {}", plain(&self.family.baseline)), &columns);
        for (cell, test) in self.rows {
            let change = test.change.as_ref();
            let mean = |mean: &Option<crate::analysis::comparison::Mean>| match mean {
                Some(mean) => Cell::marked(mean.value, mean.few_samples),
                None => Cell::number(None),
            };
            let tone = match test.outcome {
                Outcome::Better => tone("better"),
                Outcome::Worse => tone("worse"),
                _ => "plain",
            };
            table.rows.push(vec![
                Cell::text(&format!("{}: {}", cell.sweep, cell.name)),
                Cell::text(&cell.arm),
                mean(&test.baseline),
                mean(&test.arm),
                Cell::text(change.map_or("n/a", |change| change.of)),
                Cell::number(change.map(|change| change.value)),
                Cell::number(change.map(|change| change.low)),
                Cell::number(change.map(|change| change.high)),
                Cell::number(test.p),
                Cell::number(test.p_adjusted),
                Cell::toned(&verdict(test), tone),
            ]);
        }
        table
    }
}

/// Returns a table of the effects over all cells; `None` if there are too few cells.
fn over_cells(family: &Family) -> Option<Block> {
    let columns =
        ["arm", "metric", "cells#", "change is a", "change#", "low#", "high#", "p#", "p adjusted#", "on average"];
    let mut table = Table::new(format!("Effects {}", effects::OVER_CELLS), &columns);
    for one in &family.pooled {
        let tone = match one.outcome {
            Outcome::Better => tone("better"),
            Outcome::Worse => tone("worse"),
            _ => "plain",
        };
        table.rows.push(vec![
            Cell::text(&one.arm),
            Cell::text(&titled(&one.metric, one.unit)),
            Cell::count(u64::from(one.cells)),
            Cell::text(one.of),
            Cell::number(Some(one.value)),
            Cell::number(Some(one.low)),
            Cell::number(Some(one.high)),
            Cell::number(Some(one.p)),
            Cell::number(one.p_adjusted),
            Cell::toned(&effects::on_average(one), tone),
        ]);
    }
    (!table.rows.is_empty()).then_some(Block::Table { table })
}

/// Returns a table of the failed requests of both arms, for the cells in which any request failed. If there
/// are no such cells, returns a sentence instead.
fn failures(family: &Family) -> Block {
    let has_failures = |cell: &&CellAnswer| cell.guardrail.arm.failed + cell.guardrail.baseline.failed > 0;
    let failing: Vec<&CellAnswer> = family.cells.iter().filter(has_failures).collect();
    if failing.is_empty() {
        let text = match family.cells.iter().filter(|cell| cell.guardrail.rounds > 0).count() {
            0 => "Failed requests: n/a, no repeat was measured on both arms.".to_owned(),
            cells => format!("Failed requests: none on either side, in {}.", counted(cells, "cell")),
        };
        return Block::Text { text };
    }
    let columns = ["cell", "failed, arm#", "of#", "failed, baseline#", "of#", "in words"];
    let of = family.cells.len();
    let caption =
        format!("Failed requests, a guardrail of every comparison: {} of {of} cells have some", failing.len());
    let mut table = Table::new(caption, &columns);
    for cell in failing.into_iter().take(MOST_TESTS) {
        let (arm, baseline) = (cell.guardrail.arm, cell.guardrail.baseline);
        let is_worse = cell.guardrail.outcome == Outcome::Worse;
        table.rows.push(vec![
            Cell::text(&heading(family, cell)),
            Cell::count(arm.failed),
            Cell::count(arm.requests),
            Cell::count(baseline.failed),
            Cell::count(baseline.requests),
            Cell::toned(&guarded(cell), if is_worse { tone("worse") } else { "plain" }),
        ]);
    }
    Block::Table { table }
}
