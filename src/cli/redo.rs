//! `--force` and `--redo` select which runs are executed again. Shared by the commands that execute
//! and preview runs.

use clap::{Args, ValueEnum};

use crate::sweep::resume::Wishes;

/// The runs to execute again.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Again {
    /// Execute the selected runs even if they have results; the old results move to superseded/
    #[arg(long)]
    pub force: bool,
    /// Execute runs of this kind again; separate several kinds with commas
    #[arg(long, value_enum, value_name = "KIND", value_delimiter = ',')]
    redo: Vec<Redo>,
}

/// Which runs are executed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Redo {
    /// Committed runs whose verdict is invalid
    Invalid,
    /// Runs that were given up: their retry count is reset
    GivenUp,
}

impl Again {
    /// Converts the flags into the input of the decision about a run.
    pub(crate) fn wishes(&self) -> Wishes {
        let redo = |kind| self.redo.contains(&kind);
        Wishes { force: self.force, redo_invalid: redo(Redo::Invalid), redo_given_up: redo(Redo::GivenUp) }
    }
}
