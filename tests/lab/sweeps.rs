//! Code that is shared by the tests of the results folder: a sweep of five short runs, and readers of the
//! files on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Pid;
use serde_json::Value;

use super::{Ended, Lab, Running, wait_for};

/// A plan with five runs on an embedded mock, each of which takes a quarter of a second.
pub const PLAN: &str = "
sweepline: 1
name: short
seed: 5
endpoints: { demo: { engine: mock, mock: { ttft: 2ms, itl: 1ms, slots: 4 } } }
models: { m: { id: tiny } }
scenarios: { short: { base: B1, output_tokens: 6 } }
phases: { fill: 20ms, stabilize: 20ms, measure: 200ms, drain: 5s }
sweeps:
  closed:
    matrix: { endpoint: [demo], model: [m], scenario: [short], batch_size: [1, 2, 3] }
  open:
    matrix: { endpoint: [demo], model: [m], scenario: [short], qps: [40, 60] }
";

/// Returns a lab with that plan as `plan.yaml`.
pub fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("plan.yaml", PLAN);
    lab
}

/// Returns the folders that a plan's runs will have, from its preview.
pub fn planned(lab: &Lab, plan: &str) -> BTreeSet<String> {
    let preview = lab.ok(&["preview", plan, "--format", "json"]).json();
    let runs = preview["runs"].as_array().unwrap().iter().filter(|run| run["state"] != "orphan");
    runs.map(|run| run["id"].as_str().unwrap()[..16].to_owned()).collect()
}

/// Returns the names in a subfolder of the results; empty if the folder does not exist.
pub fn names(lab: &Lab, folder: &str) -> BTreeSet<String> {
    let Ok(entries) = std::fs::read_dir(lab.results().join(folder)) else { return BTreeSet::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Returns every file under a subfolder of the results with its bytes.
pub fn files(lab: &Lab, folder: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    collect(&lab.results().join(folder), &mut found);
    found
}

fn collect(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
}

/// Runs the plan until it ends. Asserts that no byte of the committed runs' files (`before`) has changed,
/// and that every run of the plan exists and is complete. Exit codes other than 0 are accepted only if the
/// machine spoiled figures.
pub fn goes_on(lab: &Lab, before: &BTreeMap<PathBuf, Vec<u8>>) -> Ended {
    let ended = lab.run(&["run", "plan.yaml"]);
    honest(&ended);
    unchanged(before, &files(lab, "runs"));
    assert_eq!(names(lab, "runs"), planned(lab, "plan.yaml"), "{}", ended.stderr);
    lab.ok(&["verify"]);
    ended
}

/// Asserts that every run of a sweep was committed. Verdicts depend on the shared machine and are not
/// checked.
pub fn honest(ended: &Ended) {
    let whole = !ended.stderr.contains("the same command continues with the missing runs");
    assert!(matches!(ended.code, Some(0 | 3)) && whole, "{:?}\n{}{}", ended.code, ended.stdout, ended.stderr);
}

/// Asserts that `after` contains every file of `before` with the same bytes.
pub fn unchanged(before: &BTreeMap<PathBuf, Vec<u8>>, after: &BTreeMap<PathBuf, Vec<u8>>) {
    for (path, bytes) in before {
        assert!(after.get(path) == Some(bytes), "{} has changed", path.display());
    }
}

/// A process, identified by its id and start time, because ids are reused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    id: u32,
    started: String,
}

/// Returns the fields of a process after its name: state, parent, …; `None` if there is no such process.
fn stat(id: u32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    Some(stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}

/// Returns the children of a process, except those that have not started their program yet, because it may not
/// exist (`nvidia-smi`).
pub fn children(parent: u32) -> BTreeSet<Process> {
    let command = |id: u32| std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    let of_parent = command(parent);
    let ids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let child = |id: u32| {
        let stat = stat(id)?;
        let own = command(id);
        // A child that could not start its program has none when it ends.
        let has_program = !own.is_empty() && own != of_parent;
        (has_program && stat[1] == parent.to_string()).then(|| Process { id, started: stat[19].clone() })
    };
    ids.filter_map(child).collect()
}

/// Waits until these processes have ended; a zombie also counts as ended.
pub fn wait_until_gone(processes: &BTreeSet<Process>) {
    for process in processes {
        wait_for(&format!("the end of {process:?}"), || {
            let alive = stat(process.id).is_some_and(|stat| stat[19] == process.started && stat[0] != "Z");
            (!alive).then_some(())
        });
    }
}

/// Waits for the end of a program, and returns the children that were observed.
pub fn end(mut running: Running) -> (Ended, BTreeSet<Process>) {
    let mut seen = BTreeSet::new();
    wait_for("the program's end", || {
        seen.extend(children(running.id()));
        // Scanning all processes is expensive.
        std::thread::sleep(Duration::from_millis(10));
        running.has_ended().then_some(())
    });
    (running.end(), seen)
}

/// Waits until an attempt has started, and returns the name of its folder.
pub fn wait_for_attempt(lab: &Lab) -> String {
    let begun = |name: &String| lab.results().join("attempts").join(name).join("journal.arrow").exists();
    wait_for("an attempt", || names(lab, "attempts").into_iter().find(begun))
}

/// A program whose output can be read while it runs; it is killed on drop.
pub struct Talking {
    child: Child,
    stderr: PathBuf,
}

impl Talking {
    pub fn start(command: &mut Command, stderr: PathBuf) -> Talking {
        let file = std::fs::File::create(&stderr).unwrap();
        Talking { child: command.stdout(Stdio::null()).stderr(file).spawn().unwrap(), stderr }
    }

    /// Waits until the program has printed this text.
    pub fn wait_to_say(&self, text: &str) {
        wait_for(text, || std::fs::read_to_string(&self.stderr).unwrap().contains(text).then_some(()));
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until the program ends and returns its exit code.
    pub fn end(mut self) -> Option<i32> {
        wait_for("the program's end", || self.child.try_wait().unwrap()).code()
    }
}

impl Drop for Talking {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the child of process `parent` whose command line contains `argument`.
pub fn child_with(parent: u32, argument: &str) -> Option<Pid> {
    let of = |entry: std::fs::DirEntry| -> Option<Pid> {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let its_parent: u32 = stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()?;
        let command = std::fs::read(entry.path().join("cmdline")).ok()?;
        let has = command.split(|byte| *byte == 0).any(|part| part == argument.as_bytes());
        (its_parent == parent && has).then(|| Pid::from_raw(pid)).flatten()
    };
    std::fs::read_dir("/proc").ok()?.filter_map(Result::ok).find_map(of)
}

/// Runs the plan with its endpoints in parallel, and returns `show` of every run.
pub fn shown(lab: &Lab, plan: &str, jobs: &str) -> Vec<Value> {
    lab.write("plan.yaml", plan);
    honest(&lab.run(&["run", "plan.yaml", "-q", "--jobs", jobs]));
    let show = |id: &String| lab.ok(&["show", id, "--plan", "plan.yaml", "--format", "json"]).json();
    lab.runs().keys().map(show).collect()
}
