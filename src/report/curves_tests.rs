//! Tests that curves and fronts mark percentiles of few requests, and show `n/a` with the number of requests
//! for percentiles of too few.

use super::super::fronts::fronts;
use super::*;
use crate::analysis::curve::{self, Run};
use crate::analysis::synthetic::{Run as Server, fail, measured, verdict};
use crate::analysis::{MeanTokens, PlanMetrics, RunMetrics, Verdict};
use crate::plan::Validity;
use crate::rows::{Outcome, RunLabels};

/// Returns the labels, the metrics and the verdict of a run of `seconds` seconds with `batch` clients. Each
/// client sends 12.5 requests per second.
fn made(batch: u32, seconds: f64) -> (RunLabels, RunMetrics, Verdict) {
    let server = Server { batch_size: Some(batch), seconds, ..Server::default() };
    let (records, facts) = server.make();
    let labels = RunLabels {
        run_id: format!("{batch:064}"),
        endpoint: "demo".into(),
        model: "m".into(),
        scenario: "B1".into(),
        batch_size: Some(batch),
        ..RunLabels::default()
    };
    (labels, measured(&records, &facts), verdict(&records, &facts, &Validity::default(), None))
}

/// Returns the curve over `loads` (batch size and length of the run in seconds) and its fronts, each as text.
fn shown(loads: &[(u32, f64)]) -> [String; 2] {
    let made: Vec<_> = loads.iter().map(|(batch, seconds)| made(*batch, *seconds)).collect();
    let none = PlanMetrics::default();
    let run = |(labels, metrics, verdict)| Run {
        sweep: "s",
        labels,
        metrics,
        plan_metrics: &none,
        verdict,
        saturation: metrics.saturation,
        slo: &[],
        cost: None,
        tokens: MeanTokens::default(),
    };
    let runs: Vec<Run> = made.iter().map(|(labels, metrics, verdict)| run((labels, metrics, verdict))).collect();
    let found = curve::curves(&runs, false);
    [curves(&found, None, false), fronts(&found, None)]
}

#[test]
fn percentiles_of_few_requests_are_marked() {
    // The runs have 200, 600 and 1200 requests.
    let [curve, front] = shown(&[(2, 8.0), (4, 12.0), (8, 12.0)]);
    let line = |load: &str| curve.lines().position(|line| line.trim_start().starts_with(load)).expect(&curve);
    let lines: Vec<&str> = curve.lines().collect();
    assert!(lines[line("2 ")].contains("n/a") && lines[line("2 ") + 1].contains("n=2"), "{curve}");
    assert_eq!(lines[line("4 ")].matches('*').count(), 2, "p99 of TTFT and of E2E: {curve}");
    assert!(!lines[line("8 ")].contains('*'), "{curve}");
    assert!(curve.contains("* from few samples") && curve.contains("p50 needs 6, p99 368"), "{curve}");
    assert!(curve.lines().all(|line| line.chars().count() <= 100), "{curve}");
    assert!(front.contains('*') && front.contains("* from few samples"), "{front}");
}

#[test]
fn reasons_are_as_narrow_as_their_words() {
    assert_eq!(narrow("429 (3 of 3)"), "429\n(3 of 3)");
    assert_eq!(narrow("connection refused (3 of 3), 503 (3 of 3)"), "connection\nrefused\n(3 of 3)\n503\n(3 of 3)");
}

#[test]
fn percentiles_of_many_requests_are_bare() {
    let [curve, front] = shown(&[(4, 22.0), (8, 12.0)]);
    assert!(!curve.contains('*') && !curve.contains("n="), "{curve}");
    assert!(!front.contains('*'), "{front}");
}

#[test]
fn what_is_on_no_front_says_why() {
    // The load is more than the ten slots of the server can serve, so the server falls behind.
    let open = |qps: f64| {
        let server = Server { batch_size: None, qps: Some(qps), seconds: 12.0, ..Server::default() };
        let (records, facts) = server.make();
        let labels = RunLabels { qps: Some(qps), batch_size: None, ..made(1, 8.0).0 };
        (labels, measured(&records, &facts), verdict(&records, &facts, &Validity::default(), None))
    };
    let none = PlanMetrics::default();
    let made: Vec<_> = [2.0, 400.0, 500.0].map(open).into();
    let runs: Vec<Run> = made
        .iter()
        .map(|(labels, metrics, verdict)| Run {
            sweep: "s",
            labels,
            metrics,
            plan_metrics: &none,
            verdict,
            saturation: metrics.saturation,
            slo: &[],
            cost: None,
            tokens: MeanTokens::default(),
        })
        .collect();
    let front = fronts(&curve::curves(&runs, false), None);
    let front = front.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(front.contains("(0 of 3 loads count; 1 not shown to keep up; 2 saturated)"), "{front}");
    assert!(!front.contains("figures"), "{front}");
}

#[test]
fn a_percentile_among_failures_is_a_bound_and_what_the_objective_limits_has_a_column() {
    let server = Server { batch_size: Some(4), seconds: 22.0, ..Server::default() };
    let (mut records, facts) = server.make();
    records.iter_mut().step_by(10).for_each(|record| fail(record, Outcome::Http(500), 3_000_000));
    let labels = made(4, 8.0).0;
    let (metrics, verdict) = (measured(&records, &facts), verdict(&records, &facts, &Validity::default(), None));
    let none = PlanMetrics::default();
    let run = Run {
        sweep: "s",
        labels: &labels,
        metrics: &metrics,
        plan_metrics: &none,
        verdict: &verdict,
        saturation: None,
        slo: &[],
        cost: None,
        tokens: MeanTokens::default(),
    };
    let found = curve::curves(&[run], true);
    let rung = &found[0].rungs[0];
    let [p50, p95] = ["ttft_p50", "ttft_p95"].map(|name| Ordinate::named(name).unwrap());
    assert!(rung.figure(p95).is_none() && rung.at_least(p50).is_none(), "a tenth fails");
    let bound = rung.at_least(p95).expect("what was observed");
    assert!(bound >= rung.figure(p50).unwrap().value, "{bound}");
    let slo: Slo = serde_json::from_str(r#"{ "ttft": { "p95": "60ms" }, "tpot": { "p90": "10ms" } }"#).unwrap();
    let [bare, limited] = [None, Some(&slo)].map(|slo| curves(&found, slo, false));
    assert!(!bare.contains("TTFT p95") && !bare.contains("TPOT p90"), "{bare}");
    let heading = limited.lines().find(|line| line.contains("TTFT")).expect(&limited);
    let places = ["TTFT p50", "TTFT p95", "TTFT p99", "TPOT p50", "TPOT p90"].map(|name| heading.find(name));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{limited}");
    assert!(
        limited.contains(&format!("> {}", digits(bound))) && limited.contains("lies among failed requests"),
        "{limited}"
    );
}

#[test]
fn a_limit_above_is_claimed_only_where_every_load_above_was_told() {
    let found = |undecided: &[f64], unknown: &[f64]| Bracket {
        holds: Some(10.0),
        undecided: undecided.to_vec(),
        unknown: unknown.to_vec(),
        ..Bracket::default()
    };
    let says = |found: &Bracket| bracket(found, found.holds, "qps");
    assert_eq!(
        says(&found(&[], &[])),
        "holds up to qps 10; no load misses, so the limit lies above the \
        measured loads"
    );
    // An undecided load below the highest load that meets the objective does not change the result.
    let below = says(&found(&[5.0], &[]));
    assert!(below.contains("no load misses") && below.ends_with("; undecided at 5"), "{below}");
    assert_eq!(
        says(&found(&[20.0, 40.0], &[])),
        "holds up to qps 10; no load is shown to miss, so the limit may lie anywhere above; undecided at 20, 40"
    );
    assert!(says(&found(&[], &[20.0])).contains("no load is shown to miss"), "a load without a valid run");
}
