//! Kinds of rows in an export.

use clap::ValueEnum;

/// The kind of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Rows {
    /// A run.
    Runs,
    /// A class of a mix in one run.
    Classes,
    /// A bucket of prompt or output lengths in a run whose requests differ in length.
    Lengths,
    /// A turn of the conversations in one run.
    Turns,
    /// A load of a curve, with figures over all repeats.
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

    /// Returns the name of the kind on the command line, which is also the name of its sheet.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }
}
