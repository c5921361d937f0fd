//! Runs the commands in docs/ that pipe an output to jq.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use serde_json::Value;

use lab::pages::block;
use lab::sweeps::{PLAN, honest};
use lab::{Ended, Lab};

/// Runs a block of a page in the lab, with `sweepline` in the `PATH`.
fn run(lab: &Lab, page: &str, begin: &str, change: (&str, &str)) -> Ended {
    let script = block(page, begin).lines.join("\n") + "\n";
    assert!(script.contains(change.0), "{script}");
    lab.write("block.sh", &script.replace(change.0, change.1));
    let bin = lab.path().join("bin");
    let path = format!("{}:{}", bin.display(), lab::path_with_program().display());
    std::fs::create_dir_all(&bin).unwrap();
    let _ = symlink(lab::program(), bin.join("sweepline"));
    let mut sh = Command::new("sh");
    Ended::from(sh.arg("block.sh").current_dir(lab.path()).env("PATH", path).output().unwrap())
}

/// Whether jq is installed.
fn has_jq() -> bool {
    let is_there = Command::new("jq").arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        eprintln!("skipped: jq is not installed");
    }
    is_there
}

#[test]
fn findings_become_annotations() {
    if !has_jq() {
        return;
    }
    let lab = Lab::new();
    lab.write("plans/nightly.yaml", &PLAN.replace("qps: [40, 60]", "rps: [40, 60]"));
    let check = "sweepline check --format json plans/*.yaml";
    let ended = run(&lab, "docs/DIAGNOSTICS.md", &format!("{check} >"), (check, check));
    let begins = |line: &str| line.starts_with("::error file=plans/nightly.yaml,line=13,col=");
    assert!(ended.code == Some(2) && ended.stdout.lines().any(begins), "{ended:?}");
    assert!(ended.stdout.contains(",title=E012::`rps` is not an axis%0A"), "{}", ended.stdout);

    let reviewdog = lab.write("bin/reviewdog", "#!/bin/sh\ncat\n");
    std::fs::set_permissions(reviewdog, std::fs::Permissions::from_mode(0o755)).unwrap();
    let found = run(&lab, "docs/DIAGNOSTICS.md", &format!("{check} |"), (check, check)).json();
    let is_axis = |one: &&Value| one["code"]["value"] == "E012";
    let axis = found["diagnostics"].as_array().unwrap().iter().find(is_axis).expect("E012");
    assert_eq!((&axis["severity"], &axis["location"]["range"]["start"]["line"]), (&"ERROR".into(), &13.into()));
}

#[test]
fn events_become_lines() {
    if !has_jq() {
        return;
    }
    let lab = Lab::new();
    lab.write("plan.yaml", PLAN);
    let args = ["run", "plan.yaml", "-q", "--only", "batch_size == 1", "--events", "events.jsonl"];
    honest(&lab.run(&args));
    let ended = run(&lab, "docs/LIVE.md", "tail -f events.jsonl |", ("tail -f", "cat"));
    assert!(ended.code == Some(0) && ended.stdout.contains("short · batch 1: committed "), "{ended:?}");
    assert_eq!(ended.stdout.lines().count(), 1, "{}", ended.stdout);
}
