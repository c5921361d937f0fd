//! The faces of a sweep under way: what draws [`LiveSweep`] and prints what happens.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::ValueEnum;

use super::bars::Bars;
use super::full::Full;
use super::json;
use super::state::LiveSweep;
use super::words;
use crate::units::clock;

/// How a sweep under way is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Style {
    /// Live bars below what happened (a terminal's default).
    Bar,
    /// A line for each thing that happens, and how things stand once a minute (the default without a terminal).
    Plain,
    /// A JSON object a line: what happens, and how things stand each second (`sweepline schema progress`).
    Json,
    /// The whole terminal: figures of the runs under way, how they went lately, what happened.
    Full,
}

impl Style {
    /// The style that is used: as asked where stderr is a terminal; without one, what needs one is `plain`.
    pub(crate) fn used(asked: Option<Style>) -> Style {
        let is_terminal = std::io::stderr().is_terminal();
        match asked {
            None if is_terminal => Style::Bar,
            Some(Style::Bar | Style::Full) | None if !is_terminal => Style::Plain,
            Some(style) => style,
            None => Style::Plain,
        }
    }

    /// What draws in it; `every` is the time between two reports of how things stand, where lines tell them.
    pub(super) fn face(self, every: Option<Duration>) -> Box<dyn Face> {
        match self {
            Style::Bar => Box::new(Bars::new()),
            Style::Full => Box::new(Full::new()),
            Style::Plain => Box::new(Plain { every: every.unwrap_or(Duration::from_secs(60)), last: Instant::now() }),
            Style::Json => Box::new(Json { every: every.unwrap_or(Duration::from_secs(1)), last: None }),
        }
    }
}

/// A face.
pub(super) trait Face: Send {
    /// Shows how things stand; called a few times a second.
    fn draw(&mut self, now: &LiveSweep);
    /// Shows whole lines of what happened.
    fn print(&mut self, text: &str);
    /// Takes away what is not to stay.
    fn close(&mut self);
}

/// Writes to stderr; that it is closed must not end a sweep.
pub(super) fn write(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Lines.
struct Plain {
    every: Duration,
    last: Instant,
}

impl Face for Plain {
    /// A line for each run under way and each wait, where nothing was said for long: in a log nobody sees a bar.
    fn draw(&mut self, now: &LiveSweep) {
        if self.last.elapsed() < self.every {
            return;
        }
        let runs = now.running.iter().map(|run| {
            let parts = [vec![words::phase(run)], words::figures(run), words::errors(run).into_iter().collect()];
            format!("[{}/{}] {} · {}", run.number, now.runs, run.name, parts.concat().join(" · "))
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

/// JSON, a line each.
struct Json {
    every: Duration,
    last: Option<Instant>,
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
