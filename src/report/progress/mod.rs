//! Progress of a running sweep on stderr, as bars, lines, JSON or full screen ([`Style`]).
//!
//! `Screen` converts events to text, `tracker` keeps the state of the sweep, and `ticker` passes the state to
//! a display (`face`) a few times per second.

mod bars;
mod events;
mod face;
mod full;
mod json;
mod lines;
mod metrics;
mod outlook;
mod phases;
mod publish;
mod state;
mod style;
mod ticker;
mod traces;
mod tracker;
mod words;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

pub(crate) use events::{EventLine, EventLog, Headline};
pub(crate) use full::leave;
pub(crate) use json::ProgressLine;
pub(crate) use metrics::SweepMetrics;
pub(crate) use outlook::Outlook;
pub(crate) use publish::Publisher;
pub(crate) use state::{FORMAT, LiveFile, LiveRun, LiveWait};
#[cfg(test)]
pub(crate) use state::{LivePhase, LiveSweep};
pub(crate) use style::Style;
pub(crate) use traces::Traces;
pub(crate) use words::phase;

use super::format::{duration, fill_to, plain};
use crate::sweep::Waiting;
use crate::sweep::event::{Event, RunView, may_be_prolonged};
use crate::units::text::{counted, page};
use crate::units::{Nanos, clock};
use json::{Kind, Said};
use ticker::Ticker;
use tracker::Tracker;

/// How much is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Talk {
    /// Only errors are printed.
    Quiet,
    /// Each event is printed on one line.
    Normal,
    /// Each event is printed on one line, with details that are usually omitted, such as probes and ids.
    Verbose,
}

/// Makes each line of a text, such as the last lines of a server's log, safe for a terminal.
fn plain_lines(text: &str) -> String {
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
}

/// Wraps the text of an event to the width of a terminal, with later lines indented.
fn wrapped(time: &str, text: &str, columns: usize) -> String {
    let line = |(number, line): (usize, &str)| {
        let words = line.trim_start();
        let indent = line.len() - words.len();
        let first = if number == 0 { time.to_owned() } else { String::new() } + &" ".repeat(indent);
        fill_to(columns, &first, indent + 2, words)
    };
    text.split('\n').enumerate().map(line).collect()
}

/// How a running sweep is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// How much is printed.
    pub(crate) talk: Talk,
    /// The kind of display.
    pub(crate) style: Style,
    /// Interval between reports of the current state, for displays that print lines; `None` for the default
    /// of the display.
    pub(crate) every: Option<Duration>,
}

/// The screen of a running sweep.
pub(crate) struct Screen {
    manner: Manner,
    /// Whether lines start with the time of day.
    with_times: bool,
    /// The ticker, which draws from the first event to the last; `None` if only errors are printed.
    ticker: Option<Ticker>,
    total: usize,
    /// The names of unfinished searches and ladders, and of sweeps that wait for an earlier sweep. As long as
    /// there are any, the total may grow.
    open: HashSet<String>,
    /// For each endpoint that the sweep waits for: the reason that was printed last.
    waiting: HashMap<String, String>,
    /// What is known about the duration of the sweep.
    outlook: Outlook,
}

impl Screen {
    /// Creates a screen; nothing is drawn before the first event.
    pub(crate) fn new(manner: Manner) -> Screen {
        Screen {
            manner,
            with_times: false,
            ticker: None,
            total: 0,
            open: HashSet::new(),
            waiting: HashMap::new(),
            outlook: Outlook::default(),
        }
    }

    /// Prints the local time of day before each event, for output that is read later, such as the log of a
    /// nightly run.
    pub(crate) fn with_times(self) -> Screen {
        Screen { with_times: true, ..self }
    }

    /// Sets what is known about the duration of the sweep.
    pub(crate) fn expecting(self, outlook: Outlook) -> Screen {
        Screen { outlook, ..self }
    }

    /// Prints a note above the live lines.
    pub(crate) fn line(&self, text: &str) {
        self.tell(false, Said { kind: Kind::Note, run: None, endpoint: None, text: text.to_owned() });
    }

    /// Prints a message; errors are printed even in quiet mode.
    fn tell(&self, is_error: bool, said: Said) {
        if self.manner.talk == Talk::Quiet && !is_error {
            return;
        }
        let is_on_terminal = matches!(self.manner.style, Style::Bar | Style::Full);
        let time = if self.with_times { format!("{} ", clock::time_now()) } else { String::new() };
        let text = match self.manner.style {
            Style::Json => said.json(),
            _ if is_on_terminal && self.with_times => wrapped(&time, &page(&said.text), words::terminal().0),
            _ => format!("{time}{}\n", page(&said.text)),
        };
        match &self.ticker {
            Some(ticker) => ticker.print(&text),
            None => face::write(&text),
        }
    }

    /// Prints a message about an endpoint.
    fn of(&self, kind: Kind, endpoint: &str, is_error: bool, what: &str) {
        let text = format!("{endpoint}: {what}");
        self.tell(is_error, Said { kind, run: None, endpoint: Some(endpoint), text });
    }

    /// Shows an event. `summary` describes the result of a committed run.
    pub(crate) fn show(&mut self, event: &Event, summary: impl FnOnce(&RunView) -> String) {
        if self.ticker.is_none() && self.manner.talk > Talk::Quiet {
            let tracker = Tracker::new(self.outlook.clone());
            self.ticker = Some(Ticker::start(tracker, self.manner.style.face(self.manner.every)));
        }
        if let Some(ticker) = &self.ticker {
            ticker.take(event);
        }
        match event {
            Event::Begin { todo, settled, open, .. } => {
                self.total = settled + todo.len();
                self.open = open.iter().cloned().collect();
            }
            Event::Endpoint { endpoint, result } => self.answered(endpoint, result),
            Event::Chosen { pool, standing, next } => {
                // A run that an earlier sweep also requested already has a number.
                self.total = next.iter().fold(self.total, |total, run| total.max(run.number));
                match next {
                    Some(_) => drop(self.open.insert(pool.clone())),
                    None => drop(self.open.remove(pool)),
                }
                let text = plain(&format!("{pool}: {standing}"));
                self.tell(false, Said { kind: Kind::Chosen, run: None, endpoint: None, text });
            }
            Event::Pruned { cell, why, runs } => {
                let text = plain(&format!("{cell}: {why}; {} skipped", counted(runs.len(), "run")));
                self.tell(false, Said { kind: Kind::Pruned, run: None, endpoint: None, text });
            }
            Event::Launching { endpoint, command } => {
                self.of(Kind::Server, endpoint, false, &format!("starting {}", plain(command)));
            }
            Event::Launched { endpoint, after, log } => {
                self.waiting.remove(endpoint);
                let after = Nanos::from(Duration::from_millis((after.as_secs_f64() * 1e3).round() as u64)).spoken();
                self.of(Kind::Server, endpoint, false, &format!("ready after {after} (log: {})", plain(log)));
            }
            Event::Relaunching { endpoint, reason, again, of } => {
                let what = format!("to be restarted ({again} of {of}): {}", plain_lines(reason));
                self.of(Kind::Server, endpoint, true, &what);
            }
            Event::Slow { endpoint, url } => {
                self.of(Kind::Endpoint, endpoint, false, &format!("waiting for {} to respond", plain(url)));
            }
            Event::Far { endpoint, why } => {
                self.of(Kind::Endpoint, endpoint, false, &format!("warning: {}", plain(why)));
            }
            Event::ListRefused { endpoint, note } => self.of(Kind::Endpoint, endpoint, false, note),
            Event::Busy { endpoint, what } => self.of(Kind::Endpoint, endpoint, false, &plain(what)),
            Event::Waiting { endpoint, waiting } => self.waiting(endpoint, waiting),
            Event::Started { run, .. } => self.started(run),
            Event::Committed { run } => self.named(Kind::Committed, run, &summary(run)),
            Event::Failed { run, reason } => {
                self.named(Kind::Failed, run, &format!("failed: {}", plain_lines(reason)));
            }
            Event::Again { run, reason, again, of } => {
                let what = format!("spoiled, to be retried ({again} of {of}): {}", plain_lines(reason));
                self.named(Kind::Again, run, &what);
            }
            Event::GivenUp { run, cause, reason, times } => {
                let what = format!("given up: {}: {}", cause.given_up(*times), plain_lines(reason));
                self.named(Kind::GivenUp, run, &what);
            }
            Event::Skipped { run, reason } => {
                self.named(Kind::Skipped, run, &format!("skipped: {}", plain(reason)));
            }
            Event::Stopping => {
                let text = "stopping: active runs are abandoned, committed runs are kept (Ctrl-C again: stop at once)";
                self.tell(false, Said { kind: Kind::Stopping, run: None, endpoint: None, text: text.to_owned() });
            }
            Event::End => self.ticker = None,
        }
    }

    /// Reports the result of probing an endpoint. If the sweep waited for the endpoint, reports that it is
    /// ready; otherwise reports only problems, unless the output is verbose.
    fn answered(&mut self, endpoint: &str, result: &Result<String, String>) {
        let was_waited_for = self.waiting.remove(endpoint).is_some();
        match result {
            Ok(_) if was_waited_for => self.of(Kind::Endpoint, endpoint, false, "ready"),
            Ok(found) if self.manner.talk == Talk::Verbose => {
                self.of(Kind::Endpoint, endpoint, false, &plain(found));
            }
            Ok(_) => {}
            Err(reason) => self.of(Kind::Endpoint, endpoint, true, &plain_lines(reason)),
        }
    }

    fn started(&self, run: &RunView) {
        // Other displays already show the start of a run.
        if matches!(self.manner.style, Style::Plain | Style::Json) {
            let takes = duration(run.expected_ns().div_ceil(1_000_000_000));
            let about = if may_be_prolonged(&run.phases, &run.load) { "at least" } else { "about" };
            let text = format!("{} {} started, {about} {takes}", self.place(run), run.name);
            self.tell(false, Said { kind: Kind::Started, run: Some(run), endpoint: None, text });
        }
    }

    /// Prints a line when a wait begins and when its reason changes. In between, the live display shows how
    /// long the wait has lasted.
    fn waiting(&mut self, endpoint: &str, waiting: &Waiting) {
        let Waiting { reason, waited, within } = waiting;
        if self.waiting.get(endpoint) != Some(reason) {
            let left = duration(within.saturating_sub(*waited).as_secs_f64().ceil() as u64);
            self.of(Kind::Waiting, endpoint, false, &format!("waiting for up to {left}: {}", plain(reason)));
        }
        self.waiting.insert(endpoint.to_owned(), reason.clone());
    }

    /// Returns the number of a run and the total: `[3/12]`, or `[3/12+]` if the total may grow.
    fn place(&self, run: &RunView) -> String {
        format!("[{}/{}{}]", run.number, self.total, if self.open.is_empty() { "" } else { "+" })
    }

    /// Reports on a run; problems are reported even in quiet mode.
    fn named(&self, kind: Kind, run: &RunView, what: &str) {
        let id = if self.manner.talk == Talk::Verbose { format!(" ({})", run.id.short()) } else { String::new() };
        let text = format!("{} {}{id} · {what}", self.place(run), run.name);
        self.tell(kind != Kind::Committed, Said { kind, run: Some(run), endpoint: None, text });
    }
}
