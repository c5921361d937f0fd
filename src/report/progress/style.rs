//! The choice of display for a running sweep.

use std::io::IsTerminal;
use std::time::Duration;

use clap::ValueEnum;

use super::bars::Bars;
use super::face::Face;
use super::full::Full;
use super::lines::{Json, Plain};

/// How a running sweep is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Style {
    /// Live bars below the events (the default on a terminal).
    Bar,
    /// A line per event, and the current state once per minute (the default without a terminal).
    Plain,
    /// One JSON object per line: events, and the current state every second (`sweepline schema progress`).
    Json,
    /// Full screen: figures of the active runs, their recent history, and events.
    Full,
}

impl Style {
    /// Returns the style to use: the requested style, or `plain` if that style needs a terminal and stderr is
    /// not a terminal. Without a request, `bar` is used on a terminal and `plain` otherwise.
    pub(crate) fn used(asked: Option<Style>) -> Style {
        let is_terminal = std::io::stderr().is_terminal();
        match asked {
            None if is_terminal => Style::Bar,
            Some(Style::Bar | Style::Full) | None if !is_terminal => Style::Plain,
            Some(style) => style,
            None => Style::Plain,
        }
    }

    /// Creates the display of this style; `every` is the interval between reports of the current state, for
    /// displays that print lines.
    pub(super) fn face(self, every: Option<Duration>) -> Box<dyn Face> {
        match self {
            Style::Bar => Box::new(Bars::new()),
            Style::Full => Box::new(Full::new()),
            Style::Plain => Box::new(Plain::new(every.unwrap_or(Duration::from_secs(60)))),
            Style::Json => Box::new(Json::new(every.unwrap_or(Duration::from_secs(1)))),
        }
    }
}
