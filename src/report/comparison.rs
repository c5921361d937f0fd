//! Renders a comparison as text for the terminal and for a pull request.

use comfy_table::{Cell, ColumnConstraint, Width};
use indexmap::IndexMap;

use crate::analysis::comparison::{
    Adjusted, CellAnswer, Change, Comparison, Family, LeftOut, MarginAnswer, Mean, Outcome, Pooled, Test, allowed,
};
use crate::analysis::paired::power;
use crate::units::text::counted;

use super::curves::FEW;
use super::effects;
use super::estimate::{chance, interval, titled};
use super::format::{digits, escaped, fill, plain};
use super::grid::{self, right};
use super::untested;

/// Maximum length of an arm's name that is not wrapped in a heading, in characters.
const LONG: usize = 12;

/// Renders a comparison for the terminal: a table per cell, at most 100 columns wide.
pub fn text(comparison: &Comparison) -> String {
    let mut out: String = comparison.answers.iter().map(|answer| fill("", 2, answer)).collect();
    out.push_str(if out.is_empty() { "" } else { "\n" });
    for family in &comparison.families {
        let title = title(comparison, family, |text| format!("`{}`", plain(text)));
        let head = format!("{}: {title}\n", plain(&comparison.plan));
        out.push_str(&fill("", 2, &head));
        family.notes.iter().for_each(|note| out.push_str(&fill("note: ", 6, &plain(note))));
        if untested::is_untested(family) {
            out.push_str(&untested::text(family, comparison.see));
            continue;
        }
        for cell in &family.cells {
            out.push('\n');
            out.push_str(&fill("", 2, &plain(&heading(family, cell))));
            cell.notes.iter().for_each(|note| out.push_str(&fill("note: ", 6, &plain(note))));
            left_out(cell).iter().for_each(|line| out.push_str(&fill("excluded: ", 10, &plain(line))));
            out.push_str(&fill("errors: ", 8, &plain(&effects::guarded(cell))));
            out.push_str(&table(family, cell));
            of_margins(cell).iter().for_each(|line| out.push_str(&fill(" ", 4, &plain(line))));
            two_of_errors(cell).iter().for_each(|line| out.push_str(&fill("", 2, line)));
        }
        out.push_str(&effects::text(family));
    }
    if few_samples(comparison.families.iter().filter(|family| !untested::is_untested(family))) {
        out.push_str(&format!("\n{FEW}\n"));
    }
    out.push_str(&fill("\n", 2, &conclusion(comparison)));
    hidden(comparison).iter().for_each(|hint| out.push_str(&fill("", 2, hint)));
    out
}

/// Describes the cost of declaring many tests: the number of differences that would have been shown if each
/// of them had been the only test. `None` if there are no such differences.
fn hidden(comparison: &Comparison) -> Option<String> {
    let shown_alone = |outcome: Outcome, p: Option<f64>| {
        usize::from(outcome == Outcome::NotShown && p.is_some_and(|p| p <= power::LEVEL))
    };
    let of = |family: &Family| -> usize {
        let tests = family.cells.iter().flat_map(|cell| &cell.tests);
        let of_cells: usize = tests.map(|test| shown_alone(test.outcome, test.p)).sum();
        of_cells + family.pooled.iter().map(|one| shown_alone(one.outcome, Some(one.p))).sum::<usize>()
    };
    let hidden: usize = comparison.families.iter().map(of).sum();
    let tests: u32 = comparison.families.iter().filter(|family| of(family) > 0).map(|family| family.tests).sum();
    (hidden > 0).then(|| {
        let what = match hidden {
            1 => "1 difference would be shown on its own",
            count => &format!("{count} differences would be shown, each on its own"),
        };
        format!(
            "{what} (p below {} %), but not among {tests} tests: run more repeats, or declare fewer metrics and \
             loads before the next measurement",
            power::LEVEL * 100.0
        )
    })
}

/// Explains why the share of failed requests has two intervals; `None` if it has only one, because it is not
/// among the compared metrics.
fn two_of_errors(cell: &CellAnswer) -> Option<&'static str> {
    let is_compared = cell.tests.iter().any(|test| test.metric == "error_share");
    is_compared.then_some(
        "error share: `errors` pools the requests of all rounds, the table has one share per round; a gate \
         fails if either is worse",
    )
}

/// Whether any mean of the families has the mark for few samples.
fn few_samples<'a>(families: impl IntoIterator<Item = &'a Family>) -> bool {
    let cells = families.into_iter().flat_map(|family| &family.cells);
    let means = cells.flat_map(|cell| &cell.tests).flat_map(|test| [&test.baseline, &test.arm]);
    means.flatten().any(|mean| mean.few_samples)
}

/// Returns the title of a family: `by endpoint, against a; 2 cells, 16 tests, p adjusted for all of them
/// (Holm)`. Tests that could not be made, or found equal values in every repeat, have no p.
fn title(comparison: &Comparison, family: &Family, quoted: impl Fn(&str) -> String) -> String {
    let what = match family.by.as_str() {
        "time" => format!("now against {}", quoted(&family.baseline)),
        by => format!("by {by}, against {}", quoted(&family.baseline)),
    };
    let method = method(comparison.adjusted_by);
    let tests = match (family.members(), family.tests) {
        _ if family.is_untested() => "nothing could be tested".to_owned(),
        (members, 0) => counted(members, "test"),
        (1, _) => "1 test".to_owned(),
        (members, made) if made == members => format!("{members} tests, p adjusted for all of them ({method})"),
        (members, 1) => format!("{members} tests, 1 of which has a p"),
        (members, made) => format!("{members} tests, p adjusted for the {made} that have one ({method})"),
    };
    let margin = family.margin.map(|margin| format!(", margin {}", allowed(margin))).unwrap_or_default();
    let class = comparison.class.as_ref().map(|class| format!(", only requests of class {}", quoted(class)));
    format!("{what}{}; {}, {tests}{margin}", class.unwrap_or_default(), counted(family.cells.len(), "cell"))
}

/// Returns the name of the method that adjusted the p-values.
fn method(adjusted: Adjusted) -> &'static str {
    match adjusted {
        Adjusted::Holm => "Holm",
        Adjusted::BenjaminiHochberg => "Benjamini–Hochberg: on average, at most 5 % of the findings are false",
    }
}

/// Returns the verdict of a test without the result for its margin, which is reported separately.
fn bare_verdict(test: &Test) -> String {
    match margin_of(test) {
        // The test's words also give the smallest detectable difference, which is omitted because the margin
        // decides here.
        Some(_) if test.outcome == Outcome::NotShown => "no difference shown".to_owned(),
        // Both the test and the margin give a number of required repeats, so each must name its purpose.
        Some(_) if test.outcome == Outcome::Refused => format!("{} for a test", test.words),
        _ => test.words.clone(),
    }
}

/// Describes the result for a metric's margin; `None` if no margin was judged.
fn margin_of(test: &Test) -> Option<String> {
    let margin = test.margin.as_ref().filter(|margin| margin.answer != MarginAnswer::NotJudged)?;
    let which = if test.outcome == Outcome::Refused { " for the margin" } else { "" };
    Some(format!("{}{which}", margin.words))
}

/// Describes the results for margins, one line per metric. They are not in the table, because each would take
/// five lines in its last column.
fn of_margins(cell: &CellAnswer) -> Vec<String> {
    cell.tests.iter().filter_map(|test| Some(format!("{}: {}", named(test), margin_of(test)?))).collect()
}

/// Returns the verdict of a test, including the result for its margin.
pub(super) fn verdict(test: &Test) -> String {
    let margin = margin_of(test).map(|margin| format!("; {margin}")).unwrap_or_default();
    format!("{}{margin}", bare_verdict(test))
}

/// Returns the heading of a cell: `load: m · B1 · batch 4: slow against base, 5 rounds`.
pub(super) fn heading(family: &Family, cell: &CellAnswer) -> String {
    let name = if cell.name.is_empty() { String::new() } else { format!("{}: ", cell.name) };
    let rounds = cell.tests.iter().map(|test| test.rounds).max().unwrap_or(0);
    let rounds = counted(rounds, "round");
    let look = cell.look().map(|look| format!(" ({})", look.words())).unwrap_or_default();
    let launches = if cell.launches.limit_the_claim() { " in these launches" } else { "" };
    format!("{}: {name}{} against {}, {rounds}{launches}{look}", cell.sweep, cell.arm, family.baseline)
}

/// Lists the excluded runs, one line per arm and reason.
pub(super) fn left_out(cell: &CellAnswer) -> Vec<String> {
    let mut lines: IndexMap<(&str, &str), Vec<String>> = IndexMap::new();
    for LeftOut { arm, repeat, reason } in &cell.left_out {
        lines.entry((arm, reason)).or_default().push(repeat.to_string());
    }
    let line = |((arm, reason), repeats): ((&str, &str), Vec<String>)| {
        let word = if repeats.len() == 1 { "repeat" } else { "repeats" };
        format!("{word} {} of {arm}: {reason}", repeats.join(", "))
    };
    lines.into_iter().map(line).collect()
}

/// Returns the table of a cell. The headings of its columns are the names of the arms; if these are too long,
/// they are `baseline` and `arm` (or `then` and `now`), and only the heading above the table names the arms.
fn table(family: &Family, cell: &CellAnswer) -> String {
    let then = if family.by == "time" { "then" } else { &family.baseline };
    let long = [(1, then), (2, &*cell.arm)].into_iter().filter(|(_, name)| name.chars().count() > LONG);
    let wrap: Vec<usize> = long.map(|(column, _)| column).chain([6]).collect();
    let is_near = |name: &str| super::format::width(name) <= LONGEST_HEAD;
    if is_near(then)
        && is_near(&cell.arm)
        && let Some(text) = grid::fitting(made([then, &cell.arm], cell, &[]), 2, &wrap)
    {
        return text;
    }
    let heads = if family.by == "time" { ["then", "now"] } else { ["baseline", "arm"] };
    grid::text_of_fewer(&["p"], (2, &[5, 6]), |left_out| made(heads, cell, left_out))
}

/// Maximum length of an arm's name that is used as a column heading, in characters.
const LONGEST_HEAD: usize = 24;

fn made(arms: [&str; 2], cell: &CellAnswer, left_out: &[&str]) -> comfy_table::Table {
    let mut table = grid::table();
    let is_shown = |at: usize| at != P || left_out.is_empty();
    let [baseline, arm] = arms.map(|name| right(plain(name)));
    let heads = [
        Cell::new("metric"),
        baseline,
        arm,
        Cell::new("change, 95 %"),
        right("p"),
        right("adj."),
        Cell::new("verdict"),
    ];
    let shown = |cells: [Cell; 7]| cells.into_iter().enumerate().filter(|(at, _)| is_shown(*at)).map(|(_, cell)| cell);
    table.set_header(shown(heads).collect::<Vec<_>>());
    for test in &cell.tests {
        let [baseline, arm, change, p, adjusted] = numbers(test);
        let cells = [
            Cell::new(named(test)),
            right(baseline),
            right(arm),
            Cell::new(change),
            right(p),
            right(adjusted),
            Cell::new(plain(&bare_verdict(test))),
        ];
        table.add_row(shown(cells).collect::<Vec<_>>());
    }
    let last = table.column_count().saturating_sub(1);
    if let Some(verdict) = table.column_mut(last) {
        verdict.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(20)));
    }
    table
}

/// Index of the column with the unadjusted p-value.
const P: usize = 4;

/// Returns the metric of a test with its unit: `TTFT p99 ms`.
pub(super) fn named(test: &Test) -> String {
    titled(&test.metric, test.unit)
}

/// Formats both means, the change with its interval, p, and the adjusted p.
fn numbers(test: &Test) -> [String; 5] {
    let of = |mean: &Mean| format!("{}{}", digits(mean.value), if mean.few_samples { "*" } else { "" });
    let mean = |mean: &Option<Mean>| mean.as_ref().map_or("n/a".to_owned(), of);
    let change = test.change.as_ref().map_or("n/a".to_owned(), changed);
    [mean(&test.baseline), mean(&test.arm), change, chance(test.p), chance(test.p_adjusted)]
}

/// Formats a change with its interval: `1.031 [1.027, 1.035]`, `+0.012 [+0.003, +0.021]`.
pub(super) fn changed(change: &Change) -> String {
    interval(change.of, [change.value, change.low, change.high])
}

/// The outcome of a test, and its result for the margin.
type Found = (Outcome, Option<MarginAnswer>);

/// Returns the conclusion: the number of tests with each verdict, for each arm. Effects over all cells are
/// tests too.
pub(crate) fn conclusion(comparison: &Comparison) -> String {
    let mut arms: IndexMap<(&str, &str), Vec<Found>> = IndexMap::new();
    for family in &comparison.families {
        for cell in &family.cells {
            let tests = cell.tests.iter().filter(|test| test.in_family);
            let of_cell = tests.map(|test| (test.outcome, test.margin.as_ref().map(|margin| margin.answer)));
            arms.entry((&cell.arm, &family.baseline)).or_default().extend(of_cell);
        }
        for Pooled { arm, outcome, margin, .. } in &family.pooled {
            arms.entry((arm, &family.baseline))
                .or_default()
                .push((*outcome, margin.as_ref().map(|margin| margin.answer)));
        }
    }
    let counts = |tests: &[Found]| {
        let said = [
            (Outcome::Worse, "worse"),
            (Outcome::Better, "better"),
            (Outcome::Differs, "different"),
            (Outcome::NotShown, "without a shown difference"),
            (Outcome::Constant, "the same in every repeat"),
            (Outcome::Refused, "refused"),
            (Outcome::Unknown, "n/a"),
        ];
        let count = |outcome| tests.iter().filter(|(own, _)| *own == outcome).count();
        let parts = said.into_iter().map(|(outcome, words)| (count(outcome), words)).filter(|(count, _)| *count > 0);
        parts.map(|(count, words)| format!("{count} {words}")).collect::<Vec<_>>().join(", ")
    };
    let told = arms.iter().filter(|(_, tests)| !tests.is_empty());
    let parts: Vec<String> = told
        .map(|((arm, baseline), tests)| format!("`{}` against `{}`: {}", plain(arm), plain(baseline), counts(tests)))
        .collect();
    if parts.is_empty() {
        return "nothing to compare".to_owned();
    }
    let errors = match comparison.worse_errors {
        0 => String::new(),
        1 => "; more errors in 1 cell".to_owned(),
        cells => format!("; more errors in {cells} cells"),
    };
    let tests: Vec<Found> = arms.values().flatten().copied().collect();
    format!("{}{errors}{}", parts.join("; "), margins(&tests))
}

/// Formats the results for margins, like `; 3 of 4 shown to be within the margin, 1 outside it`. Empty if
/// there is no margin.
fn margins(tests: &[Found]) -> String {
    let answers: Vec<MarginAnswer> = tests.iter().filter_map(|(_, answer)| *answer).collect();
    let count = |wanted| answers.iter().filter(|answer| **answer == wanted).count();
    let (shown, worse) = (count(MarginAnswer::Shown), count(MarginAnswer::Worse));
    let of = shown + worse + count(MarginAnswer::NotShown);
    let worse = if worse > 0 { format!(", {worse} outside it") } else { String::new() };
    if of == 0 { String::new() } else { format!("; {shown} of {of} shown to be within the margin{worse}") }
}

/// Renders a comparison for a pull request: first the conclusion, then a table per cell.
pub fn markdown(comparison: &Comparison) -> String {
    let answers: Vec<String> = comparison.answers.iter().map(|answer| escaped(answer)).collect();
    let mut out = match answers.as_slice() {
        [] => String::new(),
        answers => format!("{}\n\n", answers.join("  \n")),
    };
    out.push_str(&format!("**{}**: {}\n", escaped(&comparison.plan), escaped(&conclusion(comparison))));
    hidden(comparison).iter().for_each(|hint| out.push_str(&format!("\n> {hint}\n")));
    for family in &comparison.families {
        out.push_str(&format!("\n{}\n", title(comparison, family, |text| format!("**{}**", escaped(text)))));
        family.notes.iter().for_each(|note| out.push_str(&format!("\n> {}\n", escaped(note))));
        for cell in &family.cells {
            out.push_str(&format!("\n**{}**\n", escaped(&heading(family, cell))));
            let notes =
                cell.notes.iter().cloned().chain(left_out(cell).into_iter().map(|line| format!("excluded: {line}")));
            notes.for_each(|note| out.push_str(&format!("\n> {}\n", escaped(&note))));
            out.push_str(&format!("\n> {}\n", effects::guarded_markdown(cell)));
            two_of_errors(cell).iter().for_each(|line| out.push_str(&format!("\n> {line}\n")));
            let then = if family.by == "time" { "then" } else { &family.baseline };
            out.push_str(&format!(
                "\n| metric | {} | {} | change, 95 % | p | adjusted | verdict |\n",
                escaped(then),
                escaped(&cell.arm)
            ));
            out.push_str("|---|--:|--:|---|--:|--:|---|\n");
            for test in &cell.tests {
                let cells = numbers(test).join(" | ").replace('<', "\\<");
                let (mark, words) = (mark(test), escaped(&verdict(test)));
                out.push_str(&format!("| {} | {cells} | {mark}{words}{mark} |\n", escaped(&named(test))));
            }
        }
        out.push_str(&effects::markdown(family));
    }
    if few_samples(&comparison.families) {
        out.push_str(&format!("\n\\{FEW}\n"));
    }
    out
}

/// Returns the Markdown emphasis for the verdict of a test: bold if it needs attention.
fn mark(test: &Test) -> &'static str {
    let is_beyond = test.margin.as_ref().is_some_and(|margin| margin.answer == MarginAnswer::Worse);
    match test.outcome {
        Outcome::Worse | Outcome::Better | Outcome::Differs => "**",
        _ if is_beyond => "**",
        _ => "",
    }
}

#[cfg(test)]
#[path = "comparison_tests.rs"]
mod tests;
