//! `--force` and `--redo`: which committed runs are executed again. Shared by what executes and what shows it beforehand.

use clap::{Args, ValueEnum};

use crate::sweep::resume::Wishes;

/// What is executed again.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct Again {
    /// Execute the selected runs although their results are there; the old ones move to superseded/
    #[arg(long)]
    pub force: bool,
    /// Execute runs of this kind again
    #[arg(long, value_enum, value_name = "KIND")]
    redo: Option<Redo>,
}

/// Which committed runs are executed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Redo {
    /// Those whose verdict is invalid.
    Invalid,
}

impl Again {
    /// As the decision about a run takes it.
    pub fn wishes(self) -> Wishes {
        Wishes { force: self.force, redo_invalid: self.redo == Some(Redo::Invalid) }
    }
}
