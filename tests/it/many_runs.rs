//! Tests a store with many runs: commands keep a small part of each run in memory, however large its record
//! is, and detect every change.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sweepline::expand::{PlannedRun, expand};
use sweepline::plan;
use sweepline::rows::{Environment, Facts, Outcome, Phase, Record, RequestRow, Windows};
use sweepline::store::{Commit, Store, Writer};

use lab::{Lab, wait_with_peak};

const PLAN: &str = "sweepline: 1
name: many
endpoints: { demo: { engine: mock } }
models: { m: { id: tiny } }
sweeps:
  s: { matrix: { endpoint: demo, model: m, scenario: B1, qps: { from: 1, to: 160, step: 1 } } }
";

/// Short phases, for a run that is measured.
const PHASES: &str = "phases: { fill: 100ms, stabilize: 100ms, measure: { for: 200ms, min_requests: 1 }, drain: 1s }
sweeps:";

/// Number of runs in the store at first, and later.
const SIZES: [usize; 2] = [32, 160];
/// Size of a record, in bytes.
const RECORD: usize = 64 * 1024;
/// Maximum growth of memory from the first store to the second. This is the size of the text of the
/// additional records, which would take more if kept in memory.
const MOST_GROWTH: u64 = ((SIZES[1] - SIZES[0]) * RECORD) as u64;

/// Commits a run whose record has this size because its server listed many models.
fn commit(writer: &Writer, run: &PlannedRun, size: usize) {
    let row = RequestRow {
        released_ns: Some(0),
        sent_ns: Some(10),
        ended_ns: Some(20),
        outcome: Outcome::Ok,
        ..RequestRow::wanted(0, Phase::Measure, 0)
    };
    let windows =
        Windows { stabilize_ns: 0, measure_start_ns: 0, measure_end_ns: 1_000_000_000, end_ns: 1_000_000_000 };
    let attempt = writer.begin(&run.id.to_string(), &run.spec).unwrap();
    let mut journal = attempt.journal().unwrap();
    journal.append(&[Record { row, gaps_ns: Vec::new() }]).unwrap();
    journal.finish().unwrap();
    attempt.samples().unwrap().finish().unwrap();
    let models = (0..size / 64).map(|at| format!("{at:060}")).collect();
    let commit = Commit {
        environment: Environment { models, ..Environment::default() },
        facts: Facts { windows, scheduled: 1, scheduled_in_window: 1, ..Facts::default() },
        generator_digest: "0".repeat(64),
        samples: 0,
        texts: None,
        reason: None,
    };
    attempt.commit(commit).unwrap();
}

/// Commits some runs of the plan, several at a time because each waits for the disk.
fn commit_all(lab: &Lab, runs: &[PlannedRun], size: usize) {
    let writer = Store::lock(lab.results()).unwrap();
    std::thread::scope(|scope| {
        for part in runs.chunks(runs.len().div_ceil(8)) {
            scope.spawn(|| part.iter().for_each(|run| commit(&writer, run, size)));
        }
    });
}

fn planned(lab: &Lab) -> Vec<PlannedRun> {
    let loaded = plan::load(&lab.write("plan.yaml", PLAN)).unwrap();
    expand(&loaded.plan).unwrap().runs
}

/// Returns the peak memory of a command, in bytes.
fn peak(lab: &Lab, args: &[&str]) -> u64 {
    let into = |name: &str| File::create(lab.path().join(name)).unwrap();
    let mut command = lab.command(args);
    command.stdout(into("out")).stderr(into("err"));
    let (status, peak) = wait_with_peak(&mut command.spawn().unwrap());
    let said = std::fs::read_to_string(lab.path().join("err")).unwrap();
    assert!(status.success(), "{args:?}: {status}\n{said}");
    peak
}

#[test]
fn memory_does_not_depend_on_the_size_of_records() {
    let lab = Lab::new();
    let runs = planned(&lab);
    let commands: [&[&str]; 2] = [&["preview", "plan.yaml"], &["list", "--format", "json"]];
    let mut peaks = Vec::new();
    let mut there = 0;
    for size in SIZES {
        commit_all(&lab, &runs[there..size], RECORD);
        there = size;
        peaks.push(commands.map(|args| peak(&lab, args)));
    }
    for ((args, before), after) in commands.iter().zip(peaks[0]).zip(peaks[1]) {
        println!("{args:?}: {} MiB, then {} MiB", before >> 20, after >> 20);
        assert!(after < before + MOST_GROWTH, "{args:?}: from {before} to {after} bytes");
    }
    assert_eq!(lab.ok(&["list", "--format", "json"]).json()["runs"].as_array().unwrap().len(), SIZES[1]);
}

/// A file of a run, a function that damages the file, and the expected report.
type Damage = (&'static str, fn(&Path), &'static str);

/// Damage that the program must detect although it remembers the run.
const DAMAGES: [Damage; 3] = [
    ("run.json", |path| flip_a_bit(path), "corrupt: run.json is damaged"),
    ("requests.parquet", |path| std::fs::remove_file(path).unwrap(), "corrupt: requests.parquet is missing"),
    ("", |path| std::fs::remove_dir_all(path).unwrap(), "has since been deleted"),
];

fn flip_a_bit(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[40] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_run_that_changed_is_seen_among_those_that_are_remembered() {
    let lab = Lab::new();
    let runs = planned(&lab);
    commit_all(&lab, &runs[..4], 0);
    let command = |args: &[&str]| {
        let output = lab.command(args).env("SWEEPLINE_INDEX_ALL", "1").output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap())
    };
    // Runs are in the order in which they are measured, not in the order of their loads.
    let ids: Vec<String> = runs[..4].iter().map(|run| format!("id == '{}'", run.id)).collect();
    let only = ["--only", &ids.join(" or ")];
    let (_, said) = command(&[&["run", "plan.yaml"], &only[..]].concat());
    assert!(said.contains("nothing to do; the results of all 4 runs are in"), "{said}");
    let index = lab.results().join("derived/runs.index");
    assert!(index.exists(), "{said}");
    let before = std::fs::read(&index).unwrap();
    for ((file, damage, told), run) in DAMAGES.into_iter().zip(&runs) {
        damage(&lab.results().join("runs").join(run.id.short()).join(file));
        let (_, said) = command(&["why", &run.id.short(), "--plan", "plan.yaml"]);
        assert!(said.contains(told), "{said}");
    }
    let (_, said) = command(&[&["preview", "plan.yaml", "--format", "json"], &only[..]].concat());
    let preview: serde_json::Value = serde_json::from_str(&said[..=said.rfind('}').unwrap()]).unwrap();
    let states = &preview["totals"]["states"];
    assert_eq!([&states["cached"], &states["redo"], &states["new"]], [1, 2, 1], "{states}");
    assert_eq!(std::fs::read(&index).unwrap(), before, "`preview` and `why` write nothing");
}

/// Returns the file of remembered verdicts.
fn verdicts(lab: &Lab) -> PathBuf {
    let derived = std::fs::read_dir(lab.results().join("derived")).unwrap();
    let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "log");
    derived.map(|entry| entry.unwrap().path()).find(is_log).unwrap()
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap().lines().filter(|line| !line.is_empty()).count()
}

/// A change of the plan that changes the rules of verdicts.
const CHANGED: &str = "--set validity.errors.invalid=1%";

#[test]
fn rows_of_many_runs_are_read_again_only_if_a_verdict_may_differ() {
    let lab = Lab::new();
    let runs = planned(&lab);
    commit_all(&lab, &runs[..4], 0);
    let ids: Vec<String> = runs[..4].iter().map(|run| format!("id == '{}'", run.id)).collect();
    let only = ids.join(" or ");
    let run = |more: &[&str]| {
        // The printed table must not answer.
        for entry in std::fs::read_dir(lab.results().join("derived")).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "json") {
                std::fs::remove_file(path).unwrap();
            }
        }
        let args = [&["run", "plan.yaml", "--only", &only], more].concat();
        let output = lab.command(&args).env("SWEEPLINE_MOST_IN_TABLE", "3").output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        // Neither the time nor the command line that was repeated.
        let lines = said.lines().filter(|line| !line.contains("nothing to do"));
        (output.status.code(), lines.collect::<Vec<_>>().join("\n").replace(&format!(" {CHANGED}"), ""))
    };
    let first = run(&[]);
    assert!(first.1.contains("4 runs; a table has at most") && first.1.contains("one run in full"), "{first:?}");
    let log = verdicts(&lab);
    assert_eq!(lines(&log), 4);
    // Different bytes of the same size and time: the rows are not read, as `make` and git would not.
    let rows = lab.results().join("runs").join(runs[1].id.short()).join("requests.parquet");
    let (bytes, time) = (std::fs::read(&rows).unwrap(), std::fs::metadata(&rows).unwrap().modified().unwrap());
    let set = |bytes: &[u8]| {
        let mut file = File::create(&rows).unwrap();
        file.write_all(bytes).unwrap();
        file.set_modified(time).unwrap();
    };
    set(&vec![0; bytes.len()]);
    assert_eq!(run(&[]), first);
    // Another plan has other verdicts, and a file of another time may have other rows.
    let (status, said) = run(&CHANGED.split(' ').collect::<Vec<_>>());
    assert_eq!((status, said.contains("requests.parquet")), (Some(5), true), "{said}");
    set(&bytes);
    assert_eq!((run(&CHANGED.split(' ').collect::<Vec<_>>()), lines(&log)), (first.clone(), 8));
    File::options().append(true).open(&rows).unwrap().set_modified(time + Duration::from_secs(1)).unwrap();
    assert_eq!((run(&[]), lines(&log)), (first.clone(), 9));
    // Lines that were cut short or changed are ignored.
    let text = std::fs::read_to_string(&log).unwrap().replace(" valid ", " invalid ");
    std::fs::write(&log, &text[..text.len() - 5]).unwrap();
    assert_eq!(run(&[]), first);
}

#[test]
fn a_verdict_is_remembered_when_its_run_is_committed() {
    let lab = Lab::new();
    lab.write("plan.yaml", &PLAN.replace("sweeps:", PHASES));
    let output =
        lab.command(&["run", "plan.yaml", "--only", "qps == 20"]).env("SWEEPLINE_MOST_IN_TABLE", "3").output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3 | 4)), "{output:?}");
    // The table has one run, so it needs no such file.
    assert_eq!(lines(&verdicts(&lab)), 1);
}
