//! Tests `--results URL`: commands read from object storage, workers share the runs of a plan, and
//! failures do not lose anything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use lab::mock::Mock;
use lab::s3::{Fault, S3};
use lab::sweeps::{PLAN, honest, lab, planned};
use lab::{Ended, Lab, Running, wait_for};

/// Location of the results on the test server.
const URL: &str = "s3://bench/team";

/// Returns the program, configured for the server and with this folder for its copy.
fn command(s3: &S3, lab: &Lab, cache: &str, args: &[&str]) -> Command {
    let mut command = lab.command(args);
    s3.reached_by(&mut command, &lab.path().join(cache));
    command
}

fn run(s3: &S3, lab: &Lab, cache: &str, args: &[&str]) -> Ended {
    Ended::from(command(s3, lab, cache, args).output().unwrap())
}

fn ok(s3: &S3, lab: &Lab, cache: &str, args: &[&str]) -> Ended {
    let ended = run(s3, lab, cache, args);
    assert_eq!(ended.code, Some(0), "sweepline {args:?}\n{}{}", ended.stdout, ended.stderr);
    ended
}

/// Returns the short ids of the runs that are committed on the store.
fn committed(s3: &S3) -> BTreeSet<String> {
    let id = |key: String| key.trim_start_matches("team/runs/").trim_end_matches(".json").to_owned();
    s3.keys("team/runs/").into_iter().map(id).collect()
}

/// Returns everything in copies except committed runs; this includes every run that was measured but
/// whose result was not kept.
fn leftovers(lab: &Lab, caches: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for copy in caches.iter().flat_map(|cache| std::fs::read_dir(lab.path().join(cache)).unwrap()) {
        for folder in ["attempts", "superseded"] {
            let names = std::fs::read_dir(copy.as_ref().unwrap().path().join(folder)).unwrap();
            found.extend(names.map(|name| name.unwrap().file_name().into_string().unwrap()));
        }
    }
    found
}

/// Returns whether requests are being sent, according to the content of a copy.
fn is_measuring(cache: &Path) -> bool {
    let copies = std::fs::read_dir(cache).into_iter().flatten().flatten();
    let mut attempts = copies.flat_map(|copy| std::fs::read_dir(copy.path().join("attempts")).into_iter().flatten());
    attempts.any(|attempt| attempt.is_ok_and(|attempt| attempt.path().join("journal.arrow").exists()))
}

const MEASURE: [&str; 4] = ["run", "plan.yaml", "--results", URL];

#[test]
fn four_workers_share_a_plan_and_no_run_is_measured_twice() {
    let (lab, s3) = (lab(), S3::start(true));
    lab.write("plan.yaml", &PLAN.replace("batch_size: [1, 2, 3]", "batch_size: [1, 2, 3, 4, 5, 6]"));
    let caches: Vec<String> = (0..4).map(|worker| format!("cache-{worker}")).collect();
    let workers: Vec<Running> =
        caches.iter().map(|cache| Running::start(&mut command(&s3, &lab, cache, &MEASURE))).collect();
    let ended: Vec<Ended> = workers.into_iter().map(Running::end).collect();
    ended.iter().for_each(honest);
    let ids = planned(&lab, "plan.yaml");
    assert_eq!(committed(&s3), ids, "the ids are those of a sweep on one machine");
    assert!(s3.keys("team/attempts/").is_empty(), "no second result was uploaded");
    assert_eq!(leftovers(&lab, &caches), Vec::<String>::new(), "every measurement is kept");
    assert_eq!(s3.count("PUT", "team/rows/"), s3.keys("team/rows/").len(), "and was uploaded once");
    for cache in &caches {
        let verified = ok(&s3, &lab, cache, &["verify", "--results", URL]);
        assert!(verified.stdout.contains(&format!("{} runs in {URL}", ids.len())), "{}", verified.stdout);
    }
}

#[test]
fn readers_see_shared_results_and_fetch_rows_when_they_read_them() {
    let (lab, s3) = (lab(), S3::start(true));
    honest(&run(&s3, &lab, "writer", &MEASURE));
    let ids = planned(&lab, "plan.yaml");
    let listed = ok(&s3, &lab, "reader", &["list", "--results", URL, "--format", "json"]).json();
    assert_eq!(listed["runs"].as_array().unwrap().len(), ids.len());
    assert_eq!(s3.count("GET", "team/rows/"), 0, "`list` reads no rows");
    let id = ids.first().unwrap();
    let shown = run(&s3, &lab, "reader", &["show", id, "--plan", "plan.yaml", "--results", URL]);
    assert!(matches!(shown.code, Some(0 | 3)) && shown.stdout.contains("TTFT"), "{}{}", shown.stdout, shown.stderr);
    let rows: BTreeSet<String> = s3
        .keys("team/rows/")
        .into_iter()
        .filter(|key| s3.count("GET", key) > 0)
        .map(|key| key.split('/').nth(2).unwrap().to_owned())
        .collect();
    assert_eq!(rows, BTreeSet::from([id.clone()]), "only those of the run that is shown");
    // A second read does not request anything that is already local.
    let before = s3.count("GET", "team/rows/");
    run(&s3, &lab, "reader", &["show", id, "--plan", "plan.yaml", "--results", URL]);
    assert_eq!(s3.count("GET", "team/rows/"), before);
    let export = ok(&s3, &lab, "reader", &["export", "plan.yaml", "--results", URL, "-o", "runs.csv"]);
    let lines = std::fs::read_to_string(lab.path().join("runs.csv")).unwrap().lines().count();
    assert_eq!(lines, 1 + ids.len(), "{}", export.stderr);
    // Commands that only read send no request to the store, because a commit never changes.
    s3.set(Fault::Away);
    ok(&s3, &lab, "reader", &["curves", "plan.yaml", "--results", URL]);
    // `run` has nothing to do, but must ask whether the commits still exist.
    let again = run(&s3, &lab, "reader", &MEASURE);
    assert!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    assert!(again.code == Some(6) && again.stderr.contains("run the same command again"), "{}", again.stderr);
    // Changes to shared results are rejected.
    for flags in [&["--force"][..], &["--redo", "invalid"]] {
        let refused = run(&s3, &lab, "reader", &[&MEASURE[..], flags].concat());
        assert!(refused.code == Some(2) && refused.stderr.contains("are shared"), "{}", refused.stderr);
    }
}

#[test]
fn a_plan_may_say_where_its_results_lie_and_the_command_line_has_the_last_word() {
    let lab = Lab::new();
    let url = format!("file://{}/team", lab.path().display());
    let plan = PLAN.replace("batch_size: [1, 2, 3]", "batch_size: [1]").replace("qps: [40, 60]", "qps: [40]");
    lab.write("plan.yaml", &format!("results: {url}{plan}"));
    let on_its_own = |args: &[&str]| {
        Ended::from(lab.command(args).env("SWEEPLINE_CACHE", lab.path().join("cache")).output().unwrap())
    };
    honest(&on_its_own(&["run", "plan.yaml"]));
    assert_eq!(std::fs::read_dir(lab.path().join("team/runs")).unwrap().count(), 2);
    assert!(!lab.results().exists(), "the default folder remains empty");
    let exported = on_its_own(&["export", "plan.yaml", "-o", "runs.csv"]);
    assert!(exported.code == Some(0) && lab.path().join("runs.csv").exists(), "{}", exported.stderr);
    let elsewhere = on_its_own(&["preview", "plan.yaml", "--results", "elsewhere", "--format", "json"]);
    let states = |ended: &Ended| -> BTreeSet<String> {
        let runs = ended.json()["runs"].as_array().unwrap().clone();
        runs.iter().map(|run| run["state"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(states(&elsewhere), BTreeSet::from(["new".to_owned()]));
    assert_eq!(
        states(&on_its_own(&["preview", "plan.yaml", "--format", "json"])),
        BTreeSet::from(["cached".to_owned()])
    );
}

#[test]
fn a_worker_that_is_cut_off_loses_nothing_and_measures_nothing_twice() {
    let (lab, s3) = (lab(), S3::start(true));
    let mut running = Running::start(&mut command(&s3, &lab, "cache", &MEASURE));
    wait_for("a commit", || (running.has_ended() || !committed(&s3).is_empty()).then_some(()));
    s3.set(Fault::Away);
    wait_for("the end of its patience", || running.has_ended().then_some(()));
    let ended = running.end();
    assert_eq!(ended.code, Some(6), "{}", ended.stderr);
    assert!(ended.stderr.contains("run the same command again; nothing is lost"), "{}", ended.stderr);
    s3.set(Fault::None);
    let again = run(&s3, &lab, "cache", &MEASURE);
    honest(&again);
    assert_eq!(committed(&s3), planned(&lab, "plan.yaml"));
    assert_eq!(leftovers(&lab, &["cache".to_owned()]), Vec::<String>::new(), "nothing was measured twice");
    assert!(s3.keys("team/attempts/").is_empty());
    ok(&s3, &lab, "cache", &["verify", "--results", URL]);
}

#[test]
fn the_run_of_a_killed_worker_is_taken_over_when_its_claim_is_over() {
    let (lab, s3) = (lab(), S3::start(true));
    lab.write(
        "plan.yaml",
        &PLAN
            .replace("measure: 200ms", "measure: 2s")
            .replace("batch_size: [1, 2, 3]", "batch_size: [1]")
            .replace("qps: [40, 60]", "qps: [40]"),
    );
    let mut first = command(&s3, &lab, "first", &MEASURE);
    let mut first = Running::start(first.env("SWEEPLINE_LEASE_MS", "600"));
    wait_for("a claim", || (first.has_ended() || !s3.keys("team/claims/").is_empty()).then_some(()));
    let taken = s3.keys("team/claims/")[0].split('/').nth(2).unwrap().to_owned();
    first.signal(Signal::KILL);
    wait_for("its end", || first.has_ended().then_some(()));
    assert!(committed(&s3).is_empty());
    let mut second = command(&s3, &lab, "second", &MEASURE);
    let ended = Ended::from(second.env("SWEEPLINE_LEASE_MS", "600").output().unwrap());
    honest(&ended);
    assert_eq!(committed(&s3), planned(&lab, "plan.yaml"));
    assert!(committed(&s3).contains(&taken), "the run of the killed worker is there, too");
    assert!(s3.keys("team/claims/").is_empty(), "claims are removed with the commit");
}

#[test]
fn another_result_that_came_first_stands_in_the_copy_too() {
    let (lab, s3) = (lab(), S3::start(true));
    // The run is first measured here, as if disconnected, and by another worker in the meantime.
    let mut running = Running::start(command(&s3, &lab, "cut-off", &MEASURE).env("SWEEPLINE_LEASE_MS", "600"));
    wait_for("an attempt", || (running.has_ended() || is_measuring(&lab.path().join("cut-off"))).then_some(()));
    s3.set(Fault::Away);
    wait_for("the end of its patience", || running.has_ended().then_some(()));
    assert_eq!(running.end().code, Some(6));
    s3.set(Fault::None);
    honest(&run(&s3, &lab, "other", &MEASURE));
    let again = run(&s3, &lab, "cut-off", &MEASURE);
    honest(&again);
    assert_eq!(s3.keys("team/attempts/").len(), 1, "the second result is kept");
    let verified = ok(&s3, &lab, "cut-off", &["verify", "--results", URL]);
    assert!(verified.stdout.contains("5 runs"), "{}", verified.stdout);
}

#[test]
fn two_workers_take_turns_at_a_server_that_they_share() {
    let (lab, s3) = (lab(), S3::start(true));
    let server = Mock::start(&["--ttft", "2ms", "--itl", "1ms"]);
    // The endpoint's address leads to another machine, so only its resource shows that both workers use the
    // same server.
    let one =
        format!("url: \"http://127.0.0.1:{}/v1\", resource: gpu-7, hardware: {{ network: ssh tunnel }}", server.port);
    let plan = PLAN.replace("endpoints: { demo: {", &format!("endpoints: {{ one: {{ engine: mock, {one} }}, demo: {{"));
    lab.write("plan.yaml", &plan.replace("endpoint: [demo]", "endpoint: [one, demo]"));
    let caches = ["first", "second"].map(str::to_owned);
    let workers: Vec<Running> =
        caches.iter().map(|cache| Running::start(&mut command(&s3, &lab, cache, &MEASURE))).collect();
    workers.into_iter().map(Running::end).for_each(|ended| honest(&ended));
    assert_eq!(committed(&s3), planned(&lab, "plan.yaml"));
    assert_eq!(leftovers(&lab, &caches), Vec::<String>::new(), "every measurement stays");
    let listed = ok(&s3, &lab, "first", &["list", "--results", URL, "--format", "json"]).json();
    let text = |run: &serde_json::Value, key: &str| run[key].as_str().unwrap().to_owned();
    let runs = listed["runs"].as_array().unwrap().iter().filter(|run| run["spec"]["endpoint"]["name"] == "one");
    let mut times: Vec<(String, String)> = runs.map(|run| (text(run, "started"), text(run, "ended"))).collect();
    times.sort();
    assert_eq!(times.len(), 5);
    assert!(times.windows(2).all(|two| two[0].1 <= two[1].0), "runs at one server never overlap: {times:#?}");
    let claims = s3.keys("team/claims/");
    assert!(claims.len() == 1 && claims[0].contains("/server-"), "the last claim of the server stays: {claims:?}");
    assert!(String::from_utf8(s3.get(&claims[0])).unwrap().contains("\"released\":true"), "and is given back");
}

/// Returns the folder of the only copy in a cache.
fn copy(lab: &Lab, cache: &str) -> PathBuf {
    let mut copies = std::fs::read_dir(lab.path().join(cache)).unwrap();
    copies.next().unwrap().unwrap().path()
}

#[test]
fn a_commit_that_disappears_from_the_store_is_reported_and_never_restored_unasked() {
    let (lab, s3) = (lab(), S3::start(true));
    honest(&run(&s3, &lab, "writer", &MEASURE));
    ok(&s3, &lab, "reader", &["list", "--results", URL]);
    let ids = planned(&lab, "plan.yaml");
    let [gone, also] = [ids.first().unwrap(), ids.last().unwrap()];
    let key = |id: &str| format!("team/runs/{id}.json");
    let bytes = [gone, also].map(|id| s3.get(&key(id)));
    for id in [gone, also] {
        s3.remove(&key(id));
    }
    let sent = s3.count("PUT", "team/");
    for _ in 0..2 {
        let told = run(&s3, &lab, "writer", &MEASURE);
        assert_eq!(told.code, Some(5), "{}", told.stderr);
        for word in [&gone[..8], &also[..8], "nothing to do"] {
            assert!(told.stderr.contains(word), "{word}: {}", told.stderr);
        }
    }
    let verified = run(&s3, &lab, "writer", &["verify", "--results", URL, "--format", "json"]);
    assert_eq!(verified.code, Some(5), "{}", verified.stderr);
    lab.follows("verify", &verified.json());
    let vanished: BTreeSet<String> = serde_json::from_value(verified.json()["vanished"].clone()).unwrap();
    assert_eq!(vanished, BTreeSet::from([gone.clone(), also.clone()]));
    let verified = run(&s3, &lab, "writer", &["verify", "--results", URL]);
    assert!(verified.code == Some(5) && !verified.stdout.contains("all whole"), "{}", verified.stdout);
    assert!([gone, also].iter().all(|id| !committed(&s3).contains(*id)), "nothing is restored");
    assert_eq!(s3.count("PUT", "team/"), sent, "nothing was sent");

    // A copy without row files restores a commit whose row files are still in the store.
    let from = copy(&lab, "reader");
    assert!(!from.join("runs").join(gone).join("requests.parquet").exists());
    ok(&s3, &lab, "reader", &["push", URL, "--results", from.to_str().unwrap()]);
    assert_eq!([gone, also].map(|id| s3.get(&key(id))), bytes, "byte for byte");
    // The command in the message restores everything, even if row files are missing, too.
    s3.remove(&key(gone));
    s3.keys(&format!("team/rows/{gone}/")).iter().for_each(|key| s3.remove(key));
    let told = run(&s3, &lab, "writer", &MEASURE);
    let remedy = told.stderr.split('`').find(|part| part.starts_with("sweepline push ")).expect("the remedy");
    let args: Vec<&str> = remedy.split(' ').skip(1).collect();
    ok(&s3, &lab, "writer", &args);
    honest(&run(&s3, &lab, "writer", &MEASURE));
    assert!(ids.is_subset(&committed(&s3)));
    let verified = ok(&s3, &lab, "another", &["verify", "--results", URL]);
    assert!(verified.stdout.contains("all whole"), "{}", verified.stdout);
}

#[test]
fn requests_are_made_again_for_as_long_as_documented() {
    let (lab, s3) = (Lab::new(), S3::start(true));
    for fault in [Fault::Away, Fault::SlowDown(usize::MAX)] {
        s3.set(fault);
        let mut command = command(&s3, &lab, "cache", &["list", "--results", URL]);
        // Pauses are shortened like the total time, a hundred times.
        let begun = Instant::now();
        let ended = Ended::from(command.env("SWEEPLINE_RETRIES_MS", "600").output().unwrap());
        assert_eq!(ended.code, Some(6), "{fault:?}: {}", ended.stderr);
        assert!(begun.elapsed() >= Duration::from_millis(600), "{fault:?}: {:?}", begun.elapsed());
    }
}
