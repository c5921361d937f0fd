//! Renders a comparison as text for the terminal and for a pull request.

use comfy_table::{Cell, ColumnConstraint, Width};
use indexmap::IndexMap;

use crate::analysis::comparison::{
    Adjusted, CellAnswer, Change, Comparison, Family, LeftOut, MarginAnswer, Mean, Outcome, Test, allowed,
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
            out.push_str(&format!("\n{}\n", plain(&heading(family, cell))));
            cell.notes.iter().for_each(|note| out.push_str(&fill("note: ", 6, &plain(note))));
            left_out(cell).iter().for_each(|line| out.push_str(&fill("excluded: ", 10, &plain(line))));
            out.push_str(&fill("errors: ", 8, &plain(&effects::guarded(cell))));
            out.push_str(&table(family, cell));
            of_margins(cell).iter().for_each(|line| out.push_str(&fill(" ", 4, &plain(line))));
            two_of_errors(cell).iter().for_each(|line| out.push_str(&fill("", 2, line)));
        }
        out.push_str(&effects::text(family));
    }
    if few_samples(comparison) {
        out.push_str(&format!("\n{FEW}\n"));
    }
    out.push_str(&fill("\n", 2, &conclusion(comparison)));
    hidden(comparison).iter().for_each(|hint| out.push_str(&fill("", 2, hint)));
    out
}

/// Describes the cost of declaring many tests: the number of differences that would have been shown if each
/// of them had been the only test. `None` if there are no such differences.
fn hidden(comparison: &Comparison) -> Option<String> {
    let shown_alone = |test: &&Test| test.outcome == Outcome::NotShown && test.p.is_some_and(|p| p <= power::LEVEL);
    let of = |family: &Family| family.cells.iter().flat_map(|cell| &cell.tests).filter(shown_alone).count();
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

/// Whether any mean in the comparison has the mark for few samples.
fn few_samples(comparison: &Comparison) -> bool {
    let cells = comparison.families.iter().flat_map(|family| &family.cells);
    let means = cells.flat_map(|cell| &cell.tests).flat_map(|test| [&test.baseline, &test.arm]);
    means.flatten().any(|mean| mean.few_samples)
}

/// Returns the title of a family: `by endpoint, against a; 2 cells, 16 tests, p adjusted for all of them
/// (Holm)`.
fn title(comparison: &Comparison, family: &Family, quoted: impl Fn(&str) -> String) -> String {
    let what = match family.by.as_str() {
        "time" => format!("now against {}", quoted(&family.baseline)),
        by => format!("by {by}, against {}", quoted(&family.baseline)),
    };
    let tests = match family.tests {
        0 => "nothing could be tested".to_owned(),
        1 => "1 test".to_owned(),
        tests => format!("{tests} tests, p adjusted for all of them ({})", method(comparison.adjusted_by)),
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
    format!("{}: {name}{} against {}, {rounds}{look}", cell.sweep, cell.arm, family.baseline)
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

/// Returns the conclusion: the number of tests with each verdict, for each arm.
pub(crate) fn conclusion(comparison: &Comparison) -> String {
    let mut arms: IndexMap<(&str, &str), Vec<&Test>> = IndexMap::new();
    for family in &comparison.families {
        for cell in &family.cells {
            arms.entry((&cell.arm, &family.baseline)).or_default().extend(&cell.tests);
        }
    }
    let counts = |tests: &[&Test]| {
        let said = [
            (Outcome::Worse, "worse"),
            (Outcome::Better, "better"),
            (Outcome::Differs, "different"),
            (Outcome::NotShown, "without a shown difference"),
            (Outcome::Constant, "the same in every repeat"),
            (Outcome::Refused, "refused"),
            (Outcome::Unknown, "n/a"),
        ];
        let count = |outcome| tests.iter().filter(|test| test.outcome == outcome).count();
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
    let tests: Vec<&Test> = arms.values().flatten().copied().collect();
    format!("{}{errors}{}", parts.join("; "), margins(&tests))
}

/// Formats the results for margins, like `; 3 of 4 shown to be within the margin, 1 outside it`. Empty if
/// there is no margin.
fn margins(tests: &[&Test]) -> String {
    let answers: Vec<MarginAnswer> = tests.iter().filter_map(|test| Some(test.margin.as_ref()?.answer)).collect();
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
    if few_samples(comparison) {
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
mod tests {
    use std::collections::BTreeMap;

    use super::super::answer::answers;
    use super::*;
    use crate::analysis::FailureCount;
    use crate::analysis::comparison::{Gate, Guardrail, Rules, RunValue, Sides, pooled, settle};

    /// Returns the test of a metric whose value is `baseline` in every round of the baseline. `times`
    /// contains the ratio of the arm to the baseline in each round.
    fn test(metric: &str, baseline: f64, times: &[f64]) -> Test {
        let side =
            |of: &dyn Fn(f64) -> f64| -> Vec<RunValue> { times.iter().map(|one| RunValue::Known(of(*one))).collect() };
        let (from, to) = (side(&|_| baseline), side(&|times| baseline * times));
        let numbered =
            |readings: &'static [RunValue]| -> BTreeMap<u32, &'static RunValue> { (0..).zip(readings).collect() };
        let sides = Sides { baseline: numbered(from.leak()), arm: numbered(to.leak()) };
        Test::new(metric.parse().expect("a metric"), &sides)
    }

    fn of(families: Vec<Family>) -> Comparison {
        Comparison {
            plan: "engines".into(),
            answers: answers(&families),
            class: None,
            see: 0.05,
            adjusted_by: Adjusted::Holm,
            regressions: 3,
            worse_errors: families[0].cells.iter().filter(|cell| cell.guardrail.outcome == Outcome::Worse).count()
                as u32,
            gate: Gate::of(&families),
            families,
        }
    }

    /// Returns a comparison of two metrics at three loads, with a margin.
    fn with_a_margin() -> Comparison {
        let cells = [1.0, 1.01, 1.02].map(|more| {
            let times = [1.011, 1.009, 1.010, 1.013, 1.008, 1.011].map(|one| one * more);
            let noisy = [1.1, 0.93, 1.02, 0.97, 1.04, 0.99];
            let mut tests = vec![test("ttft_p50", 20.1, &times), test("output_throughput", 812.0, &noisy)];
            let rules = Rules { margin: Some(0.02), ..Rules::seeing(0.05) };
            settle(&mut tests.iter_mut().collect::<Vec<_>>(), &rules);
            CellAnswer {
                sweep: "load".into(),
                cell: serde_json::Map::new(),
                name: format!("{more} qps"),
                arm: "sglang".into(),
                left_out: Vec::new(),
                notes: Vec::new(),
                guardrail: Guardrail::of([&BTreeMap::new(), &BTreeMap::new()]),
                tests,
            }
        });
        let cells = cells.to_vec();
        of(vec![Family {
            by: "endpoint".into(),
            baseline: "vllm".into(),
            tests: 6,
            margin: Some(0.02),
            notes: Vec::new(),
            pooled: pooled::over(&cells),
            cells,
        }])
    }

    fn some() -> Comparison {
        let slower = [1.031, 1.029, 1.030, 1.033, 1.028, 1.031];
        let noisy = [1.1, 0.93, 1.02, 0.97, 1.04, 0.99];
        let missing = RunValue::Missing("n=212 < 368 requests".to_owned());
        let sides = Sides { baseline: [(0, &missing)].into(), arm: [(0, &missing)].into() };
        let mut tests = vec![
            test("output_throughput", 812.0, &slower.map(|one| 1.0 / one)),
            test("output_throughput_per_gpu", 101.5, &slower.map(|one| 1.0 / one)),
            test("ttft_from_schedule_p50", 20.1, &slower),
            Test::new("ttft_from_schedule_p99".parse().expect("a metric"), &sides),
            test("tpot_p50", 4.01, &noisy),
            test("requests", 400.0, &[1.0; 6]),
            test("e2e_from_schedule_p50", 84.0, &noisy[..2]),
        ];
        settle(&mut tests.iter_mut().collect::<Vec<_>>(), &Rules::seeing(0.05));
        let failing =
            |failed| (0..6).map(|at| (at, FailureCount { requests: 400, failed, dispersion: None })).collect();
        let cell = CellAnswer {
            sweep: "load".into(),
            cell: serde_json::Map::new(),
            name: "llama-70b · chat · 5 qps".into(),
            arm: "sglang".into(),
            left_out: [1, 4]
                .map(|repeat| LeftOut { arm: "sglang".into(), repeat, reason: "invalid: errors".into() })
                .into(),
            notes: vec!["client cores: `vllm` 16, `sglang` 8".into()],
            guardrail: Guardrail::of([&failing(0), &failing(9)]),
            tests,
        };
        let family = Family {
            by: "endpoint".into(),
            baseline: "vllm".into(),
            tests: 4,
            margin: None,
            notes: vec!["`vllm` specifies max_num_seqs, but `sglang` does not (M014)".into()],
            cells: vec![cell],
            pooled: Vec::new(),
        };
        of(vec![family])
    }

    /// Returns the answers for one arm at several loads. Each load has these metrics: name, baseline, and the
    /// ratio of the arm to the baseline in each round.
    fn arm(margin: Option<f64>, loads: &[&[(&str, f64, &[f64])]]) -> Vec<String> {
        let cell = |metrics: &&[(&str, f64, &[f64])]| {
            let mut tests: Vec<Test> = metrics.iter().map(|(name, base, times)| test(name, *base, times)).collect();
            let rules = Rules { margin, ..Rules::seeing(0.05) };
            settle(&mut tests.iter_mut().collect::<Vec<_>>(), &rules);
            CellAnswer { tests, ..some().families[0].cells[0].clone() }
        };
        let cells: Vec<CellAnswer> = loads.iter().map(cell).collect();
        let cells = cells
            .into_iter()
            .map(|cell| CellAnswer { guardrail: Guardrail::of([&BTreeMap::new(), &BTreeMap::new()]), ..cell });
        answers(&[Family { margin, cells: cells.collect(), ..some().families[0].clone() }])
    }

    #[test]
    fn a_sentence_claims_what_was_shown_and_no_more() {
        let fast = [0.921, 0.919, 0.920, 0.923, 0.918, 0.921];
        let slow = fast.map(|one| 1.0 / one);
        let noisy = [1.1, 0.93, 1.02, 0.97, 1.04, 0.99];
        let same = [1.0; 6];
        let near = [1.001, 0.999, 1.0, 1.0005, 0.9995, 1.0001];
        let one =
            |pace: &'static [f64], flow: &'static [f64]| [("e2e_p50", 80.0, pace), ("output_throughput", 800.0, flow)];
        let [fast, slow, noisy, same, near]: [&'static [f64]; 5] =
            [fast, slow, noisy, same, near].map(|times| &*times.to_vec().leak());
        let told = |margin, loads: &[[(&'static str, f64, &'static [f64]); 2]]| {
            let loads: Vec<&[(&str, f64, &[f64])]> = loads.iter().map(|load| &load[..]).collect();
            let answers = arm(margin, &loads);
            assert_eq!(answers.len(), 1);
            answers[0].strip_prefix("`sglang` against `vllm`: ").expect("both arms").to_owned()
        };
        assert_eq!(
            told(None, &[one(fast, noisy), one(fast, noisy), one(fast, noisy), one(noisy, noisy)]),
            "responds 8.0 % faster (E2E p50, shown in 3 of 4 loads); no difference shown in output throughput."
        );
        assert_eq!(
            told(None, &[one(slow, same), one(fast, same)]),
            "responds faster in 1 and slower in 1 of 2 loads (E2E p50); equal output throughput, the same in \
            every repeat."
        );
        assert_eq!(
            told(None, &[one(noisy, slow)]),
            "no difference shown in E2E p50; 8.7 % more output throughput (shown)."
        );
        assert_eq!(
            told(None, &[one(&fast[..2], &noisy[..1])]),
            "undecided in E2E p50: too few repeats to tell; undecided in output throughput: too few repeats to tell."
        );
        assert_eq!(
            told(Some(0.02), &[one(fast, near)]),
            "responds 8.0 % faster (E2E p50, shown); output throughput shown to be within the margin of 2 %."
        );
        // E2E is undecided here, so the sentence reports the difference that TTFT shows.
        let tests: [(&str, f64, &[f64]); 2] = [("e2e_p50", 80.0, &fast[..2]), ("ttft_p50", 20.0, slow)];
        assert_eq!(arm(None, &[&tests]), ["`sglang` against `vllm`: responds 8.7 % slower (TTFT p50, shown)."]);
        assert_eq!(answers(&[]), [""; 0]);
        // If the arm is shown to fail more requests, the sentence always states this.
        assert!(some().answers[0].ends_with("; fails more requests (shown)."), "{:?}", some().answers);
    }

    #[test]
    fn a_comparison_without_a_test_is_a_few_lines() {
        let mut one = some();
        let family = &mut one.families[0];
        let few: Vec<Test> = family.cells[0]
            .tests
            .iter()
            .filter(|test| matches!(test.outcome, Outcome::Refused | Outcome::Unknown))
            .cloned()
            .collect();
        let cell = CellAnswer {
            tests: few,
            guardrail: Guardrail::of([&BTreeMap::new(), &BTreeMap::new()]),
            ..family.cells[0].clone()
        };
        (family.tests, family.cells) = (0, vec![cell.clone(), cell.clone(), cell]);
        let text = text(&one);
        assert!(text.lines().all(|line| line.chars().count() <= crate::report::screen::columns()), "{text}");
        assert!(text.lines().count() < 20, "{} lines: {text}", text.lines().count());
        for said in [
            "Why none of the 6 tests could be made",
            "3: 2 repeats on both sides: too few for a test",
            "3: TTFT from schedule p99: fewer than 368",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        let words = |one: &Comparison| super::text(one).split_whitespace().collect::<Vec<_>>().join(" ");
        let redo = "measure them again with `run --redo invalid`; if there are still too few repeats, `repeats: 5` in";
        assert!(words(&one).contains(redo), "{text}");
        one.families[0].cells.iter_mut().for_each(|cell| cell.left_out.clear());
        assert!(words(&one).contains("To do: `repeats: 5` in the plan"), "{}", words(&one));
        // A single cell keeps its table, because it fits on a screen.
        one.families[0].cells.truncate(1);
        assert!(super::text(&one).contains("verdict"), "{}", super::text(&one));
    }

    #[test]
    fn a_comparison_for_people() {
        let text = text(&some());
        assert!(text.lines().all(|line| line.chars().count() <= crate::report::screen::columns()), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn margins_and_the_effects_over_all_cells() {
        let comparison = with_a_margin();
        let text = text(&comparison);
        assert!(text.lines().all(|line| line.chars().count() <= crate::report::screen::columns()), "{text}");
        assert!(markdown(&comparison).contains("| sglang | TTFT p50 ms | 3 |"), "{}", markdown(&comparison));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn means_of_few_samples_are_marked() {
        let mut some = some();
        assert!(!text(&some).contains('*') && !markdown(&some).contains("few samples"));
        some.families[0].cells[0].tests[0].arm.as_mut().expect("a mean").few_samples = true;
        for shown in [text(&some), markdown(&some)] {
            assert!(shown.contains("788*") && shown.contains("* from few samples"), "{shown}");
            assert!(!shown.contains("812*"), "{shown}");
        }
    }

    #[test]
    fn a_comparison_for_a_pull_request() {
        insta::assert_snapshot!(markdown(&some()));
    }
}
