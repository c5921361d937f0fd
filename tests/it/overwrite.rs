//! Tests which files a command overwrites: its own, and others only with `--force`.

use lab::Lab;

const PLAN: &str = "
sweepline: 1
name: overwrite
endpoints: { demo: { engine: mock, mock: { ttft: 1ms, itl: 1ms } } }
models: { m: { id: tiny } }
phases: { fill: 10ms, stabilize: 10ms, measure: 200ms, drain: 5s }
sweeps: { one: { matrix: { batch_size: [1], output_tokens: [4] } } }
";

/// A file that an export must not replace, whatever the name of the file is.
const LOG: &str = "prompt,output_tokens\nhello,12\n";

/// Returns a lab with a committed run.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("plan.yaml", PLAN);
    let ended = lab.run(&["run", "plan.yaml"]);
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    lab
}

/// Asserts that the command leaves the file as it is and shows the remedy, and overwrites it with
/// `--force`.
fn only_by_force(lab: &Lab, command: &[&str], file: &str, what: &str) {
    let path = lab.path().join(file);
    let before = std::fs::read(&path).unwrap();
    let refused = lab.run(command);
    assert_eq!(refused.code, Some(2), "{command:?}: {}", refused.stderr);
    let wanted = format!("{file} already exists and is not {what}: choose another name, or add --force");
    assert!(refused.stderr.contains(&wanted), "{command:?}: {}", refused.stderr);
    assert_eq!(std::fs::read(&path).unwrap(), before, "{command:?}");
    lab.ok(&[command, &["--force"]].concat());
    assert_ne!(std::fs::read(&path).unwrap(), before, "{command:?} --force");
}

#[test]
fn a_plan_is_replaced_by_nothing() {
    let lab = lab();
    for (command, what) in [
        (&["freeze", "plan.yaml", "-o", "plan.yaml"][..], "a frozen plan"),
        (&["export", "plan.yaml", "--format", "csv", "-o", "plan.yaml"], "an export of sweepline"),
        (&["export", "plan.yaml", "--format", "xlsx", "-o", "plan.yaml"], "an export of sweepline"),
        (&["export", "plan.yaml", "--format", "parquet", "-o", "plan.yaml"], "an export of sweepline"),
        (&["compare", "plan.yaml", "--write-baseline", "plan.yaml"], "a baseline"),
        (&["report", "plan.yaml", "-o", "plan.yaml"], "a report of sweepline"),
    ] {
        only_by_force(&lab, command, "plan.yaml", what);
        lab.write("plan.yaml", PLAN);
    }
}

#[test]
fn tables_of_others_stay() {
    let lab = lab();
    let made = || {
        lab.write("log.csv", LOG);
        lab.write("log.json", "[{ \"conversations\": [] }]\n");
        lab.write("log.md", "# Notes\n\nwhat we saw\n");
        lab.write("counts.csv", "prompt_tokens,output_tokens\n12,34\n");
        lab.write("own.md", "| endpoint | ttft_p50_ms |\n| --- | --- |\n| demo | 1 |\n\n# What it means\n");
    };
    for (command, file) in [
        (&["export", "-o", "log.csv"][..], "log.csv"),
        (&["export", "plan.yaml", "-o", "log.json"], "log.json"),
        (&["export", "-o", "log.md"], "log.md"),
        (&["export", "--rows", "requests", "-o", "log.csv"], "log.csv"),
        (&["export", "-o", "counts.csv"], "counts.csv"),
        (&["export", "plan.yaml", "-o", "own.md"], "own.md"),
    ] {
        made();
        only_by_force(&lab, command, file, "an export of sweepline");
    }
    let inside = lab.only_run().dir.join("requests.parquet");
    let bytes = std::fs::read(&inside).unwrap();
    let refused = lab.run(&["export", "--rows", "requests", "-o", inside.to_str().unwrap()]);
    assert_eq!((refused.code, std::fs::read(&inside).unwrap()), (Some(2), bytes), "{}", refused.stderr);
}

#[test]
fn what_a_command_wrote_it_writes_again() {
    let lab = lab();
    for command in [
        &["export", "plan.yaml", "-o", "runs.csv"][..],
        &["export", "plan.yaml", "--columns", "endpoint,output_tokens,ttft_*", "-o", "some.csv"],
        &["export", "plan.yaml", "--wide", "-o", "wide.csv"],
        &["export", "plan.yaml", "-o", "runs.json"],
        &["export", "plan.yaml", "-o", "runs.md"],
        &["export", "plan.yaml", "-o", "runs.xlsx"],
        &["export", "-o", "runs.parquet"],
        &["export", "--format", "parquet"],
        &["export", "--rows", "events", "-o", "events.parquet"],
        &["export", "--rows", "requests", "-o", "requests.csv"],
        &["freeze", "plan.yaml", "-o", "plan.lock"],
        &["compare", "plan.yaml", "--write-baseline", "baseline.json"],
    ] {
        lab.ok(command);
        lab.ok(command);
    }
    // The permissions are kept, and a link is followed even if its target does not exist yet.
    let path = lab.path().join("runs.csv");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    lab.ok(&["export", "plan.yaml", "-o", "runs.csv"]);
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions()) & 0o777,
        0o600
    );
    std::os::unix::fs::symlink("later.csv", lab.path().join("link.csv")).unwrap();
    lab.ok(&["export", "plan.yaml", "-o", "link.csv"]);
    assert!(lab.path().join("later.csv").is_file() && lab.path().join("link.csv").is_symlink());
    lab.write("empty.csv", "");
    lab.ok(&["export", "-o", "empty.csv"]);
    // Different kinds of rows may replace each other in one file.
    lab.ok(&["export", "--rows", "requests", "-o", "runs.csv"]);
}

#[test]
fn data_sets_and_profiles_are_kept() {
    let lab = Lab::new();
    let line =
        r#"{"messages":[{"role":"user","content":"What is a sweep, and how long does it take?"}],"output_tokens":12}"#;
    lab.write("log.jsonl", &format!("{line}\n").repeat(40));
    only_by_force(&lab, &["dataset", "sample", "log.jsonl", "--n", "3", "-o", "log.jsonl"], "log.jsonl", "empty");
    lab.write("log.jsonl", &format!("{line}\n").repeat(40));
    lab.ok(&["dataset", "convert", "log.jsonl", "-o", "own.jsonl"]);
    let again = lab.run(&["dataset", "convert", "log.jsonl", "-o", "own.jsonl"]);
    assert_eq!(again.code, Some(2), "{}", again.stderr);
    lab.ok(&["dataset", "profile", "log.jsonl", "-o", "profile.json"]);
    lab.ok(&["dataset", "profile", "log.jsonl", "-o", "profile.json"]);
    only_by_force(&lab, &["dataset", "profile", "own.jsonl", "-o", "log.jsonl"], "log.jsonl", "a profile");
}

#[test]
fn numbers_carry_the_version_of_the_analysis() {
    let lab = lab();
    let rows = lab.ok(&["export", "plan.yaml", "--format", "json"]).json();
    let version = rows[0]["analysis"].as_u64().unwrap();
    assert!(version >= 2, "{rows}");
    lab.ok(&["compare", "plan.yaml", "--write-baseline", "baseline.json"]);
    let path = lab.path().join("baseline.json");
    let mut baseline: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(baseline["analysis"], version);
    let refused = |baseline: &serde_json::Value, found: &str| {
        lab.write("baseline.json", &baseline.to_string());
        let ended = lab.run(&["compare", "plan.yaml", "--against", "baseline.json"]);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        let wanted = if found > version.to_string().as_str() {
            format!("was written by a newer sweepline (analysis version {found}; this one has {version}): upgrade")
        } else {
            let remedy = "name the results folder that it was made from, or write the baseline again";
            assert!(ended.stderr.contains(remedy), "{}", ended.stderr);
            format!("was written with analysis version {found}; this sweepline has {version}")
        };
        assert!(ended.stderr.contains(&wanted), "{}", ended.stderr);
    };
    baseline["analysis"] = 1.into();
    refused(&baseline, "1");
    // Files of earlier versions of the program do not have this field.
    baseline.as_object_mut().unwrap().remove("analysis");
    refused(&baseline, "1");
    baseline["analysis"] = (version + 1).into();
    refused(&baseline, &(version + 1).to_string());
}

#[test]
fn a_lock_is_not_named_like_another_format() {
    let lab = lab::sweeps::lab();
    for name in ["fr.toml", "fr.json", "fr.TOML", "fr.txt"] {
        let refused = lab.run(&["freeze", "plan.yaml", "-o", name]);
        assert_eq!(refused.code, Some(2), "{name}");
        assert!(refused.stderr.contains("name it .lock, .yaml or .yml"), "{}", refused.stderr);
        assert!(!lab.path().join(name).exists());
    }
    lab.ok(&["freeze", "plan.yaml", "-o", "fr"]);
    for name in ["fr.yaml", "fr.yml", "fr.lock"] {
        lab.ok(&["freeze", "plan.yaml", "-o", name]);
        lab.ok(&["check", name]);
    }
}

#[test]
fn temporary_files_of_killed_exports_are_removed_and_those_in_use_are_not() {
    let lab = lab();
    // Process ids above 2^22 do not exist.
    let (left, locked) = (".runs.csv.999999999", ".runs.csv.999999998");
    let of_a_process = format!(".runs.csv.{}", std::process::id());
    let kept = [
        of_a_process.as_str(),
        locked,
        ".runs.csv.",
        ".runs.csv.old",
        ".runs.csv.1x",
        "runs.csv.999999999",
        ".r.csv.999999999",
    ];
    for name in kept.iter().copied().chain([left]) {
        lab.write(name, "half a table");
    }
    let file = std::fs::File::open(lab.path().join(locked)).unwrap();
    file.lock().unwrap();
    let path = lab.path().join("runs.csv");
    for target in ["runs.csv", path.to_str().unwrap()] {
        lab.write(left, "half a table");
        lab.ok(&["export", "plan.yaml", "-o", target]);
        assert!(!lab.path().join(left).exists(), "the leftover of a killed process is removed: {target}");
    }
    for name in kept {
        assert!(lab.path().join(name).exists(), "{name} stays");
    }
    drop(file);
    lab.ok(&["export", "plan.yaml", "-o", "runs.csv"]);
    assert!(!lab.path().join(locked).exists(), "it is removed once nobody has locked it");
}
