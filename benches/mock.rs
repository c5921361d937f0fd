//! Throughput and accuracy of the mock: `cargo bench --bench mock`.
//!
//! The client only reads responses and examines nothing except their ends. The mock serves on one thread, so
//! its throughput per second of CPU time equals its throughput on a dedicated core. Unlike tokens per second
//! of elapsed time, this figure is also valid on a busy machine.

use std::cell::RefCell;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Instant;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::LocalSet;

/// Number of tokens of a response: one as in the engine's targets, and one so large that the cost of the
/// request is negligible.
const LENGTHS: [u64; 2] = [128, 4_096];
/// Tokens of each throughput measurement.
const TOKENS: u64 = 8_000_000;
/// Connections of each throughput measurement.
const CONNECTIONS: u64 = 64;

/// A mock with its log in a separate folder.
struct Mock {
    child: Child,
    address: SocketAddr,
    folder: tempfile::TempDir,
}

impl Mock {
    fn start(flags: &[&str], logged: bool) -> Mock {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_sweepline"));
        command.arg("mock").args(flags).stdout(Stdio::piped());
        if logged {
            command.arg("--log").arg(folder.path().join("log.jsonl"));
        }
        let mut child = command.spawn().expect("the built program");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("its first line");
        let address = line.trim().strip_prefix("listening on http://").expect("an address").parse();
        Mock { child, address: address.expect("an address"), folder }
    }

    /// Returns the CPU time of all threads of the mock so far, in seconds.
    fn cpu(&self) -> f64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("its threads");
        let run = |task: PathBuf| -> Option<f64> {
            std::fs::read_to_string(task.join("schedstat")).ok()?.split(' ').next()?.parse().ok()
        };
        tasks.filter_map(|task| run(task.ok()?.path())).sum::<f64>() / 1e9
    }

    /// Ends the mock and returns its log.
    fn log(mut self) -> Vec<Value> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("it runs");
        self.child.wait().expect("it ends");
        let text = std::fs::read_to_string(self.folder.path().join("log.jsonl")).expect("a log");
        text.lines().skip(1).map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Opens all `connections`, sends `requests` one after the other on each, and reads the responses
/// completely.
fn drain(address: SocketAddr, connections: u64, requests: u64, tokens: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
    let body = format!(
        r#"{{"model":"m","stream":true,"max_tokens":{tokens},"messages":[{{"role":"user","content":"Go."}}]}}"#
    );
    let length = body.len();
    let request = format!("POST /v1/chat/completions HTTP/1.1\r\nHost: m\r\nContent-Length: {length}\r\n\r\n{body}");
    let scratch = Rc::new(RefCell::new(vec![0; 256 << 10]));
    LocalSet::new().block_on(&runtime, async {
        let mut streams = Vec::new();
        for _ in 0..connections {
            streams.push(TcpStream::connect(address).await.expect("a connection"));
        }
        let tasks: Vec<_> = streams
            .into_iter()
            .map(|stream| {
                let (request, scratch) = (request.clone(), Rc::clone(&scratch));
                tokio::task::spawn_local(async move {
                    for _ in 0..requests {
                        ask(&stream, request.as_bytes(), &scratch).await.expect("an answer");
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("no panic");
        }
    });
}

/// Sends one request and reads up to the last chunk.
async fn ask(stream: &TcpStream, request: &[u8], scratch: &RefCell<Vec<u8>>) -> io::Result<()> {
    assert_eq!(stream.try_write(request)?, request.len(), "a request fits into the socket's buffer");
    let mut end = [0; 5];
    while &end != b"0\r\n\r\n" {
        stream.readable().await?;
        let mut scratch = scratch.borrow_mut();
        match stream.try_read(&mut scratch) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                let new = read.min(5);
                end.rotate_left(new);
                end[5 - new..].copy_from_slice(&scratch[read - new..read]);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn throughput(name: &str, flags: &[&str], logged: bool, length: u64, tokens: u64) {
    let flags = [&["--ttft", "0s", "--itl", "0s", "--slots", "64"], flags].concat();
    let mock = Mock::start(&flags, logged);
    drain(mock.address, CONNECTIONS, 1, length);
    let requests = tokens / length / CONNECTIONS;
    let (cpu, start) = (mock.cpu(), Instant::now());
    drain(mock.address, CONNECTIONS, requests, length);
    let (cpu, wall) = (mock.cpu() - cpu, start.elapsed().as_secs_f64());
    let tokens = (requests * CONNECTIONS * length) as f64;
    let log = if logged { "log" } else { "no log" };
    println!(
        "{name:<16} {length:>5} tokens, {log:<6}: {:>9.0} tokens per CPU second, {:>9.0} per second",
        tokens / cpu,
        tokens / wall
    );
}

/// Lateness of the first writes of streams that start together, relative to the configured times, and their
/// cost.
fn exactness(streams: u64, tokens: u64, (ttft, itl): (u64, u64)) {
    let slots = streams.to_string();
    let (first, gap) = (format!("{ttft}ms"), format!("{itl}ms"));
    let mock = Mock::start(&["--ttft", &first, "--itl", &gap, "--slots", &slots], true);
    let start = Instant::now();
    drain(mock.address, streams, 1, tokens);
    let (wall, cpu) = (start.elapsed().as_secs_f64(), mock.cpu());
    let log = mock.log();
    let at = |line: &Value, name: &str| line[name].as_u64().expect("an instant") as f64;
    let late = |name: &str, behind: u64| {
        let planned = (behind * 1_000_000) as f64;
        let mut late: Vec<f64> =
            log.iter().map(|line| (at(line, name) - at(line, "slot_ns") - planned) / 1e3).collect();
        late.sort_by(f64::total_cmp);
        let pick = |share: f64| late[((late.len() - 1) as f64 * share) as usize];
        format!("{:.0} / {:.0} / {:.0}", pick(0.5), pick(0.99), pick(1.0))
    };
    let complete = log.iter().filter(|line| line["outcome"] == "complete").count();
    let kernel = log.iter().filter(|line| line["arrival_stamp"] == "kernel").count();
    println!(
        "{streams} streams at once, TTFT {first}, ITL {gap}: {complete} complete, {kernel} stamped by the kernel, \
         late by µs at p50/p99/max: first token {}, last {}; {cpu:.1} CPU s in {wall:.1} s",
        late("first_write_ns", ttft),
        late("last_write_ns", ttft + itl * (tokens - 1))
    );
}

fn main() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("the hard limit is allowed");
    for length in LENGTHS {
        for logged in [false, true] {
            throughput("coalesced", &[], logged, length, TOKENS);
            throughput("write per event", &["--write-per-event"], logged, length, TOKENS / 8);
        }
    }
    exactness(64, 64, (50, 10));
    exactness(256, 64, (50, 10));
    // This case has fewer tokens per second, because 10 000 streams cannot all have a token every 10 ms.
    exactness(10_000, 8, (4_000, 1_000));
}
