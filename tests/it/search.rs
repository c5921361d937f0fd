//! Tests searches and ladders: the measurements determine the next runs, and a sweep that is killed and
//! resumed makes the same decisions.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::process::Signal;
use serde_json::Value;

use lab::sweeps::{end, honest, names, wait_until_gone};
use lab::{Ended, Lab, Server, wait_for};

/// A server with four slots. With up to four requests in flight, none waits; a fifth waits for a quarter of
/// a response, which is 17 ms.
const HEAD: &str = "
sweepline: 1
name: limit
endpoints: { a: { engine: mock, mock: { ttft: 10ms, itl: 5ms, slots: 4 } } }
models: { m: { id: demo } }
scenarios: { short: { prompt_tokens: 20, output_tokens: 12 } }
slo: { ttft: { p90: 18ms } }
phases: { fill: 0s, stabilize: 150ms, measure: 1200ms, drain: 5s }
# A busy machine sends late; what is asked here is which runs are made.
validity: { client_late: { suspect: 100%, invalid: 100% } }
";

fn plan(sweeps: &str) -> String {
    format!("{HEAD}sweeps:\n{sweeps}")
}

const SEARCH: &str = "  limit: { matrix: { endpoint: a, model: m, scenario: short }, \
                      search: { batch_size: { from: 2, to: 32, within: 10% }, confirm: 1500ms } }\n";

fn choices(lab: &Lab, plan: &str) -> Vec<Value> {
    let preview = lab.ok(&["preview", plan, "--format", "json"]).json();
    lab.follows("preview", &preview);
    preview["choices"].as_array().cloned().unwrap_or_default()
}

fn finished(choice: &Value) -> BTreeSet<String> {
    choice["finished"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()[..16].to_owned()).collect()
}

#[test]
fn a_search_finds_the_knee_of_the_mock_and_is_done_then() {
    let lab = Lab::new();
    lab.write("plan.yaml", &plan(SEARCH));
    let before = choices(&lab, "plan.yaml");
    assert_eq!((&before[0]["chooses"], &before[0]["axis"]), (&"search".into(), &"batch_size".into()));
    let most = before[0]["most_runs"].as_u64().unwrap() as usize;
    honest(&lab.run(&["run", "plan.yaml"]));
    let after = choices(&lab, "plan.yaml");
    let standing = after[0]["standing"].as_str().unwrap();
    let answer = &after[0]["answers"][0];
    assert_eq!((&answer["found"], &answer["shown"], &answer["observed"]), (&4.0.into(), &4.0.into(), &4.0.into()));
    assert!(standing.starts_with("shown 4 in flight, observed 4 in flight; 5 miss"), "{standing}");
    assert!(after[0]["next"].is_null());
    let ids = finished(&after[0]);
    assert_eq!(ids, names(&lab, "runs"), "the requested runs are the runs that were made");
    assert!(ids.len() <= most, "{} of at most {most}", ids.len());
    // Each probe of a search is an ordinary run, so every command that reads results shows the probes
    // and the result of the search.
    let curves = lab.ok(&["curves", "plan.yaml", "--format", "json"]).json();
    lab.follows("curves", &curves);
    assert_eq!(curves["choices"][0]["found"].as_f64(), Some(4.0), "{curves:#}");
    its_decisions_are_seen(&lab, &after[0]["finished"]);
    let shown = lab.ok(&["show", &after[0]["finished"][0].as_str().unwrap()[..16], "--plan", "plan.yaml"]);
    assert!(!shown.stderr.contains("is not a run of"), "{}", shown.stderr);
    assert_eq!(curves["curves"][0]["slo"]["holds"].as_f64(), Some(4.0), "{curves:#}");
    let again = lab.ok(&["run", "plan.yaml"]);
    assert!(again.stderr.contains("nothing to do; the results of all"), "{}", again.stderr);
    assert!(again.stderr.contains("observed 4 in flight; 5 miss"), "{}", again.stderr);
    // Frozen values apply, whatever has been found in the meantime.
    lab.ok(&["freeze", "plan.yaml", "-o", "plan.lock"]);
    lab.ok(&["run", "plan.yaml", "--frozen", "plan.lock", "-q"]);
    // An edited range requests the same loads, and finds their results.
    lab.write("wider.yaml", &plan(&SEARCH.replace("to: 32", "to: 64")));
    let wider = finished(&choices(&lab, "wider.yaml")[0]);
    assert!(wider.len() > 1 && wider.is_subset(&ids), "{wider:?}");
}

/// Every command shows a search that found 4 in flight with these runs, and the rows behind it.
fn its_decisions_are_seen(lab: &Lab, finished: &Value) {
    let why = lab.ok(&["why", "limit", "--plan", "plan.yaml", "--format", "json"]).json();
    lab.follows("why", &why);
    let trail = &why["choices"][0];
    let steps = trail["steps"].as_array().unwrap();
    let runs: Vec<&Value> = steps.iter().map(|step| &step["runs"][0]).collect();
    assert_eq!(runs, finished.as_array().unwrap().iter().collect::<Vec<_>>());
    assert_eq!((&trail["state"], &trail["end"], &trail["next"]), (&"done".into(), &"found".into(), &Value::Null));
    assert_eq!((&steps[0]["purpose"], &steps[0]["load"]), (&"up".into(), &2.0.into()), "{trail:#}");
    for step in steps {
        let limit = &step["limits"][0];
        let (observed, allowed) = (limit["observed_ms"].as_f64().unwrap(), limit["limit_ms"].as_f64().unwrap());
        assert_eq!((allowed, step["answer"] == "misses"), (18.0, step["load"].as_f64() > Some(4.0)), "{step:#}");
        assert_eq!(observed > allowed, step["answer"] == "misses", "{step:#}");
    }
    let long = steps.iter().position(|step| step["purpose"] == "confirm").expect("a long run");
    let text = lab.ok(&["why", "limit", "--plan", "plan.yaml"]).stdout;
    assert!(text.contains("observed 4 in flight") && text.contains("confirming"), "{text}");
    let id = runs[long].as_str().unwrap();
    let one = lab.ok(&["why", id, "--plan", "plan.yaml", "--format", "json"]).json();
    lab.follows("why", &one);
    assert_eq!((&one["asked_by"]["step"], &one["asked_by"]["purpose"]), (&(long + 1).into(), &"confirm".into()));

    let graph = lab.ok(&["graph", "plan.yaml", "--format", "json"]).json();
    lab.follows("graph", &graph);
    let nodes = graph["nodes"].as_array().unwrap();
    let search = nodes.iter().find(|node| node["kind"] == "search").expect("a search");
    assert_eq!((&search["state"], &search["value"]), (&"done".into(), &4.0.into()), "{graph:#}");
    assert!(nodes.iter().filter(|node| node["kind"] == "run").all(|node| node["state"] == "done"), "{graph:#}");
    let drawn = lab.ok(&["graph", "plan.yaml", "--format", "text"]).stdout;
    assert!(drawn.contains("done      limit · a · m · short: shown 4 in flight, observed 4 in flight"), "{drawn}");

    lab.ok(&["report", "plan.yaml", "-o", "report.html"]);
    let page = std::fs::read_to_string(lab.path().join("report.html")).unwrap();
    assert!(
        page.contains("The path of each search") && page.contains("shown and observed: 4 in flight"),
        "the report shows its path"
    );
    let curves = lab.ok(&["curves", "plan.yaml"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        curves.contains("search limit · a · m · short: shown 4 in flight, observed 4 in flight")
            && curves.contains("(long run)"),
        "{curves}"
    );
}

#[test]
fn two_sweeps_that_ask_for_the_same_runs_end_in_one_invocation() {
    let lab = Lab::new();
    let ladder = |name: &str, loads: &str| {
        format!("  {name}: {{ matrix: {{ scenario: short, batch_size: {loads} }}, stop: slo_missed }}\n")
    };
    lab.write("plan.yaml", &plan(&(ladder("one", "[2, 4]") + &ladder("two", "[2, 3, 8, 16]"))));
    honest(&lab.run(&["run", "plan.yaml"]));
    let ended = choices(&lab, "plan.yaml");
    assert!(ended.iter().all(|choice| choice["next"].is_null()), "{ended:#?}");
    assert_eq!(ended.iter().map(|choice| finished(choice).len()).collect::<Vec<_>>(), [2, 3], "{ended:#?}");
    assert_eq!(names(&lab, "runs").len(), 4, "2 is measured once");
}

#[test]
fn a_search_whose_windows_are_too_short_ends_at_once_and_says_so_and_check_says_it_before() {
    let lab = Lab::new();
    let search = "  limit: { matrix: { scenario: short }, search: { qps: { from: 20, to: 40 }, confirm: 3s } }\n";
    lab.write("plan.yaml", &plan(search).replace("p90", "p99"));
    let checked = lab.ok(&["check", "plan.yaml"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        checked.contains(
            "ttft p99 needs at least 299 requests to be shown to hold, but only 24 are expected at `qps: 20` in 1.2s"
        ),
        "{checked}"
    );
    assert!(
        checked.contains("a search begins at its lightest load, and ends without a result if its runs are too short to decide whether the objective is met"),
        "{checked}"
    );
    let ended = lab.run(&["run", "plan.yaml"]);
    honest(&ended);
    let choice = choices(&lab, "plan.yaml").remove(0);
    let standing = choice["standing"].as_str().unwrap();
    assert!(
        standing.starts_with("shown none, observed 20 qps; not found; runs at 20 have too few requests to decide: "),
        "{standing}"
    );
    assert!(standing.ends_with(", but a p99 needs at least 368; extend the window; 1 run"), "{standing}");
    assert!(ended.stderr.contains(standing), "{}", ended.stderr);
    let answer = &choice["answers"][0];
    assert_eq!((&answer["end"], &answer["found"]), (&"too_few_requests".into(), &Value::Null), "{choice:#}");
    // A sweep that would use the found load reports why there is none.
    let taking = "  later: { matrix: { scenario: short, qps: { from: limit, take: max_qps_under_slo } } }\n";
    lab.write("later.yaml", &plan(&format!("{search}{taking}")).replace("p90", "p99"));
    let ended = lab.run(&["run", "later.yaml"]);
    assert!(ended.code == Some(3) && ended.stderr.contains("no load to use: limit: a · m · short"), "{}", ended.stderr);
    // A gate repeats what the runs lack, and does not also say that longer ones would not help.
    let gate = "{ sweep: limit, metric: max_qps_under_slo, at_least: 25 }";
    let gated = format!("{search}  later: {{ matrix: {{ scenario: short, qps: 5 }}, gate: {gate} }}\n");
    lab.write("gate.yaml", &plan(&gated).replace("p90", "p99"));
    let preview = lab.ok(&["preview", "gate.yaml"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(preview.contains("extend the window") && !preview.contains("longer runs would not"), "{preview}");
    // A report counts no configurations if there is a single one beside the search.
    let beside = "  beside: { matrix: { scenario: short, qps: 21 } }\n";
    lab.write("beside.yaml", &plan(&format!("{search}{beside}")).replace("p90", "p99"));
    lab.run(&["run", "beside.yaml", "-q"]);
    lab.ok(&["report", "beside.yaml", "-o", "report.html"]);
    let page = std::fs::read_to_string(lab.path().join("report.html")).unwrap();
    assert!(!page.contains(" of 1 configuration") && !page.contains("of the 1 configuration"), "{page}");
}

/// Each sweep starts with a run that no other sweep needs, and reaches a run that another sweep also needs:
/// an end, a step of a search, or a cell of a list.
#[test]
fn a_run_that_several_sweeps_come_to_is_measured_once_in_an_invocation() {
    let lab = Lab::new();
    let sweeps = "  one: { matrix: { scenario: short, batch_size: [1, 2, 4] }, stop: slo_missed }
  two: { matrix: { scenario: short, batch_size: [2, 4, 8] }, stop: slo_missed }
  list: { matrix: { scenario: short, batch_size: [4, 3] } }
";
    lab.write("plan.yaml", &plan(sweeps));
    let ended = lab.run(&["run", "plan.yaml", "--progress", "plain"]);
    assert_eq!(names(&lab, "superseded"), BTreeSet::new(), "{}", ended.stderr);
    let started = ended.stderr.lines().filter(|line| line.contains(" started, "));
    let numbers: Vec<&str> = started.filter_map(|line| line.split('[').nth(1)?.split('/').next()).collect();
    let distinct: BTreeSet<&str> = numbers.iter().copied().collect();
    assert_eq!((numbers.len(), distinct.len()), (5, 5), "1, 2, 4, 8 and 3, each with a number: {}", ended.stderr);
    honest(&ended);
    let again = lab.ok(&["run", "plan.yaml"]);
    assert!(again.stderr.contains("nothing to do"), "{}", again.stderr);

    let lab = Lab::new();
    let searches =
        "  one: { matrix: { scenario: short }, search: { batch_size: { from: 2, to: 32, within: 10% }, confirm: 0s } }
  two: { matrix: { scenario: short }, search: { batch_size: { from: 4, to: 32, within: 10% }, confirm: 0s } }
";
    lab.write("plan.yaml", &plan(searches));
    let ended = lab.run(&["run", "plan.yaml", "--progress", "plain"]);
    assert_eq!(names(&lab, "superseded"), BTreeSet::new(), "{}", ended.stderr);
    let choices = choices(&lab, "plan.yaml");
    assert!(choices.iter().all(|choice| choice["next"].is_null()), "{choices:#?}");
    let [one, two] = [&choices[0], &choices[1]].map(finished);
    assert!(one.intersection(&two).count() > 1, "{choices:#?}");
    assert_eq!(one.union(&two).cloned().collect::<BTreeSet<_>>(), names(&lab, "runs"));
}

/// Kills a sweep `times` times, at random instants during a run and after commits, when the next run has
/// been chosen but nothing has been sent. Then lets the sweep finish.
fn killed_and_resumed(lab: &Lab, times: u32, seed: u64) -> Ended {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut hit = 0;
    for kill in 0..times {
        let before = names(lab, "runs").len();
        let mut running = lab.start(&["run", "plan.yaml", "--progress", "plain"]);
        if kill % 3 == 2 {
            wait_for("a commit", || (running.has_ended() || names(lab, "runs").len() > before).then_some(()));
        }
        let wait = if kill % 3 == 2 { rng.random_range(0..60) } else { rng.random_range(50..1_400) };
        let deadline = std::time::Instant::now() + std::time::Duration::from_millis(wait);
        wait_for("the instant of the kill", || {
            (running.has_ended() || std::time::Instant::now() >= deadline).then_some(())
        });
        hit += u32::from(!running.has_ended());
        running.signal(Signal::KILL);
        let (_, servers) = end(running);
        wait_until_gone(&servers);
    }
    eprintln!("{hit} of {times} kills hit a sweep that had not ended");
    lab.run(&["run", "plan.yaml"])
}

/// Returns the number of times a search is killed: `SWEEPLINE_KILLS`, or a small default.
fn kills() -> u32 {
    std::env::var("SWEEPLINE_KILLS").map_or(6, |kills| kills.parse().expect("a number of kills"))
}

#[test]
fn a_search_that_is_killed_at_any_instant_decides_what_it_would_have_decided() {
    let lab = Lab::new();
    lab.write("plan.yaml", &plan(SEARCH));
    honest(&killed_and_resumed(&lab, kills(), 1));
    lab.ok(&["verify"]);
    let ended = choices(&lab, "plan.yaml");
    let ids = finished(&ended[0]);
    assert!(ended[0]["next"].is_null() && ids == names(&lab, "runs"), "{ended:#?}");
    // A sweep that was never interrupted would see the same rows: it requests exactly these runs, in the
    // same order.
    let whole: Vec<Value> = ended[0]["finished"].as_array().unwrap().clone();
    let dir = lab.results().join("runs");
    let aside = lab.path().join("aside");
    std::fs::rename(&dir, &aside).unwrap();
    std::fs::create_dir(&dir).unwrap();
    for (at, id) in whole.iter().enumerate() {
        let standing = choices(&lab, "plan.yaml");
        assert_eq!(standing[0]["next"], *id, "decision {at}");
        if at == 0 || at == 2 {
            let graph = lab.ok(&["graph", "plan.yaml", "--format", "json"]).json();
            let search = graph["nodes"].as_array().unwrap().iter().find(|node| node["kind"] == "search").unwrap();
            assert_eq!(search["state"], if at == 0 { "pending" } else { "searching" }, "{graph:#}");
            let why = lab.ok(&["why", id.as_str().unwrap(), "--plan", "plan.yaml"]).stdout;
            assert!(why.contains("requested next by the search limit · a · m · short: going up"), "{why}");
        }
        let short = &id.as_str().unwrap()[..16];
        std::fs::rename(aside.join(short), dir.join(short)).unwrap();
    }
    assert_eq!(choices(&lab, "plan.yaml")[0]["standing"], ended[0]["standing"]);
}

#[test]
fn a_ladder_ends_behind_the_first_load_that_misses_and_says_what_it_left_out() {
    let lab = Lab::new();
    let ladder = "  ladder: { matrix: { endpoint: a, model: m, scenario: short, batch_size: [16, 2, 4, 8, 32] }, \
                  stop: slo_missed, repeats: 2 }\n";
    lab.write("plan.yaml", &plan(ladder));
    let ended = lab.run(&["run", "plan.yaml", "--progress", "plain"]);
    honest(&ended);
    let words = "8 in flight misses the objective, so 2 heavier loads were skipped; 6 runs";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    assert_eq!(names(&lab, "runs").len(), 6, "2, 4 and 8, each twice");
    let started: Vec<&str> = ended.stderr.lines().filter(|line| line.contains(" started, ")).collect();
    let loads: Vec<&str> = started.iter().filter_map(|line| line.split("batch ").nth(1)?.split(' ').next()).collect();
    assert_eq!(loads, ["2", "2", "4", "4", "8", "8"], "rising, repeats together");
    let preview = lab.ok(&["preview", "plan.yaml"]).stdout;
    let preview = preview.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(preview.contains(words) && preview.contains("nothing to do"), "{preview}");
    let graph = lab.ok(&["graph", "plan.yaml", "--format", "json"]).json();
    let nodes = graph["nodes"].as_array().unwrap();
    let pruned: Vec<&Value> = nodes.iter().filter(|node| node["kind"] == "pruned").collect();
    assert_eq!((pruned.len(), &pruned[0]["count"]), (2, &2.into()), "{graph:#}");
    assert!(
        pruned[0]["said"].as_str().unwrap().starts_with("8 in flight misses the objective (ttft p90 "),
        "{graph:#}"
    );
    let why = lab.ok(&["why", "batch_size == 32", "--plan", "plan.yaml", "--format", "json"]).json();
    lab.follows("why", &why);
    assert!(why["runs"].as_array().unwrap().iter().all(|run| run["state"] == "pruned"), "{why:#}");
    let curves = lab.ok(&["curves", "plan.yaml"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(curves.contains("skipped: 16, 32 in flight, since 8 in flight misses the objective"), "{curves}");
}

#[test]
fn a_server_that_never_meets_the_objective_and_one_that_always_does_are_said_to_be_so() {
    let lab = Lab::new();
    let of = |limit: &str| plan(SEARCH).replace("p90: 18ms", &format!("p90: {limit}")).replace("to: 32", "to: 3");
    lab.write("never.yaml", &of("1ms"));
    lab.run(&["run", "never.yaml"]);
    let standing = choices(&lab, "never.yaml")[0]["standing"].to_string();
    assert!(standing.contains("no load of the range meets the objective: 2 in flight misses it"), "{standing}");
    lab.write("always.yaml", &of("900ms"));
    lab.run(&["run", "always.yaml"]);
    let standing = choices(&lab, "always.yaml")[0]["standing"].to_string();
    assert!(standing.contains("observed 3 in flight; the range has no heavier load"), "{standing}");
}

#[test]
fn one_search_answers_for_each_limit_of_the_objective() {
    let lab = Lab::new();
    // Each additional response slows down the tokens of all by half of the base time: 5 ms with one
    // response, 7.5 ms with two, 10 ms with three. Four responses can have a slot at once.
    let slower = HEAD.replace("slots: 4", "slots: 4, load: 0.5").replace("output_tokens: 12", "output_tokens: 6");
    let slower = slower.replace("p90: 18ms } }", "p50: 18ms }, tpot: { p50: 8700us } }").replace("1200ms", "800ms");
    let search = "  limit: { matrix: { scenario: short }, search: { batch_size: { from: 1, to: 8, within: 20% }, \
                  meets: MEETS, confirm: 0s } }\n";
    let plan = |meets: &str| format!("{slower}sweeps:\n{}", search.replace("MEETS", meets));
    lab.write("plan.yaml", &plan("[slo, ttft]"));
    honest(&lab.run(&["run", "plan.yaml"]));
    let ended = &choices(&lab, "plan.yaml")[0];
    let of = |choice: &Value, objective: &str| {
        let answers = choice["answers"].as_array().unwrap();
        answers.iter().find(|answer| answer["objective"] == objective).cloned().unwrap()
    };
    // One of five in flight waits, and the median hardly shows it. Without long runs, a result may be off
    // by one step.
    let [whole, alone] = ["slo", "ttft"].map(|objective| of(ended, objective)["found"].as_f64().unwrap());
    assert!((2.0..=3.0).contains(&whole) && (4.0..=6.0).contains(&alone), "{ended:#}");
    assert_eq!((&ended["binds"], &of(ended, "tpot")["asked"]), (&"tpot".into(), &false.into()), "{ended:#}");
    let standing = ended["standing"].as_str().unwrap();
    // Without long runs, a short run may show that a load meets the objective, or only suggest it.
    for objective in ["slo", "ttft"] {
        let observed = of(ended, objective)["observed"].as_f64().unwrap();
        assert!(standing.contains(&format!("observed {observed} in flight")), "{standing}");
        assert!(of(ended, objective)["shown"].as_f64() <= Some(observed), "{ended:#}");
    }
    assert!(standing.contains("(tpot)") && standing.contains("; ttft alone: shown "), "{standing}");
    assert_eq!(finished(ended), names(&lab, "runs"), "the requested runs are the runs that were made");
    // Each step is judged by the objective that requested it. The full objective is missed at loads at
    // which the first token alone is still in time.
    let why = lab.ok(&["why", "limit", "--plan", "plan.yaml", "--format", "json"]).json();
    lab.follows("why", &why);
    let steps = why["choices"][0]["steps"].as_array().unwrap();
    let asked = |of: &str| steps.iter().filter(|step| step["of"] == of).collect::<Vec<_>>();
    assert!(!asked("slo").is_empty() && asked("slo").len() + asked("ttft").len() == steps.len(), "{why:#}");
    let is_met = |step: &&Value| step["load"].as_f64().is_some_and(|load| load > whole) && step["answer"] != "misses";
    assert!(asked("ttft").into_iter().any(|step| is_met(&step)), "{why:#}");
    // The full objective alone does not request any other run.
    lab.write("whole.yaml", &plan("slo"));
    let same = &choices(&lab, "whole.yaml")[0];
    assert!(same["next"].is_null() && of(same, "slo")["found"] == whole, "{same:#}");
}

#[test]
fn a_search_over_arriving_conversations_counts_conversations() {
    let lab = Lab::new();
    // The server has one slot, and conversations have two turns of 12 ms each, so it serves at most
    // 41 conversations per second.
    let server = HEAD.replace("ttft: 10ms, itl: 5ms, slots: 4", "ttft: 4ms, itl: 1ms, slots: 1");
    let plan = server.replace("p90: 18ms", "p50: 60ms").replace("1200ms", "600ms");
    let plan = plan.replace(
        "short: { prompt_tokens: 20, output_tokens: 12 }",
        "visits: { base: D, turns: 2, output_tokens: 8, think: 10ms, sessions: open }",
    );
    let search =
        "  limit: { matrix: { scenario: visits }, search: { qps: { from: 20, to: 80, within: 50% }, confirm: 0s } }\n";
    lab.write("plan.yaml", &format!("{plan}sweeps:\n{search}"));
    let before = &choices(&lab, "plan.yaml")[0];
    assert_eq!(before["unit"], "conversations per second");
    honest(&lab.run(&["run", "plan.yaml"]));
    let ended = &choices(&lab, "plan.yaml")[0];
    let found = ended["answers"][0]["found"].as_f64().unwrap();
    assert!((20.0..=66.0).contains(&found), "{ended:#}");
    let standing = ended["standing"].as_str().unwrap();
    let observed = ended["answers"][0]["observed"].as_f64().unwrap();
    assert!(standing.contains(&format!("observed {observed} conversations per second")), "{standing}");
}

#[test]
fn what_a_search_cannot_be_beside_is_a_mistake_at_its_place() {
    let lab = Lab::new();
    let wrong = |sweep: &str, words: &str| {
        lab.write("plan.yaml", &plan(&format!("  s:\n    matrix: {{ scenario: short }}\n{sweep}\n")));
        let ended = lab.run(&["check", "plan.yaml"]);
        let told = ended.stderr.clone() + &ended.stdout;
        assert_eq!(ended.code, Some(2), "{told}");
        assert!(told.split_whitespace().collect::<Vec<_>>().join(" ").contains(words), "{words}: {told}");
    };
    wrong("    search: { qps: { from: 5, to: 5 } }", "nothing to search between 5 and 5");
    wrong("    search: { qps: { from: 0, to: 5 } }", "`from` must be a number above 0, not 0");
    wrong("    search: { batch_size: { from: 1.5, to: 5 } }", "`from` must be a whole number, 1 or more, not 1.5");
    wrong("    search: { qps: { from: 1, to: 5, within: 0.1% } }", "`within` must be a share from 0.5% to 50%");
    let met = |meets: &str| format!("    search: {{ qps: {{ from: 1, to: 5 }}, meets: {meets} }}");
    wrong(&met("[slo, tpot]"), "`meets` lists `tpot`, but the plan's `slo` has no limit on it");
    wrong(&met("[]"), "`meets` is empty");
    wrong(&met("[ttft, slo, ttft]"), "`meets` lists `ttft` twice");
    wrong(&met("cost_per_million"), "falls as the load rises, so there is no highest load that meets a cost limit");
    wrong(&met("goodput"), "`goodput`");
    wrong("    search: { confirm: 5m }", "`search` does not specify which load to search for");
    wrong("    search: { qps: { from: 1, to: 5 }, batch_size: { from: 1, to: 5 } }", "`search` names two loads");
    wrong("    search: { qps: { from: 1, to: 5 } }\n    repeats: 3", "`repeats` has no effect with `search`");
    wrong("    search: { qps: { from: 1, to: 5 } }\n    stop: saturated", "both decide which loads are run");
    wrong("    stop: slo_missed", "neither `batch_size` nor `qps`");
    let beside = plan("  s: { matrix: { scenario: short, qps: [1, 2] }, search: { qps: { from: 1, to: 5 } } }\n");
    lab.write("plan.yaml", &beside);
    let told = lab.run(&["check", "plan.yaml"]);
    assert!(told.stderr.contains("`search` sets `qps`, but the matrix also lists values for it"), "{}", told.stderr);
    lab.write("plan.yaml", &plan(SEARCH).replace("slo: { ttft: { p90: 18ms } }\n", ""));
    let told = lab.run(&["check", "plan.yaml"]);
    assert!(
        told.stderr.contains("looks for the highest load that meets the objective, but the plan has no objective"),
        "{}",
        told.stderr
    );
}

#[test]
fn a_load_under_the_objective_is_taken_only_from_a_search_for_the_whole_of_it() {
    let lab = Lab::new();
    let search = |meets: &str| {
        format!(
            "  limit: {{ matrix: {{ scenario: short }}, search: {{ qps: {{ from: 1, to: 5 }}, meets: {meets} }} }}\n"
        )
    };
    let both = HEAD.replace("slo: { ttft: { p90: 18ms } }", "slo: { ttft: { p90: 18ms }, tpot: { p90: 9ms } }");
    let taking = "  later: { matrix: { scenario: short, qps: { from: limit, take: max_qps_under_slo } } }\n";
    let gate = "  later: { matrix: { scenario: short, qps: 1 }, gate: { sweep: limit, metric: max_qps_under_slo, at_least: 2 } }\n";
    let told = |head: &str, meets: &str, later: &str| {
        lab.write("plan.yaml", &format!("{head}sweeps:\n{}{later}", search(meets)));
        let ended = lab.run(&["check", "plan.yaml"]);
        (ended.code, ended.stderr.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let words = "sweep `limit` has no `max_qps_under_slo`: its search only covers ttft, but the plan's `slo` limits ttft and tpot";
    for later in [taking, gate] {
        let (code, said) = told(&both, "[ttft]", later);
        assert!(
            code == Some(2) && said.contains(words) && said.contains("write `meets: each`, or add `slo` to `meets`"),
            "{said}"
        );
        for meets in ["slo", "each", "[ttft, slo]"] {
            assert_eq!(told(&both, meets, later).0, Some(0), "{meets}: {later}");
        }
        // A single limit is the full objective.
        assert_eq!(told(HEAD, "[ttft]", later).0, Some(0), "{later}");
    }
}

#[test]
fn one_command_writes_the_plan_of_a_search_and_goes_on_with_it() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--model", "tiny-7b", "--slots", "4"]);
    let url = server.url();
    let args =
        ["search", "--url", &url, "--slo", "ttft p50 100ms", "--of", "batch-size", "--to", "16", "--measure", "500ms"];
    let asked = |more: &[&str]| lab.run(&[&args[..], &["--confirm", "700ms"], more].concat());
    let ended = asked(&["--plan-only"]);
    assert_eq!((ended.code, names(&lab, "runs").len()), (Some(0), 0), "{}", ended.stderr);
    let written = std::fs::read_to_string(lab.path().join("search.yaml")).unwrap();
    insta::assert_snapshot!("search", written.replace(&url, "http://127.0.0.1:PORT/v1"));
    lab.ok(&["check", "search.yaml"]);
    // The same command resumes with the plan that it wrote; a command that describes a different plan does
    // not overwrite it.
    let short = written
        .replace("fill: 10s", "fill: 0s")
        .replace("stabilize: 20s", "stabilize: 100ms")
        .replace("min_requests: 200, at_most: 5s", "min_requests: 12, at_most: 2s")
        .replace("output_tokens: 256", "output_tokens: 20");
    lab.write("search.yaml", &(short + "validity: { client_late: { suspect: 100%, invalid: 100% } }\n"));
    let refused = asked(&[]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("search.yaml already exists"), "{}", refused.stderr);
    let limited = lab.run(&["search", "--slo", "ttft p98 5ms"]);
    assert!(limited.stderr.contains("unknown percentile `p98`; use one of p50, p75"), "{}", limited.stderr);
    let ended = lab.run(&["run", "search.yaml", "-q"]);
    honest(&ended);
    let standing = choices(&lab, "search.yaml")[0]["standing"].clone();
    assert!(standing.as_str().unwrap().contains(", observed "), "{standing}");
}
