//! Tests `preview` and `why`: states, reasons with their places, and the estimated cost with its
//! rule. Also tests the output of `run` for a plan that is done, and for a repetition that was
//! interrupted.

use rustix::process::Signal;
use serde_json::Value;

use lab::sweeps::{end, names, wait_for_attempt};
use lab::{Lab, Server, wait_for};

const PLAN: &str = "sweepline: 1
name: costs
endpoints:
  fast: { engine: mock, hardware: { price_per_hour: 36 }, mock: { ttft: 1ms, itl: 1ms } }
  slow: { engine: mock, mock: { ttft: 1ms, itl: 2ms } }
models: { m: { id: tiny } }
scenarios: { s: { base: B1, prompt_tokens: 40, output_tokens: 4 } }
phases: { fill: 20ms, stabilize: 20ms, measure: 150ms, drain: 2s }
between: { cooldown: 10ms }
validity: { client_late: { suspect: 99%, invalid: 100% }, unsteady: { suspect: 99% } }
sweeps:
  closed: { matrix: { endpoint: [fast, slow], model: [m], scenario: [s], batch_size: [1, 2] } }
  open: { matrix: { endpoint: [fast], model: [m], scenario: [s], qps: [40] } }
";

fn preview(lab: &Lab, args: &[&str]) -> Value {
    lab.ok(&[&["preview", "plan.yaml", "--format", "json"], args].concat()).json()
}

fn entries<'a>(preview: &'a Value, state: &str) -> Vec<&'a Value> {
    preview["runs"].as_array().unwrap().iter().filter(|run| run["state"] == state).collect()
}

/// Replaces ids and instants, which vary, in the text.
fn filtered(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_inclusive([' ', '\n']) {
        let inner = word.trim_matches(|c: char| "(),:\n ".contains(c));
        let is_id = inner.len() == 8 && inner.bytes().all(|b| b.is_ascii_hexdigit());
        let is_time = inner.len() == 20 && inner.ends_with('Z');
        match (is_id, is_time) {
            (true, _) => out.push_str(&word.replace(inner, "[id]")),
            (_, true) => out.push_str(&word.replace(inner, "[time]")),
            _ => out.push_str(word),
        }
    }
    out
}

/// Removes values that depend on the machine's speed, which are estimates for closed loops, and whether two
/// runs were committed in the same second.
fn without_measured(text: &str) -> String {
    let mut out = String::new();
    let mut leaves_out = false;
    for line in text.lines() {
        let goes_on = line.starts_with(&" ".repeat(22));
        leaves_out = if goes_on {
            leaves_out
        } else {
            ["  to do", "  requests", "  tokens"].iter().any(|l| line.starts_with(l))
        };
        if !leaves_out {
            out.push_str(&line.replace("[time] to [time]", "[time]"));
            out.push('\n');
        }
    }
    out
}

#[test]
fn runs_with_one_reason_stand_together_unless_all_are_wanted() {
    let lab = Lab::new();
    let many = PLAN.replace("batch_size: [1, 2]", "batch_size: [1, 2, 3, 4]");
    lab.write("plan.yaml", &many);
    insta::assert_snapshot!("preview_new", filtered(&lab.ok(&["preview", "plan.yaml"]).stdout));
    let all = lab.ok(&["preview", "plan.yaml", "--all"]).stdout;
    assert_eq!(all.lines().filter(|line| line.trim_start().starts_with("new ")).count(), 9, "{all}");
    assert!(all.contains("fast · s · 40 qps") && all.contains("in all: 9 new"), "{all}");
}

#[test]
fn figures_come_with_their_rules() {
    let lab = Lab::new();
    lab.write("plan.yaml", PLAN);
    let before = preview(&lab, &[]);
    let validator = jsonschema::validator_for(&lab.ok(&["schema", "preview"]).json()).unwrap();
    let errors: Vec<String> = validator.iter_errors(&before).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let cost = &before["totals"]["to_do"];
    // 40/s over 20 ms + 150 ms and half of 20 ms; for closed loops, the number is unknown.
    assert_eq!(
        (&cost["runs"], &cost["requests"], &cost["runs_with_unknown_requests"]),
        (&5.into(), &7.into(), &4.into())
    );
    assert_eq!((&cost["prompt_tokens"], &cost["output_tokens"]), (&280.into(), &28.into()));
    // Five runs of 190 ms with a pause of 10 ms; three of them are on the endpoint that costs 0.01 per
    // second.
    let near = |value: &Value, expected: f64| (value.as_f64().unwrap() - expected).abs() < 1e-9;
    assert!(near(&cost["seconds"], 1.0) && near(&cost["money"], 0.006), "{cost}");
    assert_eq!(cost["without_price"], serde_json::json!(["slow"]));
    assert!(near(&preview(&lab, &["--jobs", "2"])["totals"]["to_do"]["seconds"], 0.6), "three on one resource");
    assert!(near(&before["sweeps"][1]["to_do"]["seconds"], 0.2), "{}", before["sweeps"][1]);
    assert_eq!(before["sweeps"][1]["place"], "plan.yaml:13:3");

    lab.run(&["run", "plan.yaml"]);
    assert_eq!(preview(&lab, &[])["totals"]["to_do"]["runs"], 0);
    let text = lab.ok(&["preview", "plan.yaml"]).stdout;
    assert!(text.contains("in all: 5 cached\n  nothing to do"), "{text}");
    // With a longer window, the requests of closed loops scale with the phases, and the result on which
    // the estimate is based is named.
    lab.write("plan.yaml", &PLAN.replace("measure: 150ms", "measure: 910ms"));
    let longer = preview(&lab, &["--only", "batch_size == 2 and endpoint == 'fast'"]);
    let cost = &longer["totals"]["to_do"];
    let runs = lab.runs();
    let source = runs.values().find(|run| {
        let spec = &run.json["spec"];
        spec["endpoint"]["name"] == "fast" && spec["load"]["closed"]["batch_size"] == 2
    });
    let source = source.unwrap();
    let rows = source.json["files"]["requests.parquet"]["rows"].as_u64().unwrap();
    let expected = rows * 950_000_000 / source.json["facts"]["windows"]["measure_end_ns"].as_u64().unwrap();
    assert!(cost["requests"].as_u64().unwrap().abs_diff(expected) <= 1, "{cost}, expected {expected}");
    assert_eq!(cost["estimated_from"], serde_json::json!([source.json["id"].as_str().unwrap()[..8]]));
    let reason = entries(&longer, "new")[0]["reason"].as_str().unwrap();
    assert_eq!(reason, "changed from the nearest result: phases.measure.for: 150ms → 910ms (plan.yaml:8:49)");
    assert_eq!(entries(&longer, "new")[0]["place"], "plan.yaml:8:49");
}

#[test]
fn an_open_loops_window_lasts_as_its_rate_tells() {
    let lab = Lab::new();
    let measure = "fill: 0s, stabilize: 0s, measure: { for: 1s, min_requests: 40, at_most: 30s }";
    let plan = PLAN
        .replace("fill: 20ms, stabilize: 20ms, measure: 150ms", measure)
        .replace("cooldown: 10ms", "cooldown: 0s")
        .replace("price_per_hour: 36", "price_per_hour: 3600")
        .replace("qps: [40]", "qps: [1, 2, 50]");
    lab.write("plan.yaml", &plan);
    let cost = |args: &[&str]| preview(&lab, args)["totals"]["to_do"].clone();
    // The windows take 40 s, of which at_most allows 30; 20 s; and 0.8 s, which is shorter than the
    // minimum window.
    for (only, seconds, requests) in [("qps == 1", 30.0, 30), ("qps == 2", 20.0, 40), ("qps == 50", 1.0, 50)] {
        let cost = cost(&["--only", only]);
        let near = |key: &str| (cost[key].as_f64().unwrap() - seconds).abs() < 1e-6;
        assert!(near("seconds") && near("money") && cost["requests"] == requests, "{only}: {cost}");
        assert_eq!(cost["runs_that_may_be_prolonged"], 0, "{only}");
    }
    assert_eq!(cost(&[])["runs_that_may_be_prolonged"], 4, "the duration of a closed loop depends on the server");
    let text = lab.ok(&["preview", "plan.yaml"]).stdout;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("time about 55s (4 runs may be extended): "), "{text}");
    assert!(
        words.contains("the longer of `for` and the expected time of that many requests, up to `at_most`"),
        "{text}"
    );
}

#[test]
fn runs_are_shown_as_the_plan_names_them() {
    let lab = Lab::new();
    let axes = "scenario: [s], prompt_tokens: [20, 16], output_tokens: [4, 3], batch_size: [2, 1] }, repeats: 2 }";
    lab.write("plan.yaml", &PLAN.replace("scenario: [s], batch_size: [1, 2] } }", axes));
    let json = preview(&lab, &[]);
    let runs = json["runs"].as_array().unwrap();
    let repeats = runs[..32].iter().map(|run| run["repeat"].as_u64());
    assert!(repeats.is_sorted(), "JSON lists the order of execution: a block of cells for each repeat");
    let text = lab.ok(&["preview", "plan.yaml", "--all"]).stdout;
    // The table wraps long names, so runs are identified by their ids.
    let of_line = |line: &str| {
        let id = line.split_whitespace().nth(1)?;
        let run = runs.iter().find(|run| run["id"].as_str().unwrap().starts_with(id))?;
        let cell = ["endpoint", "prompt_tokens", "output_tokens", "batch_size"].map(|axis| run["cell"][axis].clone());
        (run["sweep"] == "closed").then(|| (cell, run["repeat"].clone()))
    };
    let shown: Vec<_> = text.lines().filter(|line| line.trim_start().starts_with("new ")).filter_map(of_line).collect();
    let mut expected = Vec::new();
    for endpoint in ["fast", "slow"] {
        for (prompt, output) in [(20, 4), (20, 3), (16, 4), (16, 3)] {
            for (batch, repeat) in [(2, 0), (2, 1), (1, 0), (1, 1)] {
                expected.push(([endpoint.into(), prompt.into(), output.into(), batch.into()], Value::from(repeat)));
            }
        }
    }
    assert_eq!(shown, expected, "{text}");
    assert!(text.contains("shuffled by the plan's seed"), "{text}");
    let groups = lab.ok(&["preview", "plan.yaml"]).stdout;
    let words = groups.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = "never committed fast · s · batch 2 · prompt_tokens 20 · output_tokens 4 (";
    assert!(words.contains(first), "{groups}");
}

#[test]
fn an_edit_is_told_as_that_edit_and_orphans_are_of_this_plan() {
    let lab = Lab::new();
    lab.write("plan.yaml", PLAN);
    lab.run(&["run", "plan.yaml"]);
    // The other endpoint already has the value that this one gets. Its results are equally close, but
    // still belong to that endpoint.
    lab.write("plan.yaml", &PLAN.replace("mock: { ttft: 1ms, itl: 1ms }", "mock: { ttft: 1ms, itl: 2ms }"));
    let edited = preview(&lab, &[]);
    let told: Vec<&str> = entries(&edited, "new").iter().map(|run| run["reason"].as_str().unwrap()).collect();
    assert_eq!(told.len(), 3);
    let expected = "changed from the nearest result: endpoint.mock.itl: 1ms → 2ms (plan.yaml:4:83)";
    assert!(told.iter().all(|reason| *reason == expected), "{told:?}");
    assert_eq!((entries(&edited, "orphan").len(), entries(&edited, "cached").len()), (3, 2));
    assert_eq!(entries(&edited, "orphan")[0]["cell"]["endpoint"], "fast");
    insta::assert_snapshot!("preview_edited", without_measured(&filtered(&lab.ok(&["preview", "plan.yaml"]).stdout)));
    // A new value next to others does not change them.
    lab.write("plan.yaml", &PLAN.replace("qps: [40]", "qps: [40, 60]"));
    let added = preview(&lab, &[]);
    let reason = entries(&added, "new")[0]["reason"].as_str().unwrap();
    assert_eq!(reason, "added: load.qps: 60 (plan.yaml:13:76) next to 40");
    // Results of endpoints that this plan does not have belong to another plan.
    lab.write("plan.yaml", &PLAN.replace("slow", "other"));
    assert!(entries(&preview(&lab, &[]), "orphan").is_empty());
    let id = lab.runs().into_iter().find(|(_, run)| run.json["spec"]["endpoint"]["name"] == "slow").unwrap().0;
    let why = lab.ok(&["why", &id, "--plan", "plan.yaml"]).stdout;
    assert!(why.contains("is committed for a different plan: plan.yaml has no endpoint `slow`"), "{why}");
}

#[test]
fn servers_that_differ_are_told_and_those_that_are_away_prune_their_runs() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let plan = PLAN.replace("slow: { engine: mock, mock: { ttft: 1ms, itl: 2ms } }", "slow: { url: \"URL\" }");
    lab.write("plan.yaml", &plan.replace("URL", &server.url()));
    lab.run(&["run", "plan.yaml", "--only", "endpoint == 'slow' and batch_size == 1"]);
    let same = preview(&lab, &["--probe"]);
    assert_eq!(same["differing"], serde_json::json!([]), "{same}");
    drop(server);
    let other = Server::start(&lab, &[]);
    lab.write("plan.yaml", &plan.replace("URL", &other.url()));
    let moved = preview(&lab, &["--probe"]);
    let host = other.url().trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    assert_eq!((&moved["differing"][0]["what"], &moved["differing"][0]["now"]), (&"host".into(), &host.into()));
    assert_eq!(moved["differing"][0]["runs"], 1);
    drop(other);
    let away = lab.run(&["preview", "plan.yaml", "--probe", "--format", "json"]);
    assert_eq!(away.code, Some(6), "{}", away.stderr);
    let pruned = away.json();
    assert_eq!((entries(&pruned, "pruned").len(), entries(&pruned, "cached").len()), (1, 1));
    assert!(
        entries(&pruned, "pruned")[0]["reason"]
            .as_str()
            .unwrap()
            .contains("wait for its endpoint, which is not ready: ")
    );
}

const SLOW: &str = "sweepline: 1
name: slow
endpoints: { demo: { engine: mock, mock: { ttft: 1ms, itl: 1ms } } }
models: { m: { id: tiny } }
scenarios: { s: { base: B1, output_tokens: 4 } }
phases: { fill: 20ms, stabilize: 20ms, measure: MEASURE, drain: 2s }
sweeps:
  s: { matrix: { endpoint: [demo], model: [m], scenario: [s], batch_size: [1, 2] } }
";

#[test]
fn what_another_process_measures_is_pending() {
    if !std::path::Path::new("/proc/locks").exists() {
        println!("skipped: this system does not list its locks");
        return;
    }
    let lab = Lab::new();
    lab.write("plan.yaml", &SLOW.replace("MEASURE", "60s"));
    let running = lab.start(&["run", "plan.yaml"]);
    let attempt = wait_for_attempt(&lab);
    let shown = wait_for("a pending run", || {
        let shown = preview(&lab, &[]);
        (entries(&shown, "pending").len() == 1).then_some(shown)
    });
    let pending = entries(&shown, "pending")[0];
    assert!(pending["id"].as_str().unwrap().starts_with(&attempt[..16]), "{pending}");
    assert_eq!(pending["reason"], format!("process {} is making attempt 1", running.id()));
    assert_eq!(entries(&shown, "new").len(), 1);
    running.signal(Signal::KILL);
    end(running);
    assert_eq!(entries(&preview(&lab, &[]), "new").len(), 2, "a killed attempt belongs to no run");
    let why = lab.ok(&["why", &attempt[..16]]).stdout;
    assert!(why.contains("new: interrupted ") && why.contains(": its process was killed"), "{why}");
}

#[test]
fn a_repetition_that_was_cut_short_says_how_it_goes_on() {
    let lab = Lab::new();
    lab.write("plan.yaml", &SLOW.replace("MEASURE", "300ms"));
    lab.run(&["run", "plan.yaml"]);
    let running = lab.start(&["run", "plan.yaml", "--force"]);
    wait_for("the first repetition", || names(&lab, "superseded").first().cloned());
    running.signal(Signal::INT);
    let ended = running.end();
    let attempts =
        |lab: &Lab| -> Vec<u64> { lab.runs().values().map(|run| run.json["attempt"].as_u64().unwrap()).collect() };
    if ended.code != Some(130) || attempts(&lab).iter().sum::<u64>() > 3 {
        println!("skipped: the second run ended before the signal");
        return;
    }
    assert_eq!(attempts(&lab).iter().sum::<u64>(), 3, "one was repeated");
    assert!(ended.stderr.contains("the same command would repeat all"), "{}", ended.stderr);
    let left = lab.runs().into_iter().find(|(_, run)| run.json["attempt"] == 1).unwrap().0;
    let only = format!("id[:8] in ['{}']", &left[..8]);
    assert!(ended.stderr.contains(&format!("--force --only \"{only}\"")), "{}", ended.stderr);
    let interrupted = names(&lab, "attempts").contains(&format!("{left}.2"));
    let again = lab.run(&["run", "plan.yaml", "--force", "--only", &only]);
    assert!(matches!(again.code, Some(0 | 3)), "{}", again.stderr);
    assert!(attempts(&lab).iter().all(|attempt| *attempt >= 2), "{:?}", attempts(&lab));
    let why = lab.ok(&["why", &left]).stdout;
    assert!(why.contains("its result replaced attempt 1: forced"), "{why}");
    // The signal may have arrived between the two runs.
    assert_eq!(why.contains("attempt 2 was interrupted"), interrupted, "{why}");
}

#[test]
fn a_cell_is_asked_for_by_its_values_with_and_without_a_plan() {
    let lab = Lab::new();
    lab.write("plan.yaml", PLAN);
    lab.run(&["run", "plan.yaml", "--only", "endpoint == 'fast'"]);
    let one = lab.ok(&["why", "qps == 40", "--plan", "plan.yaml"]).stdout;
    assert!(one.contains("open · fast · s · 40 qps\ncached: committed 2") && one.contains("  load.qps = 40"), "{one}");
    let folder = lab.ok(&["why", "qps == 40"]).stdout;
    assert!(folder.contains("fast · s · 40 qps\ncommitted: 2") && folder.contains("  load.qps = 40"), "{folder}");
    let several = lab.ok(&["why", "batch_size == 2", "--plan", "plan.yaml"]).stdout;
    assert!(several.contains("closed · fast · s · batch 2\ncached: "), "{several}");
    let added = "endpoint.name: slow (plan.yaml:12:40) next to fast";
    assert!(several.contains("closed · slow · s · batch 2\nnew: added: ") && several.contains(added), "{several}");
    assert!(!several.contains("identity:"), "short if there are several: {several}");
    let json = lab.ok(&["why", "batch_size >= 1", "--format", "json"]).json();
    assert_eq!(json["runs"].as_array().unwrap().len(), 2, "only committed runs");
    for args in [&["why", "qps == 41", "--plan", "plan.yaml"] as &[&str], &["why", "speed == 1"], &["why", "qps =="]] {
        assert_eq!(lab.run(args).code, Some(2), "{args:?}");
    }
    assert!(lab.run(&["why", "speed == 1"]).stderr.contains("`speed` is not an axis of this results folder"));
    let dir = &lab.runs().into_values().next().unwrap().dir;
    let id = dir.file_name().unwrap().to_str().unwrap();
    std::fs::write(dir.join("requests.parquet"), b"cut").unwrap();
    let why = lab.ok(&["why", id]).stdout;
    assert!(why.contains("corrupt: requests.parquet has 3 bytes"), "{why}");
    assert!(lab.ok(&["why", id, "--plan", "plan.yaml"]).stdout.contains("redo: corrupt: "));
}

#[test]
fn a_finished_plans_table_is_kept_until_something_changes() {
    let lab = Lab::new();
    lab.write("plan.yaml", PLAN);
    let first = lab.run(&["run", "plan.yaml"]);
    let derived = || names(&lab, "derived");
    assert_eq!(derived().len(), 1, "{:?}", derived());
    let again = lab.run(&["run", "plan.yaml"]);
    assert_eq!((again.code, &again.stdout), (first.code, &first.stdout));
    // If the cached table is damaged, it is written again.
    let kept = lab.results().join("derived").join(derived().first().unwrap());
    let whole = std::fs::read_to_string(&kept).unwrap();
    std::fs::write(&kept, whole.replace("fast", "vast")).unwrap();
    assert_eq!(lab.run(&["run", "plan.yaml"]).stdout, first.stdout);
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), whole);
    // A changed run is read again even if its size is the same.
    let run = lab.runs().into_values().next().unwrap();
    let file = run.dir.join("requests.parquet");
    let mut bytes = std::fs::read(&file).unwrap();
    let length = bytes.len();
    bytes[length - 10] ^= 0xff;
    std::fs::write(&file, bytes).unwrap();
    assert_eq!(lab.run(&["run", "plan.yaml"]).code, Some(5), "the damage is reported");
    // Other thresholds lead to another table.
    lab.write("plan.yaml", &PLAN.replace("validity: {", "slo: { ttft: { p50: 1h } }\nvalidity: {"));
    let ended = lab.run(&["run", "plan.yaml", "--only", "qps == 40"]);
    assert!(ended.stdout.lines().count() < first.stdout.lines().count(), "{}", ended.stdout);
}

#[test]
fn a_list_says_how_connections_were_made() {
    let lab = Lab::new();
    lab.write("plan.yaml", &PLAN.replace("between:", "connections: cold\nbetween:"));
    lab.run(&["run", "plan.yaml", "--only", "qps == 40"]);
    let list = lab.ok(&["list"]).stdout;
    let mut lines = list.lines();
    let at = lines.next().unwrap().find("connections").unwrap();
    assert!(lines.next().unwrap()[at..].starts_with("cold "), "{list}");
}

#[test]
fn endpoints_of_one_server_are_never_measured_side_by_side() {
    let lab = Lab::new();
    let seconds = |second: &str| {
        let plan = PLAN
            .replace("fast: { engine: mock,", "fast: { url: \"http://127.0.0.1:9/v1\", engine: vllm,")
            .replace("slow: { engine: mock,", &format!("slow: {{ {second}, engine: vllm,"))
            .replace(", mock: { ttft: 1ms, itl: 1ms }", "")
            .replace(", mock: { ttft: 1ms, itl: 2ms }", "");
        lab.write("plan.yaml", &plan);
        let side_by_side = preview(&lab, &["--jobs", "2"])["totals"]["to_do"]["seconds"].as_f64().unwrap();
        (side_by_side, preview(&lab, &[])["totals"]["to_do"]["seconds"].as_f64().unwrap())
    };
    for (second, shared) in [
        ("url: \"http://127.0.0.1:9/other/v1\"", true),
        ("url: \"http://127.0.0.1:10/v1\"", false),
        ("url: \"http://127.0.0.1:9/v1\", resource: own", false),
    ] {
        let (side_by_side, one_after_another) = seconds(second);
        assert_eq!(side_by_side == one_after_another, shared, "{second}: {side_by_side} of {one_after_another}");
    }
}
