//! Tests unusual use of the program, as observed with its first users.

use std::io::{Read, Write};
use std::net::TcpListener;

use rustix::process::Signal;

use lab::sweeps::honest;
use lab::{Lab, wait_for};

const PLAN: &str = "
sweepline: 1
name: rough
endpoints: { demo: { engine: mock, mock: { ttft: 1ms, itl: 1ms } } }
models: { m: { id: tiny } }
scenarios: { short: { base: B1, output_tokens: 4 } }
phases: { fill: 10ms, stabilize: 10ms, measure: 200ms, drain: 5s }
sweeps: { one: { matrix: { scenario: [short], batch_size: [1, 2] } } }
";

/// Returns a lab with two committed runs.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("plan.yaml", PLAN);
    let ended = lab.run(&["run", "plan.yaml"]);
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    assert_eq!(lab.runs().len(), 2);
    lab
}

#[test]
fn an_export_goes_where_a_link_leads() {
    let lab = lab();
    let target = lab.write("target.csv", "");
    let link = lab.path().join("link.csv");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    lab.ok(&["export", "plan.yaml", "-o", "link.csv"]);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(std::fs::read_to_string(&target).unwrap().starts_with("sweep,endpoint,"));
    assert_eq!(std::fs::read_dir(lab.path()).unwrap().count(), 4, "plan, results, target, link: nothing else remains");
}

#[test]
fn what_is_not_called_like_a_run_is_left_alone() {
    let lab = lab();
    std::fs::write(lab.results().join("runs/README"), "mine").unwrap();
    std::fs::create_dir(lab.results().join("runs/notes")).unwrap();
    for command in [&["list"][..], &["verify"], &["export"], &["preview", "plan.yaml"]] {
        let ended = lab.ok(command);
        assert!(!ended.stdout.contains("notes"), "{}", ended.stdout);
    }
    assert!(lab.results().join("runs/README").exists());
}

#[test]
fn one_damaged_run_hides_no_other() {
    let lab = lab();
    let (_, run) = lab.runs().pop_first().unwrap();
    let file = run.dir.join("requests.parquet");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&file, bytes).unwrap();
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(5), "{}", ended.stderr);
    assert!(ended.stderr.contains("requests.parquet"), "{}", ended.stderr);
    assert_eq!(ended.stdout.lines().filter(|line| line.starts_with("demo")).count(), 1, "{}", ended.stdout);
    let table = lab.run(&["export", "plan.yaml"]);
    assert_eq!((table.code, table.stdout.lines().count()), (Some(5), 2), "a header and the complete run");
}

#[test]
fn a_page_is_no_completion() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // The server runs until the test's process ends; every connection gets a page.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 65_536]);
            let page = "<html>Welcome</html>";
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n", page.len());
            let _ = write!(stream, "{head}Connection: close\r\n\r\n{page}");
        }
    });
    let lab = Lab::new();
    let url = format!("{{ url: \"http://127.0.0.1:{port}\", ready: {{ within: 0s }} }}");
    lab.write("plan.yaml", &PLAN.replace("{ engine: mock, mock: { ttft: 1ms, itl: 1ms } }", &url));
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(6), "{}", ended.stderr);
    assert!(ended.stderr.contains("not with a completion") && ended.stderr.contains("/v1"), "{}", ended.stderr);
    assert!(lab.runs().is_empty());
}

#[test]
fn no_load_is_too_high_to_be_stopped() {
    let lab = Lab::new();
    lab.write("beyond.yaml", &PLAN.replace("batch_size: [1, 2]", "qps: [1e12]"));
    let refused = lab.run(&["check", "beyond.yaml"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("up to 1000000"), "{}", refused.stderr);

    let high = PLAN.replace("batch_size: [1, 2]", "qps: [100000]").replace("measure: 200ms", "measure: 1h");
    lab.write("high.yaml", &high);
    let running = lab.start(&["run", "high.yaml"]);
    let journal = || std::fs::read_dir(lab.results().join("attempts")).ok()?.flatten().next();
    wait_for("the run to begin", journal);
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
}

#[test]
fn the_objective_is_answered() {
    let lab = Lab::new();
    let slo = "slo: { ttft: { p50: 10s }, e2e: { p50: 1us }, cost_per_million: 0.01 }\nsweeps:";
    // The window is so long that about a hundred independent requests remain even if the machine slows
    // requests down together.
    let plan = PLAN.replace("measure: 200ms", "measure: 3s").replace("\nsweeps:", &format!("\n{slo}"));
    lab.write("plan.yaml", &plan);
    honest(&lab.run(&["run", "plan.yaml"]));
    let id = lab.runs().into_keys().next().unwrap();
    let page = lab.ok(&["show", &id, "--plan", "plan.yaml"]).stdout;
    assert!(page.contains("  ttft p50 ≤ 10s: holds"), "{page}");
    assert!(page.contains("  e2e p50 ≤ 1us: misses"), "{page}");
    assert!(page.contains("≤ 0.01: undecided (unknown)"), "{page}");
}
