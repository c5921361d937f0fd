//! Tests of margins, effects over cells, and the gate's verdict on them.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::pooled::{RandomEffects, random_effects};
use super::*;
use crate::analysis::FailureCount;

fn sides(metric: &str, baseline: &[f64], arm: &[f64]) -> Test {
    let known = |values: &[f64]| values.iter().map(|value| RunValue::Known(*value)).collect::<Vec<_>>();
    of_readings(metric, &known(baseline), &known(arm))
}

fn of_readings(metric: &str, baseline: &[RunValue], arm: &[RunValue]) -> Test {
    fn side(readings: &[RunValue]) -> BTreeMap<u32, &RunValue> {
        (0..).zip(readings).collect()
    }
    Test::new(metric.parse().expect("a metric"), &Sides { baseline: side(baseline), arm: side(arm) })
}

fn with(margin: f64, named: bool) -> Rules {
    Rules { margin: Some(margin), named, ..Rules::seeing(0.05) }
}

/// Returns the margin result of a metric for which the arm is `times` the baseline in each round.
fn held(metric: &str, times: &[f64], margin: f64) -> Margin {
    let mut test = sides(metric, &vec![50.0; times.len()], &times.iter().map(|one| 50.0 * one).collect::<Vec<_>>());
    settle(&mut [&mut test], &with(margin, true));
    test.margin.expect("a margin")
}

#[test]
fn a_margin_is_kept_where_the_bound_lies_within_it() {
    use MarginAnswer::{NotJudged, NotShown, Shown, Worse};
    let around = |centre: f64, noise: f64| [-1.0, 0.6, -0.2, 0.9, -0.3].map(|one| centre + noise * one);
    for (metric, centre, noise, answer, words) in [
        ("ttft_p50", 1.01, 0.002, Shown, "within the margin of 2 %: shown (slower by 1"),
        ("ttft_p50", 0.9, 0.002, Shown, "within the margin of 2 %: shown (faster by 9"),
        ("output_throughput", 0.99, 0.002, Shown, "within the margin of 2 %: shown (lower by 1"),
        ("output_throughput", 0.95, 0.002, Worse, "outside the margin of 2 %: shown (lower by 4"),
        ("ttft_p50", 1.05, 0.002, Worse, "outside the margin of 2 %: shown (slower by 4"),
        ("requests", 1.5, 0.1, NotJudged, "has no margin"),
    ] {
        let held = held(metric, &around(centre, noise), 0.02);
        assert_eq!(held.answer, answer, "{metric} {centre}");
        assert!(held.words.starts_with(words), "{}", held.words);
    }
    let noisy = held("ttft_p50", &around(1.0, 0.05), 0.02);
    assert_eq!(noisy.answer, NotShown);
    let needed = noisy.repeats_needed.expect("a number");
    assert!(needed > 5 && noisy.words.ends_with(&format!("; {needed} repeats would suffice")), "{}", noisy.words);
    // The arm is slower by slightly more than the margin, so no number of repeats can show that it is within
    // the margin.
    let edge = held("ttft_p50", &around(1.021, 0.005), 0.02);
    assert_eq!((edge.answer, edge.repeats_needed), (NotShown, None), "{}", edge.words);
    assert!(edge.words.ends_with("; more repeats would not help"), "{}", edge.words);
}

#[test]
fn shares_have_a_margin_in_points() {
    let baseline = [0.90, 0.91, 0.92, 0.90];
    let mut test = sides("goodput_share", &baseline, &[0.895, 0.9, 0.918, 0.893]);
    settle(&mut [&mut test], &with(0.02, true));
    let margin = test.margin.expect("a margin");
    assert_eq!(margin.answer, MarginAnswer::Shown);
    assert!(margin.words.starts_with("within the margin of 2 points: shown (lower by "), "{}", margin.words);
}

#[test]
fn too_few_rounds_and_missing_values_show_nothing() {
    assert_eq!(held("ttft_p50", &[1.0, 1.01], 0.02).answer, MarginAnswer::NotShown);
    assert_eq!(held("ttft_p50", &[1.0; 4], 0.02).answer, MarginAnswer::Shown, "equal in every repeat");
    let missing = |why: &str, named| {
        let none = vec![RunValue::Missing(why.to_owned()); 3];
        let mut test = of_readings("ttft_p99", &none, &none);
        settle(&mut [&mut test], &with(0.02, named));
        test.margin.expect("a margin").answer
    };
    assert_eq!(missing("n=20 < 368 requests", false), MarginAnswer::NotShown);
    assert_eq!(missing("not known: no accelerators are declared", false), MarginAnswer::NotJudged);
    assert_eq!(missing("not known: no accelerators are declared", true), MarginAnswer::NotShown);
}

fn family(tests: Vec<Test>, margin: Option<f64>, failed: u64) -> Family {
    let failing = |failed| (0..3).map(|at| (at, FailureCount { requests: 1_000, failed, dispersion: None })).collect();
    let cell = CellAnswer {
        sweep: "load".to_owned(),
        cell: Map::new(),
        name: "5 qps".to_owned(),
        arm: "new".to_owned(),
        left_out: Vec::new(),
        notes: Vec::new(),
        launches: Launches { baseline: 6, arm: 6, of_rounds: true },
        guardrail: Guardrail::of([&failing(0), &failing(failed)]),
        tests,
    };
    let declaration = Declaration { by: "endpoint".to_owned(), baseline: "old".to_owned(), notes: Vec::new() };
    Family::settled(declaration, vec![cell], &Rules { margin, ..Rules::seeing(0.05) })
}

#[test]
fn a_gate_passes_where_margins_are_shown_and_fails_where_errors_are() {
    let test = |times: [f64; 4]| sides("ttft_p50", &[50.0; 4], &times.map(|one| 50.0 * one));
    let (alike, noisy) = ([1.001, 0.999, 1.002, 1.0], [1.1, 0.9, 1.02, 0.97]);
    let slower = [1.011, 1.009, 1.010, 1.012];
    let gate = |times, margin, failed| Gate::of(&[family(vec![test(times)], margin, failed)]);
    assert_eq!(gate(alike, Some(0.02), 0), Gate::Passes);
    assert_eq!(gate(slower, Some(0.02), 0), Gate::Passes, "slower, and within the margin");
    assert_eq!(gate(noisy, None, 0), Gate::Passes, "no difference shown");
    let missed = |gate| match gate {
        Gate::Fails { missed, .. } => missed.into_iter().map(|one: Missed| one.what).collect::<Vec<_>>().join("\n"),
        other => panic!("{other:?}"),
    };
    assert!(missed(gate(slower, None, 0)).starts_with("ttft_p50 slower by 1.0 %"));
    assert!(missed(gate(slower, Some(0.005), 0)).starts_with("ttft_p50 outside the margin of 0.5 %: shown"));
    let errors = missed(gate(alike, Some(0.02), 40));
    assert!(
        errors
            .starts_with("errors: 120 of 3000 failed, compared with 0 of 3000 of the baseline: higher by 4.0 points ["),
        "{errors}"
    );
    match gate(noisy, Some(0.02), 0) {
        Gate::Unanswered { why } => {
            assert!(
                why.starts_with("1 of 1 tests do not show the arm to be within the margin, such as ttft_p50:"),
                "{why}"
            );
            assert!(why.ends_with("repeats would suffice"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(Gate::of(&[]), Gate::Unanswered { .. }));
    let of = |times| family(vec![test(times)], Some(0.02), 0);
    match Gate::of(&[of(slower.map(|one| one * 1.1)), of(noisy)]) {
        Gate::Fails { missed, undecided: Some(why) } => {
            assert!(missed.len() == 1 && why.starts_with("1 of 1 tests do not show"), "{missed:?}: {why}");
        }
        other => panic!("an undecided comparison is told beside a failure: {other:?}"),
    }
}

#[test]
fn exploring_finds_more_and_says_how() {
    let noise = [0.020, -0.012, 0.001, 0.014, -0.004, 0.007];
    let make = |share: f64| sides("ttft_p50", &[20.0; 6], &noise.map(|off| 20.0 * (1.0 + share + off)));
    let found = |adjusted| {
        let mut tests: Vec<Test> = [0.0105, 0.011, 0.0115, 0.012, 0.0, 0.0].map(make).into();
        settle(&mut tests.iter_mut().collect::<Vec<_>>(), &Rules { adjusted, ..Rules::seeing(0.05) });
        tests.iter().filter(|test| test.outcome == Outcome::Worse).count()
    };
    assert!(found(Adjusted::BenjaminiHochberg) > found(Adjusted::Holm));
}

/// Each cell has its own deviation, and the true changes of cells differ; 95 % of the intervals
/// contain the mean.
#[test]
fn effects_over_cells_hold_the_truth() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    for (cells, rounds, apart) in [(3, 3, 0.0), (3, 5, 0.02), (5, 3, 0.02), (10, 5, 0.0), (10, 3, 0.02)] {
        let covered = (0..1_000).filter(|_| {
            let made: Vec<(f64, f64)> = (0..cells)
                .map(|cell| {
                    let (sd, change) = ([0.01, 0.02, 0.1][cell % 3], apart * normal());
                    let rounds: Vec<f64> = (0..rounds).map(|_| change + sd * normal()).collect();
                    let (mean, sd) = paired::moments(&rounds).expect("rounds");
                    (mean, sd * sd / rounds.len() as f64)
                })
                .collect();
            let RandomEffects { low, high, .. } = random_effects(&made).expect("cells");
            low <= 0.0 && 0.0 <= high
        });
        let share = covered.count() as f64 / 1_000.0;
        println!("coverage over {cells} cells of {rounds} rounds, changes {apart} apart: {:.1} %", 100.0 * share);
        assert!(share >= 0.93, "{cells} cells of {rounds} rounds: {share}");
    }
}
