//! Tests of pages with fictitious results: pages of maximum size, and pages with hostile names.

use std::path::Path;

use super::*;
use crate::analysis::curve::{self, Curve};
use crate::analysis::ecdf::Ecdf;
use crate::analysis::request::Metric;
use crate::analysis::synthetic::{Run as Server, measured, read, verdict};
use crate::analysis::{MeanTokens, PlanMetrics, Pulse, RunMetrics, Verdict};
use crate::expand::{Expansion, PlannedRun, expand};
use crate::plan::{self, Format, Loaded, Validity};
use crate::report::Bound;
use crate::rows::{Environment, Facts, Replay, RunLabels};
use crate::store::{Moment, RunRecord};

/// A plan with ten servers, ten scenarios and ten loads.
const PLAN: &str = "\
sweepline: 1
name: large
endpoints: { ENDPOINTS }
models: { m: { id: tiny } }
scenarios: { SCENARIOS }
slo: { ttft: { p50: 100ms } }
sweeps:
  s: { matrix: { endpoint: [E], model: [m], scenario: [S], batch_size: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512] } }
";

fn plan() -> Loaded {
    let list = |of: fn(usize) -> String| (0..10).map(of).collect::<Vec<_>>().join(", ");
    let text = PLAN
        .replace("ENDPOINTS", &list(|n| format!("a-server-with-a-long-name-{n}: {{ engine: mock }}")))
        .replace("SCENARIOS", &list(|n| format!("a-long-scenario-{n}: {{ base: B1, output_tokens: {} }}", n + 2)))
        .replace("[E]", &format!("[{}]", list(|n| format!("a-server-with-a-long-name-{n}"))))
        .replace("[S]", &format!("[{}]", list(|n| format!("a-long-scenario-{n}"))));
    plan::parse(Path::new("plan.yaml"), &text, Format::Yaml).expect("a plan")
}

/// Returns the record of a planned run.
fn record(planned: &PlannedRun, facts: &Facts) -> RunRecord {
    RunRecord {
        format: 1,
        id: planned.id.to_string(),
        attempt: 1,
        started: Moment::now(),
        ended: Moment::now(),
        spec: (*planned.spec).clone(),
        nonce_seed: None,
        environment: Environment { client_host: "</script>".to_owned(), ..Environment::default() },
        facts: facts.clone(),
        generator_digest: String::new(),
        replaced: None,
        files: Default::default(),
        sha256: None,
    }
}

/// The results of one run of a synthetic server. All runs of a page have these results.
struct Made {
    metrics: RunMetrics,
    verdict: Verdict,
    ecdf: Ecdf,
    pulse: Pulse,
    facts: Facts,
}

fn made() -> Made {
    let (records, facts) = Server { seconds: 8.0, ..Server::default() }.make();
    let (rows, events) = read(&records, &facts, None);
    Made {
        metrics: measured(&records, &facts),
        verdict: verdict(&records, &facts, &Validity::default(), None),
        pulse: Pulse::of(rows.rows(), &events, &facts).expect("requests were sent"),
        ecdf: Ecdf::of(rows.rows(), &facts, Metric::Ttft),
        facts,
    }
}

/// Returns the timeline of runs that follow each other, with a pause as long as a night between the two
/// halves.
fn timeline(records: &[RunRecord]) -> Vec<Span> {
    let at = |secs: usize| jiff::Timestamp::from_second(1_800_000_000 + secs as i64).expect("an instant");
    let from = |number: usize| 10 * number + if number >= records.len() / 2 { 30_000 } else { 0 };
    let span = |(number, record): (usize, &RunRecord)| Span {
        lane: record.spec.endpoint.name.clone(),
        endpoint: record.spec.endpoint.name.clone(),
        kind: SpanKind::Run("valid"),
        name: format!("run {number}"),
        from: at(from(number)),
        to: at(from(number) + 9),
    };
    records.iter().enumerate().map(span).collect()
}

/// Returns the distributions of up to three runs of a curve's lightest load.
fn repeats(curve: &Curve, made: &Made) -> Vec<RepeatSpread> {
    let of = |run: &curve::Run| RepeatSpread {
        repeat: run.labels.repeat,
        run: run.labels.run_id.clone(),
        ecdf: made.ecdf.clone(),
    };
    curve.rungs[0].runs.iter().take(3).map(of).collect()
}

fn page_of(loaded: &Loaded, expansion: &Expansion, made: &Made) -> String {
    let records: Vec<RunRecord> = expansion.runs.iter().map(|run| record(run, &made.facts)).collect();
    let labels: Vec<RunLabels> = records.iter().map(RunRecord::labels).collect();
    let none = PlanMetrics::default();
    let run = |labels| curve::Run {
        sweep: "s",
        labels,
        metrics: &made.metrics,
        plan_metrics: &none,
        verdict: &made.verdict,
        saturation: None,
        slo: &[],
        cost: None,
        tokens: MeanTokens::default(),
    };
    let points: Vec<curve::Run> = labels.iter().map(run).collect();
    let curves: Vec<Curve> = curve::curves(&points, false);
    let measured = records.iter().zip(&labels).map(|(record, labels)| MeasuredRun {
        sweep: "s",
        record,
        labels,
        metrics: &made.metrics,
        verdict: &made.verdict,
        pulse: Some(&made.pulse),
        classes: &[],
    });
    let spreads = curves.iter().enumerate().take(36).map(|(at, curve)| Spread {
        curve: at,
        load: curve.rungs[0].load,
        chosen: Chosen::Heaviest,
        metric: "ttft",
        repeats: repeats(curve, made),
        together: made.ecdf.clone(),
    });
    let report = Report::of(&Sources {
        plan: &loaded.plan,
        made: "sweepline".to_owned(),
        run_again: "sweepline run plan.yaml".to_owned(),
        plan_typed: "plan.yaml".to_owned(),
        show: "sweepline show --plan plan.yaml".to_owned(),
        timeline: timeline(&records),
        runs: measured.collect(),
        without: Vec::new(),
        curves: &curves,
        configurations: &[],
        comparison: None,
        bound: Bound { predicted: &[], unpredicted: &[] },
        diagnoses: &[],
        not_measured: String::new(),
        classes: Vec::new(),
        calibrated: Vec::new(),
        calibrate: "sweepline calibrate plan.yaml".to_owned(),
        spreads: spreads.collect(),
        spreads_left: 64,
        trails: &[],
        notes: vec!["a note with <b>marks</b>".to_owned()],
        lints: Vec::new(),
    });
    report.and_then(|report| report.html()).expect("a page")
}

#[test]
fn a_thousand_runs_stay_below_five_megabytes() {
    let loaded = plan();
    let expansion = expand(&loaded.plan).expect("an expansion");
    assert_eq!(expansion.runs.len(), 1_000);
    let made = made();
    let page = page_of(&loaded, &expansion, &made);
    if let Ok(path) = std::env::var("SWEEPLINE_TEST_PAGE") {
        std::fs::write(path, &page).expect("a file to look at");
    }
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
    for said in ["more heat maps would make the page too large", "more figures would make the page too large"] {
        assert!(page.contains(said), "{said}");
    }
    assert!(page.matches("<figure").count() > 50, "{}", page.matches("<figure").count());
    assert!(page.contains("Every run of the plan") && page.contains("1000 runs"));
    let parts = page.matches("<details class=\"run\">").count();
    assert!(parts > 100, "{parts} runs have a part");
    let targets: std::collections::BTreeSet<&str> =
        page.split("href=\"#run-").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(targets.len(), parts, "each is linked from its row, and no other");
    // The page contains the numbers of each strip, with three parts of the time merged into one.
    let numbers: Vec<&str> =
        page.split("tabindex=\"0\">from s,in flight,").skip(1).filter_map(|rest| rest.split("</pre>").next()).collect();
    assert_eq!(numbers.len(), parts);
    let in_flight: Vec<f64> = numbers[0]
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(1).and_then(|number| number.parse().ok()).expect("a number"))
        .collect();
    let exact = made.pulse.in_flight.chunks(3).map(|parts| parts.iter().sum::<f64>() / 3.0);
    assert!(in_flight.iter().zip(exact).all(|(read, exact)| (read - exact).abs() <= exact * 5e-4), "{in_flight:?}");
    assert_eq!(in_flight.len() * 3, made.pulse.in_flight.len());
    assert!(parts == 1_000 || page.contains(&format!("{} more have none", 1_000 - parts)), "{parts}");
    assert!(page.contains("a note with &lt;b&gt;marks"), "texts are escaped");
    assert_eq!(page.matches("</script>").count(), 1, "external text closes no tag");
}
