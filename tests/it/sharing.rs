//! Tests `push` and `pull`: results of a colleague are used, each run keeps one result, and
//! failures do not lose anything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use lab::pages::{Figures, block, missing};
use lab::s3::{Fault, S3};
use lab::sweeps::{files, honest, lab, names, planned};
use lab::{Ended, Lab, Running};

/// Location of the results on the test server.
const URL: &str = "s3://bench/chat";

/// Runs the program against the server.
fn at(s3: &S3, lab: &Lab, args: &[&str]) -> Ended {
    let mut command = lab.command(args);
    s3.reached_by(&mut command, &lab.path().join("cache"));
    Ended::from(command.output().unwrap())
}

fn ok(s3: &S3, lab: &Lab, args: &[&str]) -> Ended {
    let ended = at(s3, lab, args);
    assert_eq!(ended.code, Some(0), "sweepline {args:?}\n{}{}", ended.stdout, ended.stderr);
    ended
}

/// Returns a lab with a measured plan of five runs.
fn measured() -> Lab {
    let lab = lab();
    honest(&lab.run(&["run", "plan.yaml"]));
    lab
}

/// Returns the number of runs for each kind of result.
fn outcomes(document: &Value) -> [usize; 3] {
    let runs = document["runs"].as_array().unwrap();
    ["committed", "unchanged", "other_result"]
        .map(|outcome| runs.iter().filter(|run| run["outcome"] == outcome).count())
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (from, name) = (entry.as_ref().unwrap().path(), entry.unwrap().file_name());
        if from.is_dir() { copy(&from, &to.join(name)) } else { std::fs::copy(&from, to.join(name)).map(drop).unwrap() }
    }
}

/// Changes the end of the run in `dir`, as if it had been measured at another time, with a valid digest.
fn measured_again(dir: &Path, number: usize) {
    let path = dir.join("run.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let (body, _) = text.split_at(text.len() - 83);
    let at = body.find("\"ended\": \"").unwrap() + "\"ended\": \"".len();
    let fraction = at + "2026-01-01T00:00:00.".len();
    let body = format!("{}{number:09}{}", &body[..fraction], &body[fraction + 9..]);
    let digest: String = Sha256::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect();
    std::fs::write(&path, format!("{body},\n  \"sha256\": \"{digest}\"\n}}\n")).unwrap();
}

#[test]
fn what_a_colleague_pushed_is_a_hit_and_the_first_result_stays() {
    let (first, second, other) = (measured(), lab(), measured());
    let shared = Lab::new();
    let url = format!("file://{}/team", shared.path().display());
    let pushed = first.ok(&["push", &url, "--format", "json"]).json();
    first.follows("transfer", &pushed);
    assert_eq!(outcomes(&pushed), [5, 0, 0]);
    let again = first.ok(&["push", &url]).stdout;
    assert_eq!(again, format!("pushed 0 runs to {url}, 0 B; 5 already there\n"));
    // Another measurement of the same runs is kept, and does not replace them.
    let late = other.ok(&["push", &url, "--format", "json"]).json();
    assert_eq!(outcomes(&late), [0, 0, 5]);
    assert_eq!(std::fs::read_dir(shared.path().join("team/attempts")).unwrap().count(), 5);
    assert_eq!(outcomes(&other.ok(&["pull", &url, "--format", "json"]).json()), [0, 0, 5]);
    // With a plan, only the plan's runs are transferred; changes to the plan work as in every
    // command.
    let some = |count: usize, args: &[&str]| {
        let document =
            self::lab().ok(&[&["pull", &url, "--plan", "plan.yaml", "--format", "json"], args].concat()).json();
        assert_eq!(outcomes(&document), [count, 0, 0], "{args:?}");
    };
    some(5, &["--results", "elsewhere"]);
    some(4, &["--set", "sweeps.open.matrix.qps=[40]", "--allow-outside"]);
    let of_plan = ["push", &url, "--plan", "plan.yaml", "--set", "sweeps.open.matrix.qps=[40]", "--allow-outside"];
    let four = first.ok(&of_plan).stdout;
    assert_eq!(four, format!("pushed 0 runs to {url}, 0 B; 4 already there\n"));
    assert_eq!(outcomes(&second.ok(&["pull", &url, "--format", "json"]).json()), [5, 0, 0]);
    let all = |lab: &Lab| -> Vec<Vec<u8>> { files(lab, "runs").into_values().collect() };
    assert_eq!(all(&first), all(&second), "byte for byte");
    let run = second.run(&["run", "plan.yaml"]);
    assert!(run.stderr.contains("nothing to do"), "{}", run.stderr);
    honest(&run);
    second.ok(&["verify"]);
}

#[test]
fn of_32_writers_of_one_run_one_wins_and_31_are_kept_as_attempts() {
    let lab = lab();
    lab.write(
        "one.yaml",
        &lab::sweeps::PLAN.replace("batch_size: [1, 2, 3]", "batch_size: [1]").replace("qps: [40, 60]", "qps: [40]"),
    );
    honest(&lab.run(&["run", "one.yaml", "--only", "sweep == 'closed'"]));
    let id = names(&lab, "runs").into_iter().next().unwrap();
    let folders: Vec<PathBuf> = (0..32).map(|number| lab.path().join(format!("results-{number}"))).collect();
    for (number, folder) in folders.iter().enumerate() {
        copy(&lab.results(), folder);
        std::fs::remove_dir_all(folder.join("inventory")).unwrap();
        measured_again(&folder.join("runs").join(&id), number);
    }
    let s3 = S3::start(true);
    for url in [format!("file://{}/team", lab.path().display()), URL.to_owned()] {
        let start = |folder: &PathBuf| {
            let mut command = lab.command(&["push", &url, "--results", folder.to_str().unwrap(), "--format", "json"]);
            s3.reached_by(&mut command, &lab.path().join("cache"));
            Running::start(&mut command)
        };
        let writers: Vec<Running> = folders.iter().map(start).collect();
        let ended: Vec<Value> = writers.into_iter().map(|writer| writer.end().json()).collect();
        let count = |at: usize| ended.iter().map(|document| outcomes(document)[at]).sum::<usize>();
        assert_eq!([count(0), count(1), count(2)], [1, 0, 31], "{url}");
        let winner = ended.iter().position(|document| outcomes(document)[0] == 1).unwrap();
        let mine = std::fs::read(folders[winner].join("runs").join(&id).join("run.json")).unwrap();
        let (stands, attempts) = match url.strip_prefix("file://") {
            Some(folder) => (
                std::fs::read(format!("{folder}/runs/{id}.json")).unwrap(),
                std::fs::read_dir(format!("{folder}/attempts")).unwrap().count(),
            ),
            None => (s3.get(&format!("chat/runs/{id}.json")), s3.keys("chat/attempts/").len()),
        };
        assert!(stands == mine, "{url}: the winner's result is stored");
        assert_eq!(attempts, 31, "{url}");
    }
}

#[test]
fn a_store_that_lets_every_writer_win_is_refused_by_name() {
    let (lab, s3) = (measured(), S3::start(false));
    for args in [&["push", URL][..], &["run", "plan.yaml", "--results", URL]] {
        let refused = at(&s3, &lab, args);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        let refusal = block("docs/SHARING.md", "error: s3://bench/x ignores ");
        let lines = missing(&refusal, &refused.stderr.replace(URL, "s3://bench/x"), Figures::Vary);
        assert!(lines.is_empty(), "{}: {lines:#?}", refused.stderr);
    }
    assert!(s3.keys("chat/runs/").is_empty(), "no request was sent");
}

#[test]
fn addresses_that_are_none_and_those_with_secrets_are_refused() {
    let lab = measured();
    for (url, words) in [
        ("ftp://host/x", "is not an address of object storage"),
        ("s3://key:hunter2@bench/x", "s3://…"),
        ("s3://bench/x?token=hunter2", "s3://…"),
        ("bench", "is not an address of object storage"),
    ] {
        for args in [&["push", url][..], &["pull", url]] {
            let ended = lab.run(args);
            assert_eq!(ended.code, Some(2), "{url}: {}", ended.stderr);
            assert!(ended.stderr.contains(words) && !ended.stderr.contains("hunter2"), "{url}: {}", ended.stderr);
        }
    }
    let both = lab.run(&["push", "file:///tmp/x", "--results", "s3://bench/x"]);
    assert!(both.code == Some(2) && both.stderr.contains("shared"), "{}", both.stderr);
}

#[test]
fn a_throttled_store_is_asked_again_and_an_expired_credential_says_what_to_renew() {
    let (lab, s3) = (measured(), S3::start(true));
    s3.set(Fault::SlowDown(4));
    assert_eq!(outcomes(&ok(&s3, &lab, &["push", URL, "--format", "json"]).json()), [5, 0, 0]);
    assert_eq!(s3.fault(), Fault::None, "it was retried until it got a response");
    s3.set(Fault::Expired);
    for args in [&["push", URL][..], &["pull", URL], &["list", "--results", URL]] {
        let refused = at(&s3, &lab, args);
        assert_eq!(refused.code, Some(6), "{args:?}: {}", refused.stderr);
        for word in ["ExpiredToken", "AWS_SECRET_ACCESS_KEY", "run the same command again"] {
            assert!(refused.stderr.contains(word), "{word}: {}", refused.stderr);
        }
        assert!(!refused.stderr.contains("secret-of-the-test"), "{}", refused.stderr);
    }
    s3.set(Fault::None);
    ok(&s3, &lab, &["pull", URL]);
}

#[test]
fn a_kill_in_the_middle_of_a_push_or_pull_costs_nothing() {
    let (lab, s3) = (measured(), S3::start(true));
    let killed = |lab: &Lab, point: &str, args: &[&str]| {
        let mut command = lab.command(args);
        s3.reached_by(&mut command, &lab.path().join("cache"));
        let ended = Ended::from(command.env("SWEEPLINE_FAILPOINT", point).output().unwrap());
        assert_eq!(ended.code, None, "not killed at {point}: {}", ended.stderr);
    };
    killed(&lab, "before_shared_commit:2", &["push", URL]);
    assert!(s3.keys("chat/runs/").len() < 5, "it was killed before the end");
    ok(&s3, &lab, &["push", URL]);
    assert_eq!((s3.keys("chat/runs/").len(), s3.keys("chat/attempts/").len()), (5, 0));
    assert_eq!(s3.count("PUT", "chat/rows/"), s3.keys("chat/rows/").len(), "no row file was uploaded twice");
    let other = self::lab();
    killed(&other, "before_adoption:2", &["pull", URL]);
    ok(&s3, &other, &["pull", URL]);
    assert_eq!(names(&other, "runs"), planned(&other, "plan.yaml"));
    other.ok(&["verify"]);
    assert!(names(&other, "superseded").is_empty());
    assert_eq!(names(&other, "attempts"), BTreeSet::new(), "the leftovers of the kill are gone");
}

#[test]
fn a_damaged_object_never_becomes_a_result() {
    let (lab, s3) = (measured(), S3::start(true));
    ok(&s3, &lab, &["push", URL]);
    let key = s3.keys("chat/rows/").into_iter().find(|key| key.ends_with("requests.parquet")).unwrap();
    let mut bytes = s3.get(&key);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    s3.spoil(&key, &bytes);
    let other = self::lab();
    let ended = at(&s3, &other, &["pull", URL]);
    assert_eq!(ended.code, Some(5), "{}", ended.stderr);
    assert!(ended.stderr.contains(&key) && ended.stderr.contains("SHA-256"), "{}", ended.stderr);
    let id = key.split('/').nth(2).unwrap();
    let there: BTreeSet<String> = names(&other, "runs");
    assert!(!there.contains(id), "{there:?}");
    other.ok(&["verify"]);
}

#[test]
fn many_commits_are_read_from_packs_and_one_by_one_where_a_pack_is_damaged() {
    let (lab, s3) = (lab(), S3::start(true));
    let names: Vec<String> = (0..8).map(|number| format!("e{number}")).collect();
    let endpoints: Vec<String> = names.iter().map(|name| format!("{name}: {{ engine: mock }}")).collect();
    let loads: Vec<String> = (1..=17).map(|load| load.to_string()).collect();
    let plan = format!(
        "sweepline: 1\nname: many\nendpoints: {{ {} }}\nmodels: {{ m: {{ id: tiny }} }}\n\
         scenarios: {{ s: {{ base: B1, output_tokens: 1 }} }}\n\
         phases: {{ fill: 0s, stabilize: 0s, measure: 20ms, drain: 5s }}\n\
         sweeps: {{ all: {{ matrix: {{ endpoint: [{}], model: [m], scenario: [s], batch_size: [{}] }} }} }}\n",
        endpoints.join(", "),
        names.join(", "),
        loads.join(", ")
    );
    lab.write("plan.yaml", &plan);
    honest(&lab.run(&["run", "plan.yaml", "--jobs", "8", "-q"]));
    let count = names.len() * loads.len();
    assert_eq!(outcomes(&ok(&s3, &lab, &["push", URL, "--format", "json"]).json()), [count, 0, 0]);
    let packs = s3.keys("chat/packs/");
    assert_eq!(packs.len(), 1, "{packs:?}");
    let listed = |cache: &str| {
        let mut command = lab.command(&["list", "--results", URL, "--format", "json"]);
        s3.reached_by(&mut command, &lab.path().join(cache));
        let ended = Ended::from(command.output().unwrap());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.json()["runs"].as_array().unwrap().len()
    };
    let commits = || s3.count("GET", "chat/runs/");
    let before = commits();
    assert_eq!((listed("reader"), commits()), (count, before), "a reader without a copy fetches the pack alone");
    assert_eq!(s3.count("GET", "chat/packs/"), 1);

    let mut bytes = s3.get(&packs[0]);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    s3.spoil(&packs[0], &bytes);
    let before = commits();
    assert_eq!((listed("another"), commits()), (count, before + count), "its runs are fetched one by one");
    let verified = at(&s3, &lab, &["verify", "--results", URL]);
    assert_eq!(verified.code, Some(5), "{}{}", verified.stdout, verified.stderr);
    assert!(verified.stdout.contains(&format!("{}: its content does not match", packs[0])), "{}", verified.stdout);
    assert!(verified.stdout.contains(&format!("{count} runs in {URL}: all whole")), "{}", verified.stdout);
}
