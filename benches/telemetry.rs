//! The cost of scraping: `cargo bench --bench telemetry`.
//!
//! `load`: a run of 20 000 token events per second, alternately with and without scraping its server's page
//! every second. Measures throughput, lateness and CPU time of the whole process; other users of the machine
//! affect the first two, but hardly the CPU time. `pages`: 50 pages like vLLM's, each from a separate server,
//! scraped every second. Measures the CPU time of the scraping thread as a share of a core, and fails above
//! the project's limit of 2 %. docs/TELEMETRY.md has the current figures.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use sweepline::network::Route;
use sweepline::rows::Sample;
use sweepline::telemetry::http::{Page, client};
use sweepline::telemetry::page::Wanted;
use sweepline::telemetry::scrape::{Scraper, Settings, Timeline};
use sweepline::units::{Address, Nanos};

/// A page of vLLM with all its histograms.
const PAGE: &str = include_str!("../tests/telemetry/vllm.txt");
/// Pages that are scraped in parallel.
const PAGES: usize = 50;
/// The duration of the runs.
const FOR: Duration = Duration::from_secs(20);
/// The largest share of a core that scraping these pages may use.
const MOST: f64 = 0.02;
/// Pairs of runs.
const PAIRS: usize = 9;

fn main() {
    // The program does the same at its start.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let asked: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let wants = |name: &str| asked.is_empty() || asked.iter().any(|word| word == name);
    if wants("load") {
        load();
    }
    if wants("pages") {
        pages();
    }
}

/// Starts a server that serves the page to every client, on persistent connections.
fn serve() -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\r\n{PAGE}",
        PAGE.len()
    );
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.expect("a connection"), answer.clone());
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                while stream.read(&mut request).is_ok_and(|read| read > 0) {
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    Address::parse(&format!("http://{address}")).expect("an address")
}

/// A run that started at once and whose window is unknown.
struct Begun(u64);

impl Timeline for Begun {
    fn origin(&self) -> Option<u64> {
        Some(self.0)
    }

    fn window(&self) -> [u64; 2] {
        [0, 0]
    }
}

/// Returns the CPU seconds of this process's threads with this name.
fn cpu_of(name: &str) -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads");
    let of = |task: std::path::PathBuf| -> Option<f64> {
        let is_it = std::fs::read_to_string(task.join("comm")).ok()?.trim() == name;
        let text = std::fs::read_to_string(task.join("schedstat")).ok()?;
        is_it.then(|| text.split(' ').next()?.parse().ok()).flatten()
    };
    tasks.filter_map(|task| of(task.ok()?.path())).sum::<f64>() / 1e9
}

fn pages() {
    let page = |address: Address| {
        let (shown, path) = (format!("{address}/metrics"), "/metrics".to_owned());
        let client = client(Route::direct(address), false).expect("a client");
        Page { shown, path, headers: Vec::new(), client }
    };
    let settings = Settings {
        pages: (0..PAGES).map(|_| page(serve())).collect(),
        every: Nanos::from(Duration::from_secs(1)),
        wanted: Wanted::new([], []),
        gpus: None,
        far: None,
    };
    let kept = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&kept);
    let sink = Box::new(move |samples: &[Sample]| {
        count.fetch_add(samples.len() as u64, Ordering::Relaxed);
        Ok(())
    });
    let scraper = Scraper::start(settings, Arc::new(Begun(1)), sink).expect("a thread");
    // The first round opens the connections.
    let (before, began) = (cpu_of("telemetry"), Instant::now());
    std::thread::sleep(FOR);
    let share = (cpu_of("telemetry") - before) / began.elapsed().as_secs_f64();
    let told = scraper.finish().expect("it scrapes");
    println!(
        "{PAGES} pages of {} KiB every second: {:.2} % of a core; {} scrapes, {} gaps, {} samples",
        PAGE.len() >> 10,
        share * 100.0,
        told.scrapes,
        told.gaps,
        kept.load(Ordering::Relaxed)
    );
    assert!(told.scrapes - told.gaps >= PAGES as u64 * (FOR.as_secs() - 2), "{told:?}");
    assert!(share <= MOST, "the limit is {} %", MOST * 100.0);
}

/// A mock in a separate process.
struct Mock(Child);

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns throughput in tokens per second, lateness in milliseconds (mean, p50 and p99), CPU seconds of a run.
fn run(folder: &std::path::Path, plan: &str) -> [f64; 5] {
    std::fs::write(folder.join("plan.yaml"), plan).expect("a plan");
    let program = env!("CARGO_BIN_EXE_sweepline");
    let before = children();
    let ran = Command::new(program).args(["run", "plan.yaml", "--force", "--quiet"]).current_dir(folder).output();
    let ran = ran.expect("the built program");
    let cpu = children() - before;
    let list =
        Command::new(program).args(["export", "--format", "json", "--columns", "all"]).current_dir(folder).output();
    let rows: Value = serde_json::from_slice(&list.expect("the list of runs").stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&ran.stderr)));
    let row = &rows[0];
    let of = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("no {name}: {row:#}"));
    let lateness = ["lateness_mean_ms", "lateness_p50_ms", "lateness_p99_ms"].map(of);
    [of("output_throughput_tokens_per_s"), lateness[0], lateness[1], lateness[2], cpu]
}

/// Returns the CPU seconds of all children that have ended.
fn children() -> f64 {
    let times = ticks();
    (times.0 + times.1) as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Returns user and system time of ended children, in ticks: fields 16 and 17 of `/proc/self/stat`.
fn ticks() -> (u64, u64) {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let behind = stat.rsplit_once(')').expect("the name").1;
    let fields: Vec<&str> = behind.split_whitespace().collect();
    (fields[13].parse().expect("ticks"), fields[14].parse().expect("ticks"))
}

fn load() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sweepline"))
        .args(["mock", "--ttft", "10ms", "--itl", "10ms", "--slots", "1024"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the built program");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("its first line");
    let _mock = Mock(child);
    let address = line.trim().strip_prefix("listening on ").expect("an address").to_owned();
    let folder = tempfile::tempdir().expect("a folder");
    // 2 500 requests per second of 8 tokens each, so that each run has 25 000 latenesses.
    let plan = |telemetry: &str| {
        format!(
            "sweepline: 1\nname: cost\nendpoints: {{ e: {{ url: '{address}/v1', engine: vllm{telemetry} }} }}\n\
             models: {{ m: {{ id: m }} }}\nscenarios: {{ s: {{ prompt_tokens: 64, output_tokens: 8 }} }}\n\
             phases: {{ fill: 1s, stabilize: 1s, measure: 10s, drain: 5s }}\n\
             validity: {{ client_late: {{ suspect: 100%, invalid: 100% }} }}\n\
             sweeps: {{ s: {{ matrix: {{ scenario: s, qps: 2500 }} }} }}\n"
        )
    };
    let mut pairs = Vec::new();
    for at in 0..PAIRS {
        let with = || run(folder.path(), &plan(", telemetry: on"));
        let without = || run(folder.path(), &plan(""));
        // Each variant comes first equally often.
        let pair = if at % 2 == 0 {
            [without(), with()]
        } else {
            let with = with();
            [without(), with]
        };
        println!("without {:?}, with {:?}", pair[0], pair[1]);
        pairs.push(pair);
    }
    let names = ["tokens per second", "mean lateness", "p50 lateness", "p99 lateness", "CPU seconds"];
    for (at, what) in names.into_iter().enumerate() {
        let mut changes: Vec<f64> =
            pairs.iter().map(|[without, with]| 100.0 * (with[at] / without[at] - 1.0)).collect();
        changes.sort_by(f64::total_cmp);
        let [least, median, most] = [changes[0], changes[changes.len() / 2], changes[changes.len() - 1]];
        // The standard error of the mean of the paired changes.
        let n = changes.len() as f64;
        let mean = changes.iter().sum::<f64>() / n;
        let error = (changes.iter().map(|change| (change - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
        println!(
            "{what}: {median:+.2} % with scraping (from {least:+.2} to {most:+.2} %; mean {mean:+.2} ± {error:.2} %)"
        );
    }
}
