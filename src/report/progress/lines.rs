//! Displays that print lines: for a log, and for a program.

use std::time::{Duration, Instant};

use super::face::{Face, write};
use super::json;
use super::state::LiveSweep;
use super::words;
use crate::units::clock;

/// Lines for people.
pub(super) struct Plain {
    every: Duration,
    last: Instant,
}

impl Plain {
    /// The silence after which the current state is printed.
    pub(super) fn new(every: Duration) -> Plain {
        Plain { every, last: Instant::now() }
    }
}

impl Face for Plain {
    /// Prints a line for each active run and each wait after a long silence, because a log shows no
    /// bars.
    fn draw(&mut self, now: &LiveSweep) {
        if self.last.elapsed() < self.every {
            return;
        }
        let runs = now.running.iter().map(|run| {
            let phase: Vec<String> = run.standing.iter().cloned().chain([words::phase(run)]).collect();
            let parts = [phase, words::figures(run), words::errors(run).into_iter().collect()];
            format!("[{}/{}] {} · {}", run.number, now.all(), run.name, parts.concat().join(" · "))
        });
        let waits = now.waiting.iter().map(|wait| words::wait(wait).join(" · "));
        let lines: Vec<String> = waits.chain(runs).collect();
        if lines.is_empty() {
            return;
        }
        let left = Some(words::left(now)).filter(|left| !left.is_empty());
        let text: String =
            lines.into_iter().chain(left).map(|line| format!("{} {line}\n", clock::time_now())).collect();
        self.print(&text);
    }

    fn print(&mut self, text: &str) {
        self.last = Instant::now();
        write(text);
    }

    fn close(&mut self) {}
}

/// JSON, one object per line.
pub(super) struct Json {
    every: Duration,
    last: Option<Instant>,
}

impl Json {
    /// Reports the current state at this interval.
    pub(super) fn new(every: Duration) -> Json {
        Json { every, last: None }
    }
}

impl Face for Json {
    fn draw(&mut self, now: &LiveSweep) {
        if self.last.is_none_or(|last| last.elapsed() >= self.every) {
            self.last = Some(Instant::now());
            self.print(&json::status(now));
        }
    }

    fn print(&mut self, text: &str) {
        write(text);
    }

    fn close(&mut self) {}
}
