//! Tests a results folder that is full, read-only, damaged or in use: commands exit with code 5 and name
//! the file or folder, and nothing is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::Errno;
use rustix::process::Signal;
use serde_json::Value;

use lab::sweeps::{files, goes_on, honest, lab, names, planned, unchanged, wait_for_attempt};
use lab::{Ended, Lab};

/// Asserts exit code 5 and each of `words` in the message.
fn refused(ended: &Ended, words: &[&str]) {
    assert_eq!(ended.code, Some(5), "{}{}", ended.stdout, ended.stderr);
    for word in words {
        assert!(ended.stderr.contains(word), "{word:?} is missing: {}", ended.stderr);
    }
}

/// Returns the path in an error: the word that starts with `start`.
fn named(ended: &Ended, start: &str) -> PathBuf {
    let error = ended.stderr.lines().find(|line| line.starts_with("error: ")).expect("the error is reported");
    let word = error.split(' ').find(|word| word.starts_with(start));
    PathBuf::from(word.unwrap_or_else(|| panic!("no path in {error:?}")).trim_end_matches([':', ',']))
}

#[test]
fn a_limit_on_file_sizes_names_the_file_and_the_sweep_goes_on_without_it() {
    let lab = lab();
    let mut stopped_at = BTreeSet::new();
    for blocks in (0..20).map(|power| 1 << power) {
        let mut command = Command::new("sh");
        let limited = format!("ulimit -f {blocks} && exec \"$0\" run plan.yaml");
        command.args(["-c", &limited]).arg(lab::program()).current_dir(lab.path()).env("NO_COLOR", "1");
        let before = files(&lab, "runs");
        let ended = Ended::from(command.output().unwrap());
        unchanged(&before, &files(&lab, "runs"));
        if ended.code != Some(5) {
            honest(&ended);
            break;
        }
        refused(&ended, &["no room to write", "limit"]);
        assert!(!ended.stderr.contains("failed: the writer"), "{}", ended.stderr);
        let file = named(&ended, "results/");
        assert!(lab.path().join(&file).parent().unwrap().is_dir(), "{} is not a possible path", file.display());
        stopped_at.insert(file.file_name().unwrap().to_str().unwrap().to_owned());
        lab.ok(&["verify"]);
    }
    let expected = ["attempt.json", "journal.arrow"];
    assert!(expected.iter().all(|file| stopped_at.contains(*file)), "{stopped_at:?}");
    let list = lab.ok(&["list", "--attempts", "--format", "json"]).json();
    let told = list["attempts"].as_array().unwrap().iter();
    assert!(told.clone().any(|attempt| attempt["reason"].as_str().unwrap().contains("no room to write")), "{list}");
    goes_on(&lab, &files(&lab, "runs"));
}

/// A file system that is mounted at a folder, and unmounted on drop.
struct Mounted(PathBuf);

impl Mounted {
    /// Mounts a tmpfs at the folder; `None` if mounting is not permitted.
    fn tmpfs(folder: &Path, size: &str) -> Option<Mounted> {
        std::fs::create_dir_all(folder).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(folder);
        let ended = mount.output().ok()?;
        if !ended.status.success() {
            eprintln!("skipped: tmpfs cannot be mounted: {}", String::from_utf8_lossy(&ended.stderr));
            return None;
        }
        Some(Mounted(folder.to_owned()))
    }

    fn grow(&self, size: &str) {
        let mut mount = Command::new("mount");
        let status = mount.args(["-o", &format!("remount,size={size}")]).arg(&self.0).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_loses_nothing_and_the_sweep_goes_on_when_there_is_space() {
    let lab = lab();
    let Some(disk) = Mounted::tmpfs(&lab.results(), "4k") else { return };
    let mut committed = 0;
    let mut kilobytes = 4;
    let mut refusals = 0;
    loop {
        let before = files(&lab, "runs");
        let ended = lab.run(&["run", "plan.yaml"]);
        unchanged(&before, &files(&lab, "runs"));
        let runs = names(&lab, "runs").len();
        assert!(runs >= committed);
        committed = runs;
        if ended.code != Some(5) {
            honest(&ended);
            break;
        }
        refused(&ended, &["no room to write", "free space"]);
        assert!(named(&ended, "results").starts_with("results"), "{}", ended.stderr);
        lab.ok(&["verify"]);
        refusals += 1;
        // The size grows in small steps, so that the disk fills up at many different points, but each step
        // is larger than an abandoned attempt.
        kilobytes += 12 + kilobytes / 4;
        assert!(kilobytes < 32 * 1024, "the sweep fits on no disk: {}", ended.stderr);
        disk.grow(&format!("{kilobytes}k"));
    }
    assert!(refusals >= 5, "the disk was full only {refusals} times");
    goes_on(&lab, &files(&lab, "runs"));
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns a lab that other users may enter.
fn lab_for_all() -> Lab {
    let lab = lab();
    set_mode(lab.path(), 0o755);
    lab
}

/// Runs the program as a user to whom file modes apply. `None`, with a message, if root cannot switch
/// users.
fn unprivileged(lab: &Lab, args: &[&str]) -> Option<Ended> {
    const NOBODY: u32 = 65534;
    let mut command = lab.command(args);
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    match command.output() {
        Ok(output) => Some(Ended::from(output)),
        Err(error) => {
            eprintln!("skipped: the program cannot be started as user {NOBODY}: {error}");
            None
        }
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_named_and_still_read() {
    let lab = lab_for_all();
    honest(&lab.run(&["run", "plan.yaml", "--only", "batch_size == 1"]));
    let before = files(&lab, "runs");
    let folders = ["", "runs", "attempts", "superseded"].map(|name| lab.results().join(name));
    folders.iter().for_each(|folder| set_mode(folder, 0o555));

    let Some(ended) = unprivileged(&lab, &["run", "plan.yaml"]) else { return };
    refused(&ended, &["cannot write results", "--results DIR"]);
    let nothing_to_do = unprivileged(&lab, &["run", "plan.yaml", "--only", "batch_size == 1"]).unwrap();
    honest(&nothing_to_do);
    for reader in [["list"].as_slice(), &["verify"], &["export"], &["show", &names(&lab, "runs").pop_first().unwrap()]]
    {
        let ended = unprivileged(&lab, reader).unwrap();
        assert_eq!(ended.code, Some(0), "{reader:?}: {}", ended.stderr);
    }
    // The lab's own folder belongs to another user, or to the user of a test without root.
    set_mode(lab.path(), 0o555);
    refused(&unprivileged(&lab, &["run", "plan.yaml", "--results", "new"]).unwrap(), &["cannot write new"]);
    set_mode(lab.path(), 0o755);
    refused(&unprivileged(&lab, &["export", "--format", "parquet"]).unwrap(), &["cannot write results/runs.parquet"]);

    set_mode(&lab.results().join("runs"), 0o000);
    for reader in [["list"].as_slice(), &["verify"], &["run", "plan.yaml"]] {
        refused(&unprivileged(&lab, reader).unwrap(), &["cannot read results/runs"]);
    }
    folders.iter().for_each(|folder| set_mode(folder, 0o755));
    goes_on(&lab, &before);
}

#[test]
fn a_run_that_may_not_be_read_is_named_and_left_alone() {
    let lab = lab_for_all();
    honest(&lab.run(&["run", "plan.yaml", "--only", "batch_size < 3"]));
    let ids: Vec<String> = names(&lab, "runs").into_iter().collect();
    let closed = lab.results().join("runs").join(&ids[0]).join("run.json");
    set_mode(&closed, 0o000);
    let words = format!("cannot read results/runs/{}/run.json", ids[0]);
    let as_nobody = |args: &[&str]| unprivileged(&lab, args);
    let Some(list) = as_nobody(&["list"]) else { return };
    assert!(list.code == Some(0) && list.stdout.contains("unreadable: ") && list.stdout.contains(&ids[1]), "{list:?}");
    let preview = as_nobody(&["preview", "plan.yaml", "--all"]).unwrap();
    assert!(preview.code == Some(0) && preview.stdout.contains("pruned"), "{preview:?}");
    for reader in [["export"].as_slice(), &["curves", "plan.yaml"], &["run", "plan.yaml", "--only", "batch_size < 3"]] {
        let ended = as_nobody(reader).unwrap();
        refused(&ended, &[&words]);
        assert!(ended.stdout.contains("demo"), "{reader:?} continues with the other run: {}", ended.stdout);
    }
    let verify = as_nobody(&["verify"]).unwrap();
    assert!(verify.code == Some(5) && verify.stdout.contains(&words), "{verify:?}");
    refused(&as_nobody(&["show", &ids[0]]).unwrap(), &[&words]);
    assert_eq!(as_nobody(&["show", &ids[1]]).unwrap().code, Some(0));
    set_mode(&closed, 0o644);
    goes_on(&lab, &files(&lab, "runs"));
    assert!(names(&lab, "superseded").is_empty(), "nothing was measured twice");
}

#[test]
fn results_under_a_file_are_refused_by_name() {
    let lab = lab();
    lab.write("notes.txt", "not a folder");
    for folder in ["notes.txt", "notes.txt/results"] {
        refused(&lab.run(&["run", "plan.yaml", "--results", folder]), &[&format!(" {folder}")]);
    }
    assert_eq!(std::fs::read_to_string(lab.path().join("notes.txt")).unwrap(), "not a folder");
}

/// A way to damage a file, with the file's name in the program's messages.
type Damage = (&'static str, fn(&Path), &'static str);

const DAMAGES: [Damage; 4] = [
    ("run.json", |path| std::fs::write(path, "{\"format\": 1, ").unwrap(), "run.json is damaged"),
    ("requests.parquet", |path| resize(path, -300), "requests.parquet has"),
    ("events.parquet", |path| resize(path, 7), "events.parquet has"),
    ("samples.parquet", |path| std::fs::remove_file(path).unwrap(), "samples.parquet is missing"),
];

fn resize(path: &Path, by: i64) {
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(length.checked_add_signed(by).unwrap()).unwrap();
}

/// Returns the files with problems that `verify` lists, by run.
fn problems(report: &Value) -> BTreeMap<String, Vec<(String, String)>> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let runs = report["runs"].as_array().unwrap().iter();
    let files = |run: &Value| {
        let bad = run["files"].as_array().unwrap().iter().filter(|file| !file["problem"].is_null());
        bad.map(|file| (text(&file["name"]), text(&file["problem"]))).collect::<Vec<_>>()
    };
    runs.filter(|run| run["whole"] == false).map(|run| (text(&run["id"]), files(run))).collect()
}

#[test]
fn damage_is_named_and_exactly_the_damaged_runs_are_done_again() {
    let lab = lab();
    goes_on(&lab, &files(&lab, "runs"));
    let ids: Vec<String> = names(&lab, "runs").into_iter().collect();
    let (whole, damaged) = ids.split_last().unwrap();
    for (id, (file, damage, _)) in damaged.iter().zip(DAMAGES) {
        damage(&lab.results().join("runs").join(id).join(file));
    }
    let untouched: BTreeMap<_, _> =
        files(&lab, "runs").into_iter().filter(|(path, _)| path.to_str().unwrap().contains(whole)).collect();
    assert_eq!(untouched.len(), 4);

    let verified = lab.run(&["verify", "--format", "json"]);
    assert_eq!(verified.code, Some(5));
    let problems = problems(&verified.json());
    assert_eq!(problems.keys().cloned().collect::<Vec<_>>(), damaged);
    let text = lab.run(&["verify"]).stdout;
    let preview = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
    let list = lab.ok(&["list"]).stdout;
    for (id, (file, _, words)) in damaged.iter().zip(DAMAGES) {
        let (name, problem) = &problems[id][0];
        assert!(name == file && problem.starts_with(words), "{name}: {problem}");
        assert!(text.contains(&format!("{id} {file}: {words}")), "{text}");
        let planned = preview["runs"].as_array().unwrap().iter();
        let run = planned.clone().find(|run| run["id"].as_str().unwrap().starts_with(id)).unwrap();
        assert_eq!(run["state"], "redo");
        assert!(run["reason"].as_str().unwrap().starts_with(&format!("corrupt: {words}")), "{run}");
        assert!(list.lines().any(|line| line.trim_start().starts_with(id) && line.contains(words)), "{list}");
    }

    let ended = goes_on(&lab, &untouched);
    assert!(ended.stderr.contains("4 runs to do (1 are already done)"), "{}", ended.stderr);
    for (id, (_, _, words)) in damaged.iter().zip(DAMAGES) {
        assert!(ended.stderr.contains(&format!("({id}): corrupt: {words}")), "{}", ended.stderr);
        let run = &lab.runs()[id];
        assert!(run.json["replaced"]["reason"].as_str().unwrap().starts_with(&format!("corrupt: {words}")));
    }
    assert_eq!(names(&lab, "superseded").len(), 4, "their remains are kept");
}

#[test]
fn a_changed_byte_is_found_and_never_read_as_a_figure() {
    let lab = lab();
    honest(&lab.run(&["run", "plan.yaml", "--only", "batch_size == 1"]));
    let id = names(&lab, "runs").pop_first().unwrap();
    let path = lab.results().join("runs").join(&id).join("requests.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&path, bytes).unwrap();

    let verified = lab.run(&["verify"]);
    assert_eq!(verified.code, Some(5));
    assert!(verified.stdout.contains(&format!("{id} requests.parquet: ")), "{}", verified.stdout);
    for reader in [["export"].as_slice(), &["export", "plan.yaml"], &["show", &id], &["export", "--rows", "requests"]] {
        refused(&lab.run(reader), &["requests.parquet is damaged", "--force"]);
    }
    // A sweep checks only sizes, but must not show figures from such a file either.
    refused(&lab.run(&["run", "plan.yaml", "--only", "batch_size == 1"]), &["requests.parquet is damaged", "--force"]);
    // The remedy that `verify` suggests works.
    let advice = verified.stdout.lines().find(|line| line.contains("--force")).expect("advice");
    let only = advice.split('"').nth(1).expect("an expression in quotes");
    honest(&lab.run(&["run", "plan.yaml", "--force", "--only", only]));
    lab.ok(&["verify"]);
    assert_eq!(names(&lab, "runs").len(), 1);
}

#[test]
fn a_run_that_cannot_be_read_is_not_left_out_silently() {
    let lab = lab();
    honest(&lab.run(&["run", "plan.yaml", "--only", "batch_size < 3"]));
    let ids: Vec<String> = names(&lab, "runs").into_iter().collect();
    std::fs::write(lab.results().join("runs").join(&ids[0]).join("run.json"), "").unwrap();
    refused(&lab.run(&["show", &ids[0]]), &["run.json is damaged", "sweepline verify"]);
    for export in
        [["export"].as_slice(), &["export", "plan.yaml"], &["export", "--format", "parquet", "-o", "x.parquet"]]
    {
        let ended = lab.run(export);
        assert_eq!(ended.code, Some(0), "{export:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(&ids[0]) && ended.stderr.contains("verify"), "{export:?}: {}", ended.stderr);
        assert!(!ended.stdout.contains(&ids[0]));
    }
    lab.ok(&["show", &ids[1]]);
}

#[test]
fn one_writer_at_a_time_and_readers_as_they_like() {
    let lab = lab();
    honest(&lab.run(&["run", "plan.yaml", "--only", "batch_size < 3"]));
    let before = files(&lab, "runs");
    let id = names(&lab, "runs").pop_first().unwrap();
    lab.write("hour.yaml", &lab::sweeps::PLAN.replace("measure: 200ms", "measure: 1h"));
    let holder = lab.start(&["run", "hour.yaml"]);
    wait_for_attempt(&lab);

    let second = lab.run(&["run", "plan.yaml"]);
    refused(&second, &["results is in use", &format!("(pid {})", holder.id())]);
    for reader in [["list"].as_slice(), &["export"], &["show", &id], &["verify"], &["preview", "plan.yaml"]] {
        lab.ok(reader);
    }
    lab.ok(&["export", "--format", "parquet"]);
    // Commands that do not write need no lock.
    let idle = lab.run(&["run", "plan.yaml", "--only", "batch_size < 3"]);
    honest(&idle);
    assert!(idle.stderr.contains("nothing to do"), "{}", idle.stderr);
    unchanged(&before, &files(&lab, "runs"));

    holder.signal(Signal::KILL);
    lab::sweeps::end(holder);
    let ended = goes_on(&lab, &before);
    assert!(ended.stderr.contains("3 runs to do (2 are already done)"), "{}", ended.stderr);
    assert_eq!(planned(&lab, "hour.yaml").intersection(&names(&lab, "runs")).count(), 0);
}

#[test]
fn a_folder_that_cannot_be_synced_is_no_loss_but_an_error_of_the_disk_is() {
    let ends = |errno: i32| {
        let lab = lab();
        let mut command = lab.command(&["run", "plan.yaml"]);
        let ended = Ended::from(command.env("SWEEPLINE_ERRNO", format!("fsync_dir:{errno}")).output().unwrap());
        (lab, ended)
    };
    let [interrupted, invalid, unsupported] = [Errno::INTR, Errno::INVAL, Errno::NOTSUP].map(Errno::raw_os_error);
    for errno in [interrupted, invalid, unsupported] {
        let (lab, ended) = ends(errno);
        honest(&ended);
        assert_eq!(names(&lab, "runs"), planned(&lab, "plan.yaml"), "{errno}: {}", ended.stderr);
        lab.ok(&["verify"]);
    }
    for errno in [Errno::IO, Errno::DQUOT].map(Errno::raw_os_error) {
        let (lab, ended) = ends(errno);
        refused(&ended, &["results"]);
        assert_eq!(names(&lab, "runs"), BTreeSet::new(), "{errno}: nothing counts as committed");
    }
}
