//! Checks what is said about a comparison, on the terminal and in Markdown.

use std::collections::BTreeMap;

use super::super::answer::answers;
use super::*;
use crate::analysis::FailureCount;
use crate::analysis::comparison::{Declaration, Gate, Guardrail, Launches, Rules, RunValue, Sides};

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

fn comparison_of(families: Vec<Family>) -> Comparison {
    Comparison {
        plan: "engines".into(),
        answers: answers(&families),
        class: None,
        see: 0.05,
        adjusted_by: Adjusted::Holm,
        regressions: 3,
        worse_errors: families[0].cells.iter().filter(|cell| cell.guardrail.outcome == Outcome::Worse).count() as u32,
        gate: Gate::of(&families),
        families,
    }
}

/// Returns a comparison of two metrics at three loads, with a margin.
fn with_a_margin() -> Comparison {
    let cells = [1.0, 1.01, 1.02].map(|more| {
        let times = [1.011, 1.009, 1.010, 1.013, 1.008, 1.011].map(|one| one * more);
        let noisy = [1.1, 0.93, 1.02, 0.97, 1.04, 0.99];
        let tests = vec![test("ttft_p50", 20.1, &times), test("output_throughput", 812.0, &noisy)];
        CellAnswer {
            sweep: "load".into(),
            cell: serde_json::Map::new(),
            name: format!("{more} qps"),
            arm: "sglang".into(),
            left_out: Vec::new(),
            notes: Vec::new(),
            launches: Launches { baseline: 6, arm: 6, of_rounds: true },
            guardrail: Guardrail::of([&BTreeMap::new(), &BTreeMap::new()]),
            tests,
        }
    });
    let rules = Rules { margin: Some(0.02), ..Rules::seeing(0.05) };
    comparison_of(vec![Family::settled(declaration(Vec::new()), cells.to_vec(), &rules)])
}

fn some() -> Comparison {
    let slower = [1.031, 1.029, 1.030, 1.033, 1.028, 1.031];
    let noisy = [1.1, 0.93, 1.02, 0.97, 1.04, 0.99];
    let missing = RunValue::Missing("n=212 < 368 requests".to_owned());
    let sides = Sides { baseline: [(0, &missing)].into(), arm: [(0, &missing)].into() };
    let tests = vec![
        test("output_throughput", 812.0, &slower.map(|one| 1.0 / one)),
        test("output_throughput_per_gpu", 101.5, &slower.map(|one| 1.0 / one)),
        test("ttft_from_schedule_p50", 20.1, &slower),
        Test::new("ttft_from_schedule_p99".parse().expect("a metric"), &sides),
        test("tpot_p50", 4.01, &noisy),
        test("requests", 400.0, &[1.0; 6]),
        test("e2e_from_schedule_p50", 84.0, &noisy[..2]),
    ];
    let failing = |failed| (0..6).map(|at| (at, FailureCount { requests: 400, failed, dispersion: None })).collect();
    let cell = CellAnswer {
        sweep: "load".into(),
        cell: serde_json::Map::new(),
        name: "llama-70b · chat · 5 qps".into(),
        arm: "sglang".into(),
        left_out: [1, 4]
            .map(|repeat| LeftOut { arm: "sglang".into(), repeat, reason: "invalid: errors".into() })
            .into(),
        notes: vec!["client cores: `vllm` 16, `sglang` 8".into()],
        launches: Launches { baseline: 6, arm: 6, of_rounds: true },
        guardrail: Guardrail::of([&failing(0), &failing(9)]),
        tests,
    };
    let notes = vec!["`vllm` specifies max_num_seqs, but `sglang` does not (M014)".into()];
    comparison_of(vec![Family::settled(declaration(notes), vec![cell], &Rules::seeing(0.05))])
}

fn declaration(notes: Vec<String>) -> Declaration {
    Declaration { by: "endpoint".into(), baseline: "vllm".into(), notes }
}

/// Returns the answers for one arm at several loads. Each load has these metrics: name, baseline, and the
/// ratio of the arm to the baseline in each round.
fn arm(margin: Option<f64>, loads: &[&[(&str, f64, &[f64])]]) -> Vec<String> {
    let cell = |metrics: &&[(&str, f64, &[f64])]| {
        let tests = metrics.iter().map(|(name, base, times)| test(name, *base, times)).collect();
        let guardrail = Guardrail::of([&BTreeMap::new(), &BTreeMap::new()]);
        CellAnswer { tests, guardrail, ..some().families[0].cells[0].clone() }
    };
    let rules = Rules { margin, ..Rules::seeing(0.05) };
    answers(&[Family::settled(declaration(Vec::new()), loads.iter().map(cell).collect(), &rules)])
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
        told(None, &[one(fast, noisy), one(fast, noisy)]),
        "better: E2E p50 faster by 8.0 % in 2 of 2 cells; no difference shown in the other 2 of 4 tests."
    );
    assert_eq!(
        told(None, &[one(slow, noisy), one(fast, noisy)]),
        "worse: E2E p50 slower by 8.7 % in 1 of 2 cells; better: E2E p50 faster by 8.0 % in 1 of 2 cells; \
        no difference shown in the other 2 of 4 tests."
    );
    assert_eq!(
        told(None, &[one(noisy, slow)]),
        "better: output throughput higher by 8.7 %; no difference shown in the other 1 of 2 tests."
    );
    // Whatever the usual metrics show, any other one that is worse comes first.
    let tests: [(&str, f64, &[f64]); 3] =
        [("e2e_p50", 80.0, noisy), ("output_throughput", 800.0, slow), ("tpot_p99", 9.0, slow)];
    assert_eq!(
        arm(None, &[&tests]),
        ["`sglang` against `vllm`: worse: TPOT p99 slower by 8.7 %; better: output throughput higher by 8.7 %; \
        no difference shown in the other 1 of 3 tests."]
    );
    assert_eq!(told(None, &[one(noisy, noisy)]), "no difference shown in any of 2 tests.");
    assert_eq!(told(None, &[one(same, same)]), "equal in every repeat.");
    assert_eq!(
        told(None, &[one(&fast[..2], &noisy[..2])]),
        "undecided: 2 of 2 tests (observed, not proven: E2E p50 faster in 2 of 2 repeats)."
    );
    // A difference that never varies is no test.
    assert_eq!(told(None, &[one(noisy, &[1.05; 4])]), "undecided: 1 of 2 tests.");
    assert_eq!(
        told(Some(0.02), &[one(fast, near)]),
        "better: E2E p50 faster by 8.0 %; within the margin of 2 % in all 2 tests."
    );
    assert_eq!(
        told(Some(0.1), &[one(slow, near)]),
        "worse: E2E p50 slower by 8.7 % (within the margin); within the margin of 10 % in all 2 tests."
    );
    assert_eq!(
        told(Some(0.02), &[one(slow, near)]),
        "worse: E2E p50 slower by 8.7 % (outside the margin); within the margin of 2 % in 1 of 2 tests."
    );
    assert_eq!(
        told(Some(0.02), &[one(slow, noisy)]),
        "worse: E2E p50 slower by 8.7 % (outside the margin); undecided: 1 of 2 tests not shown to be within \
        the margin of 2 %."
    );
    assert_eq!(answers(&[]), [""; 0]);
    // If the arm is shown to fail more requests, the sentence begins with it.
    assert!(some().answers[0].contains(": worse: more failed requests, "), "{:?}", some().answers);
}

#[test]
fn no_arm_that_is_worse_is_only_counted() {
    let slow = [1.031, 1.029, 1.030, 1.033, 1.028, 1.031];
    let noisy = [1.1, 0.93, 1.02, 0.97, 1.04, 0.99];
    let cell = |at: usize| CellAnswer {
        arm: format!("arm{at}"),
        tests: vec![test("ttft_p50", 20.0, if at == 8 { &slow } else { &noisy })],
        guardrail: Guardrail::of([&BTreeMap::new(), &BTreeMap::new()]),
        ..some().families[0].cells[0].clone()
    };
    let family = Family::settled(declaration(Vec::new()), (0..9).map(cell).collect(), &Rules::seeing(0.05));
    let told = answers(&[family]);
    assert_eq!(told.len(), 5);
    assert_eq!(told[0], "`arm8` against `vllm`: worse: TTFT p50 slower by 3.0 %.");
    assert_eq!(told[4], "5 more arms below: 5 without a shown difference.");
}

/// The rounds of a cell: ratios of the arm to the baseline, with each possible finding.
const ROUNDS: [(&str, &[f64]); 7] = [
    ("worse", &[1.201, 1.199, 1.2, 1.2005]),
    ("better", &[0.801, 0.799, 0.8, 0.8005]),
    ("alike", &[1.001, 0.999, 1.0005, 0.9995]),
    ("noisy", &[1.3, 0.75, 1.02, 0.99]),
    ("hint", &[1.35, 0.85, 1.06, 1.04]),
    ("few", &[1.2, 1.201]),
    ("nothing", &[]),
];

/// Every combination of findings in up to three cells of one metric, or in two metrics of a cell, with and
/// without a margin: sentence, conclusion, gate, tables and Markdown say the same.
#[test]
fn sentence_gate_tables_and_markdown_never_contradict_each_other() {
    // Cells differ slightly: if their changes were equal, there would be no effect over them to test.
    let of = |metric: &str, more: f64| -> Vec<Test> {
        let times = |times: &[f64]| times.iter().map(|one| one * more).collect::<Vec<f64>>();
        ROUNDS.iter().map(|(_, rounds)| test(metric, 20.0, &times(rounds))).collect()
    };
    let ttft = [1.0, 1.002, 1.004].map(|more| of("ttft_p50", more));
    let tpot = of("tpot_p50", 1.0);
    let template = some().families[0].cells[0].clone();
    let cell = |number: usize, tests: Vec<Test>| CellAnswer {
        name: format!("{number} qps"),
        left_out: Vec::new(),
        notes: Vec::new(),
        guardrail: Guardrail::of([&BTreeMap::new(), &BTreeMap::new()]),
        tests,
        ..template.clone()
    };
    let kinds = ROUNDS.len();
    let mut all: Vec<Vec<CellAnswer>> = Vec::new();
    // The order of cells does not matter, that of metrics does.
    for number in 0..kinds.pow(3) {
        let [a, b, c] = [0, 1, 2].map(|place| number / kinds.pow(place) % kinds);
        if c == 0 {
            all.push(vec![cell(0, vec![ttft[0][a].clone(), tpot[b].clone()])]);
        }
        if c == 0 && a <= b {
            all.push(vec![cell(0, vec![ttft[0][a].clone()]), cell(1, vec![ttft[1][b].clone()])]);
        }
        if a <= b && b <= c {
            let three = [a, b, c].into_iter().enumerate();
            all.push(three.map(|(at, of)| cell(at, vec![ttft[at][of].clone()])).collect());
        }
    }
    let mut of_effects = 0;
    // Every third combination; the measured suite (`SWEEPLINE_WHOLE=1`) checks each.
    let step = if std::env::var("SWEEPLINE_WHOLE").is_ok_and(|whole| whole == "1") { 1 } else { 3 };
    for margin in [None, Some(0.05)] {
        let rules = Rules { margin, named: false, ..Rules::seeing(0.05) };
        for cells in all.iter().step_by(step) {
            let comparison = comparison_of(vec![Family::settled(declaration(Vec::new()), cells.clone(), &rules)]);
            of_effects += usize::from(is_shown_only_over_cells(&comparison.families[0]));
            agree(&comparison);
        }
    }
    assert!(of_effects > 0, "no effect was shown that no cell shows");
}

fn is_shown_only_over_cells(family: &Family) -> bool {
    let is_shown = |outcome: Outcome| outcome == Outcome::Worse;
    let mut tests = family.cells.iter().flat_map(|cell| &cell.tests).map(|test| test.outcome);
    family.pooled.iter().any(|one| is_shown(one.outcome)) && !tests.any(is_shown)
}

/// Asserts that everything that is said about the only arm of a comparison follows from its tests.
fn agree(comparison: &Comparison) {
    let [family] = &comparison.families[..] else { panic!("one family") };
    let tests = family.cells.iter().flat_map(|cell| &cell.tests);
    let of_tests = tests.map(|test| (test.outcome, test.margin.as_ref(), verdict(test)));
    let over_cells = family.pooled.iter().map(|one| (one.outcome, one.margin.as_ref(), effects::on_average(one)));
    let found: Vec<_> = of_tests.chain(over_cells).collect();
    let all = |is: &dyn Fn(Outcome, Option<MarginAnswer>) -> bool| {
        found.iter().filter(|(outcome, margin, _)| is(*outcome, margin.map(|one| one.answer))).count()
    };
    let against = all(&|outcome, margin| match margin {
        Some(answer) => answer == MarginAnswer::Worse,
        None => outcome == Outcome::Worse,
    });
    let open = all(&|outcome, margin| match margin {
        Some(answer) => answer == MarginAnswer::NotShown,
        None => matches!(outcome, Outcome::Refused | Outcome::Unknown),
    });
    let worse = all(&|outcome, margin| outcome == Outcome::Worse || margin == Some(MarginAnswer::Worse));
    let better = all(&|outcome, _| outcome == Outcome::Better);
    let [sentence] = &comparison.answers[..] else { panic!("one arm") };
    let (page, screen) = (markdown(comparison), text(comparison));
    let what = || format!("{sentence}\n{page}");
    let says = |words: &str| sentence.contains(words);
    assert_eq!((says(" worse: "), says("better: ")), (worse > 0, better > 0), "{}", what());
    assert_eq!(says("undecided: "), open > 0, "{}", what());
    if open > 0 {
        assert!(says(&format!("undecided: {open} of {} test", found.len())), "{}", what());
    }
    assert!(!says("no difference shown") || open == 0, "{}", what());
    let is_all_alike = says("no difference shown in any") || says("no difference shown.");
    assert!(!is_all_alike || worse + better + open == 0, "{}", what());
    assert!(!says("within the margin of 5 % in all") || open + against == 0, "{}", what());
    match &comparison.gate {
        Gate::Fails { missed, .. } => assert_eq!(missed.len(), against, "{}", what()),
        Gate::Unanswered { .. } => assert!(against == 0 && open > 0, "{}", what()),
        Gate::Passes => assert_eq!(against + open, 0, "{}", what()),
    }
    let rows = |mark: &str| page.lines().filter(|line| line.starts_with('|') && line.contains(mark)).count();
    assert_eq!(rows("| **slower by"), all(&|outcome, _| outcome == Outcome::Worse), "{}", what());
    assert_eq!(rows("| **faster by"), better, "{}", what());
    let shown = all(&|outcome, _| outcome == Outcome::NotShown);
    assert_eq!(rows("| no difference shown") + rows("| **no difference shown"), shown, "{}", what());
    // Words of a margin that is exceeded stand with no other verdict.
    let outside = found.iter().filter(|(_, _, words)| words.contains("outside the margin"));
    assert!(outside.clone().all(|(_, _, words)| !words.contains("no difference shown")), "{}", what());
    assert_eq!(outside.count(), all(&|_, margin| margin == Some(MarginAnswer::Worse)), "{}", what());
    let first = page.lines().next().expect("a sentence");
    assert_eq!(first.trim_end(), escaped(sentence), "Markdown begins with the sentence");
    let joined = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.starts_with(sentence.as_str()), "the terminal begins with the sentence: {joined}");
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
