//! Tests of commits, crashes and damage on real files.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::*;
use crate::expand::RunSpec;
use crate::rows::{
    Environment, Facts, Outcome, Phase, Record, Records, Replay, RequestRow, Sample, SpoilCause, Spoiled, Table,
};

/// A spec as stored in `run.json`.
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

/// Locks the folder for writing. Retries while it is locked, because a process that a parallel test starts
/// also holds our open files, and thus the lock, until it executes its program.
fn locked(dir: &Path) -> Writer {
    let start = std::time::Instant::now();
    loop {
        match Store::lock(dir) {
            Err(StoreError::Locked { .. }) if start.elapsed().as_secs() < 30 => {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            locked => return locked.unwrap(),
        }
    }
}

pub(super) fn id(digit: char) -> String {
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
    vec![Sample { at_ns: 5, source: "generator".into(), name: "in_flight".into(), value: 4.0, ..Sample::default() }]
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

/// Creates an attempt with `rows` requests in its finished journal.
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

pub(super) fn run_once(dir: &Path, id: &str) -> RunRecord {
    let writer = locked(dir);
    journalled(&writer, id, 3).commit(commit(Some("--force"))).unwrap()
}

pub(super) fn results() -> (TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let results = dir.path().join("results");
    (dir, results)
}

/// Returns the names of everything below `dir`, to compare complete folders.
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
    let [listed] = &store.list().unwrap()[..] else { panic!("expected one run") };
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
    assert!(store.verify().unwrap().runs.iter().all(RunReport::is_whole));
    let entry = "inventory/aaaaaaaaaaaaaaaa.json".to_owned();
    let others = vec![".gitignore".into(), ".lock".into(), entry];
    assert_eq!(tree(&dir), [others, run_tree("runs/aaaaaaaaaaaaaaaa")].concat());
}

#[test]
fn a_rerun_moves_the_old_run_aside_and_counts_on() {
    let (_keep, dir) = results();
    run_once(&dir, &id('a'));
    let writer = locked(&dir);
    writer.begin(&id('a'), &spec()).unwrap().fail("the server died").unwrap();
    let third = journalled(&writer, &id('a'), 1).commit(commit(Some("--force"))).unwrap();
    assert_eq!(third.attempt, 3);
    assert_eq!(third.replaced, Some(Replaced { attempt: Some(1), reason: Some("--force".into()) }));
    let store = writer.store();
    assert_eq!(store.superseded().unwrap(), [("a".repeat(16), 1)]);
    assert_eq!(store.run(&id('a')).unwrap().unwrap().record, Some(third));
    let [failed] = &store.attempts().unwrap()[..] else { panic!("expected one attempt") };
    assert_eq!((failed.number, &failed.state), (2, &AttemptState::Failed("the server died".into())));
    assert_eq!(writer.begin(&id('a'), &spec()).unwrap().number(), 4);
}

#[test]
fn a_second_writer_is_told_who_has_the_folder() {
    let (_keep, dir) = results();
    let writer = locked(&dir);
    let attempt = writer.begin(&id('a'), &spec()).unwrap();
    let error = Store::lock(&dir).unwrap_err();
    assert!(matches!(error, StoreError::Locked { pid: Some(pid), .. } if pid == std::process::id()), "{error}");
    drop(writer);
    assert!(matches!(Store::lock(&dir), Err(StoreError::Locked { .. })), "an attempt still writes");
    drop(attempt);
    locked(&dir);
}

#[test]
fn parts_are_written_side_by_side_and_each_by_one() {
    let (_keep, dir) = results();
    let is_a = |id: &str| id.starts_with('a');
    let is_b = |id: &str| id.starts_with('b');
    let a = Store::open(&dir).part_writer(Part { name: "a", has: &is_a }).unwrap();
    let b = Store::open(&dir).part_writer(Part { name: "b/../b", has: &is_b }).unwrap();
    let error = Store::open(&dir).part_writer(Part { name: "a", has: &is_a }).unwrap_err();
    let own = std::process::id();
    assert!(
        matches!(&error, StoreError::PartLocked { part, pid: Some(pid), .. } if part == "a" && *pid == own),
        "{error}"
    );
    assert!(matches!(Store::lock(&dir), Err(StoreError::Locked { pid: None, .. })), "the folder has writers");
    let attempt = a.begin(&id('a'), &spec()).unwrap();
    let state = |writer: &Writer| writer.store().tries().unwrap()[&"a".repeat(16)].last.clone().unwrap().how;
    assert_eq!(state(&b), How::UnderWay(own), "readers see that another part's run is in progress");
    drop(a);
    assert!(Store::open(&dir).part_writer(Part { name: "a", has: &is_a }).is_err(), "an attempt still writes");
    drop((attempt, b));
    let whole = locked(&dir);
    let part = Store::open(&dir).part_writer(Part { name: "a", has: &is_a });
    assert!(matches!(part, Err(StoreError::Locked { pid: Some(pid), .. }) if pid == own), "it is one writer");
    drop(whole);
}

#[test]
fn an_unfinished_journal_is_never_committed() {
    let (_keep, dir) = results();
    let writer = locked(&dir);
    let attempt = writer.begin(&id('a'), &spec()).unwrap();
    attempt.journal().unwrap().append(&[record(0)]).unwrap();
    let error = attempt.commit(commit(None)).unwrap_err().to_string();
    assert!(error.contains("journal.arrow is not a finished journal"), "{error}");
    assert_eq!(writer.store().list().unwrap(), []);
    let attempts = writer.store().attempts().unwrap();
    assert!(matches!(&attempts[0].state, AttemptState::Failed(reason) if reason.contains("finished journal")));
}

/// Marks an attempt as spoiled by a rate limit (HTTP 429).
fn spoil(attempt: Attempt, given_up: Option<u32>) {
    let (cause, detail) = (SpoilCause::RateLimited, "429 Too Many Requests".to_owned());
    attempt.spoil(Spoiled { cause, detail, retry_after: None }, given_up).unwrap();
}

#[test]
fn spoiled_attempts_are_counted_from_the_commit_or_the_last_fresh_start() {
    let (_keep, dir) = results();
    let writer = locked(&dir);
    let (a, short) = (id('a'), "a".repeat(16));
    let of_a = || writer.store().tries().unwrap().remove(&short);
    assert_eq!(of_a(), None);
    spoil(writer.begin(&a, &spec()).unwrap(), None);
    writer.begin(&a, &spec()).unwrap().fail("interrupted").unwrap();
    let tries = of_a().unwrap();
    assert_eq!((tries.spoiled, &tries.given_up), (1, &None), "an interrupted attempt does not count");
    let last = tries.last.unwrap();
    assert!(last.number == 2 && last.how == How::Interrupted && last.ended.is_some(), "{last:?}");
    spoil(writer.begin(&a, &spec()).unwrap(), Some(1));
    writer.begin(&a, &spec()).unwrap().fail("no room on the disk").unwrap();
    let tries = of_a().unwrap();
    assert_eq!(tries.given_up.map(|up| (up.number, up.times)), Some((3, 1)), "also after another failure");
    assert_eq!((tries.spoiled, tries.last.unwrap().how), (2, How::Failed("no room on the disk".into())));
    // The user requests the run again, so earlier attempts no longer count.
    writer.begin_afresh(&a, &spec()).unwrap().fail("interrupted").unwrap();
    let tries = of_a().unwrap();
    assert_eq!((tries.spoiled, tries.given_up), (0, None));
    spoil(writer.begin(&a, &spec()).unwrap(), None);
    assert_eq!(of_a().unwrap().spoiled, 1);
    // Attempts before a commit do not count either.
    journalled(&writer, &a, 3).commit(commit(None)).unwrap();
    assert_eq!(of_a(), None);
    spoil(writer.begin(&a, &spec()).unwrap(), None);
    assert_eq!(of_a().unwrap().spoiled, 1);
    fs::remove_dir_all(writer.store().layout().run(&a)).unwrap();
    assert_eq!(of_a().unwrap().spoiled, 1, "the inventory lists the commit");
    assert_eq!(writer.store().tries_of(&|id| id != short).unwrap().len(), 0);
}

#[test]
fn what_a_kill_left_is_told_by_its_files() {
    let (_keep, dir) = results();
    let writer = locked(&dir);
    let attempt = writer.begin(&id('a'), &spec()).unwrap();
    let last = |store: &Store| store.tries().unwrap().remove(&"a".repeat(16)).unwrap().last.unwrap();
    let store = writer.store().clone();
    let made = last(&store);
    assert_eq!((made.how, made.ended), (How::UnderWay(std::process::id()), None));
    let path = attempt.dir().join(ATTEMPT_JSON);
    let written = |seconds| std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    fs::File::options().write(true).open(&path).unwrap().set_modified(written(1_700_000_000)).unwrap();
    drop((attempt, writer));
    // Simulates another process that has the same process id but took the lock later.
    let writer = locked(&dir);
    let left = last(&store);
    assert_eq!(left.how, How::Interrupted);
    assert_eq!(left.ended.unwrap().to_string(), "2023-11-14T22:13:20.000000000Z");
    fs::write(&path, "{ \"format\": 1, \"st").unwrap();
    let cut = last(&store);
    assert!(cut.started.is_none() && matches!(&cut.how, How::Failed(why) if why.contains("attempt.json")), "{cut:?}");
    fs::remove_file(&path).unwrap();
    assert_eq!(last(&store).how, How::Interrupted, "killed before it wrote anything");
    drop(writer);
}

/// The body of the processes that the tests below start and kill. As an ordinary test, without the
/// environment variable, it does nothing.
#[test]
fn child() {
    let Some(dir) = std::env::var_os("SWEEPLINE_TEST_STORE") else { return };
    let writer = locked(dir.as_ref());
    let attempt = journalled(&writer, &id('a'), 2_000);
    if std::env::var_os("SWEEPLINE_TEST_LIMIT").is_some() {
        ignore_file_size_signal().unwrap();
        let limit = rustix::process::Rlimit { current: Some(4_096), maximum: Some(4_096) };
        rustix::process::setrlimit(rustix::process::Resource::Fsize, limit).unwrap();
    }
    if let Err(error) = attempt.commit(commit(Some("--force"))) {
        assert!(matches!(error, StoreError::Full { .. }), "{error}");
        // The process exits here, because the output of the test harness may also exceed the file-size
        // limit.
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
        ("between_exchange_and_supersede", true, 2),
        ("after_rename", true, 2),
        ("before_entry", true, 2),
        ("after_entry", true, 2),
    ] {
        let (_keep, dir) = results();
        run_once(&dir, &id('a'));
        let status = run_child(&dir, "SWEEPLINE_FAILPOINT", point);
        assert_eq!(status.signal(), Some(9), "{point}");
        let left = Store::open(&dir).list().unwrap();
        assert_eq!(left.len(), usize::from(whole_before), "{point}");
        assert!(
            left.iter().all(|run| run.state == State::Whole && run.entered.problem().is_none()),
            "{point}: {left:?}"
        );
        let writer = locked(&dir);
        let [run] = &writer.store().list().unwrap()[..] else { panic!("{point}: one run") };
        assert_eq!((&run.state, run.record.as_ref().unwrap().attempt), (&State::Whole, attempt), "{point}");
        assert_eq!(writer.recovered().len(), usize::from(point == "before_rename" || point.starts_with("between_")));
        assert_eq!((run.entered.clone(), writer.store().deleted().unwrap()), (Entered::Same, vec![]), "{point}");
        assert_eq!(writer.store().superseded().unwrap().len(), attempt as usize - 1, "{point}");
        assert!(writer.store().verify().unwrap().runs[0].is_whole(), "{point}");
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
    let writer = locked(&dir);
    assert_eq!(writer.recovered(), [Recovered { id: "a".repeat(16), attempt: 1, remedy: Remedy::Restored }]);
    assert_eq!(writer.store().list().unwrap()[0].record, Some(old));
    drop(writer);
    assert_eq!(locked(&dir).recovered(), []);
}

#[test]
fn a_run_removed_on_purpose_does_not_come_back() {
    let (_keep, dir) = results();
    run_once(&dir, &id('a'));
    run_once(&dir, &id('a'));
    fs::remove_dir_all(Layout::new(&dir).run(&id('a'))).unwrap();
    let writer = locked(&dir);
    assert_eq!((writer.store().list().unwrap(), writer.recovered()), (vec![], &[][..]));
}

pub(super) fn cut_front(path: &Path) {
    fs::write(path, &fs::read(path).unwrap()[1..]).unwrap();
}

pub(super) fn cut_end(path: &Path) {
    fs::write(path, fs::read_to_string(path).unwrap().trim_end()).unwrap();
}

pub(super) fn flip_a_bit(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    bytes[40] ^= 1;
    fs::write(path, bytes).unwrap();
}

pub(super) fn swap_id(path: &Path) {
    rewrite(path, |text| text.replace(&id('a'), &id('b')));
}

/// Changes a sealed file and updates its digest to match.
fn rewrite(path: &Path, change: impl Fn(&str) -> String) {
    let mut value: serde_json::Value = serde_json::from_str(&change(&fs::read_to_string(path).unwrap())).unwrap();
    value.as_object_mut().unwrap().shift_remove("sha256");
    fs::write(path, seal::sealed(&value).unwrap().0).unwrap();
}

/// Removes the digest, which records of earlier versions of sweepline do not have.
pub(super) fn uncover(path: &Path) {
    let text = fs::read_to_string(path).unwrap();
    let (body, _) = text.rsplit_once(",\n  \"sha256\"").unwrap();
    fs::write(path, format!("{body}\n}}\n")).unwrap();
}

pub(super) fn remove(path: &Path) {
    fs::remove_file(path).unwrap();
}

#[test]
fn damage_is_named_and_a_rerun_takes_its_place() {
    type Damage = (&'static str, fn(&Path), &'static str);
    let damages: [Damage; 9] = [
        ("run.json", flip_a_bit, "its SHA-256 does not match the one at its end"),
        // An id that matches no spec is detected before the entry is read.
        ("run.json", uncover, "its id does not match its contents"),
        ("run.json", cut_end, "it ends with `sha256`, not with its digest"),
        ("run.json", cut_front, "run.json is damaged"),
        ("run.json", remove, "run.json is missing"),
        ("run.json", swap_id, "run.json belongs to run bbbb"),
        ("requests.parquet", cut_front, "requests.parquet has"),
        ("events.parquet", remove, "events.parquet is missing"),
        ("samples.parquet", flip_a_bit, "the SHA-256 of samples.parquet does not match"),
    ];
    for (file, damage, wanted) in damages {
        let (_keep, dir) = results();
        let record = run_once(&dir, &id('a'));
        let store = Store::open(&dir);
        damage(&store.layout().run(&id('a')).join(file));
        let quick = store.list().unwrap().remove(0).state;
        let reports = store.verify().unwrap().runs;
        let problem = reports[0].files.iter().find_map(|file| file.problem.clone()).expect(wanted);
        assert!(problem.contains(wanted), "{problem}, not {wanted}");
        match file {
            "samples.parquet" => assert_eq!(quick, State::Whole, "the quick check reads no Parquet"),
            _ => assert!(matches!(&quick, State::Corrupt(reason) if reason.contains(wanted)), "{quick:?}"),
        }
        assert_eq!(store.read(&record).is_err(), file != "samples.parquet", "{file}: {wanted}");
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
    let whole = fs::read_to_string(&path).unwrap();
    rewrite(&path, |text| text.replacen("\"format\": 1,", "\"format\": 1, \"colour\": \"blue\",", 1));
    let listed = store.list().unwrap().remove(0);
    let read = listed.record.unwrap();
    assert_eq!((listed.state, RunRecord { sha256: record.sha256.clone(), ..read }), (State::Whole, record));
    fs::write(&path, whole).unwrap();
    rewrite(&path, |text| text.replacen("\"format\": 1,", "\"format\": 2, \"colour\": 3,", 1));
    let state = store.list().unwrap().remove(0).state;
    assert!(matches!(&state, State::Unreadable(reason) if reason.contains("use a newer sweepline")), "{state:?}");
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
    // No user can create a folder in /sys, not even root.
    let error = Store::lock("/sys/sweepline").unwrap_err();
    assert!(matches!(&error, StoreError::NotWritable { path, .. } if path.starts_with("/sys/sweepline")), "{error}");
    assert_eq!(Store::open("/nowhere/at/all").list().unwrap(), []);
}

#[test]
fn a_record_without_a_digest_is_whole_and_gets_an_entry() {
    let (_keep, dir) = results();
    run_once(&dir, &id('a'));
    let layout = Layout::new(&dir);
    fs::remove_dir_all(layout.inventory()).unwrap();
    let path = layout.run(&id('a')).join(RUN_JSON);
    // Simulates an early record: its spec does not specify connections, so its id was computed by other
    // rules.
    let written = fs::read_to_string(&path).unwrap();
    let connections = written.lines().find(|line| line.contains("\"connections\"")).unwrap();
    fs::write(&path, written.replacen(&format!("{connections}\n"), "", 1)).unwrap();
    uncover(&path);
    let old = Store::open(&dir).list().unwrap().remove(0);
    assert_eq!((&old.state, &old.entered), (&State::Whole, &Entered::Behind));
    let writer = locked(&dir);
    let verified = writer.store().verify().unwrap();
    assert_eq!((verified.runs[0].covered, verified.runs[0].is_whole()), (Some(false), true));
    assert_eq!(verified.runs[0].entered, Entered::Same);
    // Today's rules for ids apply to the unchanged record, so its id must be that of its spec.
    fs::write(&path, written).unwrap();
    uncover(&path);
    fs::remove_dir_all(layout.inventory()).unwrap();
    let state = writer.store().list().unwrap().remove(0).state;
    assert!(
        matches!(&state, State::Corrupt(reason) if reason.contains("its id does not match its contents")),
        "{state:?}"
    );
}

#[test]
fn numbers_that_no_attempt_gets_are_not_ours() {
    let (_keep, dir) = results();
    run_once(&dir, &id('a'));
    let layout = Layout::new(&dir);
    let short = "a".repeat(16);
    for name in ["4294967295", "4294967296", "1000000000", "+7", "007", "-1"] {
        fs::create_dir(layout.attempts().join(format!("{short}.{name}"))).unwrap();
        fs::create_dir(layout.superseded().join(format!("{short}.{name}"))).unwrap();
    }
    let writer = locked(&dir);
    assert_eq!(journalled(&writer, &id('a'), 1).commit(commit(None)).unwrap().attempt, 2);
    assert_eq!(writer.store().superseded().unwrap(), [(short.clone(), 1)]);
    let last = layout.superseded().join(format!("{short}.{MOST_ATTEMPTS}"));
    fs::create_dir(&last).unwrap();
    let error = writer.begin(&id('a'), &spec()).unwrap_err();
    assert!(error.to_string().contains(&*last.to_string_lossy()), "{error}");
    // A replaced run gets the next higher number that is free.
    fs::remove_dir(&last).unwrap();
    fs::create_dir(layout.superseded_run(&id('a'), 2)).unwrap();
    let third = journalled(&writer, &id('a'), 1);
    let number = third.number();
    third.commit(commit(None)).unwrap();
    assert_eq!((number, layout.superseded_run(&id('a'), 3).join(RUN_JSON).exists()), (3, true));
}

#[test]
fn a_deleted_run_is_missed_until_it_is_forgotten_or_measured_again() {
    let (_keep, dir) = results();
    run_once(&dir, &id('a'));
    run_once(&dir, &id('c'));
    let layout = Layout::new(&dir);
    let store = Store::open(&dir);
    fs::remove_dir_all(layout.run(&id('a'))).unwrap();
    let [gone] = &store.deleted().unwrap()[..] else { panic!("expected one missing run") };
    assert!(gone.id == "a".repeat(16) && gone.said().starts_with("measured at 2"), "{gone:?}");
    assert!(matches!(store.find("aa"), Err(StoreError::Deleted { .. })));
    let writer = locked(&dir);
    assert!(matches!(writer.forget("c"), Err(StoreError::StillThere { .. })));
    assert!(matches!(writer.forget("b"), Err(StoreError::NotFound { .. })));
    assert!(matches!(writer.forget(""), Err(StoreError::Ambiguous { .. })));
    // Attempt numbers continue after that of the deleted run, so that each attempt has a distinct number.
    assert_eq!(journalled(&writer, &id('a'), 1).commit(commit(None)).unwrap().attempt, 2);
    assert_eq!(store.deleted().unwrap(), []);
    fs::remove_dir_all(layout.run(&id('a'))).unwrap();
    assert_eq!(writer.forget("AAA").unwrap().id, "a".repeat(16));
    assert_eq!((store.deleted().unwrap(), store.list().unwrap().len()), (vec![], 1));
}

#[test]
fn a_damaged_entry_is_told_and_made_anew_from_a_whole_run() {
    let (_keep, dir) = results();
    run_once(&dir, &id('a'));
    let path = Layout::new(&dir).entry(&id('a'));
    let whole = fs::read(&path).unwrap();
    flip_a_bit(&path);
    let listed = Store::open(&dir).list().unwrap().remove(0);
    assert!(matches!(&listed.entered, Entered::Damaged(_)), "{listed:?}");
    assert_eq!(listed.state, State::Whole);
    drop(locked(&dir));
    assert_eq!(fs::read(&path).unwrap(), whole);
    // An older commit put in place of the newest is undamaged, but it is not the last commit.
    run_once(&dir, &id('a'));
    let layout = Layout::new(&dir);
    fs::remove_dir_all(layout.run(&id('a'))).unwrap();
    fs::rename(layout.superseded_run(&id('a'), 1), layout.run(&id('a'))).unwrap();
    let writer = locked(&dir);
    let listed = writer.store().list().unwrap().remove(0);
    assert!(listed.state == State::Whole && matches!(&listed.entered, Entered::Other(_)), "{listed:?}");
    writer.forget("a").unwrap();
    assert_eq!(writer.store().list().unwrap()[0].entered, Entered::Same);
}

#[test]
fn a_reader_ends_with_the_commit_that_it_began_with() {
    let (_keep, dir) = results();
    let old = run_once(&dir, &id('a'));
    let store = Store::open(&dir);
    let begun = store.read(&old).unwrap();
    let writer = locked(&dir);
    let new = journalled(&writer, &id('a'), 5).commit(commit(None)).unwrap();
    let count = |read: &crate::rows::RunReader| {
        let mut rows = 0;
        read.replay(&mut |_, _| rows += 1).unwrap();
        rows
    };
    assert_eq!((count(&begun), count(&store.read(&old).unwrap()), count(&store.read(&new).unwrap())), (3, 3, 5));
    fs::remove_dir_all(Layout::new(&dir).superseded()).unwrap();
    assert!(matches!(store.read(&old), Err(StoreError::Gone { .. })));
}

/// Flips random bits in the files of `runs/` and `inventory/`, one bit at a time, and requires that each
/// change is detected.
///
/// The number of flips is sixty, unless `SWEEPLINE_FLIPS` sets another number.
#[test]
fn every_flipped_bit_is_found() {
    let flips: u64 = std::env::var("SWEEPLINE_FLIPS").map_or(60, |flips| flips.parse().unwrap());
    let (_keep, dir) = results();
    run_once(&dir, &id('a'));
    run_once(&dir, &id('c'));
    let layout = Layout::new(&dir);
    let below = |folder: std::path::PathBuf| tree(&folder).into_iter().map(move |name| folder.join(name));
    let files: Vec<_> = below(layout.runs()).chain(below(layout.inventory())).collect();
    assert_eq!(files.len(), 10);
    let store = Store::open(&dir);
    let is_good = |store: &Store| {
        let verified = store.verify().unwrap();
        let is_good = |run: &RunReport| run.is_whole() && run.entered.problem().is_none() && run.covered == Some(true);
        verified.deleted.is_empty() && verified.runs.len() == 2 && verified.runs.iter().all(is_good)
    };
    assert!(is_good(&store));
    let mut state = 0x5eed_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut missed = Vec::new();
    for _ in 0..flips {
        let file = &files[random(files.len())];
        let whole = fs::read(file).unwrap();
        let bit = random(whole.len() * 8);
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(file, flipped).unwrap();
        if is_good(&store) {
            missed.push((file.clone(), bit));
        }
        fs::write(file, whole).unwrap();
    }
    assert!(missed.is_empty() && is_good(&store), "{} of {flips} were not found: {missed:?}", missed.len());
}
