//! Sweeps that take what an earlier one found: staged runs, kills between the stages, gates and sweeps that are left out.

use rustix::process::Signal;
use serde_json::Value;

use super::lab::Lab;
use super::optimize::spoil;
use super::sweeps::{Talking, honest, names};

/// A server with four slots: up to four requests in flight nobody waits, and with eight each waits for a whole answer, 60 ms. A window has so
/// many answers that a busy machine, which makes them slow together, leaves enough of them to decide.
const HEAD: &str = "
sweepline: 1
name: staged
endpoints: { a: { engine: mock, mock: { ttft: 20ms, itl: 10ms, slots: 4 } } }
models: { m: { id: demo } }
scenarios: { short: { prompt_tokens: 20, output_tokens: 5 } }
slo: { ttft: { p50: 50ms } }
phases: { fill: 0s, stabilize: 100ms, measure: 2500ms, drain: 5s }
# A busy machine sends late; what is asked here is which runs are made.
validity: { client_late: { suspect: 100%, invalid: 100% } }
sweeps:
  ladder: { matrix: { scenario: short, batch_size: [2, 4, 8] }, stop: slo_missed }
";

/// The ladder, and a sweep behind it.
fn behind(sweep: &str) -> String {
    format!("{HEAD}{sweep}\n")
}

const SUSTAINED: &str = "  sustained: { matrix: { scenario: short, batch_size: { from: ladder, take: max_batch_size_under_slo, \
                         times: 0.8 } }, repeats: 2 }";

fn preview(lab: &Lab, plan: &str) -> Value {
    let preview = lab.ok(&["preview", plan, "--format", "json"]).json();
    lab.follows("preview", &preview);
    preview
}

/// State and reason of the cells that are no runs.
fn pending(preview: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let cells = preview["pending"].as_array().cloned().unwrap_or_default();
    cells.iter().map(|cell| (text(&cell["state"]), text(&cell["why"]))).collect()
}

#[timed_test]
fn a_load_is_taken_from_a_ladder_and_a_kill_between_the_stages_changes_nothing() {
    let lab = Lab::new();
    lab.write("plan.yaml", &behind(SUSTAINED));
    let before = preview(&lab, "plan.yaml");
    assert_eq!(before["pending"][0]["cell"]["batch_size"], "0.8 × ladder.max_batch_size_under_slo");
    let why = "waits for ladder: a · m · short: 0 runs so far";
    assert_eq!(pending(&before), [("pending".to_owned(), why.to_owned())]);
    assert!(lab.ok(&["preview", "plan.yaml"]).stdout.contains("pending 2 runs"));
    let graph = lab.ok(&["graph", "plan.yaml", "--format", "json"]).json();
    lab.follows("graph", &graph);
    let nodes = graph["nodes"].as_array().unwrap();
    let at = |kind: &str| nodes.iter().position(|node| node["kind"] == kind).unwrap_or_else(|| panic!("{graph:#}"));
    assert_eq!((&nodes[at("cell")]["state"], &nodes[at("cell")]["said"]), (&"pending".into(), &why.into()));
    assert!(graph["edges"].as_array().unwrap().contains(&serde_json::json!([at("gate"), at("cell")])), "{graph:#}");
    let drawn = lab.ok(&["graph", "plan.yaml", "--format", "text"]).stdout;
    assert!(
        drawn.contains("pending   sustained: ") && drawn.contains("0.8 × ladder.max_batch_size_under_slo"),
        "{drawn}"
    );
    // What it will cost is not known, and no budget counts it; an optional one waits for nothing that the budget leaves out.
    lab.write("budget.yaml", &format!("{}budget: {{ time: 20s }}\n", behind(SUSTAINED)));
    assert_eq!(preview(&lab, "budget.yaml")["budget"]["limits"][0]["runs_not_counted"], 2);
    let optional = SUSTAINED.replace("repeats: 2", "repeats: 2, optional: true");
    let optional = behind(&optional).replace("stop: slo_missed", "stop: slo_missed, optional: true");
    lab.write("budget.yaml", &format!("{optional}budget: {{ time: 3s }}\n"));
    let left = preview(&lab, "budget.yaml");
    assert_eq!(left["budget"]["left_out"], serde_json::json!(["sustained", "ladder"]));
    assert_eq!(left["pending"][0]["state"], "left_out");
    lab.ok(&["freeze", "plan.yaml", "-o", "plan.lock"]);
    // Killed once the value is there, before anything was run at it.
    let run = ["run", "plan.yaml", "--progress", "plain"];
    let talking = Talking::start(&mut lab.command(&run), lab.path().join("stderr"));
    talking.wait_to_say("× 0.8 → 3 in flight");
    talking.signal(Signal::KILL);
    talking.end();
    let ended = lab.measured(&["run", "plan.yaml", "--progress", "plain", "--frozen", "plan.lock"]);
    honest(&ended);
    assert!(ended.stderr.contains("(a · m · short) × 0.8 → 3 in flight"), "{}", ended.stderr);
    assert_eq!(names(&lab, "runs").len(), 5, "2, 4 and 8, and twice the 3 that follows");
    assert_eq!(pending(&preview(&lab, "plan.yaml")), []);
    // Its runs are those of the load written out, and say where the load is from.
    lab.write("written.yaml", &behind("  sustained: { matrix: { scenario: short, batch_size: 3 }, repeats: 2 }"));
    let written = preview(&lab, "written.yaml");
    let states: Vec<&Value> = written["runs"].as_array().unwrap().iter().map(|run| &run["state"]).collect();
    assert!(states.len() == 5 && states.iter().all(|state| *state == "cached"), "{written:#}");
    let of_sustained = written["runs"].as_array().unwrap().iter().find(|run| run["sweep"] == "sustained").unwrap();
    let shown = lab.ok(&["show", &of_sustained["id"].as_str().unwrap()[..16], "--plan", "plan.yaml"]);
    assert!(!shown.stderr.contains("is no run of"), "{}", shown.stderr);
    let folder = lab.results().join("runs").join(&of_sustained["id"].as_str().unwrap()[..16]);
    let record: Value = serde_json::from_slice(&std::fs::read(folder.join("run.json")).unwrap()).unwrap();
    let taken = &record["spec"]["taken"][0];
    assert_eq!((&taken["from"], &taken["load"], &taken["found"][0]["load"]), (&"ladder".into(), &3.into(), &4.into()));
    assert_eq!(taken["found"][0]["runs"].as_array().unwrap().len(), 3, "{taken:#}");
}

#[timed_test]
fn gates_stop_and_skip_if_leaves_out_by_what_was_found() {
    let lab = Lab::new();
    let gate = |bound: &str| {
        behind(&format!(
            "  checked: {{ matrix: {{ scenario: short, batch_size: 1 }}, gate: {{ sweep: ladder, metric: \
             max_batch_size_under_slo, {bound} }} }}\n  behind: {{ matrix: {{ scenario: short, batch_size: 5 }}, after: checked }}"
        ))
    };
    lab.write("no.yaml", &gate("at_least: 5"));
    let ended = lab.run(&["run", "no.yaml", "--progress", "plain", "--markdown", "gate.md"]);
    let why = "checked: 1 run not made, the gate says no: ladder: a · m · short: max_batch_size_under_slo is 4 in flight, below 5";
    assert!(ended.code == Some(4) && ended.stderr.contains(why), "{:?}: {}", ended.code, ended.stderr);
    assert_eq!(names(&lab, "runs").len(), 3, "the ladder alone");
    let page = std::fs::read_to_string(lab.path().join("gate.md")).unwrap();
    assert!(page.contains("### staged: the gate says no") && page.contains(&why.replace('_', "\\_")), "{page}");
    assert!(page.contains("- ladder: a · m · short: 8 in flight misses the objective"), "{page}");
    let refused = lab.run(&["run", "no.yaml", "--markdown", "no.yaml"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("is no such page"), "{}", refused.stderr);
    let skip = "  later: { matrix: { scenario: short, batch_size: 1 }, skip_if: { sweep: ladder, metric: \
                max_batch_size_under_slo, below: 5 } }";
    lab.write("skip.yaml", &behind(skip));
    let ended = lab.ok(&["run", "skip.yaml"]);
    assert!(ended.stderr.contains("later: 1 run left out by `skip_if`: ladder: a"), "{}", ended.stderr);
    // The ladder holds at its heaviest load: more than that is not known.
    lab.write("unknown.yaml", &gate("at_least: 5").replace("[2, 4, 8]", "[2, 4]"));
    let ended = lab.run(&["run", "unknown.yaml"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("cannot be decided"), "{:?}: {}", ended.code, ended.stderr);
    // No load of this one meets the objective: there is none to take, and nothing is guessed.
    lab.write("none.yaml", &behind(SUSTAINED).replace("[2, 4, 8]", "[8, 16]"));
    let ended = lab.run(&["run", "none.yaml"]);
    let why = "sustained: 2 runs blocked: there is no load to take: ladder: a · m · short: 8 in flight, the lightest load, misses";
    assert!(ended.code == Some(3) && ended.stderr.contains(why), "{:?}: {}", ended.code, ended.stderr);
    assert_eq!(names(&lab, "runs").len(), 3, "nothing was measured for any of them");
    lab.write("yes.yaml", &gate("at_least: 4"));
    honest(&lab.measured(&["run", "yes.yaml"]));
    assert_eq!(names(&lab, "runs").len(), 5, "the gate lets both through");
}

#[timed_test]
fn a_gate_holds_the_interval_of_any_metric_against_its_bound() {
    let lab = Lab::new();
    let head = HEAD.split("  ladder:").next().unwrap().replace("measure: 2500ms", "measure: 700ms");
    let plan = |gate: &str| {
        format!(
            "{head}  smoke: {{ matrix: {{ scenario: short, batch_size: 4 }}, repeats: 3 }}\n  checked: {{ matrix: {{ scenario: short, \
             batch_size: 1 }}, gate: {{ sweep: smoke, {gate} }} }}\n"
        )
    };
    // Each answer takes 60 ms, and no request fails.
    lab.write("no.yaml", &plan("metric: e2e_p50, at_most: 30ms"));
    let ended = lab.run(&["run", "no.yaml"]);
    let why = "the gate says no: smoke: a · m · short · 4: e2e_p50 is 6";
    assert!(ended.code == Some(4) && ended.stderr.contains(why), "{:?}: {}", ended.code, ended.stderr);
    assert!(ended.stderr.contains("above 30ms"), "{}", ended.stderr);
    // The interval of a share of none reaches further than this.
    lab.write("few.yaml", &plan("metric: error_share, at_most: 0.01%"));
    let ended = lab.run(&["run", "few.yaml"]);
    assert!(
        ended.code == Some(2) && ended.stderr.contains("cannot be decided: smoke"),
        "{:?}: {}",
        ended.code,
        ended.stderr
    );
    assert_eq!(names(&lab, "runs").len(), 3, "nothing behind either gate");
    lab.write("yes.yaml", &plan("metric: e2e_p50, at_most: 2s"));
    honest(&lab.measured(&["run", "yes.yaml"]));
    assert_eq!(names(&lab, "runs").len(), 4, "the gate lets it through");
}

#[timed_test]
fn run_numbers_go_on_in_a_later_stage_and_calibrate_knows_a_load_once_it_is_found() {
    let lab = Lab::new();
    let quick = HEAD.replace("p50: 50ms", "p50: 900ms").replace("2500ms", "1500ms").replace("[2, 4, 8]", "[2, 4]");
    lab.write("plan.yaml", &format!("{quick}{}\n", SUSTAINED.replace(", repeats: 2", "")));
    let calibrate =
        || lab.ok(&["calibrate", "plan.yaml", "--for", "200ms", "--within", "0s", "--no-search", "--format", "json"]);
    let before = calibrate();
    lab.follows("calibrate", &before.json());
    let line = "sustained: batch_size 0.8 × ladder.max_batch_size_under_slo: waits for ladder";
    assert!(before.stderr.contains(&format!("not calibrated: {line}")), "{}", before.stderr);
    assert!(before.json()["not_known"][0].as_str().unwrap().starts_with(line), "{}", before.stdout);
    lab.measured(&["run", "plan.yaml"]);
    assert_eq!(calibrate().json()["not_known"], serde_json::json!([]));
    let again = lab.measured(&["run", "plan.yaml", "--force", "--progress", "plain"]).stderr;
    let started = again.lines().filter(|line| line.contains(" started, "));
    let numbers: Vec<&str> = started.filter_map(|line| line.split('[').nth(1)?.split('/').next()).collect();
    assert_eq!(numbers, ["1", "2", "3"], "{again}");
}

#[timed_test]
fn an_invalid_probe_that_its_search_made_again_is_named_and_changes_no_exit_code() {
    let lab = Lab::new();
    let head = HEAD.split("  ladder:").next().unwrap().replace("measure: 2500ms", "measure: 2s");
    let plan = |least: u32| {
        format!(
            "{head}  limit: {{ matrix: {{ scenario: short }}, search: {{ batch_size: {{ from: 2, to: 16, within: 50% }}, confirm: 0s }} }}\n  \
             checked: {{ matrix: {{ scenario: short, batch_size: 1 }}, gate: {{ sweep: limit, metric: max_batch_size_under_slo, \
             at_least: {least} }} }}\n"
        )
    };
    lab.write("plan.yaml", &plan(2));
    let ended = spoil(&lab, &[1]);
    let named = "limit: a · m · short: run ";
    let line = ended.stderr.lines().find(|line| line.starts_with(named)).unwrap_or_else(|| panic!("{}", ended.stderr));
    assert!(line.ends_with(" is invalid: client_paused; another one was made in its place"), "{line}");
    assert!(!ended.stderr.contains("--redo invalid"), "{}", ended.stderr);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    lab.write("no.yaml", &plan(16));
    let refused = lab.run(&["run", "no.yaml"]);
    assert!(refused.code == Some(4) && refused.stderr.contains(named), "{:?}: {}", refused.code, refused.stderr);
    // What the search says nothing of stays an invalid run: asked for by another sweep, it is missing there.
    let id = &line[named.len()..][..8];
    let record = lab.runs().into_iter().find(|(short, _)| short.starts_with(id)).expect("the run").1.json;
    let spec = &record["spec"];
    let (load, repeat) = (spec["load"]["closed"]["batch_size"].as_u64().unwrap(), spec["repeat"].as_u64().unwrap());
    let other = format!("  other: {{ matrix: {{ scenario: short, batch_size: {load} }}, repeats: {} }}\n", repeat + 1);
    lab.write("other.yaml", &(plan(2) + &other));
    let runs = lab.ok(&["preview", "other.yaml", "--format", "json"]).json()["runs"].as_array().unwrap().clone();
    let shared = runs.iter().find(|run| run["sweep"] == "other" && run["id"].as_str().unwrap().starts_with(id));
    assert!(shared.is_some_and(|run| run["state"] == "cached"), "{runs:#?}");
    let short = &shared.unwrap()["id"].as_str().unwrap()[..16];
    let ended = lab.run(&["run", "other.yaml", "--only", &format!("id[:16] == '{short}'")]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
}

#[timed_test]
fn a_load_above_the_answer_that_the_server_fails_is_a_miss_and_changes_no_exit_code() {
    let lab = Lab::new();
    // Of eight in flight four wait for a whole answer: 120 ms, and nobody waits so long.
    let head = HEAD.split("  ladder:").next().unwrap().replace("measure: 2500ms", "measure: 1500ms");
    let head = head.replace("slo:", "timeouts: { total: 100ms }\nslo:");
    let search = "search: { batch_size: { from: 2, to: 8, within: 50% }, confirm: 0s }";
    lab.write("plan.yaml", &format!("{head}  limit: {{ matrix: {{ scenario: short }}, {search} }}\n"));
    let ended = lab.run(&["run", "plan.yaml"]);
    let line = ended.stderr.lines().find(|line| line.ends_with("; its load is above the answer and counts as a miss"));
    let line = line.unwrap_or_else(|| panic!("{}", ended.stderr));
    assert!(line.starts_with("limit: a · m · short: run ") && line.contains(" is invalid: errors"), "{line}");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // An ordinary sweep at such a load is missing a result.
    lab.write("plain.yaml", &format!("{head}  limit: {{ matrix: {{ scenario: short, batch_size: 8 }} }}\n"));
    assert_eq!(lab.run(&["run", "plain.yaml"]).code, Some(3));
}
