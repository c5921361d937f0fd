//! The runs of an `optimize`: for each run, the settings that it tried, its length, its result, and the
//! outcome for the settings.

use comfy_table::{Cell, Table};
use schemars::JsonSchema;
use serde::Serialize;

use super::format::{plain, short_id};
use super::grid::{self, right};
use crate::units::Nanos;
use crate::units::text::digits;

/// One finished run of an optimize.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct TrailTrial {
    /// Full id of the run.
    pub(crate) run: String,
    /// The settings that the run tried, by `server` axes: `max_num_seqs=64`.
    pub(crate) settings: String,
    /// The rung of the run, from 1. The window triples with each rung.
    pub(crate) rung: usize,
    /// Length of the run's window.
    pub(crate) window: Nanos,
    /// The result of this run, in `unit`; null for a run that is invalid or was given up.
    pub(crate) value: Option<f64>,
    /// The unit of `value`.
    pub(crate) unit: &'static str,
    /// The outcome for the settings: went_on (to a longer run), left_out (hardly better than the best, or
    /// shown to be worse), not_to_choose, says_nothing (the client spoiled the run, which is repeated once),
    /// no_time (for a longer run, although not distinguished from the others), best, undecided (among the
    /// best at the end) or open (other runs of the rung come first).
    pub(crate) became: &'static str,
    /// Whether the settings meet the plan's objective, based on all of their runs: shown, seems (as
    /// observed), seems_not or misses; null without an objective.
    pub(crate) meets: Option<&'static str>,
    /// Why the settings cannot be chosen (a run that is invalid or was given up, or a missed objective), why
    /// the run is inconclusive, or what is not shown about the best settings; null for other runs.
    pub(crate) note: Option<String>,
    /// The outcome for the run's settings, in words.
    #[serde(skip)]
    pub(crate) words: &'static str,
}

impl TrailTrial {
    /// Formats the result of the run: `97 tokens/s`.
    pub(crate) fn measured(&self) -> String {
        self.value.map_or_else(|| "n/a".to_owned(), |value| format!("{} {}", digits(value), self.unit))
    }

    /// Describes the outcome for the run's settings, with further notes.
    pub(crate) fn fate(&self) -> String {
        match &self.note {
            Some(note) => format!("{} ({note})", self.words),
            None => self.words.to_owned(),
        }
    }

    /// Summarizes the run: `rung 1, slots=8: 97 tokens/s, went on`.
    pub(crate) fn told(&self) -> String {
        format!("rung {}, {}: {}, {}", self.rung, self.settings, self.measured(), self.fate())
    }
}

/// Returns a table with a row for each run.
pub(super) fn table(trials: &[TrailTrial]) -> Table {
    let mut table = grid::table();
    let unit = trials.first().map(|trial| trial.unit).unwrap_or_default();
    table.set_header(["rung", "window", "settings", "run", unit, "then"]);
    for trial in trials {
        table.add_row(vec![
            right(trial.rung.to_string()),
            right(trial.window.to_string()),
            Cell::new(plain(&trial.settings)),
            Cell::new(short_id(&trial.run)),
            right(trial.value.map_or_else(|| "n/a".to_owned(), digits)),
            Cell::new(plain(&trial.fate())),
        ]);
    }
    table
}
