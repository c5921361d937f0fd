//! Tests the rows in other tools: DuckDB, pyarrow and Python's csv module read the results of a sweep and
//! compute the same figures (`readers.py`).

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use lab::pages::block;
use lab::sweeps::honest;
use lab::workbooks::python;
use lab::{Ended, Lab};

/// A plan with a closed, an open and a capped loop, different axes, and an endpoint that fails and
/// sends two tokens per event.
const PLAN: &str = "
sweepline: 1
name: axes
seed: 8
endpoints:
  demo: { engine: mock, mock: { ttft: 2ms, itl: 1ms, slots: 4 } }
  faulty: { url: FAULTY, engine: vllm }
models: { m: { id: tiny } }
scenarios: { short: { base: B1, output_tokens: 6 } }
phases: { fill: 20ms, stabilize: 50ms, measure: 400ms, drain: 5s }
sweeps:
  warm: { matrix: { endpoint: [demo], model: [m], scenario: [short], temperature: [0, 0.5], batch_size: [2] } }
  long: { matrix: { endpoint: [demo], model: [m], scenario: [short], output_tokens: [5, 9], qps: [40] } }
  capped: { matrix: { endpoint: [demo], model: [m], scenario: [short], qps: [300], batch_size: [1] } }
  plain: { matrix: { endpoint: [demo], model: [m], scenario: [short], batch_size: [1] } }
  whole: { matrix: { endpoint: [demo], model: [m], scenario: [short], stream: [false], batch_size: [2] } }
  faulty: { matrix: { endpoint: [faulty], model: [m], scenario: [short], batch_size: [2] } }
";

/// A test server, which is killed on drop.
struct Faulty {
    child: Child,
    url: String,
}

impl Faulty {
    fn start(lab: &Lab) -> Faulty {
        let flags = ["mock", "--ttft", "2ms", "--itl", "1ms", "--tokens-per-event", "2", "--fault", "http:503@every:7"];
        let mut child = lab.command(&flags).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = format!("{}/v1", line.trim().strip_prefix("listening on ").unwrap());
        Faulty { child, url }
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn others_read_one_table_and_compute_the_same_figures() {
    let Some(python) = python() else { return };
    let lab = Lab::real_time();
    let faulty = Faulty::start(&lab);
    lab.write("plan.yaml", &PLAN.replace("FAULTY", &faulty.url));
    honest(&lab.run(&["run", "plan.yaml"]));

    let stored = lab.results().join("runs.parquet");
    lab.ok(&["export", "--format", "parquet"]);
    let first = std::fs::read(&stored).unwrap();
    lab.ok(&["export", "--format", "parquet"]);
    assert!(std::fs::read(&stored).unwrap() == first, "the rewritten file differs");
    std::fs::remove_file(&stored).unwrap();
    lab.ok(&["export", "plan.yaml", "--format", "parquet"]);
    assert!(std::fs::read(&stored).unwrap() == first, "the recreated file differs");

    lab.ok(&["export", "plan.yaml", "--columns", "all", "-o", "runs.csv"]);
    lab.ok(&["export", "plan.yaml", "--format", "json", "-o", "runs.json"]);
    for table in ["requests.csv", "requests.parquet", "events.csv", "events.parquet"] {
        let all = ["--columns", "all", "-o", table];
        lab.ok(&[&["export", "plan.yaml", "--rows", table.split('.').next().unwrap()][..], &all].concat());
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/readers.py");
    let query = block("docs/TELEMETRY.md", "select ").lines.remove(0);
    let read = Ended::from(Command::new(python).arg(script).arg(lab.path()).arg(query).output().unwrap());
    assert_eq!(read.code, Some(0), "{}{}", read.stdout, read.stderr);
    let told = read.json();
    // Eight figures of eight runs in three formats, except null values.
    assert!(told["runs"] == 8 && told["figures"].as_u64() > Some(8 * 7 * 3), "{told}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let lab = lab::sweeps::lab();
    honest(&lab.run(&["run", "plan.yaml", "--only", "batch_size < 3"]));
    for format in ["csv", "json", "markdown"] {
        // The output is never read, because the other end is closed before the program starts.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut export = lab.command(&["export", "--rows", "requests", "--format", format]);
        let ended =
            Ended::from(export.stdout(writer).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap());
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{format}");
    }
}
