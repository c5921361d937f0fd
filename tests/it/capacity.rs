//! Tests curves, capacity and diagnoses of servers with known limits.
//!
//! A mock with four slots, 20 ms to the first of 6 tokens and 4 ms between tokens serves four requests in
//! 40 ms: at most 100 per second. One slot serves a quarter of that. The windows of open loops are long
//! compared with these times; otherwise the queue could not be judged. Times are jittered, so that their
//! variation comes from the requests more than from other users of the machine's cores.

use serde_json::Value;

use super::telemetry::FakePage;
use lab::Lab;
use lab::mock::Mock;
use lab::sweeps::honest;

const PLAN: &str = "\
sweepline: 1
name: which
seed: 7
endpoints:
  two:
    engine: mock
    mock: { ttft: 20ms, itl: 4ms, slots: 4, jitter: 50% }
    hardware: { gpu: G, gpus: 2, memory_bandwidth: 300GB/s, watts: 500, price_per_hour: 2 }
  one:
    engine: mock
    mock: { ttft: 20ms, itl: 4ms, slots: 1, jitter: 50% }
    hardware: { gpu: G, gpus: 1, watts: 100, owned: { purchase_price: 87600, lifetime_years: 10, energy_price_per_kwh: 0.5 } }
models: { m: { id: m, parameters: 1e9, precision: bf16 } }
scenarios: { s: { prompt_tokens: 32, output_tokens: 6 } }
phases: { fill: 200ms, stabilize: 300ms, measure: { for: 8s, min_requests: 60, at_most: 20s }, drain: 1s }
slo: { ttft: { p50: 200ms } }
# A busy machine sends late; what is asked here is not how exact the client is.
validity: { client_late: { suspect: 100%, invalid: 100% } }
sweeps:
  ladder: { matrix: { endpoint: [two, one], model: [m], scenario: [s], qps: [10, 30, 200] } }
  closed:
    matrix: { endpoint: [two], model: [m], scenario: [s], batch_size: [1, 2, 4, 8] }
    phases: { measure: { for: 2s, min_requests: 60, at_most: 20s } }
";

/// Returns the results of the plan.
fn measured() -> Lab {
    let lab = Lab::new();
    // The power that the mock's GPU reports.
    let page = FakePage::of(|_| "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} 50\n".to_owned());
    let one = "slots: 1, jitter: 50% }\n";
    lab.write("plan.yaml", &PLAN.replace(one, &format!("{one}    telemetry: \"{}\"\n", page.url)));
    honest(&lab.run(&["run", "plan.yaml", "-q", "--jobs", "2"]));
    lab
}

fn json(lab: &Lab, args: &[&str]) -> Value {
    let answer = lab.ok(&[args, &["--format", "json"]].concat()).json();
    lab.follows(args[0], &answer);
    answer
}

/// Returns the entry of an endpoint in a sweep.
fn of<'v>(entries: &'v Value, sweep: &str, endpoint: &str) -> &'v Value {
    let is = |entry: &&Value| entry["sweep"] == sweep && entry["endpoint"] == endpoint;
    entries.as_array().unwrap().iter().find(is).unwrap_or_else(|| panic!("no {sweep} of {endpoint}: {entries:#}"))
}

#[test]
fn servers_with_known_limits_are_answered_for() {
    let lab = measured();
    known_capacity_is_found_within_the_ladder_and_priced(&lab);
    endpoints_of_several_replicas_show_how_a_server_scales(&lab);
    curves_say_where_servers_bend(&lab);
}

fn known_capacity_is_found_within_the_ladder_and_priced(lab: &Lab) {
    let answer = json(lab, &["capacity", "plan.yaml", "--target-qps", "100", "--headroom", "20%"]);
    let entries = &answer["configurations"];
    let two = of(entries, "ladder", "two");
    assert_eq!((&two["max_qps"]["holds"], &two["max_qps"]["misses"]), (&30.0.into(), &200.0.into()), "{two:#}");
    // 120 requests/s, divided by the arrivals at the two loads; instances cost 2 per hour, and a month
    // has 730 hours.
    let came = ["holds_arrived_rate", "misses_arrived_rate"].map(|name| two["max_qps"][name].as_f64().unwrap());
    assert!((24.0..36.0).contains(&came[0]) && (160.0..240.0).contains(&came[1]), "{two:#}");
    assert_eq!(two["instance"]["arrived_rate"], came[0]);
    let fleet = &two["fleet"];
    let counted = ["instances", "at_least", "gpus", "money_per_month"].map(|name| fleet[name].as_f64().unwrap());
    let instances = (120.0 / came[0]).ceil();
    // The server completes about 100 requests per second, fewer than arrived at the load that
    // misses.
    let most = two["instance"]["serves_at_most_requests_per_s"].as_f64().unwrap();
    assert!((85.0..130.0).contains(&most), "{two:#}");
    assert_eq!(counted, [instances, (120.0 / most).ceil(), 2.0 * instances, 1_460.0 * instances]);
    let money = ["money_per_month", "cost_per_million_output_tokens_at_target"]
        .map(|name| [fleet[name].as_f64().unwrap(), fleet[format!("{name}_at_least")].as_f64().unwrap()]);
    let fewest = counted[1] / counted[0];
    assert!(money.iter().all(|[most, least]| (least / most / fewest - 1.0).abs() < 1e-9), "{fleet:#}");
    assert_eq!(two["max_qps"]["interval"], "tests of the two loads");
    assert_eq!(fleet["interval"], "test of the load that holds, interval of the saturated throughput");
    let tokens = two["instance"]["output_throughput_tokens_per_s"].as_f64().unwrap();
    assert!((120.0..250.0).contains(&tokens), "about 30 requests of 6 tokens per second: {tokens}");
    let per_million = two["instance"]["cost_per_million_output_tokens"].as_f64().unwrap();
    assert!((per_million - 2.0 / (tokens * 3600.0) * 1e6).abs() < 1e-9);
    assert!((two["instance"]["tokens_per_joule"].as_f64().unwrap() - tokens / 500.0).abs() < 1e-9);

    // The server handles 25 per second, so 30 is too many. 87 600 over 87 600 hours is 1 per hour,
    // plus 100 W at a price of 0.5.
    let one = of(entries, "ladder", "one");
    assert_eq!((&one["max_qps"]["holds"], &one["max_qps"]["misses"]), (&10.0.into(), &30.0.into()), "{one:#}");
    assert_eq!(one["instance"]["price_per_hour"], 1.05);
    // The plan declares 100 W, and 50 W are measured.
    let [declared, measured, tokens] =
        ["tokens_per_joule", "measured_tokens_per_joule", "output_throughput_tokens_per_s"]
            .map(|name| one["instance"][name].as_f64().unwrap());
    assert!((declared - tokens / 100.0).abs() < 1e-9 && (measured / (tokens / 50.0) - 1.0).abs() < 1e-6, "{one:#}");
    assert_eq!([&one["instance"]["energy_by"], &two["instance"]["energy_by"]], [&"power".into(), &Value::Null]);
    let text = lab.ok(&["capacity", "plan.yaml"]).stdout;
    assert!(text.lines().any(|line| line.trim_end().ends_with(" power")), "{text}");
    // About 12 instances at a price of 1.05 cost more than 4 at a price of 2.
    assert_eq!([&two["cheapest"], &one["cheapest"]], [true, false]);
    assert_eq!(of(entries, "closed", "two")["closed_loop"]["holds"], 8.0, "60 ms at 8: {entries:#}");
}

/// The number of replicas is no part of a run's identity, so the same results are read with it.
fn endpoints_of_several_replicas_show_how_a_server_scales(lab: &Lab) {
    let declared = |endpoint: &str, count: u32| format!("endpoints.{endpoint}.hardware.replicas={count}");
    let (one, two) = (declared("one", 1), declared("two", 2));
    let with = |args: &[&str]| json(lab, &[&["capacity", "plan.yaml", "--set", &one, "--set", &two], args].concat());
    let plain = json(lab, &["capacity", "plan.yaml"]);
    assert_eq!(plain["scaling"], serde_json::json!([]), "nothing is declared");
    let answer = with(&["--target-qps", "20", "--headroom", "10%"]);
    let scaling = &answer["scaling"][0];
    let of_endpoint = |endpoint: &str, field: &str| {
        of(&answer["configurations"], "ladder", endpoint)["instance"][field].as_f64().unwrap()
    };
    let [few, many] = [&scaling["steps"][0], &scaling["steps"][1]];
    assert_eq!([&few["replicas"], &many["replicas"]], [1, 2], "{scaling:#}");
    let held = ["one", "two"].map(|endpoint| of_endpoint(endpoint, "arrived_rate"));
    let most = ["one", "two"].map(|endpoint| of_endpoint(endpoint, "serves_at_most_requests_per_s"));
    assert_eq!([&few["holds"], &many["holds"]], held, "{scaling:#}");
    let share = |field: &str| many[field].as_f64().unwrap();
    let near = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-9;
    assert!(near(share("share_of_linear"), held[1] / (2.0 * held[0])), "{scaling:#}");
    assert!(share("share_at_least") < share("share_of_linear"), "{scaling:#}");
    assert!(near(share("share_at_most"), most[1] / (2.0 * held[0])), "{scaling:#}");
    // 22 requests per second are more than one slot holds and fewer than four held.
    assert_eq!(
        (&scaling["needed"]["replicas"], &scaling["needed"]["measured"]),
        (&2.into(), &true.into()),
        "{answer:#}"
    );
    let beyond = with(&["--target-qps", "300"]);
    let needed = &beyond["scaling"][0]["needed"];
    let each = (300.0 / held[1] * 2.0).ceil();
    assert_eq!((needed["replicas"].as_f64(), &needed["measured"]), (Some(each), &false.into()), "{beyond:#}");
    assert_eq!(needed["more_than"], 2, "{beyond:#}");
    let text = lab.ok(&["capacity", "plan.yaml", "--target-qps", "300", "--set", &one, "--set", &two]).stdout;
    assert!(
        text.contains("scaling as measured for s (model m)") && text.contains(&format!(" {each} would if")),
        "{text}"
    );
    // Replicas on other accelerators are not the same server.
    let other = with(&["--set", "endpoints.two.hardware.gpu=H"]);
    assert_eq!(other["scaling"], serde_json::json!([]));
    let wrong = lab.run(&["check", "plan.yaml", "--set", "endpoints.two.hardware.replicas=3"]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("3 equal replicas"), "{}{}", wrong.stdout, wrong.stderr);
}

fn curves_say_where_servers_bend(lab: &Lab) {
    let curves = &json(lab, &["curves", "plan.yaml"])["curves"];
    let closed = of(curves, "closed", "two");
    let knee = closed["knee"]["load"].as_f64().unwrap_or_else(|| panic!("{closed:#}"));
    assert!((3.0..=5.5).contains(&knee), "four slots: {knee}");
    let open = of(curves, "ladder", "two");
    assert_eq!(
        (&open["saturation"]["kept_up"], &open["saturation"]["saturated"]),
        (&30.0.into(), &200.0.into()),
        "{open:#}"
    );
    assert_eq!(open["saturation"]["not_shown"], serde_json::json!([]));
    let states = [0, 1, 2].map(|rung| open["rungs"][rung]["saturation"].clone());
    assert_eq!(states, ["kept_up", "kept_up", "saturated"]);
    // More requests arrived than were served, so the curve bends at the load below this one.
    assert_eq!((&open["knee"]["load"], &open["knee"]["between"]), (&30.0.into(), &serde_json::json!([10.0, 200.0])));
    assert_eq!(open["knee"]["interval"], "adjacent loads", "{open:#}");
    let rung = &open["rungs"][0];
    let came = rung["arrived_rate"].as_f64().unwrap();
    assert!((5.0..16.0).contains(&came), "{rung:#}");
    let limit = &rung["limits"][0];
    assert_eq!((&limit["metric"], &limit["answer"]), (&"ttft_from_schedule".into(), &"holds".into()), "{limit:#}");
    assert!(limit["worth"].as_f64().unwrap() <= limit["n"].as_f64().unwrap(), "{limit:#}");
    let ttft = &rung["figures"]["ttft_p50_ms"];
    let ends = ["low", "value", "high"].map(|name| ttft[name].as_f64().unwrap());
    assert!(ends[0] <= ends[1] && ends[1] <= ends[2] && (14.0..60.0).contains(&ends[1]), "{rung:#}");
    assert_eq!(ttft["interval"], "order statistics of requests");

    let rows = lab.ok(&["export", "plan.yaml", "--rows", "curves", "--format", "json"]).json();
    assert_eq!(rows.as_array().unwrap().len(), 3 + 3 + 4);
    let row = of(&rows, "ladder", "two");
    assert_eq!((&row["load_axis"], &row["load"], &row["objective"]), (&"qps".into(), &10.0.into(), &"holds".into()));
    assert_eq!((&row["arrived_rate_requests_per_s"], &row["saturation"]), (&came.into(), &"kept_up".into()), "{row:#}");
    assert_eq!((&row["ttft_p50_ms"], &row["ttft_p50_interval"]), (&ttft["value"], &ttft["interval"]), "{row:#}");

    let text = lab.ok(&["curves", "plan.yaml", "--only", "sweep == 'closed'"]).stdout;
    assert!(text.contains("requests in flight, between") && text.contains("Pareto front"), "{text}");
    assert!(!text.contains("from the schedule"), "no open loop is shown: {text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");

    let found = json(lab, &["diagnose", "plan.yaml"]);
    let predictions = found["predictions"].as_array().unwrap();
    // The bound is 600 GB/s divided by 2 GB.
    assert!(predictions.iter().all(|one| one["endpoint"] == "two" && one["by_weights_tokens_per_s"] == 300.0));
    assert!(
        found["not_predicted"][0].as_str().unwrap().contains("endpoint one declares no hardware: { memory_bandwidth")
    );
    let state = |key: &str| {
        let symptoms = found["symptoms"].as_array().unwrap();
        symptoms.iter().find(|one| one["symptom"] == key).unwrap()["found"].clone()
    };
    assert_eq!(state("warm_equals_cold"), "not_checked");
    assert_eq!(state("tpot_high_alone"), "seen", "4 ms alone and 4 ms under load: {found:#}");
    assert_eq!(state("far_below_prediction"), "not_seen", "250 of 300: {found:#}");
}

#[test]
fn what_cannot_be_answered_is_refused_in_words() {
    let lab = Lab::new();
    lab.write("plan.yaml", PLAN);
    let none = lab.run(&["capacity", "plan.yaml"]);
    assert_eq!(none.code, Some(2));
    assert!(
        none.stderr.contains("no results of this plan in results: run `sweepline run plan.yaml`"),
        "{}",
        none.stderr
    );
    let negative = lab.run(&["capacity", "plan.yaml", "--target-qps=-1"]);
    assert!(negative.code == Some(2) && negative.stderr.contains("above 0"), "{}", negative.stderr);

    let bare = PLAN
        .replace("slo: { ttft: { p50: 200ms } }\n", "")
        .replace("[10, 30, 200]", "[10]")
        .replace("[1, 2, 4, 8]", "[1]");
    lab.write("plan.yaml", &bare);
    honest(&lab.run(&["run", "plan.yaml", "-q", "--jobs", "2", "--set", "phases.measure=300ms"]));
    let without = lab.run(&["capacity", "plan.yaml", "--set", "phases.measure=300ms"]);
    assert!(without.code == Some(2) && without.stderr.contains("add `slo`"), "{}", without.stderr);
    let few = ["capacity", "plan.yaml", "--set", "phases.measure=300ms", "--set", "slo={ ttft: { p99: 500ms } }"];
    let words = |args: &[&str]| lab.ok(args).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let (brief, full) = (words(&few), words(&[&few[..], &["-v"]].concat()));
    assert!(full.contains("299 needed") && !brief.contains("299 needed"), "undecided never counts as met: {full}");
    for text in [brief, full] {
        assert!(text.contains("observed to hold, not proven (") && !text.contains("is undecided ("), "{text}");
    }
}

#[test]
fn answers_take_chosen_runs_of_a_changed_plan_from_any_folder() {
    let lab = Lab::new();
    let models = "models: { m: { id: m, parameters: 1e9, precision: bf16 } }\n";
    lab.write("parts.yaml", models);
    let head = PLAN.replace(models, "use: ../parts.yaml\n").replace("[10, 30, 200]", "[20, 40]");
    lab.write("plans/plan.yaml", &head.replace("[1, 2, 4, 8]", "[1, 2]"));
    let set = ["plans/plan.yaml", "--allow-outside", "--set", "phases.measure=500ms", "--results", "elsewhere"];
    let set = [&set[..], &["--set", "sweeps.closed.phases.measure=500ms"]].concat();
    honest(&lab.run(&[&["run", "-q", "--jobs", "2"][..], &set].concat()));
    for command in ["curves", "capacity", "diagnose"] {
        let outside = lab.run(&[command, "plans/plan.yaml", "--results", "elsewhere"]);
        assert!(outside.code == Some(2) && outside.stderr.contains("--allow-outside"), "{}", outside.stderr);
        // Without --set, these are different runs that have no results.
        let others = lab.run(&[command, "plans/plan.yaml", "--allow-outside", "--results", "elsewhere"]);
        assert!(others.code == Some(2) && others.stderr.contains("no results of this plan"), "{}", others.stderr);
        let chosen = ["--only", "endpoint == 'two'", "--skip", "sweep == 'closed'", "--include-invalid"];
        let text = lab.ok(&[&[command][..], &set, &chosen].concat()).stdout;
        assert!(!text.contains("one · s") && !text.contains("invalid excluded"), "{text}");
        let answer = json(&lab, &[&[command][..], &set, &chosen].concat());
        assert_eq!(answer["missing"], 0, "{answer:#}");
        let of_two = |entries: &Value| entries.as_array().unwrap().iter().all(|entry| entry["endpoint"] == "two");
        let name = if command == "capacity" { "configurations" } else { "curves" };
        assert!(command == "diagnose" || of_two(&answer[name]), "{answer:#}");
    }
}

#[test]
fn invalid_runs_are_left_out_and_that_is_said() {
    let lab = Lab::new();
    let rest = PLAN.split("sweeps:").next().unwrap();
    lab.write(
        "plan.yaml",
        &format!(
            "{rest}sweeps: {{ s: {{ matrix: {{ endpoint: [one], model: [m], scenario: [s], qps: [0.01] }} }} }}\n"
        ),
    );
    // No request arrives within a window of a hundredth of a second.
    let set = ["plan.yaml", "--set", "phases={ fill: 0s, stabilize: 0s, measure: 10ms, drain: 10ms }"];
    assert_eq!(lab.run(&[&["run", "-q"][..], &set].concat()).code, Some(3), "an empty window is invalid");
    for command in ["curves", "capacity", "diagnose"] {
        let text = lab.ok(&[&[command][..], &set].concat()).stdout;
        assert!(text.contains("1 invalid excluded (--include-invalid includes them)"), "{text}");
        let counted = lab.ok(&[&[command, "--include-invalid"][..], &set].concat()).stdout;
        assert!(!counted.contains("excluded"), "{counted}");
    }
    let curve = &json(&lab, &[&["curves"][..], &set].concat())["curves"][0];
    assert_eq!(curve["rungs"][0]["left_out"].as_array().unwrap().len(), 1, "{curve:#}");
    assert!(curve["slo"].is_null() && curve["rungs"][0]["figures"]["ttft_p50_ms"].is_null(), "{curve:#}");
}

#[test]
fn equal_servers_are_equally_cheap_and_requests_of_another_length_are_another_matter() {
    let lab = Lab::new();
    let server = "{ engine: mock, mock: { ttft: 20ms, itl: 4ms, slots: 8, jitter: 50% }, hardware: { gpus: 1, price_per_hour: 3 } }";
    let plan = format!(
        "sweepline: 1
name: alike
seed: 3
endpoints: {{ a: {server}, b: {server} }}
models: {{ m: {{ id: m }} }}
scenarios: {{ s: {{ prompt_tokens: 32 }} }}
phases: {{ fill: 200ms, stabilize: 300ms, measure: 8s, drain: 1s }}
slo: {{ ttft: {{ p50: 400ms }} }}
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }} }}
sweeps:
  s: {{ matrix: {{ endpoint: [a, b], model: m, scenario: s, output_tokens: [8, 16], qps: [1, 30] }} }}
"
    );
    lab.write("plan.yaml", &plan);
    honest(&lab.run(&["run", "plan.yaml", "-q", "--jobs", "2", "--skip", "endpoint == 'b'"]));
    // The cost of the other endpoint is still unknown.
    let one = lab.ok(&["capacity", "plan.yaml"]).stdout;
    assert!(one.contains("4 of the plan's runs have no result yet: b · s 4 of 4"), "{one}");
    honest(&lab.run(&["run", "plan.yaml", "-q", "--jobs", "2"]));

    let args = ["capacity", "plan.yaml", "--target-qps", "100"];
    let answer = json(&lab, &args);
    for entry in answer["configurations"].as_array().unwrap() {
        // The light load has about two requests, which decide nothing and do not affect the heavy
        // load.
        let found = (&entry["max_qps"]["holds"], &entry["max_qps"]["misses"], &entry["max_qps"]["undecided"]);
        assert_eq!(found, (&30.0.into(), &Value::Null, &serde_json::json!([1.0])), "{entry:#}");
        assert_eq!(entry["cheapest"], true, "{entry:#}");
        // 100 requests/s with this many tokens each; the number of instances is based on arrivals.
        let tokens: f64 = entry["axes"]["output_tokens"].as_str().unwrap().parse().unwrap();
        let at_target = entry["fleet"]["cost_per_million_output_tokens_at_target"].as_f64().unwrap();
        let instances = (100.0 / entry["instance"]["arrived_rate"].as_f64().unwrap()).ceil();
        assert_eq!(entry["fleet"]["instances"].as_f64(), Some(instances), "{entry:#}");
        let expected = instances * 3.0 / (100.0 * tokens * 3600.0) * 1e6;
        assert!((at_target / expected - 1.0).abs() < 1e-9, "{at_target} of {expected}: {entry:#}");
    }
    let text = lab.ok(&args).stdout;
    assert!(text.contains("cheapest for s · output_tokens=8 (model m): a · s · output_tokens=8 and b ·"), "{text}");
    assert!(text.contains("each of these is based on one run"), "{text}");
    let fronts = lab.ok(&["curves", "plan.yaml"]).stdout;
    assert!(fronts.contains("Pareto front: s · output_tokens=16 (model m): tokens/s per user"), "{fronts}");
    assert!(text.lines().chain(fronts.lines()).all(|line| line.chars().count() <= 100), "{text}{fronts}");

    let none = lab.run(&["capacity", "plan.yaml", "--set", "slo={}"]);
    assert!(none.code == Some(2) && none.stderr.contains("add `slo`"), "{}", none.stderr);
    let dear = lab.ok(&["capacity", "plan.yaml", "--set", "slo={ cost_per_million: 0.1 }"]).stdout;
    assert!(dear.contains("cost_per_million misses ("), "{dear}");
}

#[test]
fn a_burst_of_errors_in_one_repeat_decides_nothing() {
    // Each run has about 160 requests. In one run, a fifth of them fail in a row, and no others.
    let mock = Mock::start(&["--ttft", "20ms", "--itl", "4ms", "--jitter", "50%", "--fault", "http:500@60-89"]);
    let lab = Lab::new();
    let plan = format!(
        "sweepline: 1
name: burst
seed: 5
endpoints: {{ a: {{ url: \"http://127.0.0.1:{}/v1\", engine: mock, hardware: {{ gpus: 1, price_per_hour: 3 }} }} }}
models: {{ m: {{ id: m }} }}
scenarios: {{ s: {{ prompt_tokens: 32, output_tokens: 6 }} }}
phases: {{ fill: 200ms, stabilize: 300ms, measure: 6s, drain: 5s }}
slo: {{ ttft: {{ p50: 400ms }} }}
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }}, errors: {{ suspect: 100%, invalid: 100% }} }}
sweeps: {{ s: {{ matrix: {{ endpoint: a, model: m, scenario: s, qps: 25 }}, repeats: 3 }} }}
",
        mock.port
    );
    lab.write("plan.yaml", &plan);
    let gate = lab.run(&["run", "plan.yaml", "--gate"]);
    assert!(gate.stderr.contains("gate: passed\nexcluded\n  a · s · 25 qps: repeat"), "{}", gate.stderr);
    assert_eq!(gate.code, Some(0), "{}{}", gate.stdout, gate.stderr);

    let rung = json(&lab, &["curves", "plan.yaml"])["curves"][0]["rungs"][0].clone();
    assert_eq!((rung["runs"].as_array().unwrap().len(), &rung["slo"]), (2, &"holds".into()), "{rung:#}");
    assert_eq!(rung["excluded"][0]["reason"], "errors_bunched", "{rung:#}");
    assert_eq!(rung["figures"]["error_share"]["value"], 0.0, "figures cover only runs that count: {rung:#}");

    let answer = json(&lab, &["capacity", "plan.yaml", "--target-qps", "100"]);
    assert_eq!(answer["configurations"][0]["max_qps"]["holds"], 25.0, "{answer:#}");
    assert!(answer["failed"][0].as_str().unwrap().contains("errors_bunched"), "{answer:#}");
    let text = lab.ok(&["capacity", "plan.yaml", "--target-qps", "100"]).stdout;
    let [errors, price] = ["errors: a · s at qps 25: excluded: repeat", "money"].map(|words| text.find(words));
    assert!(errors.is_some() && errors < price, "errors are listed above prices: {text}");
}
