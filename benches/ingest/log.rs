//! The mock's observations: its log, by request id.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

/// The parts of a line that are evaluated. Nanoseconds on the monotonic clock.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Line {
    /// Arrival of the request's first byte.
    pub arrival_ns: Option<u64>,
    /// Time just before the write call with the first token.
    pub first_write_ns: Option<u64>,
}

/// The lines of some requests, by the number after the prefix of their ids.
pub type Lines = HashMap<u64, Line>;

#[derive(Deserialize)]
struct Named {
    request_id: Option<String>,
    #[serde(flatten)]
    line: Line,
}

/// All lines of a log.
pub struct Log(Vec<Named>);

impl Log {
    /// Reads the log of a mock that has ended.
    pub fn read(path: &Path) -> Log {
        let text = std::fs::read_to_string(path).expect("the mock's log");
        Log(text.lines().skip(1).map(|line| serde_json::from_str(line).expect("a line of the log")).collect())
    }

    /// Returns the lines whose id is `prefix`, a dash and a number.
    pub fn of(&self, prefix: &str) -> Lines {
        let number = |id: &str| id.strip_prefix(prefix)?.strip_prefix('-')?.parse().ok();
        self.0.iter().filter_map(|named| Some((number(named.request_id.as_deref()?)?, named.line))).collect()
    }
}
