//! Our statistics compared with those of numpy, scipy and statsmodels: the results in
//! `tests/vectors/stats.json`, which `tests/vectors/stats.py` generated.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::paired::power::{self, LEVEL, detectable, pairs_for};
use super::paired::{holm::holm, t_test, wilcoxon::signed_rank};
use super::replicates::{Ends, Scale, over_runs};
use super::stats::Summary;
use super::{binomial, student};

/// The required agreement: absolute below 1, relative above.
const WITHIN: f64 = 1e-9;

fn cases<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let text = include_str!("../../tests/vectors/stats.json");
    let mut all: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).expect("vectors");
    let cases: Vec<T> = serde_json::from_value(all.remove(name).expect(name)).expect(name);
    assert!(cases.len() > 4, "{name}");
    cases
}

#[track_caller]
fn agree(ours: f64, theirs: f64, what: impl std::fmt::Debug) {
    let off = (ours - theirs).abs() / theirs.abs().max(1.0);
    assert!(off <= WITHIN, "{what:?}: {ours} here, {theirs} there, {off:.1e} off");
}

#[derive(Debug, Deserialize)]
struct Percentiles {
    values: Vec<f64>,
    is: [f64; 6],
}

#[test]
fn percentiles_are_numpys() {
    for case in cases::<Percentiles>("percentiles") {
        let (n, mut rising) = (case.values.len(), case.values.clone());
        rising.sort_by(f64::total_cmp);
        let summary = Summary::of(case.values, 0, None);
        for (at, permille) in [500, 750, 900, 950, 990, 999].into_iter().enumerate() {
            let ours = super::stats::sorted_quantile(&rising, permille).expect("values");
            agree(ours, case.is[at], (n, permille));
            if let Some(told) = summary.percentiles[at].exact() {
                agree(told, case.is[at], (n, permille));
            }
        }
    }
}

#[derive(Debug, Deserialize)]
struct Ranks {
    n: u64,
    share: f64,
    is: Option<(u64, u64)>,
}

#[test]
fn ranks_of_intervals_are_scipys() {
    for case in cases::<Ranks>("ranks") {
        assert_eq!(binomial::interval_ranks(case.n, case.share), case.is, "{case:?}");
    }
}

#[derive(Debug, Deserialize)]
struct Intervals {
    values: Vec<f64>,
    plain: [f64; 3],
    log: [f64; 3],
}

#[test]
fn intervals_over_runs_are_scipys() {
    for case in cases::<Intervals>("intervals") {
        for (scale, theirs) in [(Scale::Plain, case.plain), (Scale::Log, case.log)] {
            let ours = over_runs(&case.values, scale);
            let Ends { low, high, .. } = ours.ends.expect("two runs or more");
            for (ours, theirs) in [ours.mean.expect("a mean"), low, high].into_iter().zip(theirs) {
                agree(ours, theirs, (scale, ours, case.values.len()));
            }
        }
    }
}

#[derive(Debug, Deserialize)]
struct Paired {
    a: Vec<f64>,
    b: Vec<f64>,
    t: f64,
    p: f64,
    ratio: [f64; 3],
}

#[test]
fn paired_t_tests_are_scipys() {
    for case in cases::<Paired>("paired") {
        let differences: Vec<f64> = case.a.iter().zip(&case.b).map(|(a, b)| b.ln() - a.ln()).collect();
        let ours = t_test(&differences).expect("a test");
        agree(ours.mean / ours.sd * (ours.n as f64).sqrt(), case.t, &case);
        agree(ours.p, case.p, &case);
        for (ours, theirs) in [ours.mean, ours.low, ours.high].into_iter().zip(case.ratio) {
            agree(ours.exp(), theirs, &case);
        }
    }
}

#[derive(Debug, Deserialize)]
struct Wilcoxon {
    values: Vec<f64>,
    statistic: f64,
    p: f64,
    exact: bool,
}

#[test]
fn signed_ranks_are_scipys_and_exact_with_ties() {
    for case in cases::<Wilcoxon>("wilcoxon") {
        let ours = signed_rank(&case.values).expect("six or more");
        agree(ours.statistic, case.statistic, &case);
        agree(ours.p, case.p, &case);
        assert_eq!(ours.exact, case.exact, "{case:?}");
    }
    assert_eq!(signed_rank(&[1.0, 2.0, 3.0, 4.0, 5.0, 0.0]), None, "a zero is no evidence");
}

#[derive(Debug, Deserialize)]
struct Holm {
    p: Vec<f64>,
    is: Vec<f64>,
}

#[test]
fn holm_is_statsmodels() {
    for case in cases::<Holm>("holm") {
        for (ours, theirs) in holm(&case.p).into_iter().zip(&case.is) {
            agree(ours, *theirs, &case);
        }
    }
    assert!(holm(&[]).is_empty());
}

#[derive(Debug, Deserialize)]
struct Power {
    n: usize,
    effect: f64,
    is: f64,
}

#[test]
fn power_is_statsmodels() {
    for case in cases::<Power>("power") {
        agree(power::power(case.n, case.effect, LEVEL), case.is, &case);
    }
}

#[derive(Debug, Deserialize)]
struct Detectable {
    n: usize,
    is: f64,
}

#[test]
fn detectable_effects_are_statsmodels() {
    for case in cases::<Detectable>("detectable") {
        agree(detectable(case.n, LEVEL), case.is, &case);
    }
}

#[derive(Debug, Deserialize)]
struct Pairs {
    effect: f64,
    is: usize,
}

#[test]
fn needed_pairs_are_statsmodels() {
    for case in cases::<Pairs>("pairs") {
        assert_eq!(pairs_for(case.effect, LEVEL, 2), Some(case.is), "{case:?}");
    }
    assert_eq!(pairs_for(1.0, LEVEL, 40), Some(40), "never fewer than requested");
    assert_eq!(pairs_for(1e-3, LEVEL, 3), None);
}

#[derive(Debug, Deserialize)]
struct Student {
    df: f64,
    critical: f64,
    p: Vec<(f64, f64)>,
}

#[test]
fn student_is_scipys() {
    for case in cases::<Student>("student") {
        agree(student::critical(0.05, case.df), case.critical, &case);
        for (t, p) in &case.p {
            agree(student::two_sided(*t, case.df), *p, (&case, t));
        }
    }
    assert_eq!(student::two_sided(f64::INFINITY, 3.0), 0.0);
}

#[derive(Debug, Deserialize)]
struct Noncentral {
    df: f64,
    t: f64,
    shift: f64,
    is: f64,
}

#[test]
fn noncentral_student_is_scipys() {
    for case in cases::<Noncentral>("noncentral") {
        agree(student::beyond(case.t, case.df, case.shift), case.is, &case);
    }
}
