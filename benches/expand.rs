//! Time and memory from the text of a plan to a million runs with ids: `cargo bench --bench expand`. Also the
//! time of `check` for the largest plans that a file may contain. Prints figures without comparing them with
//! anything.

use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use sweepline::expand::expand;
use sweepline::plan::{self, Format, ResolvedPlan};

const HEAD: &str = "sweepline: 1
name: bench
endpoints: { demo: { engine: mock }, vllm: { url: \"http://127.0.0.1:8000/v1\", engine: vllm, server: { version: 0.33.0, flags: { max_num_seqs: 256 } } } }
models: { m: { id: org/model } }
sweeps:
";

/// A thousand lengths, five hundred batch sizes, two endpoints.
const MILLION: &str = "  s:
    matrix:
      endpoint: [demo, vllm]
      prompt_tokens: { from: 100, to: 10090, step: 10 }
      batch_size: { from: 1, to: 500, step: 1 }
";

/// Returns the peak memory of this process, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or_default() / 1024
}

fn check(what: &str, text: &str) -> Option<ResolvedPlan> {
    let start = Instant::now();
    let read = plan::parse(Path::new("bench.yaml"), text, Format::Yaml);
    let found = read.as_ref().map_or_else(|errors| errors.diagnostics.len(), |_| 0);
    println!(
        "check, {what}: {} kB, {found} errors, {:.2} s, peak {} MiB",
        text.len() / 1000,
        start.elapsed().as_secs_f64(),
        peak()
    );
    read.ok().map(|loaded| loaded.plan)
}

/// Returns a zip of two lists of `length` numbers each.
fn zip(length: u32) -> String {
    let list = (0..length).fold(String::new(), |mut list, at| {
        let _ = write!(list, "{},", at + 100);
        list
    });
    format!(
        "  s: {{ matrix: {{ endpoint: demo, batch_size: 1, shape: {{ zip: {{ prompt_tokens: [{list}], output_tokens: [{list}] }} }} }} }}\n"
    )
}

/// Returns as many rules as fit, over two axes with the same number of values.
fn rules(count: u32) -> String {
    let list: Vec<String> = (1..=count).map(|at| at.to_string()).collect();
    let list = list.join(",");
    let rules: String = (1..=count).map(|at| format!("{{batch_size: {at}, prompt_tokens: {}}},", at + 15)).collect();
    format!(
        "  s:\n    matrix: {{ endpoint: demo, prompt_tokens: {{ from: 16, to: {}, step: 1 }}, batch_size: [{list}] }}\n    \
         exclude: [{rules}]\n",
        15 + count
    )
}

fn main() {
    check("zip of 2 × 24 000", &format!("{HEAD}{}", zip(24_000)));
    check("2 × 8 000 values, 8 000 excludes", &format!("max_cells: 10000000\n{HEAD}{}", rules(8_000)));
    check("2 × 3 000 values, 3 000 excludes", &format!("max_cells: 10000000\n{HEAD}{}", rules(3_000)));
    let Some(plan) = check("a million cells", &format!("{HEAD}{MILLION}")) else { return };
    let start = Instant::now();
    let expansion = expand(&plan).expect("expands");
    let took = start.elapsed().as_secs_f64();
    println!("expand: {} runs in {took:.1} s, peak {} MiB", expansion.runs.len(), peak());
}
