//! Tests `diff`: the runs that are added, removed and kept between two plans or two revisions of a
//! plan, and the edits that cause this.

use std::process::{Command, Stdio};

use serde_json::Value;

use lab::Lab;

const PLAN: &str = "sweepline: 1
name: nightly
notes: quiet node
endpoints:
  fast: { engine: mock, mock: { ttft: 2ms, itl: 1ms } }
  slow: { engine: mock, mock: { ttft: 9ms, itl: 4ms } }
models: { m: { id: tiny } }
scenarios: { short: { base: B1, output_tokens: 6 } }
phases: { fill: 1s, stabilize: 1s, measure: 8s }
sweeps:
  closed:
    matrix: { endpoint: [fast, slow], model: [m], scenario: [short], batch_size: [1, 8] }
  rates:
    matrix: { endpoint: [fast], model: [m], scenario: [short], qps: [5, 10, 20] }
";

/// Returns the edited plan, with a changed figure of one endpoint, a replaced rate, one more repeat,
/// and other notes.
fn edited() -> String {
    PLAN.replace("ttft: 9ms", "ttft: 7ms")
        .replace("qps: [5, 10, 20]", "qps: [5, 10, 40]")
        .replace("quiet node", "shared node")
}

fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("a.yaml", PLAN);
    lab.write("b.yaml", &edited());
    lab
}

#[test]
fn edits_are_told_with_the_runs_that_they_cost() {
    let lab = lab();
    insta::assert_snapshot!(lab.ok(&["diff", "a.yaml", "b.yaml"]).stdout);
    assert!(!lab.results().exists(), "only the plans are read");
    let same = lab.ok(&["diff", "a.yaml", "a.yaml"]).stdout;
    assert_eq!(same, "a.yaml → a.yaml: 0 new runs, 0 gone, 7 kept\n");
    let alone = lab.run(&["diff", "a.yaml"]);
    assert_eq!(alone.code, Some(2));
    assert!(alone.stderr.contains("a.yaml@main"), "{}", alone.stderr);
}

#[test]
fn tokens_and_money_are_told_beside_each_other() {
    let lab = Lab::new();
    let open = PLAN
        .replace(
            "    matrix: { endpoint: [fast, slow], model: [m], scenario: [short], batch_size: [1, 8] }\n",
            "    matrix: { endpoint: [slow], model: [m], scenario: [short], qps: [10] }\n",
        )
        .replace("itl: 1ms } }", "itl: 1ms }, hardware: { price_per_hour: 3.6 } }")
        .replace("itl: 4ms } }", "itl: 4ms }, hardware: { price_per_hour: 7.2 } }");
    lab.write("a.yaml", &open);
    // The second plan has twice as many tokens, another rate and another price.
    let after = open
        .replace("output_tokens: 6", "output_tokens: 12")
        .replace("[5, 10, 20]", "[5, 10, 40]")
        .replace("7.2", "3.6");
    lab.write("b.yaml", &after);
    let diff = lab.ok(&["diff", "a.yaml", "b.yaml", "--format", "json"]).json();
    lab.follows("diff", &diff);
    let number =
        |side: &str, name: &str| diff["cost"][side][name].as_f64().unwrap_or_else(|| panic!("{side} {name}: {diff:#}"));
    // Half of fill, stabilize and measure take 9.5 s, at 10, 5, 10 and 20 per second, and then at
    // 40.
    assert_eq!([number("before", "requests"), number("after", "requests")], [428.0, 618.0]);
    assert_eq!(number("change", "requests"), 190.0);
    assert_eq!([number("before", "output_tokens"), number("after", "output_tokens")], [428.0 * 6.0, 618.0 * 12.0]);
    assert_eq!(number("change", "output_tokens"), 618.0 * 12.0 - 428.0 * 6.0);
    assert_eq!(number("change", "prompt_tokens"), number("after", "prompt_tokens") - number("before", "prompt_tokens"));
    // A second costs one thousandth on one endpoint and two thousandths on the other; each run takes ten
    // seconds plus its cooldown.
    let [before, after] = ["before", "after"].map(|side| number(side, "money"));
    let seconds = number("after", "money") / 1e-3;
    assert!(
        (before - (3.0 + 2.0) / 4.0 * seconds * 1e-3).abs() < 1e-9 && (40.0..60.0).contains(&seconds),
        "{before} {after}"
    );
    let per_million = |side: &str| number(side, "money") / number(side, "output_tokens") * 1e6;
    for side in ["before", "after"] {
        assert!((number(side, "money_per_million_output_tokens") - per_million(side)).abs() < 1e-9);
    }
    let text = lab.ok(&["diff", "a.yaml", "b.yaml"]).stdout;
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
    let words = |name: &str| row(name)[name.len()..].split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words("requests"), ["428", "618", "+190"]);
    assert_eq!(words("tokens received, at most"), ["2568", "7416", "+4848"]);
    assert_eq!(words("money, time × price").len(), 3, "{text}");
    assert!(text.contains("money is in the plan's currency"), "{text}");
    assert!(row("money per million").chars().count() <= 80, "{text}");
    // If one of the endpoints has no price, the total cost is unknown.
    lab.write("c.yaml", &open.replace(", hardware: { price_per_hour: 7.2 }", "").replace("[5, 10, 20]", "[5]"));
    let text = lab.ok(&["diff", "a.yaml", "c.yaml"]).stdout;
    let row = text.lines().find(|line| line.starts_with("money, time × price")).unwrap();
    assert!(row.trim_end().ends_with("n/a") && row.matches("n/a").count() == 2, "{text}");
    assert!(text.contains("neither price_per_hour nor owned is declared for slow"), "{text}");
}

#[test]
fn closed_loops_cost_what_earlier_results_say() {
    let lab = Lab::new();
    let plan = PLAN
        .replace("fill: 1s, stabilize: 1s, measure: 8s", "fill: 50ms, stabilize: 50ms, measure: 400ms")
        .replace("[5, 10, 20]", "[5]");
    lab.write("a.yaml", &plan);
    lab.write("b.yaml", &plan.replace("batch_size: [1, 8]", "batch_size: [1]"));
    let unknown = lab.ok(&["diff", "a.yaml", "b.yaml", "--format", "json"]).json();
    assert_eq!(unknown["cost"]["before"]["runs_with_unknown_requests"], 4);
    assert!(unknown["cost"]["change"]["requests"].is_null(), "{unknown:#}");
    let text = lab.ok(&["diff", "a.yaml", "b.yaml"]).stdout;
    assert!(text.contains("the number of requests of 4 runs before and 2 runs after is unknown"), "{text}");
    let ended = lab.run(&["run", "a.yaml", "-q", "--results", "elsewhere"]);
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    let known = lab.ok(&["diff", "a.yaml", "b.yaml", "--results", "elsewhere", "--format", "json"]).json();
    assert_eq!(known["cost"]["before"]["runs_with_unknown_requests"], 0);
    let (before, after) = (&known["cost"]["before"]["requests"], &known["cost"]["after"]["requests"]);
    let change = after.as_i64().unwrap() - before.as_i64().unwrap();
    assert!(change < -8 && known["cost"]["change"]["requests"] == change, "{known:#}");
}

#[test]
fn a_pull_request_gets_markdown_and_programs_json() {
    let lab = lab();
    insta::assert_snapshot!(lab.ok(&["diff", "a.yaml", "b.yaml", "--format", "markdown"]).stdout);
    let diff = lab.ok(&["diff", "a.yaml", "b.yaml", "--format", "json"]).json();
    let schema = lab.ok(&["schema", "diff"]).json();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&diff), "{:?}", validator.iter_errors(&diff).map(|e| e.to_string()).collect::<Vec<_>>());
    let count = |list: &str| diff[list].as_array().unwrap().len();
    assert_eq!((count("come"), count("go"), count("stay"), count("without_effect")), (3, 3, 4, 1));
    let edits = diff["edits"].as_array().unwrap();
    let one = edits.iter().find(|part| part["edits"][0]["path"] == "sweeps.rates.matrix.qps[2]").unwrap();
    assert_eq!((&one["edits"][0]["old"], &one["edits"][0]["new"]), (&"20".into(), &"40".into()));
    assert_eq!(one["edits"][0]["place"], "b.yaml:14:77");
    assert_eq!((one["come"].as_array().unwrap().len(), one["go"].as_array().unwrap().len()), (1, 1));
}

/// Returns the edits of a comparison, as kind and path, with the numbers of runs that each adds and
/// removes.
fn told(lab: &Lab, a: &str, b: &str) -> Vec<(String, usize, usize)> {
    lab.write("one.yaml", a);
    lab.write("two.yaml", b);
    let diff = lab.ok(&["diff", "one.yaml", "two.yaml", "--format", "json"]).json();
    let edit = |edit: &Value| format!("{} {}", edit["kind"].as_str().unwrap(), edit["path"].as_str().unwrap());
    let part = |part: &Value| {
        let edits: Vec<String> = part["edits"].as_array().unwrap().iter().map(edit).collect();
        let count = |list: &str| part[list].as_array().unwrap().len();
        (edits.join(", "), count("come"), count("go"))
    };
    diff["edits"].as_array().unwrap().iter().map(part).collect()
}

#[test]
fn values_repeats_sweeps_and_rules_come_and_go() {
    let lab = Lab::new();
    let row = |text: &str, come, go| (text.to_owned(), come, go);
    let longer = PLAN.replace("qps: [5, 10, 20]", "qps: [2, 5, 10, 20]");
    assert_eq!(told(&lab, PLAN, &longer), [row("added sweeps.rates.matrix.qps[0]", 1, 0)]);
    assert_eq!(told(&lab, &longer, PLAN), [row("removed sweeps.rates.matrix.qps[0]", 0, 1)]);
    let repeated = PLAN.replace("  rates:\n", "  rates:\n    repeats: 3\n");
    assert_eq!(told(&lab, PLAN, &repeated), [row("changed sweeps.rates.repeats", 6, 0)]);
    let without = PLAN.split("  rates:\n").next().unwrap();
    assert_eq!(told(&lab, PLAN, without), [row("removed sweeps.rates", 0, 3)]);
    let rule = PLAN.replace("  rates:\n", "    exclude: [{ endpoint: slow, batch_size: 8 }]\n  rates:\n");
    assert_eq!(told(&lab, PLAN, &rule), [row("changed sweeps.closed.exclude", 0, 1)]);
    let axis = PLAN.replace("qps: [5, 10, 20]", "qps: [5, 10, 20], temperature: [0, 0.7]");
    let came = told(&lab, PLAN, &axis);
    assert_eq!(came, [row("added sweeps.rates.matrix.temperature", 3, 0)], "runs with the default value remain");
    let renamed = PLAN.replace("  rates:\n", "  ladder:\n");
    assert_eq!(told(&lab, PLAN, &renamed), [], "the name of a sweep is not part of its runs");
    let all = PLAN.replace("measure: 8s", "measure: 9s").replace("ttft: 9ms", "ttft: 7ms");
    let both = told(&lab, PLAN, &all);
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(both.contains(&row("changed phases.measure.for", 5, 5)), "{both:?}");
    assert!(both.contains(&row("changed endpoints.slow.mock.ttft, changed phases.measure.for", 2, 2)), "{both:?}");
}

/// Runs git in the lab; `None` if it is not installed.
fn git(lab: &Lab, args: &[&str]) -> Option<()> {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]).args(args);
    let output = command.current_dir(lab.path()).stdin(Stdio::null()).output().ok()?;
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

/// Returns a lab with a repository of two commits, the second of which edits the plan; `None` without git.
fn repository() -> Option<Lab> {
    let lab = Lab::new();
    if git(&lab, &["init", "--quiet"]).is_none() {
        println!("skipped: git is not installed");
        return None;
    }
    lab.write("plans/nightly.yaml", PLAN);
    git(&lab, &["add", "."])?;
    git(&lab, &["commit", "--quiet", "-m", "one"])?;
    lab.write("plans/nightly.yaml", &PLAN.replace("ttft: 9ms", "ttft: 8ms"));
    git(&lab, &["commit", "--quiet", "-am", "two"])?;
    Some(lab)
}

#[test]
fn a_plan_is_compared_with_what_it_was() {
    let Some(lab) = repository() else { return };
    lab.write("plans/nightly.yaml", &edited());
    let text = lab.ok(&["diff", "plans/nightly.yaml@HEAD"]).stdout;
    assert!(text.starts_with("plans/nightly.yaml@HEAD → plans/nightly.yaml: 3 new runs"), "{text}");
    let places = "endpoints.slow.mock.ttft: 8ms → 7ms (plans/nightly.yaml@HEAD:6:39 → plans/nightly.yaml:6:39)";
    assert!(text.contains(places), "{text}");
    let text = lab.ok(&["diff", "plans/nightly.yaml@HEAD~1", "plans/nightly.yaml@main"]).stdout;
    assert!(text.contains("9ms → 8ms") && !text.contains("qps"), "{text}");
    // Also works from another folder of the repository, and after the file was deleted.
    let from = |folder: &str, args: &[&str]| {
        let output = lab.command(args).current_dir(lab.path().join(folder)).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(from("plans", &["diff", "nightly.yaml@HEAD~1", "nightly.yaml@HEAD"]).0, Some(0));
    std::fs::remove_dir_all(lab.path().join("plans")).unwrap();
    let gone = lab.ok(&["diff", "plans/nightly.yaml@HEAD~1", "plans/nightly.yaml@HEAD"]).stdout;
    assert!(gone.contains("9ms → 8ms"), "{gone}");
    // An existing file with that name takes precedence over a revision.
    lab.write("x.yaml@HEAD", PLAN);
    assert!(
        lab.run(&["diff", "x.yaml@HEAD", "x.yaml@HEAD"]).stderr.contains("a plan must be a .yaml"),
        "the file itself"
    );
}

#[test]
fn fragments_are_those_of_the_revision() {
    let Some(lab) = repository() else { return };
    let (head, phases) =
        (PLAN.replace("phases: { fill: 1s, stabilize: 1s, measure: 8s }\n", ""), "phases: { measure: 8s }\n");
    lab.write("plans/parts/times.yaml", phases);
    lab.write("plans/used.yaml", &head.replace("name: nightly", "name: used\nuse: [parts/times.yaml]"));
    git(&lab, &["add", "."]);
    git(&lab, &["commit", "--quiet", "-m", "fragments"]);
    lab.write("plans/parts/times.yaml", &phases.replace("8s", "9s"));
    let text = lab.ok(&["diff", "plans/used.yaml@HEAD"]).stdout;
    let edit = "phases.measure.for: 8s → 9s (plans/parts/times.yaml@HEAD:1:20 → plans/parts/times.yaml:1:20)";
    assert!(text.contains(edit), "{text}");
    lab.write("plans/used.yaml", &head.replace("name: nightly", "name: used\nuse: [parts/time.yaml]"));
    git(&lab, &["commit", "--quiet", "-am", "a wrong name"]);
    let wrong = lab.run(&["diff", "plans/used.yaml@HEAD"]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("did you mean `parts/times.yaml`?"), "{}", wrong.stderr);
}

#[test]
fn what_git_cannot_give_is_said() {
    let Some(lab) = repository() else { return };
    let says = |args: &[&str], words: &str| {
        let ended = lab.run(args);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
    };
    says(&["diff", "plans/nightly.yaml@nowhere"], "has no revision `nowhere`");
    says(&["diff", "plans/nightly.yaml@--output=x"], "revisions do not begin with a dash");
    lab.write("plans/new.yaml", PLAN);
    says(&["diff", "plans/new.yaml@HEAD"], "cannot read plans/new.yaml at revision `HEAD`");
    says(&["diff", "plans@HEAD"], "a plan must be a .yaml");
    lab.write("plans/broken.yaml", "sweepline: 1\nname: b\ntypo: 1\n");
    git(&lab, &["add", "."]);
    git(&lab, &["commit", "--quiet", "-m", "broken"]);
    says(&["diff", "plans/broken.yaml@HEAD"], "plans/broken.yaml@HEAD has errors:");
    let outside = Lab::new();
    outside.write("plan.yaml", PLAN);
    let ended = Command::new(lab::program())
        .args(["diff", "plan.yaml@HEAD"])
        .current_dir(outside.path())
        .env("GIT_CEILING_DIRECTORIES", outside.path().parent().unwrap())
        .output()
        .unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.code() == Some(2) && stderr.contains("is not in a git work tree"), "{stderr}");
    let without = lab.command(&["diff", "plans/nightly.yaml@HEAD"]).env("PATH", "/nonexistent").output().unwrap();
    let stderr = String::from_utf8(without.stderr).unwrap();
    assert!(without.status.code() == Some(2) && stderr.contains("needs the program `git`"), "{stderr}");
}

/// A plan with a search, a ladder, a load that is taken from it, and a gate.
const DECIDES: &str = "
sweepline: 1
name: decides
endpoints: { a: { engine: mock } }
models: { m: { id: demo } }
slo: { ttft: { p90: 18ms } }
phases: { fill: 0s, stabilize: 1s, measure: 10s }
sweeps:
  limit: { matrix: { scenario: B1 }, search: { qps: { from: 1, to: 8, within: 5% } } }
  ladder: { matrix: { scenario: B1, qps: [1, 2, 4] }, stop: slo_missed }
  taken: { matrix: { scenario: B1, qps: { from: limit, take: max_qps_under_slo, times: 0.8 } }, repeats: 2 }
  gated: { matrix: { scenario: B1, qps: 3 }, gate: { sweep: limit, metric: max_qps_under_slo, at_least: 3 } }
";

#[test]
fn edits_that_decide_which_runs_are_made_leave_none_alone() {
    let lab = Lab::new();
    for (old, new, edit) in [
        ("stop: slo_missed", "stop: saturated", "sweeps.ladder.stop"),
        ("times: 0.8", "times: 0.9", "sweeps.taken.matrix.qps"),
        ("repeats: 2", "repeats: 3", "sweeps.taken.repeats"),
        ("at_least: 3", "at_least: 4", "sweeps.gated.gate.at_least"),
        ("p90: 18ms", "p90: 20ms", "slo.ttft.p90"),
    ] {
        let after = DECIDES.replace(old, new);
        assert_eq!(told(&lab, DECIDES, &after), [], "{edit}: no known run is added or removed");
        let diff = lab.ok(&["diff", "one.yaml", "two.yaml", "--format", "json"]).json();
        lab.follows("diff", &diff);
        assert_eq!(diff["deciding"][0]["path"], edit, "{diff:#}");
        assert_eq!(
            (&diff["deciding"].as_array().unwrap().len(), &diff["without_effect"]),
            (&1, &serde_json::json!([]))
        );
        let text = lab.ok(&["diff", "one.yaml", "two.yaml"]).stdout;
        assert!(text.contains(&format!("decides which runs are executed:\n  {edit}: ")), "{text}");
        let page = lab.ok(&["diff", "one.yaml", "two.yaml", "--format", "markdown"]).stdout;
        assert!(page.contains("\nDecides which runs are executed:\n\n- `"), "{page}");
    }
    // The loads of a search are edited through its range, its resolution, and the window that confirms.
    for (old, new, edit) in [
        ("to: 8,", "to: 16,", "changed sweeps.limit.search.qps"),
        ("from: 1,", "from: 2,", "changed sweeps.limit.search.qps"),
        ("within: 5%", "within: 10%", "changed sweeps.limit.search.qps"),
        ("within: 5% }", "within: 5% }, confirm: 10m", "added sweeps.limit.search.confirm"),
    ] {
        let rows = told(&lab, DECIDES, &DECIDES.replace(old, new));
        let edits: Vec<&str> = rows.iter().map(|(edit, ..)| edit.as_str()).collect();
        assert_eq!(edits, [edit], "{rows:#?}");
        assert!(rows[0].1 > 0 && rows[0].2 > 0, "{rows:#?}");
    }
}
