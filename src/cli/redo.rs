//! `--force` and `--redo`: which runs are executed again. Shared by what executes and what shows it beforehand.

use clap::{Args, ValueEnum};

use crate::sweep::resume::Wishes;

/// What is executed again.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Again {
    /// Execute the selected runs although their results are there; the old ones move to superseded/
    #[arg(long)]
    pub force: bool,
    /// Execute runs of this kind again; several with commas
    #[arg(long, value_enum, value_name = "KIND", value_delimiter = ',')]
    redo: Vec<Redo>,
}

/// Which runs are executed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Redo {
    /// Committed runs whose verdict is invalid
    Invalid,
    /// Runs that were given up: their count of tries begins anew
    GivenUp,
}

impl Again {
    /// As the decision about a run takes it.
    pub(crate) fn wishes(&self) -> Wishes {
        let redo = |kind| self.redo.contains(&kind);
        Wishes { force: self.force, redo_invalid: redo(Redo::Invalid), redo_given_up: redo(Redo::GivenUp) }
    }
}
