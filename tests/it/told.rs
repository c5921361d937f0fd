//! Tests explanations in tables and results: units, reasons, names, remedies, and missing values.

use serde_json::Value;

use lab::sweeps::honest;
use lab::{Ended, Lab};

/// A plan with two sweeps that share a run of a mix. One class of the mix meets the threshold, and
/// the other cannot meet it.
const MIXED: &str = "\
sweepline: 1
name: told
seed: 3
endpoints: { e: { engine: mock, mock: { ttft: 5ms, itl: 1ms, slots: 8 }, hardware: { gpus: 1, price_per_hour: 2 } } }
models: { m: { id: tiny } }
scenarios:
  short: { base: B1, prompt_tokens: 30, output_tokens: 2 }
  long: { base: B1, prompt_tokens: 200, output_tokens: 300 }
  both: { mix: [{ scenario: short, share: 0.5 }, { scenario: long, share: 0.5 }] }
phases: { fill: 20ms, stabilize: 50ms, measure: { for: 400ms, min_requests: 20, at_most: 20s }, drain: 5s }
goodput: { e2e: 290ms }
# A busy machine sends late; what is asked here is not how exact the client is.
validity: { client_late: { suspect: 100%, invalid: 100% } }
sweeps:
  a: { matrix: { scenario: both, qps: 40 } }
  b: { matrix: { scenario: both, qps: 40 } }
";

/// A plan with one scenario, an axis of requests, and no variation within a run.
const PLAIN: &str = "\
sweepline: 1
name: plain
seed: 3
endpoints:
  e:
    engine: mock
    mock: { ttft: 5ms, itl: 1ms, slots: 8 }
    hardware: { gpus: 1, price_per_hour: 2, memory_bandwidth: 300GB/s }
models: { m: { id: tiny, parameters: 1e9, precision: bf16 } }
scenarios: { s: { base: B1, output_tokens: 8 } }
phases: { fill: 20ms, stabilize: 20ms, measure: { for: 300ms, min_requests: 10, at_most: 20s }, drain: 5s }
# A busy machine sends late; what is asked here is not how exact the client is.
validity: { client_late: { suspect: 100%, invalid: 100% } }
sweeps:
  r: { matrix: { scenario: s, prompt_tokens: [64, 512], qps: [10, 40] } }
";

fn measured(plan: &str) -> Lab {
    let lab = Lab::new();
    lab.write("plan.yaml", plan);
    honest(&lab.run(&["run", "plan.yaml", "-q"]));
    lab
}

fn rows(lab: &Lab, kind: &str) -> Vec<Value> {
    let table = lab.ok(&["export", "plan.yaml", "--rows", kind, "--format", "json"]).json();
    table.as_array().unwrap().clone()
}

fn refused(ended: &Ended, code: i32, words: &[&str]) {
    assert_eq!(ended.code, Some(code), "{}{}", ended.stdout, ended.stderr);
    for word in words {
        assert!(ended.stderr.contains(word), "{word:?} is missing: {}", ended.stderr);
    }
}

#[test]
fn columns_of_curves_have_the_units_of_runs_and_say_from_when_latencies_count() {
    let schema = Lab::new().ok(&["schema", "export"]).json();
    let columns = &schema["$defs"]["curves"]["properties"];
    let runs = &schema["$defs"]["runs"]["properties"];
    for name in [
        "cost_per_million_output_tokens",
        "request_throughput_requests_per_s",
        "achieved_rate_requests_per_s",
        "error_share",
        "goodput_share",
        "ttft_p99_ms",
    ] {
        assert!(columns[name]["unit"].is_string(), "{name}");
        assert_eq!(columns[name]["unit"], runs[name]["unit"], "{name}");
    }
    assert_eq!(columns["cost_per_million_output_tokens_low"]["unit"], "money");
    let says = |name: &str| columns[name]["description"].as_str().unwrap().to_owned();
    for name in ["ttft_p50_ms", "ttft_p99_ms", "e2e_p95_ms"] {
        assert!(says(name).contains("in open loops from the schedule"), "{name}: {}", says(name));
        assert!(
            says(name).contains("the column of this name in `runs` counts from the send"),
            "{name}: {}",
            says(name)
        );
    }
    assert!(says("user_throughput_mean_tokens_per_s").contains("from the send, in open loops too"));
    assert!(says("left_out").contains("excluded from all figures"), "{}", says("left_out"));
    assert!(columns["on_front_throughput_p99"]["null_when"].is_string());
}

#[test]
fn a_load_without_p99_is_neither_on_the_front_nor_off_it() {
    let lab = measured(PLAIN);
    let rows = rows(&lab, "curves");
    assert_eq!(rows.len(), 4);
    for row in &rows {
        assert!(row["e2e_p99_ms"].is_null(), "ten requests have no p99");
        assert_eq!(row["on_front_throughput_p99"], Value::Null, "{row}");
        // Ten requests are too few to decide whether the server kept up.
        let is_known = row["saturation"] == "kept_up";
        assert_eq!(row["on_front_user_gpu"].is_boolean(), is_known, "{row}");
    }
    let markdown = lab.ok(&["export", "plan.yaml", "--format", "markdown"]).stdout;
    assert!(markdown.contains("|  40 |") && !markdown.contains("40.00"), "{markdown}");
    let markdown = lab.ok(&["export", "plan.yaml", "--format", "markdown", "--rows", "curves"]).stdout;
    assert!(markdown.contains("|   40 |") && !markdown.contains("40.00"), "{markdown}");

    // Missing values are reported with the reason.
    for (kind, why) in [("classes", "uses a mix"), ("lengths", "the same length"), ("turns", "conversations")] {
        let ended = lab.ok(&["export", "plan.yaml", "--rows", kind]);
        assert!(ended.stderr.contains("no rows") && ended.stderr.contains(why), "{kind}: {}", ended.stderr);
    }
    let ended = lab.ok(&["export", "plan.yaml", "--rows", "requests", "-o", "r.csv"]);
    assert!(ended.stderr.starts_with("r.csv: ") && ended.stderr.ends_with(" rows of requests\n"), "{}", ended.stderr);
    let near = lab.run(&["export", "plan.yaml", "--rows", "curves", "--columns", "endpoint,qps"]);
    refused(&near, 2, &["no column of curves is named `qps`", "did you mean `load`?"]);
    let name = lab.run(&["export", "plan.yaml", "-o", "foo.doc"]);
    refused(&name, 2, &["foo.doc", ".csv, .xlsx, .json, .md", "--format"]);
    let both = lab.run(&["export", "plan.yaml", "-o", "foo.xlsx", "--format", "csv"]);
    refused(&both, 2, &["foo.xlsx", "--format csv"]);
    assert!(!lab.path().join("foo.doc").exists() && !lab.path().join("foo.xlsx").exists());

    let lists = lab.ok(&["diagnose", "plan.yaml", "--set", "slo={ tpot: { p50: 0.5ms } }"]).stdout;
    for words in ["prompt_tokens=64", "prompt_tokens=512"] {
        assert!(lists.matches(words).count() >= 2, "in the table and under its requirements: {lists}");
    }
    assert!(lists.lines().all(|line| line.chars().count() <= 100), "{lists}");
    let found = lab.ok(&["diagnose", "plan.yaml", "--format", "json"]).json();
    let state = |found: &Value| {
        let mut symptoms = found["symptoms"].as_array().unwrap().iter();
        symptoms.find(|one| one["symptom"] == "tpot_high_alone").unwrap().clone()
    };
    assert_eq!(state(&found)["found"], "not_checked", "less than one request in flight at either load: {found:#}");
    let limited = ["diagnose", "plan.yaml", "--format", "json", "--set", "slo={ tpot: { p50: 0.5ms } }"];
    let high = state(&lab.ok(&limited).json());
    // The interval of ten requests is not entirely above the limit, so a violation is not shown,
    // but the declaration is still wrong.
    let text = high["why"].as_str().unwrap();
    assert!(text.starts_with("not shown: "), "{text}");
    assert!(text.contains("the declared figures do not match the actual setup"), "1000 tokens/s of 150: {text}");
}

#[test]
fn classes_have_their_own_goodput_and_shared_runs_a_row_of_each_sweep() {
    let lab = measured(MIXED);
    let runs = rows(&lab, "runs");
    let classes = rows(&lab, "classes");
    assert_eq!((runs.len(), classes.len()), (2, 4));
    let number = |row: &Value, name: &str| row[name].as_f64().unwrap_or_else(|| panic!("{name}: {row:#}"));
    let of = |name: &str| classes.iter().find(|row| row["class"] == name).unwrap();
    assert_eq!(number(of("long"), "goodput_share"), 0.0, "299 gaps of 1 ms are more than the threshold");
    let good = number(of("short"), "goodput_share") * number(of("short"), "requests");
    assert!((good - number(&runs[0], "goodput_share") * number(&runs[0], "requests")).abs() < 1e-9, "{classes:#?}");
    let rate = "goodput_requests_per_s";
    assert!((number(of("short"), rate) - number(&runs[0], rate)).abs() < 1e-9);
    assert!(of("short")["cost_per_million_output_tokens"].is_null());
    let schema = lab.ok(&["schema", "export"]).json();
    let null = |kind: &str, name: &str| schema["$defs"][kind]["properties"][name]["null_when"].clone();
    assert!(null("classes", "cost_per_million_output_tokens").as_str().unwrap().contains("always"));
    assert!(null("classes", "tokens_per_unit_of_money").as_str().unwrap().contains("always"));
    assert!(null("turns", "derived_server_throughput_tokens_per_s").as_str().unwrap().contains("always"));

    for kind in ["lengths", "requests"] {
        let rows = rows(&lab, kind);
        let in_sweep = |name: &str| rows.iter().filter(|row| row["sweep"] == name && row["plan"] == "told").count();
        assert!(in_sweep("a") > 0 && in_sweep("a") == in_sweep("b"), "{kind}");
        assert_eq!(in_sweep("a") + in_sweep("b"), rows.len(), "{kind}");
    }
    let columns = schema["$defs"]["turns"]["properties"].as_object().unwrap();
    assert_eq!(columns.keys().take(2).collect::<Vec<_>>(), ["plan", "sweep"]);
    // Two copies of a run differ only in their sweep.
    let events = lab.ok(&["export", "plan.yaml", "--rows", "events", "--format", "json"]).json();
    let first: Vec<&Value> =
        events.as_array().unwrap().iter().filter(|row| row["request"] == 0 && row["event"] == 0).collect();
    assert_eq!(first.len(), 2);
    assert!(first[0]["sweep"] == "a" && first[1]["sweep"] == "b", "{first:?}");
}

#[test]
fn a_folder_that_is_not_there_is_an_error_and_missing_runs_are_counted() {
    let lab = Lab::new();
    lab.write("plan.yaml", PLAIN);
    for args in [
        &["list"] as &[&str],
        &["verify"],
        &["export"],
        &["export", "plan.yaml"],
        &["show", "ab"],
        &["list", "--format", "json"],
    ] {
        for results in ["results", "elsewhere"] {
            let ended = lab.run(&[args, &["--results", results]].concat());
            refused(&ended, 2, &[&format!("no results folder {results}"), "--results DIR"]);
            assert_eq!(ended.stdout, "", "{args:?}");
        }
    }
    let results = ["--results", "elsewhere"];
    honest(&lab.run(&[&["run", "plan.yaml", "-q", "--only", "qps == 40"], &results[..]].concat()));
    let some = lab.ok(&[&["export", "plan.yaml"], &results[..]].concat());
    assert!(some.stderr.contains("2 of the plan's 4 runs have no result yet"), "{}", some.stderr);
    assert!(some.stderr.contains("`sweepline run plan.yaml --results elsewhere`"), "{}", some.stderr);
    assert_eq!(some.stdout.lines().count(), 3);
    assert!(lab.ok(&[&["list"], &results[..]].concat()).stdout.contains("whole"));
}

#[test]
fn one_damaged_run_is_mended_by_what_the_error_says() {
    let lab = Lab::new();
    lab.write("plan.yaml", PLAIN);
    let results = ["--results", "elsewhere"];
    honest(&lab.run(&[&["run", "plan.yaml", "-q"], &results[..]].concat()));
    let runs = lab.path().join("elsewhere/runs");
    let dirs: Vec<_> = std::fs::read_dir(&runs).unwrap().map(|entry| entry.unwrap().path()).collect();
    let file = dirs[0].join("requests.parquet");
    let id = dirs[0].file_name().unwrap().to_str().unwrap();

    // The size of the file is unchanged, so only its digest reveals the damage.
    let mut bytes = std::fs::read(&file).unwrap();
    let end = bytes.len() - 12;
    bytes[end..].fill(0);
    std::fs::write(&file, bytes).unwrap();
    let hidden = lab.run(&[&["diagnose", "plan.yaml"], &results[..]].concat());
    let only = format!("`sweepline run PLAN --results elsewhere --force --only \"id[:16] == '{id}'\"`");
    refused(&hidden, 5, &[&only, "`sweepline verify --results elsewhere`"]);
    let verify = lab.run(&[&["verify"], &results[..]].concat());
    assert!(verify.stdout.contains("--results elsewhere --force --only"), "{}", verify.stdout);

    std::fs::remove_file(&file).unwrap();
    for command in ["diagnose", "curves", "export"] {
        let kind: &[&str] = if command == "export" { &["--rows", "requests"] } else { &[] };
        let ended = lab.run(&[&[command, "plan.yaml"], &results[..], kind].concat());
        assert!(!ended.stderr.contains("--force"), "{}", ended.stderr);
        if command != "export" {
            refused(&ended, 5, &["requests.parquet is missing", "`sweepline run PLAN --results elsewhere`"]);
        }
    }
    let before = std::fs::metadata(dirs[1].join("run.json")).unwrap().modified().unwrap();
    honest(&lab.run(&[&["run", "plan.yaml", "-q"], &results[..]].concat()));
    assert!(file.exists(), "this run is measured again");
    assert_eq!(std::fs::metadata(dirs[1].join("run.json")).unwrap().modified().unwrap(), before, "and no other run");
}

#[test]
fn an_empty_window_is_the_reason_where_it_is() {
    let lab = Lab::new();
    let text = PLAIN.replace("qps: [10, 40]", "qps: [0.01]").replace("[64, 512]", "[64]");
    lab.write("plan.yaml", &text.replace("min_requests: 10, at_most: 20s", "at_most: 300ms"));
    let set = ["--set", "phases={ fill: 0s, stabilize: 0s, measure: 10ms, drain: 10ms }"];
    assert_eq!(lab.run(&[&["run", "plan.yaml", "-q"], &set[..]].concat()).code, Some(3), "an empty window is invalid");
    let id = std::fs::read_dir(lab.results().join("runs")).unwrap().next().unwrap().unwrap().file_name();
    let id = id.to_str().unwrap();
    let show = ["show", id, "--plan", "plan.yaml"];
    let goodput = ["--set", "goodput={ ttft: 1s }"];
    let text = lab.ok(&[&show, &set[..], &goodput[..]].concat()).stdout;
    for title in ["jitter ratio", "goodput", "goodput rate", "declared reuse", "tokens per event", "derived throughput"]
    {
        let line = text.lines().find(|line| line.starts_with(&format!("{title}  "))).unwrap();
        let why = if title == "derived throughput" { "open loop" } else { "no request in the window" };
        assert!(line.contains(why), "{line}");
    }
    for wrong in ["none declared", "no price)", "no thresholds", "p50 is 0"] {
        assert!(!text.contains(wrong), "{wrong}: {text}");
    }
    // The run does not belong to this plan, because the phases differ.
    let other = lab.ok(&show);
    assert!(other.stderr.contains("is not a run of plan.yaml"), "{}", other.stderr);
    assert!(!lab.ok(&[&show, &set[..]].concat()).stderr.contains("is not a run of"));
}

#[test]
fn numbers_below_zero_are_refused_in_our_words() {
    let lab = Lab::new();
    lab.write("plan.yaml", PLAIN);
    let ended = lab.run(&["capacity", "plan.yaml", "--target-qps", "-1"]);
    refused(&ended, 2, &["write a number above 0"]);
    let ended = lab.run(&["capacity", "plan.yaml", "--target-qps", "10", "--headroom", "-10%"]);
    refused(&ended, 2, &["outside 0% to 100%"]);
    let ended = lab.run(&["capacity", "plan.yaml", "--target-qps", "10", "--headroom", "20"]);
    refused(&ended, 2, &["write 20%"]);
    let ended = lab.run(&["compare", "plan.yaml", "--see", "-1"]);
    refused(&ended, 2, &["write a number like 5, in percent"]);

    let set = |value: &str| lab.run(&["check", "plan.yaml", "--set", value]);
    let bare = set("endpoints.e.hardware.memory_bandwidth=1000");
    refused(&bare, 2, &["write it with its unit, like 3.35TB/s"]);
    assert!(!bare.stderr.contains("\"1000\""), "a command that would be rejected later: {}", bare.stderr);
    for value in ["phases.measure.min_requests=.inf", "endpoints.e.hardware.price_per_hour=.nan"] {
        let ended = set(value);
        refused(&ended, 2, &["--set:1:"]);
        assert!(!ended.stderr.contains("indent"), "{}", ended.stderr);
    }
}
