//! Tests through the program, with the mock, that percentiles of rates refer to the slowest requests,
//! that generation throughput is the inverse of TPOT, and that gaps are weighted by their information.

use serde_json::Value;

use lab::Lab;
use lab::mock::Mock;
use lab::sweeps::honest;

const FAST: [&str; 4] = ["--ttft", "1ms", "--itl", "1ms"];

/// Measures at least this many requests of `output_tokens` tokens at batch 8, on a mock with these flags.
fn measured(flags: &[&str], output_tokens: u32, requests: u32) -> Lab {
    let mock = Mock::start(flags);
    let url = format!("url: http://127.0.0.1:{}/v1", mock.port);
    measured_at(&url, output_tokens, requests)
}

/// Like `measured`, for the endpoint with these settings.
fn measured_at(endpoint: &str, output_tokens: u32, requests: u32) -> Lab {
    let lab = Lab::new();
    let plan = format!(
        "\
sweepline: 1
name: rates
seed: 3
endpoints: {{ e: {{ {endpoint}, engine: mock, errors: measured }} }}
models: {{ m: {{ id: tiny }} }}
scenarios: {{ s: {{ base: B1, output_tokens: {output_tokens} }} }}
phases: {{ fill: 20ms, stabilize: 20ms, measure: {{ for: 300ms, min_requests: {requests}, at_most: 40s }}, drain: 20s }}
# A busy machine sends late, and failures are what is looked at here.
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }}, errors: {{ suspect: 50%, invalid: 90% }} }}
sweeps: {{ one: {{ matrix: {{ scenario: s, batch_size: 8 }} }} }}
"
    );
    lab.write("plan.yaml", &plan);
    honest(&lab.run(&["run", "plan.yaml", "-q"]));
    lab
}

fn rows(lab: &Lab, kind: &str) -> Vec<Value> {
    lab.ok(&["export", "plan.yaml", "--rows", kind, "--format", "json"]).json().as_array().unwrap().clone()
}

fn number(row: &Value, column: &str) -> f64 {
    row[column].as_f64().unwrap_or_else(|| panic!("{column} is {}", row[column]))
}

#[test]
fn a_percentile_of_a_rate_is_what_that_share_got_or_better() {
    let lab = measured(&["--ttft", "1ms", "--itl", "1ms", "--jitter", "30%", "--fault", "http:500@every:20"], 10, 400);
    let run = &rows(&lab, "runs")[0];
    let rates: Vec<f64> = rows(&lab, "requests")
        .iter()
        .filter(|row| row["measured"] == true)
        .filter_map(|row| row["user_throughput_tokens_per_s"].as_f64())
        .collect();
    let failed = number(run, "failed") as usize;
    assert!(failed >= 10 && rates.len() >= 300, "{failed} failed, {} have a rate", rates.len());
    for rate in ["user_throughput", "generation_throughput"] {
        let column = |what: &str| format!("{rate}_{what}_tokens_per_s");
        let p90 = number(run, &column("p90"));
        assert!(p90 <= number(run, &column("p75")) && number(run, &column("p75")) <= number(run, &column("p50")));
        assert_eq!(number(run, &format!("{rate}_failures")) as usize, failed);
        // One request in twenty failed, so the rate that 99 % reach is below every observed rate.
        assert_eq!(run[column("p99")], Value::Null);
        assert!(number(run, &column("below")) <= p90 && run[column("above")].is_null());
    }
    let p90 = number(run, "user_throughput_p90_tokens_per_s");
    let as_good = rates.iter().filter(|rate| **rate >= p90).count() as f64 / (rates.len() + failed) as f64;
    assert!((as_good - 0.9).abs() < 0.01, "{as_good} reached {p90} or better");
    let shown = lab.ok(&["show", &run["run_id"].as_str().unwrap()[..12]]).stdout;
    let line = shown.lines().find(|line| line.trim_start().starts_with("user")).unwrap();
    assert!(line.contains("< "), "{shown}");
}

#[test]
fn generation_throughput_is_the_inverse_of_tpot() {
    for tokens in [2, 9] {
        let lab = measured(&["--ttft", "1ms", "--itl", "5ms"], tokens, 40);
        let requests = rows(&lab, "requests");
        let both = |row: &&Value| row["generation_throughput_tokens_per_s"].is_f64();
        let of_both: Vec<&Value> = requests.iter().filter(both).collect();
        assert!(of_both.len() >= 30, "{} requests have a rate", of_both.len());
        for row in of_both {
            let product = number(row, "generation_throughput_tokens_per_s") * number(row, "tpot_ms");
            assert!((product - 1000.0).abs() < 1e-6, "{row}");
        }
    }
    let lab = measured(&FAST, 1, 40);
    let none = rows(&lab, "requests").iter().all(|row| row["generation_throughput_tokens_per_s"].is_null());
    assert!(none, "one token has no time between tokens");
    assert_eq!(number(&rows(&lab, "runs")[0], "generation_throughput_n"), 0.0);
}

#[test]
fn gaps_of_few_requests_have_no_percentiles() {
    let lab = measured_at("mock: { ttft: 300ms, itl: 1ms }", 300, 8);
    let run = &rows(&lab, "runs")[0];
    assert!(number(run, "itl_streams") < 30.0 && number(run, "itl_n") > 1_000.0, "{run}");
    assert!(run["itl_p50_ms"].is_null() && run["itl_p99_ms"].is_null() && number(run, "itl_mean_ms") > 0.0, "{run}");
    let shown = lab.ok(&["show", &run["run_id"].as_str().unwrap()[..12]]).stdout;
    assert!(shown.contains("30 requests"), "{shown}");
    let lab = measured_at("mock: { ttft: 1ms, itl: 1ms, jitter: 20% }", 20, 200);
    let run = &rows(&lab, "runs")[0];
    assert!(number(run, "itl_p50_ms") > 0.0 && number(run, "itl_p50_effective_n") <= number(run, "itl_n"), "{run}");
}
