//! What requests cost before they are sent: text and body, made by the content thread and taken as the executor takes them.
//!
//!     cargo bench --bench content            # one million of each
//!     cargo bench --bench content -- 100000  # fewer
//!
//! Prints CPU time of the whole process (the thread that makes contents and the one that takes them), so that a machine
//! that others use too disturbs the figures little, and the most memory that the process has had. Fails where one of the bounds
//! is missed that the project has set itself: a million requests of the preset `chat` under 60 s of one core and under 500 MB,
//! prompts of 64 tokens under 10 µs each. docs/ENGINE.md has the figures of now.

use std::path::Path;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use sweepline::engine::steps;
use sweepline::expand::{RunSpec, expand};
use sweepline::plan::{self, Format};

/// The most memory that the bench may have had, in MiB.
const MOST_MEMORY: u64 = 476;

/// What is made: a name, the scenario's fields, and the most CPU time for one request, in microseconds.
const CASES: [(&str, &str, f64); 5] = [
    ("preset chat", "{ lengths: { preset: chat } }", 60.0),
    ("chat, 500 + 200 tokens", "{ prompt_tokens: 500, output_tokens: 200 }", 60.0),
    ("64 tokens", "{ prompt_tokens: 64, output_tokens: 64 }", 10.0),
    ("system prompt of 2 000, questions of 50", "{ base: C, output_tokens: 64 }", 60.0),
    ("the same prompt of 50", "{ base: A1, output_tokens: 64 }", 60.0),
];

/// The run of a plan with this scenario.
fn spec(scenario: &str) -> RunSpec {
    let text = format!(
        "sweepline: 1\nname: content\nseed: 5\nendpoints: {{ e: {{ url: 'http://127.0.0.1:9/v1', engine: vllm }} }}\n\
         models: {{ m: {{ id: org/model }} }}\nscenarios: {{ s: {scenario} }}\n\
         sweeps: {{ s: {{ matrix: {{ scenario: s, qps: 100 }} }} }}\n"
    );
    let loaded = plan::parse(Path::new("bench.yaml"), &text, Format::Yaml).unwrap_or_else(|errors| panic!("{errors}"));
    (*expand(&loaded.plan).expect("the bench's plan expands").runs[0].spec).clone()
}

/// CPU time of this process, in seconds.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The most memory that this process has had, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or_default() / 1024
}

fn main() {
    let count = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(1_000_000);
    let mut missed = Vec::new();
    for (name, scenario, bound) in CASES {
        let (start, before) = (Instant::now(), cpu());
        let bytes = steps::contents(&spec(scenario), count);
        let (took, used) = (start.elapsed().as_secs_f64(), cpu() - before);
        let each = used * 1e6 / count as f64;
        if each > bound || peak() > MOST_MEMORY {
            missed.push(name);
        }
        println!(
            "{name}: {count} requests, {} bytes each, {used:.1} s of CPU ({each:.2} µs each), {took:.1} s by the clock, peak \
             {} MiB",
            bytes / count,
            peak()
        );
    }
    assert!(missed.is_empty(), "beyond what it may cost: {missed:?}");
}
