//! Commits, crashes and damage, on real files.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::*;
use crate::expand::RunSpec;
use crate::rows::{Environment, Facts, Outcome, Phase, Record, Records, Replay, RequestRow, Sample, Table};

/// A spec as `run.json` keeps it.
const SPEC: &str = r#"{
    "labels": { "model": "m", "scenario": "B1", "axes": { "server": "64" } },
    "endpoint": { "name": "demo", "engine": "vllm", "api": "chat", "gpus": 8, "server": { "version": "0.33.0" } },
    "model": { "id": "meta-llama/Llama-3.1-70B-Instruct", "precision": "bf16" },
    "scenario": { "reuse": "none", "system_tokens": 0, "prompt_tokens": 50, "output_tokens": 256, "turns": 1 },
    "shaping": { "stream": true, "ignore_eos": true, "temperature": 0, "top_p": 0.9, "nonce": true },
    "load": { "open": { "qps": 2.5, "arrivals": "poisson", "cap": 4 } },
    "phases": {
        "fill": "1s",
        "stabilize": "2s",
        "measure": { "for": "10s", "min_requests": 100, "at_most": "50s" },
        "drain": { "for": "5s", "mode": "keep" }
    },
    "between": { "cooldown": "0s" },
    "timeouts": { "connect": "10s", "request": "10m", "stall": "60s" },
    "seed": 18446744073709551615,
    "repeat": 2
}"#;

fn spec() -> RunSpec {
    serde_json::from_str(SPEC).unwrap()
}

fn id(digit: char) -> String {
    digit.to_string().repeat(64)
}

fn record(request: u64) -> Record {
    let row = RequestRow {
        released_ns: Some(request * 1_000),
        sent_ns: Some(request * 1_000 + 7),
        first_token_ns: Some(request * 1_000 + 300),
        last_token_ns: Some(request * 1_000 + 400),
        outcome: Outcome::Ok,
        http_status: Some(200),
        finish_reason: Some("length".into()),
        output_tokens: Some(3),
        requested_tokens: 3,
        intended_prompt_tokens: 50,
        events: 3,
        bytes: 99,
        ..RequestRow::wanted(request, Phase::Measure, request * 1_000)
    };
    Record { row, gaps_ns: vec![40, 60] }
}

fn samples() -> Vec<Sample> {
    vec![Sample { at_ns: 5, source: "generator".into(), name: "in_flight".into(), value: 4.0 }]
}

fn commit(reason: Option<&str>) -> Commit {
    Commit {
        environment: Environment { client_cores: 2, ..Environment::default() },
        facts: Facts { qps: Some(2.5), ..Facts::default() },
        generator_digest: "d".repeat(64),
        samples: samples().len() as u64,
        texts: None,
        reason: reason.map(str::to_owned),
    }
}

/// An attempt with `rows` requests in its finished journal.
fn journalled(writer: &Writer, id: &str, rows: u64) -> Attempt {
    let attempt = writer.begin(id, &spec()).unwrap();
    let mut journal = attempt.journal().unwrap();
    journal.append(&(0..rows).map(record).collect::<Vec<_>>()).unwrap();
    journal.finish().unwrap();
    let mut series = attempt.samples().unwrap();
    series.append(&samples()).unwrap();
    series.finish().unwrap();
    attempt
}

fn run_once(dir: &Path, id: &str) -> RunRecord {
    let writer = Store::lock(dir).unwrap();
    journalled(&writer, id, 3).commit(commit(Some("--force"))).unwrap()
}

fn results() -> (TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let results = dir.path().join("results");
    (dir, results)
}

/// The names of everything below `dir`, for whole comparisons.
fn tree(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for name in disk::names(dir).unwrap() {
        let path = dir.join(&name);
        match path.is_dir() {
            true => found.extend(tree(&path).into_iter().map(|below| format!("{name}/{below}"))),
            false => found.push(name),
        }
    }
    found
}

fn run_tree(folder: &str) -> Vec<String> {
    let files = ["events.parquet", "requests.parquet", "run.json", "samples.parquet"];
    files.iter().map(|file| format!("{folder}/{file}")).collect()
}

#[test]
fn a_committed_run_reads_back() {
    let (_keep, dir) = results();
    let written = run_once(&dir, &id('a'));
    let store = Store::open(&dir);
    let [listed] = &store.list().unwrap()[..] else { panic!("one run") };
    assert_eq!((&listed.state, &listed.record), (&State::Whole, &Some(written.clone())));
    assert_eq!((written.attempt, written.replaced.clone(), &written.spec), (1, None, &spec()));
    let read = store.read(&written).unwrap();
    let held: Records = (0..3).map(record).collect();
    let (mut replayed, mut expected) = (Vec::new(), Vec::new());
    read.replay(&mut |row, gaps| replayed.push((row.clone(), gaps.to_vec()))).unwrap();
    let Ok(()) = held.replay(&mut |row, gaps| expected.push((row.clone(), gaps.to_vec())));
    assert_eq!(replayed, expected);
    let rows: Result<Vec<RequestRow>, _> = store.stream_requests(&written).unwrap().collect();
    assert_eq!(rows.unwrap(), (0..3).map(|request| record(request).row).collect::<Vec<_>>());
    let gaps: Vec<Vec<u64>> = store.stream_events(&written).unwrap().map(|row| row.unwrap().gaps_ns).collect();
    assert_eq!(gaps, (0..3).map(|request| record(request).gaps_ns).collect::<Vec<_>>());
    let labels = &read.labels;
    assert_eq!((labels.run_id.as_str(), labels.qps, labels.batch_size), (id('a').as_str(), Some(2.5), Some(4)));
    assert_eq!(store.read_samples(&written).unwrap(), samples());
    assert!(store.verify(|_| ()).unwrap().iter().all(RunReport::is_whole));
    assert_eq!(tree(&dir), [vec![".gitignore".into(), ".lock".into()], run_tree("runs/aaaaaaaaaaaaaaaa")].concat());
}

#[test]
fn a_rerun_moves_the_old_run_aside_and_counts_on() {
    let (_keep, dir) = results();
    run_once(&dir, &id('a'));
    let writer = Store::lock(&dir).unwrap();
    writer.begin(&id('a'), &spec()).unwrap().fail("the server died").unwrap();
    let third = journalled(&writer, &id('a'), 1).commit(commit(Some("--force"))).unwrap();
    assert_eq!(third.attempt, 3);
    assert_eq!(third.replaced, Some(Replaced { attempt: Some(1), reason: Some("--force".into()) }));
    let store = writer.store();
    assert_eq!(store.superseded().unwrap(), [("a".repeat(16), 1)]);
    assert_eq!(store.run(&id('a')).unwrap().unwrap().record, Some(third));
    let [failed] = &store.attempts().unwrap()[..] else { panic!("one attempt") };
    assert_eq!((failed.number, &failed.state), (2, &AttemptState::Failed("the server died".into())));
    assert_eq!(writer.begin(&id('a'), &spec()).unwrap().number(), 4);
}

#[test]
fn a_second_writer_is_told_who_has_the_folder() {
    let (_keep, dir) = results();
    let writer = Store::lock(&dir).unwrap();
    let attempt = writer.begin(&id('a'), &spec()).unwrap();
    let error = Store::lock(&dir).unwrap_err();
    assert!(matches!(error, StoreError::Locked { pid: Some(pid), .. } if pid == std::process::id()), "{error}");
    drop(writer);
    assert!(matches!(Store::lock(&dir), Err(StoreError::Locked { .. })), "an attempt still writes");
    drop(attempt);
    Store::lock(&dir).unwrap();
}

#[test]
fn an_unfinished_journal_is_never_committed() {
    let (_keep, dir) = results();
    let writer = Store::lock(&dir).unwrap();
    let attempt = writer.begin(&id('a'), &spec()).unwrap();
    attempt.journal().unwrap().append(&[record(0)]).unwrap();
    let error = attempt.commit(commit(None)).unwrap_err().to_string();
    assert!(error.contains("journal.arrow is not a finished journal"), "{error}");
    assert_eq!(writer.store().list().unwrap(), []);
    let attempts = writer.store().attempts().unwrap();
    assert!(matches!(&attempts[0].state, AttemptState::Failed(reason) if reason.contains("finished journal")));
}

/// Does nothing by itself: the body of the processes that the tests below start, and that are killed.
#[test]
fn child() {
    let Some(dir) = std::env::var_os("SWEEPLINE_TEST_STORE") else { return };
    let writer = Store::lock(dir).unwrap();
    let attempt = journalled(&writer, &id('a'), 2_000);
    if std::env::var_os("SWEEPLINE_TEST_LIMIT").is_some() {
        ignore_file_size_signal().unwrap();
        let limit = rustix::process::Rlimit { current: Some(4_096), maximum: Some(4_096) };
        rustix::process::setrlimit(rustix::process::Resource::Fsize, limit).unwrap();
    }
    if let Err(error) = attempt.commit(commit(Some("--force"))) {
        assert!(matches!(error, StoreError::Full { .. }), "{error}");
        // What the test harness writes may itself be beyond the limit.
        std::process::exit(55);
    }
}

fn run_child(dir: &Path, key: &str, value: &str) -> std::process::ExitStatus {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "store::tests::child"]).env("SWEEPLINE_TEST_STORE", dir).env(key, value);
    command.output().unwrap().status
}

#[test]
fn a_kill_at_any_point_loses_nothing() {
    use std::os::unix::process::ExitStatusExt;
    for (point, whole_before, attempt) in [
        ("before_seal", true, 1),
        ("before_run_json", true, 1),
        ("before_rename", true, 2),
        ("between_supersede_and_rename", false, 2),
        ("after_rename", true, 2),
    ] {
        let (_keep, dir) = results();
        run_once(&dir, &id('a'));
        let status = run_child(&dir, "SWEEPLINE_FAILPOINT", point);
        assert_eq!(status.signal(), Some(9), "{point}");
        assert_eq!(Store::open(&dir).list().unwrap().len(), usize::from(whole_before), "{point}");
        let writer = Store::lock(&dir).unwrap();
        let [run] = &writer.store().list().unwrap()[..] else { panic!("{point}: one run") };
        assert_eq!((&run.state, run.record.as_ref().unwrap().attempt), (&State::Whole, attempt), "{point}");
        assert_eq!(
            writer.recovered().len(),
            usize::from(matches!(point, "before_rename" | "between_supersede_and_rename"))
        );
        assert_eq!(writer.store().superseded().unwrap().len(), attempt as usize - 1, "{point}");
        assert!(writer.store().verify(|_| ()).unwrap()[0].is_whole(), "{point}");
        let names = tree(&writer.store().layout().run(&id('a')));
        assert_eq!(names, ["events.parquet", "requests.parquet", "run.json", "samples.parquet"], "{point}");
    }
}

#[test]
fn a_limit_on_file_sizes_is_an_error_and_the_old_run_stays() {
    let (_keep, dir) = results();
    let old = run_once(&dir, &id('a'));
    assert_eq!(run_child(&dir, "SWEEPLINE_TEST_LIMIT", "1").code(), Some(55));
    assert_eq!(Store::open(&dir).list().unwrap()[0].record, Some(old));
}

#[test]
fn a_damaged_attempt_gives_the_replaced_run_back() {
    let (_keep, dir) = results();
    let old = run_once(&dir, &id('a'));
    run_child(&dir, "SWEEPLINE_FAILPOINT", "between_supersede_and_rename");
    fs::write(Layout::new(&dir).attempt(&id('a'), 2).join(Table::Events.file()), "cut").unwrap();
    let writer = Store::lock(&dir).unwrap();
    assert_eq!(writer.recovered(), [Recovered { id: "a".repeat(16), attempt: 1, remedy: Remedy::Restored }]);
    assert_eq!(writer.store().list().unwrap()[0].record, Some(old));
    drop(writer);
    assert_eq!(Store::lock(&dir).unwrap().recovered(), []);
}

#[test]
fn a_run_removed_on_purpose_does_not_come_back() {
    let (_keep, dir) = results();
    run_once(&dir, &id('a'));
    run_once(&dir, &id('a'));
    fs::remove_dir_all(Layout::new(&dir).run(&id('a'))).unwrap();
    let writer = Store::lock(&dir).unwrap();
    assert_eq!((writer.store().list().unwrap(), writer.recovered()), (vec![], &[][..]));
}

fn cut_front(path: &Path) {
    fs::write(path, &fs::read(path).unwrap()[1..]).unwrap();
}

fn flip_a_bit(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    bytes[40] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn swap_id(path: &Path) {
    fs::write(path, fs::read_to_string(path).unwrap().replace(&id('a'), &id('b'))).unwrap();
}

fn remove(path: &Path) {
    fs::remove_file(path).unwrap();
}

#[test]
fn damage_is_named_and_a_rerun_takes_its_place() {
    type Damage = (&'static str, fn(&Path), &'static str);
    let damages: [Damage; 6] = [
        ("run.json", cut_front, "run.json is damaged"),
        ("run.json", remove, "run.json is missing"),
        ("run.json", swap_id, "run.json is that of run bbbb"),
        ("requests.parquet", cut_front, "requests.parquet has"),
        ("events.parquet", remove, "events.parquet is missing"),
        ("samples.parquet", flip_a_bit, "samples.parquet has another SHA-256"),
    ];
    for (file, damage, wanted) in damages {
        let (_keep, dir) = results();
        let record = run_once(&dir, &id('a'));
        let store = Store::open(&dir);
        damage(&store.layout().run(&id('a')).join(file));
        let quick = store.list().unwrap().remove(0).state;
        let reports = store.verify(|_| ()).unwrap();
        let problem = reports[0].files.iter().find_map(|file| file.problem.clone()).expect(wanted);
        assert!(problem.contains(wanted), "{problem}");
        match file {
            "samples.parquet" => assert_eq!(quick, State::Whole, "the quick check reads no Parquet"),
            _ => assert!(matches!(&quick, State::Corrupt(reason) if reason.contains(wanted)), "{quick:?}"),
        }
        assert_eq!(store.read(&record).is_err(), matches!(file, "requests.parquet" | "events.parquet"));
        run_once(&dir, &id('a'));
        assert_eq!(store.list().unwrap()[0].state, State::Whole);
        assert_eq!(store.superseded().unwrap().len(), 1);
    }
}

#[test]
fn a_later_format_is_refused_and_a_later_field_is_not() {
    let (_keep, dir) = results();
    let record = run_once(&dir, &id('a'));
    let store = Store::open(&dir);
    let path = store.layout().run(&id('a')).join(RUN_JSON);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"format\": 1,", "\"format\": 1, \"colour\": \"blue\",", 1)).unwrap();
    assert_eq!(store.list().unwrap()[0].record, Some(record));
    fs::write(&path, text.replacen("\"format\": 1,", "\"format\": 2, \"spec\": 3,", 1)).unwrap();
    assert!(matches!(store.list(), Err(StoreError::Newer { found: 2, known: 1, .. })));
}

#[test]
fn a_prefix_finds_one_run_or_names_the_candidates() {
    let (_keep, dir) = results();
    let near = format!("{}{}", "a".repeat(15), "b".repeat(49));
    run_once(&dir, &id('a'));
    run_once(&dir, &near);
    run_once(&dir, &id('c'));
    let store = Store::open(&dir);
    assert_eq!(store.find("C").unwrap().id, "c".repeat(16));
    assert_eq!(store.find(&near).unwrap().id, &near[..16]);
    assert!(matches!(store.find(&format!("{}f", &near[..20])), Err(StoreError::NotFound { .. })));
    let error = store.find("aaa").unwrap_err().to_string();
    assert!(error.contains("aaaaaaaaaaaaaaaa, aaaaaaaaaaaaaaab"), "{error}");
    assert!(matches!(store.find("d"), Err(StoreError::NotFound { .. })));
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    // /sys takes no folder from anyone, root included.
    let error = Store::lock("/sys/sweepline").unwrap_err();
    assert!(matches!(&error, StoreError::NotWritable { path, .. } if path.starts_with("/sys/sweepline")), "{error}");
    assert_eq!(Store::open("/nowhere/at/all").list().unwrap(), []);
}
