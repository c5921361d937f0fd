//! Tests `run.json` and the inventory: every changed bit is found, a missing run is noticed, and a
//! single bad run does not stop any command.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rustix::process::Signal;
use serde_json::Value;

use lab::sweeps::{files, honest, lab, names, unchanged, wait_for_attempt};
use lab::{Ended, Lab, wait_for};

/// Returns a lab with two finished runs, and their short ids.
fn two_runs() -> (Lab, [String; 2]) {
    let lab = lab();
    honest(&lab.run(&["run", "plan.yaml", "--only", "batch_size < 3"]));
    let ids: Vec<String> = names(&lab, "runs").into_iter().collect();
    let ids = ids.try_into().expect("two runs");
    (lab, ids)
}

fn run_json(lab: &Lab, id: &str) -> PathBuf {
    lab.results().join("runs").join(id).join("run.json")
}

fn entry(lab: &Lab, id: &str) -> PathBuf {
    lab.results().join("inventory").join(format!("{id}.json"))
}

/// Runs the program with a time limit.
fn bounded(lab: &Lab, args: &[&str]) -> Ended {
    let mut running = lab.start(args);
    wait_for(&format!("the end of sweepline {args:?}"), || running.has_ended().then_some(()));
    running.end()
}

/// Asserts an exit code and words on stdout or stderr.
fn says(ended: &Ended, code: i32, words: &[&str]) {
    let all = format!("{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.code, Some(code), "{all}");
    words.iter().for_each(|word| assert!(all.contains(word), "{word:?} is missing: {all}"));
}

#[test]
fn any_tool_recomputes_the_digest() {
    let (lab, ids) = two_runs();
    for file in [run_json(&lab, &ids[0]), entry(&lab, &ids[0])] {
        let shell = format!("head -c -83 {} | sha256sum | cut -c -64", file.display());
        let said = Command::new("sh").args(["-c", &shell]).output().unwrap();
        let json: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(String::from_utf8(said.stdout).unwrap().trim(), json["sha256"].as_str().unwrap());
    }
    let read = |path: &Path| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    assert_eq!(read(&entry(&lab, &ids[0]))["run_sha256"], read(&run_json(&lab, &ids[0]))["sha256"]);
}

/// Flips one bit at a time, in files drawn with equal probability, and restores the bit after the check.
/// This is done for forty bits, or for the number in `SWEEPLINE_FLIPS`.
#[test]
fn verify_finds_every_flipped_bit() {
    let flips: usize = std::env::var("SWEEPLINE_FLIPS").map_or(40, |flips| flips.parse().unwrap());
    let (lab, _) = two_runs();
    let all: Vec<PathBuf> = files(&lab, "runs").into_keys().chain(files(&lab, "inventory").into_keys()).collect();
    assert_eq!(all.len(), 2 * (4 + 1));
    lab.ok(&["verify"]);
    let mut state = 0x0dd_b175_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..flips {
        let file = &all[random(all.len())];
        let whole = std::fs::read(file).unwrap();
        let (bit, mut flipped) = (random(whole.len() * 8), whole.clone());
        flipped[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(file, &flipped).unwrap();
        let ended = lab.run(&["verify"]);
        assert_eq!(ended.code, Some(5), "bit {bit} of {}: {}{}", file.display(), ended.stdout, ended.stderr);
        std::fs::write(file, &whole).unwrap();
    }
    lab.ok(&["verify"]);
}

#[test]
fn an_edited_window_is_found_by_every_reader() {
    let (lab, [bad, good]) = two_runs();
    let path = run_json(&lab, &bad);
    let text = std::fs::read_to_string(&path).unwrap();
    let end = text.find("\"measure_end_ns\": ").unwrap() + "\"measure_end_ns\": ".len();
    let digit = if &text[end..=end] == "1" { "2" } else { "1" };
    std::fs::write(&path, format!("{}{digit}{}", &text[..end], &text[end + 1..])).unwrap();
    let words = "its SHA-256 does not match the one at its end";
    says(&lab.run(&["verify"]), 5, &[&format!("{bad} run.json: run.json is damaged: {words}")]);
    says(&lab.run(&["list"]), 0, &[words]);
    says(&lab.run(&["show", &bad]), 5, &[words, "sweepline verify"]);
    lab.ok(&["show", &good]);
    says(&lab.run(&["why", &bad]), 0, &["corrupt: run.json is damaged"]);
    says(&lab.run(&["preview", "plan.yaml", "--only", "batch_size < 3", "--all"]), 0, &["redo", words]);
    let exported = lab.run(&["export", "--format", "json"]);
    says(&exported, 0, &[words]);
    assert_eq!(exported.json().as_array().unwrap().len(), 1, "the other run remains");
    for (command, answer) in [("curves", "batch"), ("diagnose", "symptoms")] {
        says(&lab.run(&[command, "plan.yaml"]), 5, &[words, answer]);
    }
    let before = files(&lab, "runs").into_iter().filter(|(path, _)| path.to_str().unwrap().contains(&good)).collect();
    honest(&lab.run(&["run", "plan.yaml", "--only", "batch_size < 3"]));
    unchanged(&before, &files(&lab, "runs"));
    lab.ok(&["verify"]);
}

#[test]
fn records_of_earlier_programs_are_not_covered_and_get_entries() {
    let (lab, [old, new]) = two_runs();
    let run = &lab.runs()[&old];
    run.put_old_record(run.json.clone());
    std::fs::remove_file(entry(&lab, &new)).unwrap();
    says(&lab.run(&["verify"]), 0, &["2 runs", "all whole", "1 not covered"]);
    let report = lab.ok(&["verify", "--format", "json"]).json();
    lab.follows("verify", &report);
    assert_eq!(report["not_covered"], 1);
    let nothing = lab.run(&["run", "plan.yaml", "--only", "batch_size < 3"]);
    honest(&nothing);
    assert!(nothing.stderr.contains("nothing to do"), "a run without an entry is a hit: {}", nothing.stderr);
    // The next writer updates the entries.
    honest(&lab.run(&["run", "plan.yaml", "--only", "batch_size == 3"]));
    assert_eq!(names(&lab, "inventory").len(), 3);
    says(&lab.run(&["verify"]), 0, &["3 runs", "1 not covered"]);
    // A record whose entry lists a digest must have a digest.
    let path = run_json(&lab, &new);
    let text = std::fs::read_to_string(&path).unwrap();
    let (body, _) = text.rsplit_once(",\n  \"sha256\"").unwrap();
    std::fs::write(&path, format!("{body}\n}}\n")).unwrap();
    says(&lab.run(&["verify"]), 5, &[&format!("{new} run.json: "), "it has no digest, but the inventory lists one"]);
    // The record counts as damaged, not as a record from before digests were introduced.
    says(&lab.run(&["verify"]), 5, &["3 runs in results: 1 damaged; 1 not covered"]);
    assert_eq!(lab.run(&["verify", "--format", "json"]).json()["not_covered"], 1);
    says(&lab.run(&["show", &new]), 5, &["it has no digest"]);
}

#[test]
fn a_hit_gets_its_entry_where_the_folder_can_be_written() {
    let (lab, [id, other]) = two_runs();
    let whole = files(&lab, "inventory");
    let again = || {
        let nothing = lab.run(&["run", "plan.yaml", "--only", "batch_size < 3"]);
        honest(&nothing);
        assert!(nothing.stderr.contains("nothing to do"), "{}", nothing.stderr);
    };
    for id in [&id, &other] {
        std::fs::remove_file(entry(&lab, id)).unwrap();
    }
    again();
    unchanged(&whole, &files(&lab, "inventory"));
    std::fs::write(entry(&lab, &id), "{").unwrap();
    again();
    unchanged(&whole, &files(&lab, "inventory"));
    // Each entry that is set aside has a distinct name.
    for _ in 0..2 {
        let path = entry(&lab, &id);
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("something"), "").unwrap();
        again();
        lab.ok(&["verify"]);
    }
    for aside in ["not-a-file", "not-a-file-2"] {
        std::fs::remove_dir_all(lab.results().join("inventory").join(format!("{id}.json.{aside}"))).unwrap();
    }
    // Without write permission the result is the same.
    std::fs::remove_file(entry(&lab, &id)).unwrap();
    let mode = |bits: u32| {
        use std::os::unix::fs::PermissionsExt;
        for (path, write) in
            [(lab.results(), 0o111), (lab.results().join("inventory"), 0o111), (lab.results().join(".lock"), 0)]
        {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits | write)).unwrap();
        }
    };
    mode(0o444);
    again();
    mode(0o644);
    lab.write("hour.yaml", &lab::sweeps::PLAN.replace("measure: 200ms", "measure: 1h"));
    let holder = lab.start(&["run", "hour.yaml"]);
    wait_for_attempt(&lab);
    let _ = std::fs::remove_file(entry(&lab, &id));
    again();
    assert!(!entry(&lab, &id).exists(), "the folder belongs to another user");
    holder.signal(Signal::KILL);
    lab::sweeps::end(holder);
    again();
    unchanged(&whole, &files(&lab, "inventory"));
}

#[test]
fn what_is_no_inventory_stops_no_reader() {
    let (lab, [id, _]) = two_runs();
    let (inventory, aside) = (lab.results().join("inventory"), lab.path().join("aside"));
    let puts: [fn(&Path); 3] =
        [|path| std::fs::write(path, "notes").unwrap(), fifo, |path| symlink(path, path).unwrap()];
    for put in puts {
        std::fs::rename(&inventory, &aside).unwrap();
        put(&inventory);
        let words = ["results/inventory cannot be used as the inventory", "move it elsewhere"];
        says(&bounded(&lab, &["verify"]), 5, &words);
        let report = bounded(&lab, &["verify", "--format", "json"]).json();
        lab.follows("verify", &report);
        for command in [
            &["list"][..],
            &["why", &id],
            &["export"],
            &["preview", "plan.yaml"],
            &["run", "plan.yaml", "--only", "batch_size < 3"],
        ] {
            let ended = bounded(&lab, command);
            assert!(matches!(ended.code, Some(0 | 3)), "{command:?}: {}", ended.stderr);
            words.iter().for_each(|word| assert!(ended.stderr.contains(word), "{command:?}: {}", ended.stderr));
        }
        says(&bounded(&lab, &["show", &id]), 0, &[]);
        says(&bounded(&lab, &["run", "plan.yaml", "--only", "batch_size == 3"]), 5, &words);
        std::fs::remove_file(&inventory).unwrap();
        honest(&lab.run(&["run", "plan.yaml", "--only", "batch_size < 3"]));
        lab.ok(&["verify"]);
        assert_eq!(names(&lab, "inventory").len(), 2, "written again");
        std::fs::remove_dir_all(&aside).unwrap();
    }
}

#[test]
fn remedies_name_the_folder_and_do_what_they_say() {
    let (lab, [gone, kept]) = two_runs();
    std::fs::rename(lab.results(), lab.path().join("fo")).unwrap();
    let runs = lab.path().join("fo/runs");
    let copy = runs.join("0000000000000000");
    std::fs::create_dir(&copy).unwrap();
    for file in std::fs::read_dir(runs.join(&kept)).unwrap().map(Result::unwrap) {
        std::fs::copy(file.path(), copy.join(file.file_name())).unwrap();
    }
    let copied = lab.run(&["verify", "--results", "fo"]);
    says(&copied, 5, &["1 damaged", "move away", "runs/0000000000000000"]);
    assert!(!copied.stdout.contains("again, because"), "no plan contains its id: {}", copied.stdout);
    std::fs::remove_dir_all(&copy).unwrap();
    std::fs::remove_dir_all(runs.join(&gone)).unwrap();
    says(
        &lab.run(&["show", &gone, "--results", "fo"]),
        2,
        &["`sweepline run PLAN --results fo`", &format!("`sweepline verify --results fo --forget {gone}`")],
    );
    let kept = lab.run(&["verify", "--results", "fo", "--forget", &kept]);
    says(&kept, 2, &["still exists", "`sweepline list --results fo`"]);
    says(&lab.run(&["show", "0123456789", "--results", "fo"]), 2, &["`sweepline list --results fo` shows all"]);
}

#[test]
fn a_lost_name_of_the_digest_is_damage_also_without_an_entry() {
    let (lab, [bad, _]) = two_runs();
    let path = run_json(&lab, &bad);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_dir_all(lab.results().join("inventory")).unwrap();
    for (from, to) in [("\n  \"sha256\"", "\n  \"sha257\""), ("\n  \"sha256\"", "\n \"sha256\""), ("\"\n}\n", "\"\n}")]
    {
        assert!(text.contains(from));
        std::fs::write(&path, text.replace(from, to)).unwrap();
        says(&lab.run(&["verify"]), 5, &[&format!("{bad} run.json: run.json is damaged")]);
    }
}

#[test]
fn a_deleted_run_is_reported_until_it_is_measured_again_or_forgotten() {
    let (lab, [gone, kept]) = two_runs();
    std::fs::remove_dir_all(lab.results().join("runs").join(&gone)).unwrap();
    says(&lab.run(&["verify"]), 5, &[&gone, "since been deleted", "--forget"]);
    let report = lab.run(&["verify", "--format", "json"]).json();
    lab.follows("verify", &report);
    assert_eq!(report["deleted"][0]["id"], gone.as_str());
    let list = lab.ok(&["list", "--format", "json"]).json();
    lab.follows("list", &list);
    assert_eq!((list["runs"].as_array().unwrap().len(), list["deleted"].as_array().unwrap().len()), (1, 1));
    says(&lab.run(&["list"]), 0, &[&format!("deleted {gone} demo · m · short · batch"), "since been deleted"]);
    says(&lab.run(&["preview", "plan.yaml", "--all"]), 0, &["measured at 2", "since been deleted"]);
    says(&lab.run(&["why", &gone]), 0, &["deleted: measured at 2"]);
    says(&lab.run(&["why", &gone, "--plan", "plan.yaml"]), 0, &["new: measured at 2", "since been deleted"]);
    says(&lab.run(&["show", &gone]), 2, &["was measured at 2", "since been deleted"]);
    lab.ok(&["export"]);
    // The run is measured again.
    let again = lab.run(&["run", "plan.yaml", "--only", "batch_size < 3"]);
    honest(&again);
    assert!(again.stderr.contains("since been deleted"), "{}", again.stderr);
    lab.ok(&["verify"]);
    assert_eq!(lab.runs()[&gone].json["attempt"], 2, "numbers continue after deleted attempts");
    // Forgotten.
    std::fs::remove_dir_all(lab.results().join("runs").join(&gone)).unwrap();
    says(&lab.run(&["verify", "--forget", &kept]), 2, &["still exists"]);
    says(&lab.run(&["verify", "--forget", "0123456789abcdef"]), 2, &["no run in results"]);
    says(&lab.run(&["verify", "--forget", ""]), 2, &["several run ids"]);
    lab.write("hour.yaml", &lab::sweeps::PLAN.replace("measure: 200ms", "measure: 1h"));
    let holder = lab.start(&["run", "hour.yaml"]);
    wait_for_attempt(&lab);
    says(&lab.run(&["verify", "--forget", &gone]), 5, &["results is in use"]);
    holder.signal(Signal::KILL);
    lab::sweeps::end(holder);
    says(&lab.run(&["verify", "--forget", &gone[..6].to_uppercase()]), 0, &[&format!("forgot run {gone}")]);
    lab.ok(&["verify"]);
    says(&lab.run(&["list"]), 0, &[&kept]);
    assert!(lab.ok(&["list", "--format", "json"]).json()["deleted"].as_array().unwrap().is_empty());
}

#[test]
fn a_bad_entry_is_reported_and_made_anew() {
    let (lab, [id, other]) = two_runs();
    let whole = files(&lab, "inventory");
    let damages: [fn(&Path); 4] = [
        |path| std::fs::write(path, "{").unwrap(),
        |path| std::fs::write(path, std::fs::read_to_string(path).unwrap().replacen("demo", "dema", 1)).unwrap(),
        |path| {
            std::fs::remove_file(path).unwrap();
            std::fs::create_dir(path).unwrap();
        },
        |path| {
            std::fs::remove_file(path).unwrap();
            fifo(path);
        },
    ];
    for damage in damages {
        damage(&entry(&lab, &id));
        says(&bounded(&lab, &["verify"]), 5, &[&format!("{id} inventory: "), "1 with a bad entry"]);
        let report = lab.run(&["verify", "--format", "json"]).json();
        lab.follows("verify", &report);
        says(&bounded(&lab, &["show", &id]), 0, &[]);
        // The next process that takes the lock fixes it, whether or not the other run still exists.
        says(&bounded(&lab, &["verify", "--forget", &other]), 2, &["still exists"]);
        lab.ok(&["verify"]);
        unchanged(&whole, &files(&lab, "inventory"));
    }
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn what_is_no_regular_file_is_refused_in_bounded_time_and_stops_nobody_else() {
    let (lab, [bad, good]) = two_runs();
    let keep = lab.path().join("keep");
    type Put = (&'static str, fn(&Path), &'static str);
    let puts: [Put; 8] = [
        ("run.json", fifo, "it is a named pipe"),
        ("run.json", |path| std::fs::create_dir(path).unwrap(), "it is a folder"),
        ("run.json", |path| symlink(path, path).unwrap(), "it is a symbolic link to itself"),
        ("run.json", |path| symlink("/dev/zero", path).unwrap(), "it is a device"),
        ("run.json", |path| drop(UnixListener::bind(path).unwrap()), "it is a socket"),
        ("run.json", |path| std::fs::File::create(path).unwrap().set_len(4 << 30).unwrap(), "it has 4294967296 bytes"),
        ("requests.parquet", fifo, "it is a named pipe"),
        ("samples.parquet", |path| std::fs::create_dir(path).unwrap(), "it is a folder"),
    ];
    for (file, put, words) in puts {
        let path = lab.results().join("runs").join(&bad).join(file);
        std::fs::rename(&path, &keep).unwrap();
        put(&path);
        says(&bounded(&lab, &["list"]), 0, &[words, &good]);
        says(&bounded(&lab, &["verify"]), 5, &[&format!("{bad} {file}: "), words, "1 damaged"]);
        says(&bounded(&lab, &["preview", "plan.yaml", "--all"]), 0, &[words, "cached"]);
        says(&bounded(&lab, &["export"]), 0, &[&bad, words, "demo"]);
        says(&bounded(&lab, &["curves", "plan.yaml"]), 5, &[words, "batch"]);
        says(&bounded(&lab, &["show", &bad]), 5, &[words]);
        says(&bounded(&lab, &["show", &good]), 0, &[]);
        if path.is_dir() && !path.is_symlink() {
            std::fs::remove_dir(&path).unwrap();
        } else {
            std::fs::remove_file(&path).unwrap();
        }
        std::fs::rename(&keep, &path).unwrap();
    }
    lab.ok(&["verify"]);
    // The bad run is measured again; an unreadable attempt does not block any command.
    let path = run_json(&lab, &bad);
    std::fs::remove_file(&path).unwrap();
    fifo(&path);
    let attempt = lab.results().join("attempts").join(format!("{good}.7"));
    std::fs::create_dir(&attempt).unwrap();
    fifo(&attempt.join("attempt.json"));
    says(&bounded(&lab, &["list", "--attempts"]), 0, &[&format!("attempt {good}.7: not finished")]);
    honest(&bounded(&lab, &["run", "plan.yaml", "--only", "batch_size < 3"]));
    lab.ok(&["verify"]);
}

#[test]
fn a_comparison_goes_on_without_a_bad_run() {
    let lab = lab();
    let plan = lab::sweeps::PLAN
        .replace("\nsweeps:", "\ncompare: { by: endpoint, baseline: demo }\nsweeps:")
        .replace(
            "demo: { engine: mock, mock: { ttft: 2ms, itl: 1ms, slots: 4 } }",
            "demo: { engine: mock, mock: { ttft: 2ms } }, other: { engine: mock, mock: { ttft: 3ms } }",
        )
        .replace(
            "endpoint: [demo], model: [m], scenario: [short], batch_size: [1, 2, 3] }",
            "endpoint: [demo, other], model: [m], scenario: [short], batch_size: [1, 2] }",
        )
        .replace("  open:\n    matrix: { endpoint: [demo], model: [m], scenario: [short], qps: [40, 60] }\n", "");
    lab.write("plan.yaml", &plan);
    honest(&lab.run(&["run", "plan.yaml"]));
    lab.ok(&["compare", "plan.yaml", "--include-invalid"]);
    let bad = names(&lab, "runs").pop_first().unwrap();
    let file = lab.results().join("runs").join(&bad).join("requests.parquet");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    for command in [
        &["compare", "plan.yaml", "--include-invalid"][..],
        &["capacity", "plan.yaml", "--set", "slo={ ttft: { p50: 1s } }"],
    ] {
        let ended = lab.run(command);
        says(&ended, 5, &["requests.parquet is damaged", "--force"]);
        assert!(ended.stdout.contains("other"), "{command:?}: {}", ended.stdout);
    }
    says(&lab.run(&["report", "plan.yaml"]), 5, &["requests.parquet is damaged", "report.html: 3 of 4 runs"]);
    let page = std::fs::read_to_string(lab.path().join("report.html")).unwrap();
    assert!(page.contains("unreadable") && page.contains("is damaged"), "the page names it");
    let runs = lab.run(&["export", "--format", "json"]);
    says(&runs, 5, &["requests.parquet is damaged"]);
    assert_eq!(runs.json().as_array().unwrap().len(), 3);
    let requests = lab.run(&["export", "--rows", "requests", "--format", "json"]);
    says(&requests, 5, &["requests.parquet is damaged"]);
    let ids: BTreeSet<String> = requests
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["run_id"].as_str().unwrap()[..16].to_owned())
        .collect();
    assert!(ids.len() == 3 && !ids.contains(&bad), "{ids:?}");
}

/// The shortest possible run.
const TINY: &str = "
sweepline: 1
name: tiny
endpoints: { demo: { engine: mock, mock: { ttft: 1ms, itl: 1ms } } }
models: { m: { id: tiny } }
scenarios: { short: { base: B1, output_tokens: 2 } }
phases: { fill: 0s, stabilize: 0s, measure: 20ms, drain: 2s }
sweeps: { s: { matrix: { endpoint: [demo], model: [m], scenario: [short], batch_size: [4] } } }
";

/// Readers poll while a run is replaced, and none of them ever reports it as damaged. Tested with and
/// without a file system that can exchange folders.
#[test]
fn readers_beside_a_forced_run_never_call_it_damaged() {
    let times: u32 = std::env::var("SWEEPLINE_REPLACEMENTS").map_or(8, |times| times.parse().unwrap());
    let lab = Lab::new();
    lab.write("plan.yaml", TINY);
    honest(&lab.run(&["run", "plan.yaml"]));
    let id = names(&lab, "runs").pop_first().unwrap();
    let (done, looks) = (AtomicBool::new(false), AtomicU32::new(0));
    let readers: [&[&str]; 4] = [&["list"], &["show", &id], &["verify"], &["export", "--rows", "requests"]];
    std::thread::scope(|scope| {
        for args in readers {
            let (lab, done, looks, id) = (&lab, &done, &looks, &id);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let ended = lab.run(args);
                    let all = format!("{}{}", ended.stdout, ended.stderr);
                    let is_good = match args[0] {
                        "list" => all.lines().any(|line| line.contains(id) && line.ends_with("whole")),
                        "verify" => all.contains("1 run in results: all whole\n"),
                        _ => ended.stderr.is_empty(),
                    };
                    if ended.code != Some(0) || !is_good {
                        done.store(true, Ordering::Relaxed);
                        panic!("{args:?}: {:?} {all}", ended.code);
                    }
                    looks.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for time in 0..times {
            if done.load(Ordering::Relaxed) {
                break;
            }
            let mut command = lab.command(&["run", "plan.yaml", "--force", "-q"]);
            if time % 2 == 1 {
                // The failpoint is never reached that often; it only selects the code path that contains
                // it.
                command.env("SWEEPLINE_FAILPOINT", "between_supersede_and_rename:99");
            }
            let ended = Ended::from(command.output().unwrap());
            if !matches!(ended.code, Some(0 | 3)) {
                done.store(true, Ordering::Relaxed);
            }
            honest(&ended);
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(names(&lab, "superseded").len(), times as usize);
    eprintln!("{} reads during {times} replacements", looks.load(Ordering::Relaxed));
    lab.ok(&["verify"]);
}

#[test]
fn folders_with_the_last_numbers_are_not_ours() {
    let (lab, [id, _]) = two_runs();
    for folder in ["attempts", "superseded"] {
        std::fs::create_dir(lab.results().join(folder).join(format!("{id}.4294967295"))).unwrap();
    }
    honest(&lab.run(&["run", "plan.yaml", "--force", "--only", &format!("id[:16] == '{id}'")]));
    assert_eq!(lab.runs()[&id].json["attempt"], 2);
    std::fs::create_dir(lab.results().join("attempts").join(format!("{id}.999999999"))).unwrap();
    let last = lab.run(&["run", "plan.yaml", "--force", "--only", &format!("id[:16] == '{id}'")]);
    says(&last, 5, &[&format!("attempts/{id}.999999999 has the highest possible attempt number"), "move it"]);
    lab.ok(&["verify"]);
}
