//! The server of all measurements: `sweepline mock` as a separate process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A running mock; it ends on drop.
pub struct Mock {
    child: Child,
    /// The port of the mock on 127.0.0.1.
    pub port: u16,
}

impl Mock {
    /// Starts the mock with these flags and waits until it listens.
    pub fn start(flags: &[&str]) -> Mock {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sweepline"))
            .args(["mock", "--parent-pipe"])
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output is piped")).read_line(&mut line).expect("its first line");
        let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
        Mock { child, port: port.unwrap_or_else(|| panic!("first line of the mock: {line:?}")) }
    }

    /// Returns the CPU time that the mock has used so far, in seconds.
    pub fn cpu(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("a live process");
        // Fields after the name, which ends at the last bracket: user time is the 12th, system time the
        // 13th.
        let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
        let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        ticks as f64 / rustix::param::clock_ticks_per_second() as f64
    }

    /// Ends the mock gracefully, so that its log is complete.
    pub fn end(mut self) {
        drop(self.child.stdin.take());
        let status = self.child.wait().expect("the mock ends");
        assert!(status.success(), "the mock failed: {status}");
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        // The mock may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
