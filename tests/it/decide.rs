//! Tests decision records: their numbers equal those of the results, prose is kept byte for byte, and no
//! user's text is overwritten.

use pulldown_cmark::{Event, Options, Parser, Tag};
use serde_json::Value;

use lab::sweeps::honest;
use lab::{Ended, Lab};

/// Two servers, one of which is twice as fast. Some names and texts look like markers, and a header
/// is confidential.
const PLAN: &str = r#"sweepline: 1
name: "which <b>one</b> | *now* https://evil.example"
hypothesis: "[Quick](javascript:alert(1)) is quicker <script>alert(1)</script>"
seed: 7
endpoints:
  slow:
    engine: mock
    mock: { ttft: 20ms, itl: 2ms, jitter: 30% }
    headers: { X-Team: hush-hush-header }
    hardware: { gpu: "G|<i>", gpus: 1, price_per_hour: 2 }
  "quick | `<i>x</i>`": { engine: mock, mock: { ttft: 10ms, itl: 1ms, jitter: 30% }, hardware: { gpu: G, gpus: 1, price_per_hour: 1 } }
models: { m: { id: "tiny](x) *b* <u>", precision: bf16 } }
scenarios: { short: { base: B1, output_tokens: 6 } }
phases: { fill: 100ms, stabilize: 100ms, measure: 1s, drain: 5s }
slo: { ttft: { p50: 500ms } }
compare: { by: endpoint, baseline: slow, metrics: [ttft_p50] }
validity: { client_late: { suspect: 100%, invalid: 100% }, unsteady: { suspect: 99% } }
sweeps:
  closed: { matrix: { endpoint: [slow, "quick | `<i>x</i>`"], model: [m], scenario: [short], batch_size: [1, 4] }, repeats: 2 }
"#;

const QUICK: &str = "endpoint != 'slow'";
const SLOW: &str = "endpoint == 'slow'";
const RECORD: &str = "plan.decision.md";

fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("plan.yaml", PLAN);
    honest(&lab.run(&["run", "plan.yaml", "-q"]));
    lab
}

fn read(lab: &Lab, file: &str) -> String {
    std::fs::read_to_string(lab.path().join(file)).unwrap()
}

/// Writes a record that accepts the fast server.
fn accepted(lab: &Lab) -> String {
    lab.ok(&["decide", "plan.yaml", "--accept", QUICK, "--because", "It is twice as fast."]);
    read(lab, RECORD)
}

/// Returns the text between the markers of a part.
fn part<'t>(text: &'t str, name: &str) -> &'t str {
    let (_, rest) = text.split_once(&format!("<!-- sweepline:begin {name} ")).unwrap();
    let (_, rest) = rest.split_once("-->\n").unwrap();
    rest.split_once(&format!("<!-- sweepline:end {name} -->")).unwrap().0
}

/// Returns everything that users wrote: the text outside the markers.
fn prose(text: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for line in text.split_inclusive('\n') {
        inside |= line.starts_with("<!-- sweepline:begin");
        if !inside && !line.starts_with("<!-- sweepline:") {
            out.push_str(line);
        }
        inside &= !line.starts_with("<!-- sweepline:end");
    }
    out
}

/// Asserts that the command is rejected with this message and leaves the record unchanged.
fn refused(lab: &Lab, args: &[&str], words: &str) -> Ended {
    let path = lab.path().join(RECORD);
    let before = std::fs::read(&path).ok();
    let ended = lab.run(args);
    assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
    assert!(ended.stderr.contains(words), "{words:?} is not in {}", ended.stderr);
    assert_eq!(std::fs::read(&path).ok(), before, "{args:?}");
    ended
}

/// Formats a number as tables show it.
fn digits(value: &Value) -> String {
    let value = value.as_f64().unwrap();
    let decimals = match value.abs() {
        below if below < 1.0 => 3,
        below if below < 9.995 => 2,
        below if below < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

#[test]
fn a_decision_is_recorded_with_the_numbers_of_the_results() {
    let lab = lab();
    refused(&lab, &["decide", "plan.yaml"], "there is no record plan.decision.md yet");
    refused(&lab, &["decide", "plan.yaml", "--accept", QUICK], "a decision needs a reason: add --because");
    refused(&lab, &["decide", "plan.yaml", "--check"], "no record to check");
    let several =
        refused(&lab, &["decide", "plan.yaml", "--accept", "true", "--because", "x"], "selects 2 configurations");
    assert!(several.stderr.contains("\n  --accept \"endpoint == 'slow'\"\n"), "{}", several.stderr);
    let none = ["decide", "plan.yaml", "--accept", "endpoint == 'nobody'", "--because", "x"];
    refused(&lab, &none, "--accept \"endpoint == 'nobody'\": no run of this plan matches; the values of endpoint are ");
    let text = accepted(&lab);

    let curves = lab.ok(&["curves", "plan.yaml", "--format", "json"]).json();
    let of = |is_slow: bool| {
        let all = curves["curves"].as_array().unwrap();
        all.iter().find(|curve| (curve["endpoint"] == "slow") == is_slow).unwrap().clone()
    };
    let configurations = part(&text, "configurations");
    let (taken, others) = configurations.split_once("### Rejected").unwrap();
    let mut numbers = 0;
    for (curve, rungs, shown) in [(of(false), 0..2, taken), (of(true), 1..2, others)] {
        for rung in rungs.map(|at| &curve["rungs"][at]) {
            let figures = &rung["figures"];
            let throughput = &figures["output_throughput_tokens_per_s"];
            // Two repeats are shown as two values, not as an interval.
            let value = digits(&throughput["value"]);
            assert!(shown.contains(&format!("| {value} (2 repeats: ")), "{value}\n{shown}");
            let ttft = digits(&figures["ttft_p50_ms"]["value"]);
            assert!(shown.contains(&format!("| {ttft} (2 repeats: ")), "{ttft}\n{shown}");
            for run in rung["runs"].as_array().unwrap() {
                assert!(shown.contains(&run.as_str().unwrap()[..8]), "{run}\n{shown}");
            }
            numbers += 2;
        }
    }
    assert_eq!(numbers, 6);
    let compared = lab.ok(&["compare", "plan.yaml", "--format", "json"]).json();
    let tests =
        compared["families"][0]["cells"].as_array().unwrap().iter().flat_map(|cell| cell["tests"].as_array().unwrap());
    for test in tests {
        let words = test["words"].as_str().unwrap();
        assert!(part(&text, "outcome").contains(words), "{words}\n{}", part(&text, "outcome"));
    }
    let first: Vec<&str> = part(&text, "decision").lines().filter(|line| !line.is_empty()).collect();
    assert!(
        first[0].starts_with("**Accepted: ") && first[1].starts_with("It meets the objective (ttft p50 ≤ 500ms)"),
        "{first:#?}"
    );
    assert!(part(&text, "stopped").contains("All 8 runs of the plan have a result."), "{text}");

    let answer = lab.ok(&["decide", "plan.yaml", "--format", "json"]).json();
    lab.follows("decide", &answer);
    assert_eq!(answer["decisions"][0]["because"], "It is twice as fast.");
    let kinds: Vec<&Value> = answer["configurations"].as_array().unwrap().iter().map(|one| &one["kin"]).collect();
    assert_eq!(kinds, ["accepted", "rejected"]);
    assert_eq!(answer["configurations"][0]["at"]["figures"], of(false)["rungs"][1]["figures"]);
    assert_eq!(read(&lab, RECORD), text, "no change");
}

#[test]
fn prose_is_kept_and_numbers_are_made_anew() {
    let lab = lab();
    let text = accepted(&lab);
    // There is prose next to every marker, with trailing spaces, a marker in the middle of a line, and no
    // final line break.
    let text = text.replace(
        "<!-- sweepline:end contract -->\n",
        "<!-- sweepline:end contract -->\nours  \n\tand <!-- sweepline:end no -->\n",
    );
    let text = format!("---\ntitle: ours\n---\n{text}the end, without a line end");
    lab.write(RECORD, &text);
    lab.ok(&["decide", "plan.yaml"]);
    assert_eq!(read(&lab, RECORD), text);
    let other = ["decide", "plan.yaml", "--set", "slo={ ttft: { p50: 5ms } }"];
    lab.ok(&other);
    let now = read(&lab, RECORD);
    assert_eq!(prose(&now), prose(&text));
    assert!(part(&now, "contract").contains("ttft p50 ≤ 5ms") && part(&now, "contract").contains("`slo`"), "{now}");
    assert!(part(&now, "decision").contains("**It misses the objective**"), "{now}");
    assert!(part(&now, "decision").contains("When it was accepted, it met the objective."), "{now}");
    assert!(part(&now, "decision").contains("> It is twice as fast."), "the reason remains: {now}");

    // The line endings of another system and another order of the parts are kept.
    lab.write(RECORD, &now.replace('\n', "\r\n"));
    lab.ok(&other);
    assert_eq!(read(&lab, RECORD), now.replace('\n', "\r\n"));
    let (head, tail) = now.split_once("<!-- sweepline:begin outcome").unwrap();
    let (outcome, tail) = tail.split_once("<!-- sweepline:end outcome -->\n").unwrap();
    let moved = format!("{head}{tail}\n<!-- sweepline:begin outcome{outcome}<!-- sweepline:end outcome -->\n");
    lab.write(RECORD, &moved);
    lab.ok(&other);
    assert_eq!(read(&lab, RECORD), moved);

    // Text that a user wrote between markers is not overwritten; an empty part is filled again.
    let line = now.lines().position(|line| line.starts_with("<!-- sweepline:begin stopped")).unwrap() + 1;
    lab.write(RECORD, &now.replace("## Why we stopped\n", "## Why we stopped\n\nThe money was gone.\n"));
    refused(&lab, &other, &format!("{RECORD}:{line}: the part `stopped` was edited by hand"));
    let stopped = part(&now, "stopped");
    lab.write(RECORD, &now.replace(stopped, ""));
    lab.ok(&other);
    assert_eq!(read(&lab, RECORD), now);
}

#[test]
fn damaged_markers_are_named_and_nothing_is_overwritten() {
    let lab = lab();
    let text = accepted(&lab);
    let line_of = |begin: &str| text.lines().position(|line| line.starts_with(begin)).unwrap() + 1;
    let (contract, end) = (line_of("<!-- sweepline:begin contract"), line_of("<!-- sweepline:end contract"));
    let (state, all) = (line_of("<!-- sweepline:state"), text.lines().count());
    let begin = text.lines().nth(contract - 1).unwrap();
    for (damaged, words) in [
        (text.replace("<!-- sweepline:end contract -->\n", ""), "the part `contract`, begun in line"),
        (
            text.replace(&format!("{begin}\n"), ""),
            &*format!("{}: the part `contract` ends here but was not begun", end - 1),
        ),
        (text.replace("sweepline:end contract", "sweepline:end kontrakt"), &*format!("{end}: unknown part `kontrakt`")),
        (
            text.replace("sweepline:end contract", "sweepline:end history"),
            &*format!("{end}: `<!-- sweepline:end contract -->` expected here"),
        ),
        (text.replace(begin, &begin.replace(" -->", "")), &*format!("{contract}: this marker cannot be read")),
        (
            format!("{text}{begin}\n<!-- sweepline:end contract -->\n"),
            &*format!("{}: the part `contract` appears a second time", all + 1),
        ),
        (
            text.replace("<!-- sweepline:state [", "<!-- sweepline:state "),
            &*format!("{state}: the decisions stored here cannot be read"),
        ),
        (
            text.lines()
                .filter(|line| !line.starts_with("<!-- sweepline:state"))
                .map(|line| format!("{line}\n"))
                .collect(),
            "is missing; restore",
        ),
        (
            text.replace(part(&text, "history"), "").replace("<!-- sweepline:end history -->\n", ""),
            "the part `history` has no end",
        ),
    ] {
        lab.write(RECORD, &damaged);
        let ended = refused(&lab, &["decide", "plan.yaml", "--force"], words);
        assert!(ended.stderr.contains("nothing was written"), "{}", ended.stderr);
    }
    // A file that is not a record is rejected too, and is overwritten only with --force.
    lab.write(RECORD, "# Notes of somebody\n");
    let args = ["decide", "plan.yaml", "--accept", QUICK, "--because", "x"];
    refused(
        &lab,
        &args,
        "plan.decision.md already exists and is not a record of sweepline decide: choose another name, or add --force",
    );
    let piped = lab.ok(&[&args[..], &["-o", "/dev/stdout"]].concat());
    assert!(piped.stdout.starts_with("# Decision: "), "{}", piped.stdout);
    lab.ok(&[&args[..], &["-o", "elsewhere.md"]].concat());
    assert!(read(&lab, "elsewhere.md").starts_with("# Decision: "));
    lab.ok(&[&args[..], &["--force"]].concat());
    assert!(read(&lab, RECORD).starts_with("# Decision: "));
}

#[test]
fn another_acceptance_keeps_the_earlier_one() {
    let lab = lab();
    accepted(&lab);
    refused(
        &lab,
        &["decide", "plan.yaml", "--accept", SLOW],
        "to accept something else, state the reason with --because",
    );
    lab.ok(&[
        "decide",
        "plan.yaml",
        "--accept",
        SLOW,
        "--because",
        "The quick one is sold out.\n\n# Really",
        "--by",
        "Ann",
    ]);
    let now = read(&lab, RECORD);
    let decision = part(&now, "decision");
    assert!(decision.contains("**Accepted: `slow · short`**") && decision.contains(" by Ann, because:"), "{decision}");
    assert!(decision.contains("> The quick one is sold out.\n>\n> \\# Really\n"), "{decision}");
    let history = part(&now, "history");
    assert!(history.contains("it met the objective, because:\n\n> It is twice as fast."), "{history}");
    lab.ok(&["decide", "plan.yaml"]);
    assert_eq!(read(&lab, RECORD), now, "reason and name remain");
    // Accepting one of the loads, or giving another reason for the same choice, is a separate
    // decision.
    lab.ok(&["decide", "plan.yaml", "--accept", "endpoint == 'slow' and batch_size == 1", "--because", "One user."]);
    lab.ok(&["decide", "plan.yaml", "--because", "Two users."]);
    let answer = lab.ok(&["decide", "plan.yaml", "--format", "json"]).json();
    let reasons: Vec<&Value> = answer["decisions"].as_array().unwrap().iter().map(|one| &one["because"]).collect();
    assert_eq!(reasons, ["Two users.", "One user.", "The quick one is sold out.\n\n# Really", "It is twice as fast."]);
    assert_eq!(answer["configurations"][0]["at"]["load"], 1.0);
    assert!(part(&read(&lab, RECORD), "decision").contains("**Accepted: `slow · short`, at batch size 1**"));
    // The accepted configuration is no longer in the plan.
    lab.write("plan.yaml", &PLAN.replace("[slow, \"quick", "[\"quick").replace("compare: {", "# compare: {"));
    refused(
        &lab,
        &["decide", "plan.yaml"],
        "the record accepts slow · short, but this plan has no result for it; candidates:",
    );
}

#[test]
fn what_misses_or_is_undecided_is_said_in_the_first_lines() {
    let lab = lab();
    let bare = PLAN.replace("slo: { ttft: { p50: 500ms } }\n", "");
    lab.write("bare.yaml", &bare);
    for (plan, slo, first, outcome) in [
        ("plan.yaml", "slo={ ttft: { p50: 5ms } }", "**It misses the objective** (ttft p50 ≤ 5ms)", "misses"),
        (
            "plan.yaml",
            "slo={ ttft: { p99.9: 5s } }",
            "**Undecided: it is not shown to meet the objective** (ttft p99.9 ≤ 5s)",
            "undecided",
        ),
        ("bare.yaml", "notes=none", "**Nothing was judged:** the plan has no objective.", "not_judged"),
    ] {
        let file = format!("{outcome}.md");
        let args = ["decide", plan, "--set", slo, "-o", &file, "--accept", QUICK];
        let without = lab.run(&args);
        assert!(without.code == Some(2) && without.stderr.contains("--because"), "{}", without.stderr);
        assert!(!lab.path().join(&file).exists());
        let answer = lab.ok(&[&args[..], &["--because", "There is nothing else.", "--format", "json"]].concat()).json();
        assert_eq!(answer["configurations"][0]["outcome"], outcome);
        let text = read(&lab, &file);
        let lines: Vec<&str> = text.lines().take(8).collect();
        assert!(lines.iter().any(|line| line.starts_with(first)), "{lines:#?}");
    }
}

#[test]
fn a_check_tells_numbers_that_are_no_longer_those_of_the_results() {
    let lab = lab();
    let text = accepted(&lab);
    let is_current = |code: i32| {
        let ended = lab.run(&["decide", "plan.yaml", "--check", "--format", "json"]);
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        (ended.json()["current"].clone(), ended.stderr)
    };
    assert_eq!(is_current(0).0, true);
    let number = part(&text, "configurations").split("| holds | ").nth(1).unwrap().split(' ').next().unwrap();
    let line = text.lines().position(|line| line.contains(&format!("| holds | {number} "))).unwrap() + 1;
    let forged = text.replacen(&format!("| holds | {number} "), "| holds | 123456 ", 1);
    lab.write(RECORD, &forged);
    let (current, stderr) = is_current(4);
    assert_eq!(current, false);
    assert!(stderr.contains(&format!("line {line}: ")) && stderr.contains("123456"), "{stderr}");
    assert_eq!(read(&lab, RECORD), forged, "a check writes nothing");
    // Results that were measured again are different results.
    lab.write(RECORD, &text);
    honest(&lab.run(&["run", "plan.yaml", "-q", "--force", "--only", QUICK]));
    assert!(is_current(4).1.contains("differs from the current plan and results"));
    lab.ok(&["decide", "plan.yaml"]);
    assert_eq!(is_current(0).0, true);
}

#[test]
fn names_of_others_are_inert_and_secrets_stay_out() {
    let lab = lab();
    let because = "See <img src=x onerror=alert(1)> and\n- [a](http://evil.example)\n| a |\n|---|\n<!-- sweepline:end decision -->";
    let set = ["--set", "notes=hush-hush-note"];
    let args = ["decide", "plan.yaml", "--accept", QUICK, "--because", because, "--by", "<b>Ann</b> @all"];
    let ended = lab.ok(&[&args[..], &set].concat());
    let text = read(&lab, RECORD);
    for text in [&text, &ended.stdout, &ended.stderr] {
        assert!(!text.contains("hush-hush"), "{text}");
    }
    assert!(!text.contains(lab.path().to_str().unwrap()), "no path of this machine: {text}");
    let (mut tables, mut code) = (0, 0);
    for event in Parser::new_ext(&text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Html(html) => assert!(html.starts_with("<!-- sweepline:"), "{html}"),
            Event::InlineHtml(html) => panic!("{html} is not escaped:\n{text}"),
            Event::Start(Tag::Link { .. } | Tag::Image { .. }) => panic!("a link is not escaped:\n{text}"),
            Event::Start(Tag::Table(_)) => tables += 1,
            Event::Code(name) if name.contains("quick | `<i>x</i>`") => code += 1,
            _ => {}
        }
    }
    assert_eq!(tables, 5, "places, workload, two for configurations, comparison: {text}");
    assert!(code > 3, "the name is verbatim, as code: {text}");
    // The whole record can be read again, so no name was taken for the end of a part.
    lab.ok(&[&["decide", "plan.yaml"][..], &set].concat());
    assert_eq!(read(&lab, RECORD), text);
}

#[test]
fn a_decision_takes_chosen_runs_from_any_folder() {
    let lab = Lab::new();
    let models = "models: { m: { id: \"tiny](x) *b* <u>\", precision: bf16 } }\n";
    lab.write("parts.yaml", models);
    lab.write("plans/plan.yaml", &PLAN.replace(models, "use: ../parts.yaml\n"));
    let asked = ["plans/plan.yaml", "--allow-outside", "--results", "elsewhere"];
    honest(&lab.run(&[&["run", "-q"][..], &asked].concat()));
    let chosen = ["--only", "batch_size == 4", "--skip", "repeat == 1"];
    // One configuration and one load remain, so the expression can be empty.
    let accept = ["--accept", QUICK, "--because", "It is twice as fast."];
    lab.ok(&[&["decide"][..], &asked, &chosen, &accept].concat());
    let text = read(&lab, "plans/plan.decision.md");
    assert!(part(&text, "stopped").contains("All 2 runs of the plan have a result."), "{text}");
    assert!(
        part(&text, "contract")
            .contains("Of the plan's runs, those of `--only 'batch_size == 4' --skip 'repeat == 1'`"),
        "{text}"
    );
    assert!(part(&text, "not-known").contains("Each load rests on one run"), "{text}");
    assert!(!text.contains("elsewhere"), "{text}");
    let record = ["-o", "plans/plan.decision.md"];
    lab.ok(&[&["decide", "--check"][..], &asked, &chosen, &record].concat());
    assert_eq!(lab.run(&[&["decide", "--check"][..], &asked, &record].concat()).code, Some(4), "belongs to other runs");
}

#[test]
fn rules_stand_once_below_an_answer() {
    let lab = lab();
    let rules = lab.ok(&["explain", "counting"]).stdout;
    assert!(rules.starts_with("counting: the rules for requests") && rules.contains("\nFew samples:\n"), "{rules}");
    assert!(rules.lines().all(|line| line.chars().count() <= 80), "{rules}");
    for command in [
        &["run", "plan.yaml", "-q"][..],
        &["curves", "plan.yaml"],
        &["capacity", "plan.yaml"],
        &["compare", "plan.yaml"],
        &["diff", "plan.yaml", "--set", "seed=8"],
    ] {
        let short = lab.ok(command).stdout;
        let long = lab.ok(&[command, &["--explain"]].concat()).stdout;
        assert_eq!(long, format!("{short}\n{rules}"), "{command:?}");
        assert!(!short.contains("Student") && short.matches("from few samples").count() <= 1, "{short}");
    }
    let json = lab.run(&["curves", "plan.yaml", "--format", "json", "--explain"]);
    assert!(json.code == Some(2) && json.stderr.contains("sweepline explain counting"), "{}", json.stderr);
}
