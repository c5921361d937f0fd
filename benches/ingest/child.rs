//! Work done by a child process of this program, so that its CPU time and memory can be measured
//! separately.

use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use serde::{Deserialize, Serialize};

use crate::seen::Seen;
use crate::{bare, engine};

/// The argument that marks a process as a child; the next argument is the child's order.
pub const FLAG: &str = "--child";

/// The task of a child.
#[derive(Debug, Serialize, Deserialize)]
pub enum Order {
    /// A closed loop of the bare reader.
    Bare(bare::Closed),
    /// The same over HTTP/2.
    BareHttp2(bare::Closed),
    /// An open loop of the bare reader.
    BareOpen(bare::open::Open),
    /// A run of sweepline's engine.
    Engine(engine::Order),
}

/// The observations of a child and its cost.
#[derive(Debug)]
pub struct Done {
    /// The observations, as reported by the child.
    pub seen: Seen,
    /// User and system CPU time of the whole process, from start to exit.
    pub cpu: Duration,
}

impl Done {
    /// Returns the CPU seconds per 1 000 streams.
    pub fn cpu_per_1000(&self) -> f64 {
        self.cpu.as_secs_f64() * 1_000.0 / self.seen.streams as f64
    }

    /// Returns the received tokens per second.
    pub fn tokens_per_second(&self) -> f64 {
        self.seen.tokens as f64 / self.seen.seconds
    }

    /// Returns the finished streams per second.
    pub fn streams_per_second(&self) -> f64 {
        self.seen.streams as f64 / self.seen.seconds
    }
}

/// Does the child's task and prints its observations.
pub fn work(order: &str) {
    let order: Order = serde_json::from_str(order).expect("an order of this program");
    let mut seen = match order {
        Order::Bare(order) => bare::closed(&order),
        Order::BareHttp2(order) => bare::http2::closed(&order),
        Order::BareOpen(order) => bare::open::open(&order),
        Order::Engine(order) => engine::run(&order),
    };
    seen.peak_rss = peak_rss();
    println!("{}", serde_json::to_string(&seen).expect("plain data"));
}

/// Runs `order` in a child. Panics on failure, because no figure would be valid.
pub fn run(order: &Order) -> Done {
    let order = serde_json::to_string(order).expect("plain data");
    let program = std::env::current_exe().expect("this program");
    let before = cpu_of_children();
    let output = Command::new(program)
        .args([FLAG, &order])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("this program starts");
    // Only children that have been waited for are included, and no other child is waited for in the meantime.
    let cpu = cpu_of_children() - before;
    assert!(output.status.success(), "the child failed: {order}");
    Done { seen: serde_json::from_slice(&output.stdout).expect("the child's observations"), cpu }
}

fn cpu_of_children() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("the system reports the resource usage of children");
    let micros = |time: TimeVal| time.num_microseconds() as u64;
    Duration::from_micros(micros(usage.user_time()) + micros(usage.system_time()))
}

/// Returns the peak memory of this process, in bytes. `ru_maxrss` is not used because it starts at the
/// parent's memory at the time of the fork.
fn peak_rss() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux provides the process's status");
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    kib.map_or(0, |kib: u64| kib * 1024)
}
