//! Tests the display of a running sweep: lines with occasional reports, JSON for programs, and the full
//! screen.

use serde_json::Value;

use lab::tmux::Terminal;
use lab::{Lab, wait_for, without_time};

/// Returns a lab with one run of an embedded server, measured for this long.
fn lab(measure: &str) -> Lab {
    let lab = Lab::real_time();
    lab.write(
        "plan.yaml",
        &format!(
            "sweepline: 1
name: watched
endpoints: {{ demo: {{ engine: mock, mock: {{ ttft: 20ms, itl: 5ms }} }} }}
models: {{ m: {{ id: tiny }} }}
scenarios: {{ short: {{ base: B1, output_tokens: 8 }} }}
phases: {{ fill: 0s, stabilize: 100ms, measure: {measure}, drain: 10s }}
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }}, unsteady: {{ suspect: 100% }} }}
sweeps: {{ s: {{ matrix: {{ scenario: short, qps: 20 }} }} }}
"
        ),
    );
    lab
}

#[test]
fn programs_follow_a_sweep_in_json() {
    let lab = lab("2s");
    let ended = lab.run(&["run", "plan.yaml", "--progress", "json", "--progress-every", "200ms"]);
    assert_eq!(ended.code, Some(0), "{}", ended.log);
    let lines: Vec<Value> = ended.log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    for line in &lines {
        lab.follows("progress", line);
    }
    let of = |event: &str| lines.iter().filter(|line| line["event"] == event).collect::<Vec<_>>();
    let [started, committed] = ["started", "committed"].map(|event| of(event)[0]["run"].clone());
    assert_eq!(started, committed);
    let id = started["id"].as_str().unwrap();
    assert!(lab.runs().contains_key(id) || lab.runs().keys().any(|folder| id.starts_with(folder)), "{id}");
    let statuses = of("status");
    assert!(statuses.len() >= 4, "one every 200 ms: {}", ended.log);
    let busy = statuses.iter().filter_map(|line| line["status"]["running"].get(0)).find(|run| run["ttft_ms"].is_f64());
    let busy = busy.unwrap_or_else(|| panic!("expected the status of a run with responses: {}", ended.log));
    assert!(busy["ttft_ms"].as_f64().unwrap() >= 19.0 && busy["tpot_ms"].as_f64().unwrap() >= 4.5, "{busy}");
    let wanted = busy["wanted_per_s"].as_f64().unwrap();
    assert!((wanted - 20.0).abs() < 1e-6 && busy["failed"] == 0, "{busy}");
    assert_eq!(busy["id"], started["id"]);
    // The table is the same for every kind of display.
    assert!(ended.stdout.contains("demo "), "{}", ended.stdout);
}

#[test]
fn a_log_has_a_line_now_and_then() {
    let lab = lab("2s");
    let often = lab.run(&["run", "plan.yaml", "--progress", "plain", "--progress-every", "300ms"]);
    assert_eq!(often.code, Some(0), "{}", often.log);
    let is_report = |line: &&str| line.starts_with("[1/1] demo · short · 20 qps · measure ");
    let reports: Vec<&str> = often.stderr.lines().filter(is_report).collect();
    assert!(reports.len() >= 3, "{}", often.log);
    assert!(reports.iter().any(|line| line.contains(" of 20.0 req/s · TTFT ")), "{}", often.log);
    assert!(often.log.lines().any(|line| without_time(line) != line && line.ends_with(" left")), "{}", often.log);
    // A minute has not passed, so only the events are printed.
    let seldom = lab.run(&["run", "plan.yaml", "--force"]);
    assert!(!seldom.stderr.lines().any(|line| is_report(&line)), "{}", seldom.log);
    let quiet = lab.run(&["run", "plan.yaml", "--force", "--progress", "json", "--quiet"]);
    assert!(quiet.log.is_empty(), "{}", quiet.log);
}

#[test]
fn the_whole_terminal_needs_one() {
    let lab = lab("200ms");
    let refused = lab.run(&["run", "plan.yaml", "--progress", "full"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--progress full needs a terminal on stderr"), "{}", refused.stderr);
    assert!(lab.runs().is_empty());
}

#[test]
fn the_whole_terminal_is_given_back() {
    let lab = lab("4s");
    let Some(terminal) = Terminal::start(&lab, &["run", "plan.yaml", "--progress", "full"], 80) else { return };
    let screen = wait_for("figures on the whole terminal", || {
        let screen = terminal.screen(false);
        let shown = ["0 of 1 runs [", "demo · short · 20 qps", " of 20.0 req/s", "TTFT ", "TPOT ", " tok/s", "▁"];
        (shown.iter().all(|text| screen.contains(text)) || screen.contains("█")).then_some(screen)
    });
    assert!(terminal.is_on_other_screen(), "{screen}");
    let end = wait_for("the end", || Some(terminal.screen(false)).filter(|screen| screen.contains("ended with ")));
    assert!(!terminal.is_on_other_screen());
    assert!(
        end.contains("[1/1] demo · short · 20 qps · ") && end.contains("next:\n"),
        "the lines of events remain: {end}"
    );
    assert!(!end.contains("0 of 1 runs ["), "{end}");
}

#[test]
fn an_impatient_end_gives_the_terminal_back_too() {
    let lab = lab("60s");
    let Some(terminal) = Terminal::start(&lab, &["run", "plan.yaml", "--progress", "full"], 80) else { return };
    wait_for("the run", || terminal.screen(false).contains("measure ").then_some(()));
    assert!(terminal.is_on_other_screen());
    terminal.press("C-c");
    terminal.press("C-c");
    let end = wait_for("the end", || Some(terminal.screen(false)).filter(|screen| screen.contains("ended with ")));
    assert!(end.contains("ended with 130"), "{end}");
    assert!(!terminal.is_on_other_screen(), "{end}");
}
