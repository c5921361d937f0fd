use std::collections::BTreeMap;

use super::*;

/// Returns a settled test of one metric over rounds, which are given as pairs `(baseline, arm)`.
fn tested(metric: &str, rounds: &[(f64, f64)]) -> Test {
    let readings =
        |of: fn(&(f64, f64)) -> f64| -> Vec<RunValue> { rounds.iter().map(|one| RunValue::Known(of(one))).collect() };
    of_readings(metric, &readings(|one| one.0), &readings(|one| one.1))
}

fn of_readings(metric: &str, baseline: &[RunValue], arm: &[RunValue]) -> Test {
    let mut test = one(metric, baseline, arm);
    settle(&mut [&mut test], &Rules::seeing(0.05));
    test
}

fn one(metric: &str, baseline: &[RunValue], arm: &[RunValue]) -> Test {
    fn side(readings: &[RunValue]) -> BTreeMap<u32, &RunValue> {
        (0..).zip(readings).collect()
    }
    Test::new(metric.parse().expect("a metric"), &Sides { baseline: side(baseline), arm: side(arm) })
}

/// Returns rounds in which the arm is `share` above the baseline, plus or minus `noise`.
fn above(share: f64, noise: f64, rounds: usize) -> Vec<(f64, f64)> {
    let sign = |at: usize| if at.is_multiple_of(2) { 1.0 } else { -1.0 };
    (0..rounds).map(|at| (20.0 + at as f64, (20.0 + at as f64) * (1.0 + share + noise * sign(at)))).collect()
}

#[test]
fn a_difference_has_a_direction_and_a_size() {
    for (metric, share, outcome, words) in [
        ("ttft_p50", 0.03, Outcome::Worse, "slower by 3.0 %"),
        ("ttft_p50", -0.25, Outcome::Better, "faster by 25 %"),
        ("output_throughput", 0.03, Outcome::Better, "higher by 3.0 %"),
        ("output_throughput", -0.03, Outcome::Worse, "lower by 3.0 %"),
        ("tokens_per_event", 1.5, Outcome::Differs, "higher by 150 %"),
        ("cost_per_million_output_tokens", 0.0042, Outcome::Worse, "higher by 0.42 %"),
    ] {
        let test = tested(metric, &above(share, 0.0004, 8));
        assert_eq!((test.outcome, test.words.as_str()), (outcome, words), "{metric} {share}");
        let change = test.change.expect("tested");
        assert_eq!(change.of, "ratio");
        assert!(change.low < 1.0 + share && 1.0 + share < change.high, "{change:?}");
        assert!(change.bootstrap_low.is_some() && test.p_wilcoxon.is_some());
    }
}

#[test]
fn shares_and_waits_are_compared_by_their_difference() {
    let rounds: Vec<(f64, f64)> = (0..6).map(|at| (0.0, 0.004 + 0.000_12 * f64::from(at))).collect();
    let test = tested("error_share", &rounds);
    assert_eq!((test.outcome, test.words.as_str()), (Outcome::Worse, "higher by 0.43 points"));
    assert_eq!(test.change.expect("tested").of, "difference");
    let waits = tested("cap_wait_p50", &rounds);
    assert_eq!((waits.outcome, waits.words.as_str()), (Outcome::Worse, "slower by 0.0043 ms"));
}

#[test]
fn what_was_not_shown_says_what_would_have_been() {
    let test = tested("ttft_p50", &above(0.001, 0.04, 4));
    assert_eq!(test.outcome, Outcome::NotShown);
    let (least, repeats) = (test.detectable.expect("tested"), test.repeats_needed.expect("more"));
    assert!(least > 0.05 && repeats > 4, "{least} {repeats}");
    let words = format!(
        "no difference shown at this power (would detect ≥ {}; {repeats} repeats would detect 5 %)",
        phrasing::percent(least)
    );
    assert_eq!(test.words, words);
    // There are already enough repeats, so no more are recommended.
    let test = tested("ttft_p50", &above(0.0, 0.001, 8));
    assert_eq!((test.outcome, test.repeats_needed), (Outcome::NotShown, None));
    assert!(test.detectable.expect("tested") < 0.05 && !test.words.contains("repeats"), "{}", test.words);
}

#[test]
fn too_few_repeats_are_refused_with_how_many_would_do() {
    let test = tested("ttft_p50", &above(0.5, 0.001, 2));
    assert_eq!(
        (test.outcome, test.words.as_str()),
        (Outcome::Refused, "slower in 2 of 2 repeats, not proven; 5 repeats would suffice")
    );
    assert_eq!((test.p, test.change.as_ref()), (None, None));
    let noisy = tested("ttft_p50", &above(0.0, 0.08, 2));
    assert!(noisy.repeats_needed.expect("refused") > 20, "{}", noisy.words);
    assert_eq!(tested("ttft_p50", &above(0.5, 0.0, 1)).words, "slower in 1 of 1 repeat, not proven; 5 repeats advised");
}

#[test]
fn an_arm_that_lacks_a_value_does_not_hide_the_other_ones() {
    let known = [90.0, 100.0, 110.0].map(RunValue::Known);
    let missing = || RunValue::Missing("n=20 < 368 requests".to_owned());
    for lacking in [[missing(), missing(), missing()], [RunValue::Known(80.0), RunValue::Failed, RunValue::Known(80.0)]]
    {
        let test = of_readings("ttft_p99", &known, &lacking);
        assert!(test.words.starts_with("n/a: "), "{}", test.words);
        assert!((test.baseline.as_ref().unwrap().value - 99.7).abs() < 0.1, "{:?}", test.baseline);
        assert_eq!(
            (test.arm, test.change),
            (None, None),
            "a mean of the rounds that did not fail would be a \
                                                          better one"
        );
    }
}

#[test]
fn what_never_varies_is_no_test() {
    let same = tested("requests", &[(40.0, 40.0), (41.0, 41.0), (42.0, 42.0)]);
    assert_eq!((same.outcome, same.words.as_str()), (Outcome::Constant, "equal in every repeat"));
    let apart = tested("requests", &[(40.0, 44.0), (41.0, 45.0), (42.0, 46.0)]);
    assert_eq!(apart.words, "higher by 4.0 requests in every repeat: no variation to test against");
    assert_eq!(apart.p, None);
}

#[test]
fn values_that_are_missing_have_a_reason_and_failures_are_never_left_out() {
    let known = |values: &[f64]| values.iter().map(|value| RunValue::Known(*value)).collect::<Vec<_>>();
    let missing = vec![RunValue::Missing("n=20 < 368 requests".to_owned()); 4];
    let test = of_readings("ttft_p99", &known(&[1.0, 2.0, 3.0, 4.0]), &missing);
    assert_eq!((test.outcome, test.words.as_str()), (Outcome::Unknown, "n/a: n=20 < 368 requests"));
    let few = [&known(&[1.1, 2.1, 3.1]), &missing[..1]].concat();
    let test = of_readings("ttft_p99", &known(&[1.0, 2.0, 3.0, 4.0]), &few);
    assert_eq!(test.words, "n/a: n=20 < 368 requests, in 1 of 4 rounds");
    // One of five repeats fails. The other repeats alone would suggest that the failing arm is
    // faster.
    let mut arm = known(&[0.5, 1.0, 1.5, 2.0, 2.5]);
    arm[2] = RunValue::Failed;
    let test = of_readings("ttft_p99", &known(&[1.0, 2.0, 3.0, 4.0, 5.0]), &arm);
    assert_eq!(test.words, "n/a: the value lies among failures in 1 of 5 rounds");
    let zeros = of_readings("ttft_p50", &known(&[0.0, 0.0, 0.0]), &known(&[1.0, 1.0, 1.0]));
    assert_eq!(zeros.words, "n/a: a value of 0 has no ratio");
    assert_eq!(of_readings("ttft_p50", &[], &known(&[1.0])).words, "n/a: no repeat was measured on both arms");
    // Repeats that were measured on only one arm do not count.
    let test = of_readings("ttft_p50", &known(&[1.0, 2.0]), &known(&[1.0, 2.1, 3.0, 4.0]));
    assert_eq!((test.rounds, test.outcome), (2, Outcome::Refused));
}

#[test]
fn a_family_is_adjusted_as_one() {
    let noise = [0.020, -0.012, 0.001, 0.014, -0.004, 0.007];
    let rounds = |share: f64| -> Vec<(f64, f64)> { noise.map(|off| (20.0, 20.0 * (1.0 + share + off))).to_vec() };
    let readings = |rounds: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| -> Vec<RunValue> {
        rounds.iter().map(|one| RunValue::Known(of(one))).collect()
    };
    let make = |share: f64| {
        let rounds = rounds(share);
        one("ttft_p50", &readings(&rounds, |one| one.0), &readings(&rounds, |one| one.1))
    };
    let mut alone = make(0.011);
    settle(&mut [&mut alone], &Rules::seeing(0.05));
    assert_eq!(alone.outcome, Outcome::Worse, "{alone:?}");
    let mut all: Vec<Test> = std::iter::once(0.011).chain([0.0; 7]).map(make).collect();
    settle(&mut all.iter_mut().collect::<Vec<_>>(), &Rules::seeing(0.05));
    assert_eq!(all[0].p, alone.p);
    assert!((all[0].p_adjusted.expect("p") - 8.0 * alone.p.expect("p")).abs() < 1e-12);
    assert_eq!(all[0].outcome, Outcome::NotShown);
    assert!(
        all[0].words.starts_with("no difference shown, adjusted for other tests, at this power"),
        "{}",
        all[0].words
    );
    assert!(all[0].detectable > alone.detectable, "eight tests detect less than one");
}

#[test]
fn the_usual_metrics_of_open_loops_are_from_the_schedule() {
    let names = |open| expand(&[], open).into_iter().map(|name| name.to_string()).collect::<Vec<_>>();
    let closed = [
        "output_throughput",
        "output_throughput_per_gpu",
        "ttft_p50",
        "ttft_p99",
        "tpot_p50",
        "tpot_p99",
        "e2e_p50",
        "e2e_p99",
    ];
    assert_eq!(names(false), closed);
    assert_eq!(names(true)[2], "ttft_from_schedule_p50");
    let named = |list: &[&str]| list.iter().map(|name| name.parse().expect("a metric")).collect::<Vec<MetricName>>();
    let expanded = expand(&named(&["ttft", "goodput", "ttft_p99"]), true);
    assert_eq!(expanded, named(&["ttft_p50", "ttft_p99", "goodput"]));
}

#[test]
fn percentiles_of_few_requests_are_marked() {
    let of = |requests: usize| {
        let (mut records, facts) = crate::analysis::synthetic::Run { seconds: 40.0, ..Default::default() }.make();
        let inside = |at: u64| (facts.windows.measure_start_ns..facts.windows.measure_end_ns).contains(&at);
        records.retain(|record| inside(record.row.scheduled_ns));
        records.truncate(requests);
        let metrics = crate::analysis::synthetic::measured(&records, &facts);
        let named = |name: &str| name.parse::<MetricName>().expect("a metric");
        ["ttft_p50", "ttft_p99"].map(|name| read(named(name), &metrics, &crate::analysis::PlanMetrics::default()))
    };
    assert!(matches!(of(367), [RunValue::Known(_), RunValue::Missing(why)] if why == "n=367 < 368 requests"));
    assert!(matches!(of(368), [RunValue::Known(_), RunValue::Few(_)]));
    assert!(matches!(of(999), [RunValue::Known(_), RunValue::Few(_)]));
    // 1 000 requests that may depend on each other carry less information than 1 000 independent
    // ones.
    assert!(matches!(of(3_000), [RunValue::Known(_), RunValue::Known(_)]));
}

#[test]
fn a_mean_of_few_samples_anywhere_is_marked() {
    let baseline = [10.0, 10.1, 10.2].map(RunValue::Known);
    let mut arm = [10.3, 10.5, 10.4].map(RunValue::Known);
    let of = |arm: &[RunValue]| {
        let numbered = |side: &'_ [RunValue]| -> BTreeMap<u32, RunValue> { (0..).zip(side.iter().cloned()).collect() };
        let (from, to) = (numbered(&baseline), numbered(arm));
        let sides = Sides {
            baseline: from.iter().map(|(at, one)| (*at, one)).collect(),
            arm: to.iter().map(|(at, one)| (*at, one)).collect(),
        };
        let test = Test::new("ttft_p99".parse().expect("a metric"), &sides);
        assert_eq!(test.rounds, 3);
        [test.baseline, test.arm].map(|mean| mean.expect("a mean").few_samples)
    };
    assert_eq!(of(&arm), [false, false]);
    arm[1] = RunValue::Few(10.5);
    assert_eq!(of(&arm), [false, true]);
}

#[test]
fn every_metric_can_be_read() {
    let (run, facts) = crate::analysis::synthetic::Run::default().make();
    let metrics = crate::analysis::synthetic::measured(&run, &facts);
    let names = all_names();
    for name in &names {
        let reading = read(*name, &metrics, &crate::analysis::PlanMetrics::default());
        assert_ne!(reading, RunValue::Failed, "{name}");
        assert_eq!(name.to_string().parse::<MetricName>().expect("a name"), *name);
    }
}
