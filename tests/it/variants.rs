//! A plan has no results, but the same plan with `--set` has: every command that reads results names the
//! flag.

use lab::{Ended, Lab};

const PLAN: &str = "sweepline: 1
name: v
endpoints: { a: { engine: mock, mock: { ttft: 5ms, itl: 1ms } } }
models: { m: { id: tiny } }
scenarios: { short: { base: B1, output_tokens: 4 } }
vars: { measure: 400ms }
phases: { fill: 0s, stabilize: 0s, measure: \"{{ measure }}\", drain: 5s }
slo: { ttft: { p50: 1s } }
compare: { by: batch_size, baseline: 1, metrics: [ttft_p50] }
sweeps:
  load: { matrix: { endpoint: a, model: m, scenario: short, batch_size: [1, 4] }, repeats: 2 }
";

/// The commands that answer questions about the plan as a whole.
const ASKED: [&[&str]; 6] = [
    &["curves", "plan.yaml"],
    &["compare", "plan.yaml"],
    &["capacity", "plan.yaml"],
    &["diagnose", "plan.yaml"],
    &["report", "plan.yaml"],
    &["decide", "plan.yaml", "--accept", "batch_size == 1", "--because", "why not"],
];

fn measured(set: &[&str]) -> Lab {
    let lab = Lab::new();
    lab.write("plan.yaml", PLAN);
    lab.ok(&[&["run", "plan.yaml", "-q"], set].concat());
    lab
}

/// Returns the flag between backticks that begins with `--set`.
fn named(ended: &Ended) -> Option<String> {
    let text = [ended.stdout.as_str(), ended.stderr.as_str()].join("\n");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, rest) = text.split_once("`--set")?;
    Some(format!("--set{}", rest.split_once('`')?.0))
}

#[test]
fn every_command_names_the_flag_with_which_there_are_results() {
    let lab = measured(&["--set", "phases.measure=300ms"]);
    let flag = "--set phases.measure=300ms";
    for args in ASKED {
        let ended = lab.run(args);
        assert_eq!((ended.code, named(&ended).as_deref()), (Some(2), Some(flag)), "{args:?}: {}", ended.stderr);
    }
    let run = lab.runs().into_keys().next().unwrap();
    for args in [
        &["show", &run, "--plan", "plan.yaml"][..],
        &["why", &run, "--plan", "plan.yaml"],
        &["why", "load", "--plan", "plan.yaml"],
        &["export", "plan.yaml"],
    ] {
        let ended = lab.ok(args);
        assert_eq!(named(&ended).as_deref(), Some(flag), "{args:?}: {}{}", ended.stdout, ended.stderr);
    }
    // With the flag, the results are there.
    for args in &ASKED[..2] {
        lab.ok(&[args, &["--set", "phases.measure=300ms"][..]].concat());
    }
}

#[test]
fn a_variable_and_several_loads_are_named_together() {
    let lab = measured(&["--set", "vars.measure=300ms"]);
    // The value that was set stands where the variable is used.
    assert_eq!(named(&lab.run(&["curves", "plan.yaml"])).as_deref(), Some("--set phases.measure=300ms"));
    let lab = measured(&["--set", "sweeps.load.matrix.batch_size=[2,8]", "--set", "compare.baseline=2"]);
    let flag = named(&lab.run(&["curves", "plan.yaml"]));
    let is_meant = |flag: &str| flag.contains("sweeps.load.matrix.batch_size=[");
    // `compare` names a baseline that these loads lack, so the plan with only the loads is no plan.
    assert!(flag.as_deref().is_none_or(is_meant), "{flag:?}");
    let alone = PLAN.replace("compare: { by: batch_size, baseline: 1, metrics: [ttft_p50] }\n", "");
    let lab = Lab::new();
    lab.write("plan.yaml", &alone);
    lab.ok(&["run", "plan.yaml", "-q", "--set", "sweeps.load.matrix.batch_size=[2,8]"]);
    let flag = named(&lab.run(&["curves", "plan.yaml"]));
    assert_eq!(flag.as_deref(), Some("--set 'sweeps.load.matrix.batch_size=[2,8]'"));
}

#[test]
fn a_flag_too_many_is_named() {
    let lab = measured(&[]);
    let asked = lab.run(&["curves", "plan.yaml", "--set", "phases.measure=300ms"]);
    assert!(asked.code == Some(2) && asked.stderr.contains("results of the plan without `--set`"), "{}", asked.stderr);
    assert_eq!(named(&lab.ok(&["curves", "plan.yaml"])), None);
}
