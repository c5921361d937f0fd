//! The cost of a report: `cargo bench --bench report`.
//!
//! The benchmark writes two results folders of synthetic rows through the store's own commit: five million
//! requests in ten runs, and a thousand runs with a comparison. The built program makes the report of each
//! in a separate process, and the benchmark measures its time and peak memory. Then Chromium, if installed,
//! opens the page of the thousand runs and reports the time of its first paint. The targets: 30 s and 1 GB
//! for the rows, 5 MB for the page, 1 s for the first paint. No missed target fails the benchmark, since
//! the machine may be busy. `SWEEPLINE_BENCH_ROWS` sets the number of rows, `SWEEPLINE_BENCH_PROGRAM`
//! measures another build of the program.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use sweepline::expand::{Load, PlannedRun, expand};
use sweepline::plan;
use sweepline::rows::{Environment, Facts, Outcome, Phase, Record, RequestRow, TokenSource, Windows};
use sweepline::store::{Commit, Store};

/// Ten runs that share the rows.
const LONG: &str = "sweepline: 1
name: long
seed: 1
endpoints: { one: { engine: mock }, two: { engine: mock } }
models: { m: { id: tiny } }
scenarios: { s: { base: B1 } }
slo: { ttft: { p99: 200ms } }
sweeps: { s: { matrix: { endpoint: [one, two], model: [m], scenario: [s], qps: [200, 400, 600, 800, 1000] } } }
";

/// A thousand runs: two arms, 50 loads and scenarios, ten repeats.
const MANY: &str = "sweepline: 1
name: many
seed: 1
endpoints: { one: { engine: mock }, two: { engine: mock } }
models: { m: { id: tiny } }
scenarios:
  s: { base: B1, output_tokens: 8 }
  t: { base: B2, output_tokens: 8 }
  u: { base: C, output_tokens: 8 }
  v: { base: A1, output_tokens: 8 }
  w: { base: A2, output_tokens: 8 }
slo: { ttft: { p50: 200ms } }
compare: { by: endpoint, baseline: one, metrics: [ttft_p50, output_throughput] }
sweeps:
  s:
    matrix:
      endpoint: [one, two]
      model: [m]
      scenario: [s, t, u, v, w]
      batch_size: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    repeats: 10
";

/// Rows of the ten runs together, by default.
const ROWS: u64 = 5_000_000;
/// Rows of each of the thousand runs.
const FEW: u64 = 400;
/// Token events of each request.
const EVENTS: u32 = 8;
/// Rows passed to the journal at once.
const BATCH: u64 = 10_000;

/// Creates a request with distinct figures; one in a thousand fails. `slower` is the slowdown of this run
/// relative to the fastest.
fn record(request: u64, between: u64, slower: f64, rng: &mut ChaCha8Rng) -> Record {
    let at = between * request + rng.random_range(0..between);
    let sent = at + rng.random_range(10_000..80_000);
    let scaled = |ns: u64| (ns as f64 * slower) as u64;
    let gaps_ns: Vec<u64> = (1..EVENTS).map(|_| scaled(rng.random_range(8_000_000..14_000_000))).collect();
    let first = sent + scaled(rng.random_range(20_000_000..90_000_000));
    let last = first + gaps_ns.iter().sum::<u64>();
    let row = RequestRow {
        released_ns: Some(at),
        sent_ns: Some(sent),
        ended_ns: Some(last + 100_000),
        requested_tokens: EVENTS,
        intended_prompt_tokens: 50,
        reusable_tokens: Some(0),
        content_wait_ns: Some(0),
        ..RequestRow::wanted(request, Phase::Measure, at)
    };
    if rng.random_range(0..1000) == 0 {
        let row = RequestRow {
            outcome: Outcome::Http(503),
            http_status: Some(503),
            error: Some("the server answered 503".to_owned()),
            ..row
        };
        return Record { row, gaps_ns: Vec::new() };
    }
    let row = RequestRow {
        headers_ns: Some(first - 400_000),
        first_chunk_ns: Some(first - 300_000),
        first_token_ns: Some(first),
        first_output_ns: Some(first),
        last_token_ns: Some(last),
        done_ns: Some(last + 80_000),
        outcome: Outcome::Ok,
        http_status: Some(200),
        finish_reason: Some("length".to_owned()),
        prompt_tokens: Some(50 + rng.random_range(0..8)),
        output_tokens: Some(EVENTS),
        token_source: Some(TokenSource::Usage),
        events: EVENTS,
        bytes: 2_000 + rng.random_range(0..200),
        text_digest: Some(format!("{:016x}", rng.random::<u64>())),
        ..row
    };
    Record { row, gaps_ns }
}

/// Commits a run with `rows` rows.
fn commit(store: &sweepline::store::Writer, run: &PlannedRun, rows: u64, seed: u64) {
    let attempt = store.begin(&run.id.to_string(), &run.spec).expect("an attempt");
    let mut journal = attempt.journal().expect("a journal");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let slower = if run.spec.endpoint.name == "one" { 1.2 } else { 1.0 };
    let (open, per_s) = match &run.spec.load {
        Load::Open { qps, .. } => (true, qps.to_f64()),
        // The rate that a closed loop of such responses reaches.
        Load::Closed { batch_size } => (false, f64::from(*batch_size) / (0.132 * slower)),
    };
    let between = (1e9 / per_s) as u64;
    for from in (0..rows).step_by(BATCH as usize) {
        let one = |request| record(request, between, slower, &mut rng);
        journal.append(&(from..rows.min(from + BATCH)).map(one).collect::<Vec<_>>()).expect("rows");
    }
    journal.finish().expect("a finished journal");
    attempt.samples().expect("a time series").finish().expect("a finished time series");
    let end = between * rows;
    let facts = Facts {
        windows: Windows { stabilize_ns: 0, measure_start_ns: 0, measure_end_ns: end, end_ns: end + 1_000_000_000 },
        scheduled: rows,
        scheduled_in_window: rows,
        open_loop: open,
        qps: open.then_some(per_s),
        batch_size: run.spec.load.batch_size(),
        stream: true,
        ..Facts::default()
    };
    let generator_digest = "0".repeat(64);
    let environment = Environment::default();
    attempt
        .commit(Commit { environment, facts, generator_digest, samples: 0, texts: None, reason: None })
        .expect("a commit");
}

/// Commits every run of a plan with this many rows each; returns the number of runs.
fn commit_all(folder: &Path, name: &str, text: &str, rows: impl Fn(usize) -> u64) -> usize {
    let path = folder.join(format!("{name}.yaml"));
    std::fs::write(&path, text).expect("written");
    let loaded = plan::load(&path).expect("a plan");
    let expansion = expand(&loaded.plan).expect("expands");
    let writer = Store::lock(folder.join(name)).expect("a results folder");
    let start = Instant::now();
    for (at, run) in expansion.runs.iter().enumerate() {
        commit(&writer, run, rows(expansion.runs.len()), at as u64);
    }
    let (runs, seconds) = (expansion.runs.len(), start.elapsed().as_secs_f64());
    println!("({runs} runs of {} rows of {EVENTS} token events committed in {seconds:.1} s)", rows(runs));
    runs
}

/// Returns the peak memory of a process so far, in bytes.
fn peak(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// Returns the CPU time of all children that have exited.
fn cpu() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("usage of children");
    let time = |value: TimeVal| Duration::from_micros(value.num_microseconds() as u64);
    time(usage.user_time()) + time(usage.system_time())
}

/// Makes the report of a folder and prints its cost.
fn report(folder: &Path, what: &str, name: &str) {
    let program =
        std::env::var("SWEEPLINE_BENCH_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_sweepline").to_owned());
    let page = format!("{name}.html");
    let mut command = Command::new(program);
    command.args(["report", &format!("{name}.yaml"), "--results", name, "-o", &page]).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (start, before) = (Instant::now(), cpu());
    let mut child = command.spawn().expect("the built program");
    let mut most = 0;
    let status = loop {
        most = most.max(peak(child.id()).unwrap_or(0));
        if let Some(status) = child.try_wait().expect("a status") {
            break status;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success(), "{what}: {status}");
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), (cpu() - before).as_secs_f64());
    let text = std::fs::read_to_string(folder.join(&page)).expect("a page");
    let parts = text.matches("<details class=\"run\">").count();
    println!(
        "{what:<36} {seconds:6.1} s, {cpu:6.1} s of CPU, peak memory {:5.0} MB, page of {:5.2} MB with {} figures and {parts} runs in full",
        most as f64 / 1e6,
        text.len() as f64 / 1e6,
        text.matches("<figure id=").count(),
    );
}

/// Returns the time from the start of the page's load to Chromium's first paint, in milliseconds by its own
/// clock; `None` without Chromium.
fn first_paint(page: &Path) -> Option<f64> {
    let works = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    let browser = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(works)?;
    // The page forbids all scripts except its own, so a copy reads the browser's clock and writes it into
    // its title.
    let text = std::fs::read_to_string(page).expect("a page");
    let (head, rest) = text.split_once("<script nonce=\"")?;
    let ask = "const told = (entries) => entries.getEntries().filter((one) => one.name === 'first-contentful-paint')\
               .forEach((one) => { document.title = 'PAINT ' + one.startTime; });\
               new PerformanceObserver(told).observe({ type: 'paint', buffered: true });\n";
    let (nonce, rest) = rest.split_once("\">")?;
    let copy = page.with_extension("asked.html");
    std::fs::write(&copy, format!("{head}<script nonce=\"{nonce}\">{ask}{rest}")).expect("a copy");
    let profile = tempfile::tempdir().expect("a folder");
    let output = Command::new("timeout")
        .args(["--kill-after=5", "120", browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .args(["--disable-dev-shm-usage", "--no-first-run", "--timeout=8000"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", copy.display()))
        .output()
        .ok()?;
    let dom = String::from_utf8_lossy(&output.stdout);
    dom.split_once("<title>PAINT ")?.1.split_once('<')?.0.parse().ok()
}

fn main() {
    let rows = std::env::var("SWEEPLINE_BENCH_ROWS").ok().and_then(|rows| rows.parse().ok()).unwrap_or(ROWS);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    commit_all(folder, "long", LONG, |runs| rows / runs as u64);
    report(folder, &format!("report of {rows} requests"), "long");
    let runs = commit_all(folder, "many", MANY, |_| FEW);
    report(folder, &format!("report of {runs} runs"), "many");
    for _ in 0..3 {
        match first_paint(&folder.join("many.html")) {
            Some(ms) => println!("first paint of that page in Chromium {ms:.0} ms"),
            None => println!("first paint: not measured (no Chromium that works, or it painted nothing)"),
        }
    }
    if let Ok(keep) = std::env::var("SWEEPLINE_BENCH_KEEP") {
        std::fs::copy(folder.join("many.html"), &keep).expect("a page to look at");
    }
}
