//! The result of each run's transfer, as text and as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use crate::store::object::{Pulled, Pushed};

/// The output of `push` or `pull`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document {
    /// Whether runs were pushed or pulled.
    #[serde(skip)]
    direction: Direction,
    /// The address of the shared results.
    url: String,
    /// All runs that were considered.
    pub(super) runs: Vec<OneRun>,
    /// Number of bytes sent or fetched.
    bytes: u64,
    /// Unusable runs of the folder, which were not sent, each with the reason.
    left_out: Vec<LeftOut>,
}

/// One run, and the outcome of its transfer.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OneRun {
    /// The name of the run's folder, which is the beginning of the run's id.
    id: String,
    /// The outcome for this run.
    outcome: Outcome,
}

/// A run that was not sent.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LeftOut {
    /// The name of the run's folder.
    pub(super) id: String,
    /// Why the run was not sent.
    pub(super) reason: String,
}

/// The result of transferring a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    /// The run is now committed at the destination.
    Committed,
    /// The same result was already at the destination.
    Unchanged,
    /// Another result of the same run was already committed at the destination, and is kept.
    OtherResult,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Push,
    Pull,
}

impl Document {
    pub(super) fn pushed(url: &str, runs: Vec<(String, Pushed)>, left_out: Vec<LeftOut>) -> Document {
        let of = |(id, pushed)| match pushed {
            Pushed::Committed { bytes } => (OneRun { id, outcome: Outcome::Committed }, bytes),
            Pushed::There => (OneRun { id, outcome: Outcome::Unchanged }, 0),
            Pushed::Second { bytes } => (OneRun { id, outcome: Outcome::OtherResult }, bytes),
        };
        Document::new(Direction::Push, url, runs.into_iter().map(of).unzip(), left_out)
    }

    pub(super) fn pulled(url: &str, runs: Vec<(String, Pulled)>) -> Document {
        let of = |(id, pulled)| {
            let (outcome, bytes) = match pulled {
                Pulled::Committed { bytes } => (Outcome::Committed, bytes),
                Pulled::There => (Outcome::Unchanged, 0),
                Pulled::Other => (Outcome::OtherResult, 0),
                // The run was listed, but has been removed since.
                Pulled::Missing => return None,
            };
            Some((OneRun { id, outcome }, bytes))
        };
        Document::new(Direction::Pull, url, runs.into_iter().filter_map(of).unzip(), Vec::new())
    }

    fn new(direction: Direction, url: &str, runs: (Vec<OneRun>, Vec<u64>), left_out: Vec<LeftOut>) -> Document {
        let (runs, bytes) = runs;
        Document { direction, url: url.to_owned(), runs, bytes: bytes.into_iter().sum(), left_out }
    }

    pub(super) fn has_left_out(&self) -> bool {
        !self.left_out.is_empty()
    }

    pub(super) fn text(&self) -> String {
        let count = |outcome| self.runs.iter().filter(|run| run.outcome == outcome).count();
        let (verb, place, there) = match self.direction {
            Direction::Push => ("pushed", format!("to {}", self.url), "there"),
            Direction::Pull => ("pulled", format!("from {}", self.url), "here"),
        };
        let mut line = match count(Outcome::Committed) {
            1 => format!("{verb} 1 run {place}, {}", size(self.bytes)),
            runs => format!("{verb} {runs} runs {place}, {}", size(self.bytes)),
        };
        let unchanged = count(Outcome::Unchanged);
        if unchanged > 0 {
            line.push_str(&format!("; {unchanged} already {there}"));
        }
        let mut lines = vec![line];
        for run in self.runs.iter().filter(|run| run.outcome == Outcome::OtherResult) {
            lines.push(match self.direction {
                Direction::Push => format!(
                    "{}: another result of this run is committed there and stays; this one is kept as an attempt",
                    run.id
                ),
                Direction::Pull => format!("{}: another result of this run is here and stays", run.id),
            });
        }
        lines.extend(self.left_out.iter().map(|run| format!("{}: not sent: {}", run.id, run.reason)));
        lines.join("\n")
    }
}

/// Formats a number of bytes for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
