//! Which face a sweep under way gets.

use std::io::IsTerminal;
use std::time::Duration;

use clap::ValueEnum;

use super::bars::Bars;
use super::face::Face;
use super::full::Full;
use super::lines::{Json, Plain};

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
            Style::Plain => Box::new(Plain::new(every.unwrap_or(Duration::from_secs(60)))),
            Style::Json => Box::new(Json::new(every.unwrap_or(Duration::from_secs(1)))),
        }
    }
}
