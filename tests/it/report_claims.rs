//! Tests the claims of a report and of tables, through the program: they never claim more than the
//! measurements show, and every limitation is next to them.
//!
//! A mock with four slots and 40 ms per response serves at most 100 requests per second; 8 % of its
//! responses are errors.

use lab::Lab;
use lab::mock::Mock;
use lab::report::{Page, json};
use lab::sweeps::honest;

const SWEEPS: &str = "\
models: { m: { id: m } }
scenarios: { s: { prompt_tokens: 32, output_tokens: 6 } }
phases: { fill: 200ms, stabilize: 300ms, measure: 8s, drain: 1s }
hypothesis: 'The server `one` holds the objective at 30 requests per second.'
slo: { ttft: { p95: 200ms } }
validity: { client_late: { suspect: 100%, invalid: 100% }, errors: { suspect: 50%, invalid: 90% } }
allow: [{ code: M006, because: a test is short }]
sweeps:
  ladder: { matrix: { endpoint: one, model: m, scenario: s, qps: [30, 200] }, repeats: 2 }
";

#[test]
fn what_weakens_an_answer_stands_beside_it() {
    let mock =
        Mock::start(&["--ttft", "20ms", "--itl", "4ms", "--jitter", "50%", "--slots", "4", "--fault", "http:500@8%"]);
    let lab = Lab::new();
    let head = format!(
        "sweepline: 1\nname: claims\nseed: 5\nendpoints: {{ one: {{ engine: mock, url: \"http://127.0.0.1:{}/v1\", hardware: {{ price_per_hour: 2 }} }} }}\n",
        mock.port
    );
    lab.write("plan.yaml", &format!("{head}{SWEEPS}"));
    honest(&lab.run(&["run", "plan.yaml", "-q"]));

    lab.ok(&["report", "plan.yaml", "-o", "report.html"]);
    let page = Page::of(&lab, "report.html");
    let words = page.words();
    for said in [
        "Hypothesis: The server `one` holds the objective at 30 requests per second.",
        "compare it with the measurements",
        "2 with a saturated server",
        " requests failed (",
        "in 4 runs: they count as slower than every limit",
        "the shortest run was measured for 8.00 s",
        "The load generator is not calibrated",
        "The plan waives lint findings: M006.",
    ] {
        assert!(words.contains(said), "{said} is not in\n{words}");
    }
    // With two repeats, the two values are shown, without an interval.
    assert!(words.contains("(2 repeats: ") && words.contains("the values of 2 repeats"), "{words}");
    // Backticks in the program's own texts mark code.
    let answer = page.section("answer").unwrap();
    assert!(!answer.split("class=\"facts\"").nth(1).unwrap().contains('`'), "{answer}");

    let text = lab.ok(&["curves", "plan.yaml"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("TTFT p95") && text.contains(" and ") && text.contains("for two runs, both values"),
        "{text}"
    );
    // More than a twentieth of the requests fails, so p95 falls among the failures.
    assert!(text.contains("> ") && text.contains("lies among failed requests"), "{text}");
    let curve = &json(&lab, &["curves", "plan.yaml"])["curves"][0];
    let light = &curve["rungs"][0];
    let bound = light["at_least"]["ttft_p95_ms"].as_f64().unwrap_or_else(|| panic!("{light:#}"));
    assert!(light["figures"]["ttft_p95_ms"].is_null() && bound > 20.0, "{light:#}");
    let rows = json(&lab, &["export", "plan.yaml", "--rows", "curves"]);
    assert_eq!(rows[0]["ttft_p95_at_least_ms"], bound, "{rows:#}");
    lab.ok(&["export", "plan.yaml", "--rows", "curves", "--format", "csv", "-o", "curves.csv"]);
    let csv = std::fs::read_to_string(lab.path().join("curves.csv")).unwrap();
    let head = csv.lines().next().unwrap();
    assert!(head.contains("ttft_p95_at_least_ms"), "{head}");

    // The server's throughput under overload bounds its capacity, which is far less than the 200
    // requests that arrived.
    let capacity =
        &json(&lab, &["capacity", "plan.yaml", "--set", "slo={ ttft: { p50: 200ms } }", "--target-qps", "240"]);
    let one = &capacity["configurations"][0];
    let most = one["instance"]["serves_at_most_requests_per_s"].as_f64().unwrap_or_else(|| panic!("{one:#}"));
    assert!((80.0..150.0).contains(&most), "{one:#}");
    assert_eq!(one["fleet"]["at_least"].as_f64(), Some((240.0 / most).ceil()), "{one:#}");
}
