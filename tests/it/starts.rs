//! Tests what is known about the starts of servers before and while they happen: one estimate for all commands,
//! what this machine lacks, servers that reject their settings, and orders that need many starts.

use std::fs;

use serde_json::Value;

use lab::mock::Mock;
use lab::{Ended, Lab};

/// Returns a plan with these endpoints whose only sweep has these fields.
fn plan(endpoints: &str, sweep: &str) -> String {
    format!(
        "\
sweepline: 1
name: starts
endpoints:
{endpoints}models: {{ tiny: {{ id: mock }} }}
scenarios: {{ short: {{ base: B1, output_tokens: 8 }} }}
phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 500ms }}, drain: 10s }}
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }} }}
sweeps:
  one: {{ {sweep} }}
"
    )
}

/// Returns a launched endpoint whose server is a shell script. `$P` is its port, and `serve` starts a mock.
fn launched(name: &str, script: &str, rest: &str) -> String {
    let text = script.replace("serve", "exec sweepline mock --ttft 5ms --port $P");
    format!(
        "  {name}: {{ engine: mock, launch: {{ command: [sh, -c, '{text}', sh, '{{{{ server.args }}}}'], port: auto, \
         host_env: {{ P: '{{{{ port }}}}' }} }}{rest} }}\n"
    )
}

fn lab(plan: &str) -> Lab {
    let lab = Lab::new();
    lab.write("plan.yaml", plan);
    lab
}

/// Returns the number of servers that were started, each of which has a log.
fn starts(lab: &Lab) -> usize {
    let logs = fs::read_dir(lab.results().join("servers")).into_iter().flatten().flatten();
    logs.filter(|entry| entry.path().extension().is_some_and(|end| end == "log")).count()
}

fn preview(lab: &Lab, args: &[&str]) -> Value {
    lab.ok(&[&["preview", "plan.yaml", "--format", "json"], args].concat()).json()
}

/// Returns the comparison of a plan whose runs are all different with the plan.
fn diff(lab: &Lab, args: &[&str]) -> Value {
    let text = fs::read_to_string(lab.path().join("plan.yaml")).unwrap();
    lab.write("before.yaml", &text.replace("output_tokens: 8", "output_tokens: 9"));
    lab.ok(&[&["diff", "before.yaml", "plan.yaml", "--format", "json"], args].concat()).json()
}

/// Returns the first line of `run` that states how many runs are to be done.
fn first_line(ended: &Ended) -> &str {
    ended.stderr.lines().find(|line| line.contains(" to do")).unwrap_or_else(|| panic!("{}", ended.stderr))
}

#[test]
fn preview_diff_and_run_state_the_same_time() {
    let endpoints = "  a: { engine: mock, mock: { ttft: 5ms } }\n  b: { engine: mock, mock: { ttft: 6ms } }\n";
    let lab = lab(&plan(endpoints, "matrix: { endpoint: [a, b], batch_size: [1, 2, 3] }"));
    for (args, seconds) in [(&[][..], 3.0), (&["--jobs", "2"][..], 1.5)] {
        let (preview, diff) = (preview(&lab, args), diff(&lab, args));
        assert_eq!(preview["totals"]["to_do"]["seconds"], seconds, "{args:?}");
        assert_eq!(diff["seconds"], seconds, "{args:?}");
        assert_eq!(diff["cost"]["after"]["seconds"], seconds, "{args:?}");
    }
    let text = lab.ok(&["diff", "before.yaml", "plan.yaml"]).stdout;
    assert!(text.contains("6 new runs (about 3s)"), "{text}");
    let ended = lab.ok(&["run", "plan.yaml"]);
    assert!(first_line(&ended).contains("6 runs to do, about 3s;"), "{}", ended.stderr);
}

#[test]
fn starts_count_as_measured_so_far_and_are_stated_as_unknown_before() {
    let endpoint = launched("m", "sleep 0.3; serve \"$@\"", "");
    let lab = lab(&plan(&endpoint, "matrix: { batch_size: 1, server.slots: [4, 8] }"));
    let cost = &preview(&lab, &[])["totals"]["to_do"];
    assert_eq!((&cost["starts"], &cost["starts_of_unknown_length"]), (&2.into(), &2.into()), "{cost:#}");
    assert_eq!(cost["seconds"], 1.0, "only the runs");
    let diff_before = diff(&lab, &[]);
    assert_eq!(diff_before["cost"]["after"]["starts_of_unknown_length"], 2);
    assert!(diff_before["cost"]["change"]["seconds"].is_null(), "{diff_before:#}");

    let ended = lab.ok(&["run", "plan.yaml", "--progress", "json", "--progress-every", "1ms"]);
    let lines: Vec<Value> = ended.stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let said = |part: &str| lines.iter().any(|line| line["text"].as_str().is_some_and(|text| text.contains(part)));
    assert!(said("2 runs to do, about 1s, plus 2 server starts, not yet measured;"), "{}", ended.stderr);
    // As soon as the first server is ready, the time of the second start is part of the remaining time.
    let states: Vec<&Value> =
        lines.iter().map(|line| &line["status"]).filter(|state| !state["left_s"].is_null()).collect();
    let unknown = |state: &&&Value| state["starts_not_measured"] == 2;
    assert!(states.first().is_some_and(|first| unknown(&first)), "{}", ended.stderr);
    let known: Vec<&&Value> = states.iter().skip_while(unknown).collect();
    assert!(!known.is_empty() && known.iter().all(|state| state["starts_not_measured"] == 0), "{}", ended.stderr);
    let left = known[0]["left_s"].as_f64().unwrap();
    assert!(left > 1.2, "two runs, and a start of at least 0.3 s: {}", known[0]);

    // Every command now counts the two starts, at the median of those measured.
    let (again, both) = (preview(&lab, &["--force"]), diff(&lab, &[]));
    let cost = &again["totals"]["to_do"];
    assert_eq!((&cost["starts"], &cost["starts_of_unknown_length"]), (&2.into(), &0.into()), "{cost:#}");
    let seconds = cost["seconds"].as_f64().unwrap();
    assert!(seconds > 1.0 + 2.0 * 0.3, "{seconds}");
    assert_eq!(cost["seconds"], both["cost"]["after"]["seconds"]);
    assert_eq!(cost["seconds"], both["seconds"]);
    let dry = lab.ok(&["run", "plan.yaml", "--dry-run", "--force"]).stdout;
    assert!(dry.contains(", with 2 server starts"), "{dry}");
}

#[test]
fn what_this_machine_lacks_is_named_before_anything_is_started_or_sent() {
    let mock = Mock::start(&["--ttft", "2ms"]);
    let keyed = launched("keyed", "serve \"$@\"", ", api_key: { secret: env:SWEEP_NO_SUCH_KEY }");
    let absent = "  absent: { engine: mock, launch: { command: [no-such-server, '{{ port }}'], port: auto } }\n";
    let stop = "  stopped: { engine: mock, launch: { command: [sh, '{{ port }}'], port: auto, stop: { command: \
                [no-such-stop] } } }\n";
    let open = format!("  open: {{ engine: mock, url: 'http://127.0.0.1:{}/v1' }}\n", mock.port);
    let endpoints = [keyed.as_str(), absent, stop, open.as_str()].concat();
    let sweep = "matrix: { endpoint: [keyed, absent, stopped, open], batch_size: [1, 2] }";
    let lab = lab(&plan(&endpoints, sweep));
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(2), "{}{}", ended.stdout, ended.stderr);
    let named = [
        ("keyed", "SWEEP_NO_SUCH_KEY", "(plan.yaml:4:"),
        ("absent", "no-such-server", "(plan.yaml:5:"),
        ("stopped", "no-such-stop", "(plan.yaml:6:"),
    ];
    let tells = |text: &str, parts: [&str; 3]| {
        let lines: Vec<&str> = text.lines().filter(|line| parts.iter().all(|part| line.contains(part))).collect();
        assert_eq!(lines.len(), 1, "{parts:?} in {text}");
    };
    for (endpoint, what, place) in named {
        tells(&ended.stderr, [format!("endpoint `{endpoint}`").as_str(), what, place]);
    }
    assert_eq!((starts(&lab), mock.log_now().len()), (0, 0), "{}", ended.stderr);

    let probed = lab.run(&["probe", "plan.yaml"]);
    assert_eq!(probed.code, Some(2), "{}", probed.stdout);
    let preview = lab.ok(&["preview", "plan.yaml"]);
    for (endpoint, what, place) in named {
        tells(&probed.stdout, [format!("{endpoint}: not ready").as_str(), what, ""]);
        tells(&preview.stderr, [format!("endpoint `{endpoint}`").as_str(), what, place]);
    }
    assert!(probed.stdout.contains("open: ready"), "{}", probed.stdout);
    // Endpoints without runs to do need nothing.
    let only = lab.run(&["run", "plan.yaml", "--only", "endpoint == 'open'"]);
    assert_eq!(only.code, Some(0), "{}", only.stderr);
}

#[test]
fn a_server_that_rejects_its_settings_twice_is_not_started_a_third_time() {
    let script = "echo started as $$; echo error: unrecognized arguments: --slotz; exit 2";
    // Each run requires a new start with the same settings.
    let endpoint = launched("m", script, ", retries: { runs: 5 }, reset: restart");
    let lab = lab(&plan(&endpoint, "matrix: { batch_size: [1, 2, 3] }"));
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert_eq!(starts(&lab), 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("\n  error: unrecognized arguments: --slotz"), "{}", ended.stderr);
    let preview = preview(&lab, &[]);
    assert_eq!(preview["totals"]["states"]["given_up"], 3, "{preview:#}");
    assert_eq!(lab.run(&["run", "plan.yaml"]).code, Some(3));
    assert_eq!(starts(&lab), 2, "given-up runs are retried only on request");
}

#[test]
fn other_settings_of_a_server_that_rejects_some_are_measured() {
    let script = "case $2 in 7) echo error: bad slots; exit 2;; *) serve \"$@\";; esac";
    let endpoint = launched("m", script, ", retries: { runs: 5 }");
    let lab = lab(&plan(&endpoint, "matrix: { batch_size: 1, server.slots: [7, 8] }"));
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert_eq!((starts(&lab), lab.runs().len()), (3, 1), "{}", ended.stderr);
}

/// Returns the message of the lint with this code; `None` if it is not reported.
fn lint(lab: &Lab, code: &str) -> Option<String> {
    let checked = lab.run(&["check", "plan.yaml", "--format", "json"]).json();
    let found = checked["diagnostics"].as_array().unwrap().iter().find(|one| one["code"] == code)?;
    Some(format!("{} {}", found["message"].as_str().unwrap(), found["remedy"].as_str().unwrap()))
}

#[test]
fn rounds_that_need_more_starts_than_arms_and_repeats_are_a_lint() {
    let endpoint = launched("m", "serve \"$@\"", "");
    let compared = |matrix: &str, repeats: u32| {
        format!("matrix: {{ {matrix} }}, repeats: {repeats}, compare: {{ by: server.slots, baseline: 4 }}")
    };
    let arms = "server.slots: [4, 8]";
    let many = lab(&plan(&endpoint, &compared(&format!("batch_size: [1, 2, 3, 4, 5, 6], {arms}"), 3)));
    let message = lint(&many, "M034").expect("a lint");
    let numbers: Vec<usize> =
        message.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect();
    let planned = preview(&many, &[])["starts"][0]["starts"].as_u64().unwrap() as usize;
    assert_eq!(numbers[..2], [planned, 6], "the starts of the plan, and one for each arm and repeat: {message}");
    assert!(planned > 6);
    for (endpoint, sweep) in [
        (endpoint.clone(), compared(&format!("batch_size: 1, {arms}"), 3)),
        (endpoint.clone(), format!("matrix: {{ batch_size: [1, 2, 3, 4, 5, 6], {arms} }}, repeats: 3")),
        (launched("m", "serve", ", reset: restart"), compared(&format!("batch_size: [1, 2, 3], {arms}"), 3)),
    ] {
        assert_eq!(lint(&lab(&plan(&endpoint, &sweep)), "M034"), None, "{sweep}");
    }
}

#[test]
fn flags_that_are_text_are_a_lint_that_shows_what_is_passed() {
    for (flag, passed) in [("yes", "--slots yes"), ("No", "--slots No"), ("0,20", "--slots 0,20")] {
        let endpoint = launched("m", "serve", &format!(", server: {{ flags: {{ slots: '{flag}' }} }}"));
        let declared = lint(&lab(&plan(&endpoint, "matrix: { batch_size: [1, 2] }")), "M035");
        assert!(declared.as_ref().is_some_and(|message| message.contains(passed)), "{flag}: {declared:?}");
        let axis = format!("matrix: {{ batch_size: [1, 2], server.slots: ['{flag}', '4'] }}");
        let varied = lint(&lab(&plan(&launched("m", "serve", ""), &axis)), "M035");
        assert!(varied.as_ref().is_some_and(|message| message.contains(passed)), "{flag}: {varied:?}");
    }
    for flag in ["true", "false", "0.20", "0,1,2", "auto"] {
        let endpoint = launched("m", "serve", &format!(", server: {{ flags: {{ slots: '{flag}' }} }}"));
        assert_eq!(lint(&lab(&plan(&endpoint, "matrix: { batch_size: [1, 2] }")), "M035"), None, "{flag}");
    }
}
