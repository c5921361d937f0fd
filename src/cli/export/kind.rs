//! Kinds of rows in an export.

use clap::ValueEnum;

/// The kind of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Rows {
    /// A run.
    Runs,
    /// A class of a run over a mix.
    Classes,
    /// A bucket of prompt or output lengths in a run whose requests differ in length.
    Lengths,
    /// A turn of a run of conversations.
    Turns,
    /// A load of a curve, over its repeats.
    Curves,
    /// A request.
    Requests,
    /// A token event of a request, with the gap before the event.
    Events,
}

impl Rows {
    /// All kinds, in the order of a workbook's sheets.
    pub(crate) const ALL: [Rows; 7] =
        [Rows::Runs, Rows::Classes, Rows::Lengths, Rows::Turns, Rows::Curves, Rows::Requests, Rows::Events];

    /// Returns the name on the command line, and of the sheet.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }
}
