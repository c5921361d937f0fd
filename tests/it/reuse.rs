//! Tests fragments, variables, `--set` and frozen plans, through the program.

use lab::{Ended, Lab};

/// A plan that takes its hardware from a fragment and its times from variables.
const PLAN: &str = r#"sweepline: 1
name: reuse
use: [parts/site.yaml]
vars: { quick: 100ms, n: 2 }
models: { m: { id: m-7b } }
scenarios: { short: { output_tokens: 4 } }
phases: { fill: 10ms, stabilize: "{{ quick }}", measure: "{{ quick }}", drain: 2s }
sweeps:
  closed: { matrix: { scenario: short, batch_size: [1, "{{ n * 2 }}"] } }
  open: { matrix: { scenario: [A1], qps: 20 } }
"#;

const SITE: &str = "endpoints:\n  demo: { engine: mock, mock: { ttft: 1ms, itl: 1ms } }\n";

fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("plans/p.yaml", PLAN);
    lab.write("plans/parts/site.yaml", SITE);
    lab
}

/// Returns the full ids of a plan's runs, sorted.
fn ids(lab: &Lab, args: &[&str]) -> Vec<String> {
    let preview = lab.ok(&[&["preview", "--format", "json"], args].concat()).json();
    let runs = preview["runs"].as_array().unwrap();
    let mut ids: Vec<String> = runs.iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

fn refused(ended: &Ended, wanted: &[&str]) {
    assert_eq!(ended.code, Some(2), "{}{}", ended.stdout, ended.stderr);
    for words in wanted {
        assert!(ended.stderr.contains(words), "`{words}` is not in\n{}", ended.stderr);
    }
}

#[test]
fn a_plan_of_fragments_and_variables_runs() {
    let lab = lab();
    let ended = lab.run(&[
        "run",
        "plans/p.yaml",
        "--only",
        "sweep == 'closed' and batch_size == 4",
        "--set",
        "vars.quick=150ms",
    ]);
    // A run with such a short window may be invalid on a busy machine.
    assert!(matches!(ended.code, Some(0 | 3)), "{}{}", ended.stdout, ended.stderr);
    let run = lab.only_run();
    assert_eq!(run.json["spec"]["phases"]["measure"]["for"], "150ms");
    assert_eq!(run.json["spec"]["load"]["closed"]["batch_size"], 4, "{}", run.json["spec"]["load"]);
    // The suggested command repeats the values that were set.
    assert!(ended.stderr.contains("--set vars.quick=150ms"), "{}", ended.stderr);
    let id = run.json["id"].as_str().unwrap();
    let why = lab.ok(&["why", &id[..12], "--plan", "plans/p.yaml", "--set", "vars.quick=150ms"]);
    assert!(why.stdout.contains("cached"), "{}", why.stdout);
    // Without the set value, the plan requests a different run, and the reason shows where its
    // values are.
    let why = lab.ok(&["why", "batch_size == 4", "--plan", "plans/p.yaml"]);
    assert!(why.stdout.contains("quick at plans/p.yaml:4:16"), "{}", why.stdout);
    let why = lab.ok(&["why", "batch_size == 4", "--plan", "plans/p.yaml", "--set", "vars.quick=1s"]);
    assert!(why.stdout.contains("plans/p.yaml:7:58, quick at --set:1:12"), "{}", why.stdout);
}

#[test]
fn a_fragment_is_the_same_as_its_text_in_the_plan() {
    let lab = lab();
    lab.write("plans/one.yaml", &PLAN.replace("use: [parts/site.yaml]\n", SITE));
    lab.write(
        "plans/parts/site.toml",
        "[endpoints.demo]\nengine = \"mock\"\nmock = { ttft = \"1ms\", itl = \"1ms\" }\n",
    );
    lab.write("plans/two.yaml", &PLAN.replace("site.yaml", "site.toml"));
    let all = ids(&lab, &["plans/p.yaml"]);
    assert_eq!(all, ids(&lab, &["plans/one.yaml"]));
    assert_eq!(all, ids(&lab, &["plans/two.yaml"]));
    assert_eq!(all.len(), 3);
}

#[test]
fn what_cannot_be_used_is_refused_with_its_place() {
    let lab = lab();
    lab.write("outside.yaml", SITE);
    lab.write("plans/parts/round.yaml", "use: back.yaml\n");
    lab.write("plans/parts/back.yaml", "use: round.yaml\n");
    std::os::unix::fs::symlink("../../outside.yaml", lab.path().join("plans/parts/link.yaml")).unwrap();
    let plan = |name: &str| lab.write("plans/q.yaml", &PLAN.replace("parts/site.yaml", name));
    for (name, words) in [
        ("parts/sight.yaml", ["error[E040]", "plans/q.yaml:3:7", "did you mean `parts/site.yaml`?"]),
        ("../outside.yaml", ["error[E031]", "plans/q.yaml:3:7", "--allow-outside"]),
        ("parts/link.yaml", ["error[E031]", "plans/q.yaml:3:7", "--allow-outside"]),
        (
            "parts/round.yaml",
            ["error[E022]", "plans/parts/back.yaml:1:6", "round.yaml → plans/parts/back.yaml → plans/parts/round.yaml"],
        ),
    ] {
        plan(name);
        refused(&lab.run(&["check", "plans/q.yaml"]), &words);
    }
    for name in ["../outside.yaml", "parts/link.yaml"] {
        plan(name);
        lab.ok(&["check", "plans/q.yaml", "--allow-outside"]);
    }
}

#[test]
fn every_command_with_a_plan_takes_values() {
    let lab = lab();
    lab.write("outside.yaml", SITE);
    lab.write("plans/o.yaml", &PLAN.replace("parts/site.yaml", "../outside.yaml"));
    for command in [
        &["check", "plans/p.yaml"][..],
        &["preview", "plans/p.yaml"],
        &["run", "plans/p.yaml"],
        &["graph", "plans/p.yaml"],
        &["compare", "plans/p.yaml"],
        &["export", "plans/p.yaml"],
        &["probe", "plans/p.yaml"],
        &["calibrate", "plans/p.yaml"],
        &["freeze", "plans/p.yaml"],
        &["why", "qps == 1", "--plan", "plans/p.yaml"],
        &["show", "00", "--plan", "plans/p.yaml"],
        &["diff", "plans/p.yaml", "plans/p.yaml"],
        &["submit", "plans/p.yaml", "--on", "slurm", "--dry-run"],
        &["status", "plans/p.yaml"],
    ] {
        let wrong = [command, &["--set", "phases.measure=5s", "--set", "sweeps.opn.repeats=2"]].concat();
        refused(&lab.run(&wrong), &["--set:2:8", "sweeps.opn.repeats=2", "did you mean `open`?"]);
        let outside = wrong.iter().map(|arg| if *arg == "plans/p.yaml" { "plans/o.yaml" } else { arg });
        let outside: Vec<&str> = outside.collect();
        refused(&lab.run(&outside), &["error[E031]"]);
        let allowed = lab.run(&[&outside[..], &["--allow-outside"]].concat());
        refused(&allowed, &["did you mean `open`?"]);
        assert!(!allowed.stderr.contains("E031"), "{}", allowed.stderr);
    }
    refused(&lab.run(&["export", "--set", "vars.n=1"]), &["--set needs a plan"]);
    let json = lab.run(&["check", "plans/p.yaml", "--format", "json", "--set", "vars.quick=5"]).json();
    let found = &json["diagnostics"][0];
    assert_eq!((found["file"].as_str(), found["line"].as_u64()), (Some("plans/p.yaml"), Some(7)), "{json}");
}

#[test]
fn a_frozen_plan_gives_the_same_runs_and_freezes_to_itself() {
    let lab = lab();
    let plans = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("plans");
    let mut files: Vec<String> = std::fs::read_dir(plans)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml" || ending == "toml"))
        .map(|path| path.to_str().unwrap().to_owned())
        .collect();
    files.push("plans/p.yaml".to_owned());
    // A trace is not part of the plan's text. It stays at its path relative to the plan, and the frozen
    // plan also needs it.
    let trace = include_str!("../../plans/data/conversations.jsonl");
    lab.write("data/conversations.jsonl", trace);
    lab.write("data/profile.json", include_str!("../../plans/data/profile.json"));
    lab.write("data/chats.json", include_str!("../../plans/data/chats.json"));
    for file in &files {
        lab.ok(&["freeze", file, "-o", "a.lock"]);
        assert_eq!(ids(&lab, &[file]), ids(&lab, &["a.lock"]), "{file}");
        lab.ok(&["freeze", "a.lock", "-o", "b.lock"]);
        let values = |name: &str| -> Vec<String> {
            let text = std::fs::read_to_string(lab.path().join(name)).unwrap();
            let without = |line: &str| line.split("  # ").next().unwrap().trim_end().to_owned();
            text.lines().skip(1).map(without).collect()
        };
        assert_eq!(values("a.lock"), values("b.lock"), "{file}");
        lab.ok(&["preview", file, "--frozen", "a.lock"]);
    }
}

#[test]
fn a_lock_says_where_every_value_comes_from() {
    let lab = lab();
    lab.write("plans/p.yaml", &PLAN.replace("qps: 20", "qps: { from: 20, to: 40, times: 2 }"));
    let lock = lab.ok(&["freeze", "plans/p.yaml", "--set", "vars.n=4", "--set", "phases.drain=3s"]).stdout;
    for (value, origin) in [
        ("      engine: mock", "plans/parts/site.yaml:2"),
        ("    ttft: 1ms", "plans/parts/site.yaml:2"),
        ("    slots: ", "default"),
        ("      for: 100ms", "plans/p.yaml:7, quick at plans/p.yaml:4"),
        ("    for: 3s", "--set:2"),
        ("    mode: keep", "default"),
        ("      batch_size: [1, 8]", "plans/p.yaml:9"),
        ("      endpoint: [demo]", "the only one, plans/parts/site.yaml:2"),
        ("        - { from: 20, to: 40, times: 2 }", "plans/p.yaml:10"),
        ("    arrivals: poisson", "default"),
        ("name: reuse", "plans/p.yaml:2"),
        ("    prompt_tokens: 50", "default"),
    ] {
        let has =
            |line: &&str| line.trim_start().starts_with(value.trim_start()) && line.ends_with(&format!("# {origin}"));
        assert!(lock.lines().any(|line| has(&line)), "no line `{value} # {origin}` in\n{lock}");
    }
    assert!(!lock.contains("vars:") && !lock.contains("use:"), "{lock}");
    assert!(lock.starts_with(&format!("# frozen by sweepline {}", env!("CARGO_PKG_VERSION"))), "{lock}");
    for id in ids(&lab, &["plans/p.yaml", "--set", "vars.n=4", "--set", "phases.drain=3s"]) {
        assert!(lock.contains(&format!("# run {id} ")), "{id} is not in\n{lock}");
    }
}

#[test]
fn a_lock_knows_what_was_written_in_other_words() {
    let lab = lab();
    for (arrivals, line) in [
        ("gamma cv 2", "cv: 2"),
        ("{ gamma: { burstiness: 0.25 } }", "cv: 2"),
        ("{ bursts: { on: 1s, off: 1s }, process: gamma cv 3 }", "cv: 3"),
    ] {
        lab.write("plans/p.yaml", &PLAN.replace("qps: 20 }", &format!("qps: 20 }}, arrivals: {arrivals}")));
        let lock = lab.ok(&["freeze", "plans/p.yaml"]).stdout;
        let found = lock.lines().find(|found| found.trim_start().starts_with(line)).unwrap_or_else(|| panic!("{lock}"));
        assert!(found.ends_with("# plans/p.yaml:10"), "{arrivals}: {found}");
    }
}

#[test]
fn secrets_stay_references_when_frozen() {
    let lab = lab();
    let key = "{ engine: vllm, url: \"http://127.0.0.1:9/v1\", api_key: { secret: env:THE_KEY } }";
    lab.write("plans/parts/site.yaml", &format!("endpoints: {{ demo: {key} }}\n"));
    let mut command = lab.command(&["freeze", "plans/p.yaml"]);
    let lock = Ended::from(command.env("THE_KEY", "canary-4f9a1c").output().unwrap());
    assert!(lock.stdout.contains("env:THE_KEY") && !lock.stdout.contains("canary"), "{}", lock.stdout);
}

#[test]
fn a_plan_that_differs_from_its_lock_is_refused() {
    let lab = lab();
    lab.ok(&["freeze", "plans/p.yaml", "-o", "plan.lock"]);
    // Edits that do not affect runs do not count as a difference.
    lab.write("plans/p.yaml", &PLAN.replace("name: reuse", "name: other # name"));
    lab.ok(&["preview", "plans/p.yaml", "--frozen", "plan.lock"]);
    lab.write("plans/p.yaml", &PLAN.replace("quick: 100ms", "quick: 120ms"));
    for command in ["run", "preview"] {
        let ended = lab.run(&[command, "plans/p.yaml", "--frozen", "plan.lock"]);
        refused(
            &ended,
            &["the runs of plans/p.yaml differ from those of plan.lock", "phases.measure", "100ms", "120ms"],
        );
    }
    assert!(!lab.results().exists(), "a rejected run leaves nothing behind");
    // Setting the old value is equivalent to writing it.
    lab.ok(&["preview", "plans/p.yaml", "--frozen", "plan.lock", "--set", "vars.quick=100ms"]);

    let lock = std::fs::read_to_string(lab.path().join("plan.lock")).unwrap();
    lab.write("edited.lock", &lock.replace("batch_size: [1, 4]", "batch_size: [1, 8]"));
    refused(&lab.run(&["preview", "plans/p.yaml", "--frozen", "edited.lock"]), &["edited.lock", "it was edited"]);
    refused(&lab.run(&["preview", "plans/p.yaml", "--frozen", "plans/p.yaml"]), &["plans/p.yaml is not a frozen plan"]);
    refused(
        &lab.run(&["preview", "plans/p.yaml", "--frozen", "none.lock"]),
        &["cannot read the frozen plan none.lock"],
    );
}

#[test]
fn a_difference_against_a_revision_takes_its_fragments_from_there() {
    let lab = lab();
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"];
        let output =
            std::process::Command::new("git").current_dir(lab.path()).args(identity).args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "a"]);
    assert!(lab.ok(&["diff", "plans/p.yaml@HEAD"]).stdout.contains("3 kept"));
    lab.write("plans/parts/site.yaml", &SITE.replace("ttft: 1ms", "ttft: 2ms"));
    let diff = lab.ok(&["diff", "plans/p.yaml@HEAD"]).stdout;
    assert!(diff.contains("1ms") && diff.contains("2ms") && diff.contains("plans/parts/site.yaml:2"), "{diff}");
}

#[test]
fn a_plan_is_compared_with_what_is_set_in_it() {
    let lab = lab();
    let diff = lab.ok(&["diff", "plans/p.yaml", "--set", "vars.n=4"]).stdout;
    assert!(diff.contains("plans/p.yaml --set vars.n=4") && diff.contains("1 new run"), "{diff}");
    // --set changes both plans in the same way.
    lab.write("plans/q.yaml", &PLAN.replace("n: 2 }", "n: 3 }"));
    assert!(!lab.ok(&["diff", "plans/p.yaml", "plans/q.yaml"]).stdout.contains("3 kept"));
    let alike = lab.ok(&["diff", "plans/p.yaml", "plans/q.yaml", "--set", "vars.n=4"]).stdout;
    assert!(alike.contains("3 kept"), "{alike}");
    refused(&lab.run(&["diff", "plans/p.yaml"]), &["--set vars.smoke=true"]);
}

/// The smoke test as shown in docs/PLAN.md.
#[test]
fn a_smoke_test_is_one_variable() {
    let lab = lab();
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/PLAN.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let recipe = docs.split("### A smoke test").nth(1).unwrap().split("```yaml\n").nth(1).unwrap();
    let recipe = recipe.split("```").next().unwrap();
    let head = "sweepline: 1\nname: smoke\nendpoints: { e: { engine: mock } }\nmodels: { m: { id: m } }\n";
    lab.write("smoke.yaml", &format!("{head}{recipe}"));
    let full = lab.ok(&["freeze", "smoke.yaml"]).stdout;
    assert!(full.contains("min_requests: 400") && full.contains("repeats: 5"), "{full}");
    let smoke = lab.ok(&["freeze", "smoke.yaml", "--set", "vars.smoke=true"]).stdout;
    assert!(smoke.contains("for: 10s") && !smoke.contains("min_requests") && !smoke.contains("repeats: 5"), "{smoke}");
    let diff = lab.ok(&["diff", "smoke.yaml", "--set", "vars.smoke=true"]).stdout;
    assert!(diff.contains(" 0 kept"), "{diff}");
    for word in ["no", "off"] {
        let set = format!("vars.smoke={word}");
        refused(
            &lab.run(&["check", "smoke.yaml", "--set", &set]),
            &["write true or false, or put the value in quotes"],
        );
    }
}

/// Hardware that two endpoints share, as shown in docs/PLAN.md.
#[test]
fn a_fragment_gives_several_endpoints_their_hardware() {
    let lab = Lab::new();
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/PLAN.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let mut blocks = docs.split("Settings that several endpoints share").nth(1).unwrap().split("```yaml\n").skip(1);
    let mut block = || blocks.next().unwrap().split("```").next().unwrap().to_owned();
    lab.write("parts/node-a.yaml", &block());
    let head = "sweepline: 1\nname: p\nmodels: { m: { id: m } }\n\
                sweeps: { s: { matrix: { endpoint: [vllm, sglang], qps: 5 } } }\n";
    lab.write("p.yaml", &format!("{head}{}", block()));
    let lock = lab.ok(&["freeze", "p.yaml"]).stdout;
    assert_eq!(lock.matches("gpu: H100-SXM-80GB").count(), 2, "{lock}");
    assert_eq!(lock.matches("25GbE").count(), 1, "{lock}");
    assert_eq!(lock.matches("network: loopback").count(), 1, "{lock}");
}
