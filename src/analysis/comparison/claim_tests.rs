//! Checks the claims about an arm, and the gate on them, for every combination of results.

use std::collections::BTreeMap;

use super::*;
use crate::analysis::FailureCount;

/// What a test finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Worse,
    Better,
    /// No difference shown.
    Unshown,
    /// The same value in every repeat.
    Equal,
    /// Too few repeats, or no values.
    Untested,
    /// A metric that neither arm can have, and that was not requested by name.
    Impossible,
}

const KINDS: [Kind; 6] = [Kind::Worse, Kind::Better, Kind::Unshown, Kind::Equal, Kind::Untested, Kind::Impossible];

/// Results for a margin; the last is that none applies to the metric.
const MARGINS: [Option<MarginAnswer>; 4] =
    [Some(MarginAnswer::Shown), Some(MarginAnswer::Worse), Some(MarginAnswer::NotShown), Some(MarginAnswer::NotJudged)];

fn readings(metric: &str, baseline: &[RunValue], arm: &[RunValue]) -> Test {
    fn side(readings: &[RunValue]) -> BTreeMap<u32, &RunValue> {
        (0..).zip(readings).collect()
    }
    Test::new(metric.parse().expect("a metric"), &Sides { baseline: side(baseline), arm: side(arm) })
}

/// Returns a test with exactly this finding, whatever the other tests of its family find.
fn test(metric: &str, kind: Kind, margin: Option<MarginAnswer>) -> Test {
    let known = |values: &[f64]| values.iter().map(|value| RunValue::Known(20.0 * value)).collect::<Vec<_>>();
    let lacking = vec![RunValue::Missing("not known: nothing is streamed".to_owned()); 3];
    let mut test = match kind {
        Kind::Worse => readings(metric, &known(&[1.0; 4]), &known(&[1.1, 1.101, 1.099, 1.1])),
        Kind::Better => readings(metric, &known(&[1.0; 4]), &known(&[0.9, 0.901, 0.899, 0.9])),
        Kind::Unshown => readings(metric, &known(&[1.0; 4]), &known(&[1.1, 0.9, 1.01, 1.0])),
        Kind::Equal => readings(metric, &known(&[1.0; 4]), &known(&[1.0; 4])),
        Kind::Untested => readings(metric, &known(&[1.0; 2]), &known(&[1.1; 2])),
        Kind::Impossible => readings(metric, &lacking, &lacking),
    };
    settle(&mut [&mut test], &Rules { named: false, ..Rules::seeing(0.05) });
    let words = "in words".to_owned();
    test.margin = margin.map(|answer| Margin { margin: 0.02, bound: None, answer, repeats_needed: None, words });
    test
}

fn cell(name: usize, tests: Vec<Test>, failed: u64) -> CellAnswer {
    let failing = |failed| (0..3).map(|at| (at, FailureCount { requests: 1_000, failed, dispersion: None })).collect();
    CellAnswer {
        sweep: "load".to_owned(),
        cell: Map::new(),
        name: format!("{name} qps"),
        arm: "new".to_owned(),
        left_out: Vec::new(),
        notes: Vec::new(),
        launches: Launches { baseline: 6, arm: 6, of_rounds: true },
        guardrail: Guardrail::of([&failing(0), &failing(failed)]),
        tests,
    }
}

/// Returns a family of tests that are settled already.
fn family(cells: Vec<CellAnswer>, pooled: Vec<Pooled>, margin: Option<f64>) -> Family {
    let claims = claim::claims(&cells, &pooled);
    let (by, baseline) = ("endpoint".to_owned(), "old".to_owned());
    Family { by, baseline, tests: 0, margin, notes: Vec::new(), cells, pooled, claims }
}

/// Asserts that a claim and the gate say what the findings say, which are given as one test each.
fn agree(family: &Family, found: &[(Kind, Option<MarginAnswer>)], is_failing: bool) {
    let what = format!("{found:?} {is_failing}");
    let [claim] = &family.claims[..] else { panic!("{what}") };
    let members: Vec<_> = found.iter().filter(|(kind, _)| *kind != Kind::Impossible).collect();
    let judged = |margin: &Option<MarginAnswer>| margin.filter(|answer| *answer != MarginAnswer::NotJudged);
    let is_against = |(kind, margin): &&&(Kind, Option<MarginAnswer>)| match judged(margin) {
        Some(answer) => answer == MarginAnswer::Worse,
        None => *kind == Kind::Worse,
    };
    let is_open = |(kind, margin): &&&(Kind, Option<MarginAnswer>)| match judged(margin) {
        Some(answer) => answer == MarginAnswer::NotShown,
        None => *kind == Kind::Untested,
    };
    let is_worse =
        |(kind, margin): &&&(Kind, Option<MarginAnswer>)| *kind == Kind::Worse || *margin == Some(MarginAnswer::Worse);
    let (against, open) = (members.iter().filter(is_against).count(), members.iter().filter(is_open).count());
    let has_margin = members.iter().any(|(_, margin)| judged(margin).is_some());
    let worse = members.iter().filter(is_worse).count() + usize::from(is_failing);
    let is_better =
        |(kind, margin): &&&(Kind, Option<MarginAnswer>)| *kind == Kind::Better && *margin != Some(MarginAnswer::Worse);
    let better = members.iter().filter(is_better).count();
    assert_eq!((claim.worse.len(), claim.better.len()), (worse, better), "{what}");
    assert_eq!((claim.tests, claim.undecided), (members.len() as u32, open as u32), "{what}");
    assert!(!is_failing || claim.worse[0].metric == "errors", "{what}");
    let expected = if is_failing || against > 0 {
        Conclusion::Worse
    } else if members.is_empty() || open > 0 {
        Conclusion::Undecided
    } else if has_margin {
        Conclusion::WithinMargin
    } else if better > 0 {
        Conclusion::Better
    } else {
        Conclusion::NoDifferenceShown
    };
    assert_eq!(claim.conclusion, expected, "{what}");
    match (Gate::of(std::slice::from_ref(family)), claim.conclusion) {
        (Gate::Fails { missed, undecided }, Conclusion::Worse) => {
            assert_eq!(undecided, None, "{what}: the only arm is worse");
            assert_eq!(missed.len(), against + usize::from(is_failing), "{what}: {missed:?}");
        }
        (Gate::Unanswered { .. }, Conclusion::Undecided) => {}
        (Gate::Passes, Conclusion::WithinMargin | Conclusion::Better | Conclusion::NoDifferenceShown) => {}
        (gate, conclusion) => panic!("{what}: {conclusion:?}, {gate:?}"),
    }
}

/// Returns what a single test may find, with or without a margin.
fn findings(with_margin: bool) -> Vec<(Kind, Option<MarginAnswer>)> {
    let margins: &[Option<MarginAnswer>] = if with_margin { &MARGINS } else { &[None] };
    let of = |kind: Kind| margins.iter().map(move |margin| (kind, *margin));
    let is_possible = |(kind, margin): &(Kind, Option<MarginAnswer>)| {
        *kind != Kind::Impossible || margin.is_none_or(|answer| answer == MarginAnswer::NotJudged)
    };
    KINDS.into_iter().flat_map(of).filter(is_possible).collect()
}

#[test]
fn claim_and_gate_agree_whatever_the_tests_of_a_cell_find() {
    for with_margin in [false, true] {
        let all = findings(with_margin);
        let made = ["ttft_p50", "tpot_p50", "e2e_p50"].map(|metric| {
            let of = |found: &(Kind, Option<MarginAnswer>)| test(metric, found.0, found.1);
            all.iter().map(of).collect::<Vec<Test>>()
        });
        let count = all.len();
        for number in 0..count.pow(3) {
            let at = [number % count, number / count % count, number / count / count];
            let found = at.map(|at| all[at]);
            let tests: Vec<Test> = made.iter().zip(at).map(|(made, at)| made[at].clone()).collect();
            for failed in [0, 40] {
                let cells = vec![cell(1, tests.clone(), failed)];
                agree(&family(cells, Vec::new(), with_margin.then_some(0.02)), &found, failed > 0);
            }
        }
    }
}

#[test]
fn claim_and_gate_agree_whatever_an_effect_over_all_cells_shows() {
    // Three cells give the effect its shape; what it shows is then set.
    let cells = |kind: Kind| -> Vec<CellAnswer> {
        let one = |at: usize| cell(at, vec![test("ttft_p50", kind, None)], 0);
        let mut cells: Vec<CellAnswer> = (1..4).map(one).collect();
        // Equal means have no test over cells.
        if let Found::Tested(t) = &mut cells[0].tests[0].found {
            t.mean *= 1.001;
        }
        cells
    };
    let shape = pooled::over(&cells(Kind::Unshown)).remove(0);
    for with_margin in [false, true] {
        for (of_cells, margin_of_cells) in findings(with_margin) {
            let given = cells(of_cells);
            for (kind, margin) in findings(with_margin) {
                let outcome = match kind {
                    Kind::Worse => Outcome::Worse,
                    Kind::Better => Outcome::Better,
                    Kind::Unshown => Outcome::NotShown,
                    // An effect over cells is always tested.
                    Kind::Equal | Kind::Untested | Kind::Impossible => continue,
                };
                let words = "in words".to_owned();
                let of = |answer| Margin { margin: 0.02, bound: None, answer, repeats_needed: None, words };
                let pooled = Pooled { outcome, margin: margin.map(of), ..shape.clone() };
                let mut cells = given.clone();
                for test in cells.iter_mut().flat_map(|cell| &mut cell.tests) {
                    let words = "in words".to_owned();
                    let of = |answer| Margin { margin: 0.02, bound: None, answer, repeats_needed: None, words };
                    test.margin = margin_of_cells.map(of);
                }
                let found = [(of_cells, margin_of_cells); 3].into_iter().chain([(kind, margin)]).collect::<Vec<_>>();
                let family = family(cells, vec![pooled], with_margin.then_some(0.02));
                let [claim] = &family.claims[..] else { panic!("one arm") };
                let is_told = |list: &[Shown]| list.iter().any(|one| one.cell.is_none());
                if outcome == Outcome::Worse || margin == Some(MarginAnswer::Worse) {
                    assert!(is_told(&claim.worse), "{found:?}");
                } else {
                    assert_eq!(is_told(&claim.better), outcome == Outcome::Better, "{found:?}");
                }
                if of_cells == Kind::Worse {
                    assert!(claim.worse.iter().any(|one| one.cell.is_some()), "hidden by the effect: {found:?}");
                }
                agree(&family, &found, false);
            }
        }
    }
}

#[test]
fn the_worst_comes_first() {
    let of = |metric: &str, times: [f64; 4]| {
        readings(metric, &[20.0; 4].map(RunValue::Known), &times.map(|one| RunValue::Known(20.0 * one)))
    };
    let tests = vec![
        of("ttft_p50", [1.05, 1.051, 1.049, 1.05]),
        of("output_throughput", [0.7, 0.701, 0.699, 0.7]),
        of("tpot_p50", [1.5, 1.501, 1.499, 1.5]),
        of("e2e_p50", [0.9, 0.901, 0.899, 0.9]),
    ];
    let declaration = Declaration { by: "endpoint".to_owned(), baseline: "old".to_owned(), notes: Vec::new() };
    let family = Family::settled(declaration, vec![cell(1, tests, 40)], &Rules::seeing(0.05));
    let names = |list: &[Shown]| list.iter().map(|one| one.metric.clone()).collect::<Vec<_>>();
    assert_eq!(names(&family.claims[0].worse), ["errors", "tpot_p50", "output_throughput", "ttft_p50"]);
    assert_eq!(names(&family.claims[0].better), ["e2e_p50"]);
}

#[test]
fn effects_over_all_cells_are_tests_of_the_family() {
    // 4.8 % in each of six cells, in each of which the rounds vary too much to show it.
    let noise = [0.3, -0.3, 0.02, -0.02];
    let one = |at: usize| {
        let share = 0.048 + 0.001 * (at % 3) as f64;
        let arm: Vec<RunValue> = noise.iter().map(|off| RunValue::Known(20.0 * (share + off).exp())).collect();
        cell(at, vec![readings("ttft_p50", &vec![RunValue::Known(20.0); 4], &arm)], 0)
    };
    let declaration = || Declaration { by: "endpoint".to_owned(), baseline: "old".to_owned(), notes: Vec::new() };
    let all = Family::settled(declaration(), (0..6).map(one).collect(), &Rules::seeing(0.05));
    assert!(all.cells.iter().all(|cell| cell.tests[0].outcome == Outcome::NotShown));
    let [effect] = &all.pooled[..] else { panic!("one effect") };
    assert_eq!((all.tests, effect.outcome), (7, Outcome::Worse), "{effect:?}");
    assert_eq!(effect.p_adjusted, Some(7.0 * effect.p));
    assert!(all.cells.iter().all(|cell| cell.tests[0].p_adjusted >= cell.tests[0].p));
    let claim = &all.claims[0];
    assert_eq!((claim.conclusion, claim.worse.len(), claim.tests), (Conclusion::Worse, 1, 7));
    assert!(
        matches!(Gate::of(std::slice::from_ref(&all)), Gate::Fails { missed, .. } if missed[0].cell == "all cells")
    );
    // The effect is beyond a margin that no single cell is shown to exceed.
    let margin = |margin| {
        Family::settled(
            declaration(),
            (0..6).map(one).collect(),
            &Rules { margin: Some(margin), ..Rules::seeing(0.05) },
        )
    };
    assert_eq!(margin(0.02).claims[0].conclusion, Conclusion::Worse);
    assert_eq!(margin(0.06).claims[0].conclusion, Conclusion::Undecided, "no cell is shown to be within it");
    assert_eq!(margin(0.9).claims[0].conclusion, Conclusion::WithinMargin);
}

#[test]
fn an_effect_is_within_the_margin_if_each_of_its_cells_is() {
    // Improvements of different sizes: over cells, they differ too much for an interval within the margin.
    let one = |at: usize| {
        let share = [-0.3, -0.1, 0.0][at];
        let noise = [0.001, -0.001, 0.0005, -0.0005];
        let arm: Vec<RunValue> = noise.iter().map(|off| RunValue::Known(20.0 * (1.0 + share + off))).collect();
        cell(at, vec![readings("ttft_p50", &vec![RunValue::Known(20.0); 4], &arm)], 0)
    };
    let declaration = Declaration { by: "endpoint".to_owned(), baseline: "old".to_owned(), notes: Vec::new() };
    let rules = Rules { margin: Some(0.02), ..Rules::seeing(0.05) };
    let family = Family::settled(declaration, (0..3).map(one).collect(), &rules);
    let margin = family.pooled[0].margin.as_ref().expect("a margin");
    assert_eq!(
        (margin.answer, margin.words.as_str()),
        (MarginAnswer::Shown, "within the margin of 2 %: shown in every cell")
    );
    assert_eq!(family.claims[0].conclusion, Conclusion::WithinMargin);
    assert_eq!(family.claims[0].better.len(), 2);
}

#[test]
fn a_metric_that_cannot_exist_is_a_member_only_if_it_was_named() {
    let family_of = |named: bool, reason: &str, arm: Option<f64>| {
        let missing = vec![RunValue::Missing(reason.to_owned()); 3];
        let arm = arm.map_or(missing.clone(), |value| vec![RunValue::Known(value); 3]);
        let tests = vec![test("ttft_p50", Kind::Unshown, None), readings("tpot_p50", &missing, &arm)];
        let declaration = Declaration { by: "endpoint".to_owned(), baseline: "old".to_owned(), notes: Vec::new() };
        Family::settled(declaration, vec![cell(1, tests, 0)], &Rules { named, ..Rules::seeing(0.05) })
    };
    let claimed = |named, reason, arm| {
        let family = family_of(named, reason, arm);
        (family.claims[0].tests, family.claims[0].conclusion)
    };
    let (never, few) = ("not known: nothing is streamed", "n=20 < 368 requests");
    assert_eq!(claimed(false, never, None), (1, Conclusion::NoDifferenceShown));
    assert_eq!(claimed(true, never, None), (2, Conclusion::Undecided));
    assert_eq!(claimed(false, few, None), (2, Conclusion::Undecided), "longer runs would have it");
    assert_eq!(claimed(false, never, Some(4.0)), (2, Conclusion::Undecided), "one arm has it");
}

#[test]
fn what_two_repeats_agree_on_is_told_as_not_proven() {
    let alike = test("ttft_p50", Kind::Untested, None);
    let known = |values: [f64; 2]| values.map(RunValue::Known);
    let mut apart = readings("tpot_p50", &known([1.0, 1.0]), &known([1.1, 0.9]));
    settle(&mut [&mut apart], &Rules::seeing(0.05));
    let claim = claim::claims(&[cell(1, vec![alike, apart], 0)], &[]).remove(0);
    let told: Vec<(&str, &str)> = claim.unproven.iter().map(|one| (one.metric.as_str(), one.words.as_str())).collect();
    assert_eq!(told, [("ttft_p50", "slower in 2 of 2 repeats")]);
    assert_eq!((claim.conclusion, claim.undecided), (Conclusion::Undecided, 2));
}
