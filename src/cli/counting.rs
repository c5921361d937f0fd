//! `--explain`: prints, below an answer, the rules by which its numbers are computed. `sweepline explain
//! counting` prints the same rules.

use clap::Args;

use crate::cli::failure::Failure;
use crate::cli::output;
use crate::explain::COUNTING;

/// Whether the rules by which numbers are computed are printed below a command's output.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Explain {
    /// Also print how the numbers are computed: the rules for requests, errors, small samples, intervals,
    /// loads and costs
    #[arg(long)]
    explain: bool,
}

impl Explain {
    /// Rejects `--explain` for output that is meant for programs or for a pull request.
    pub(super) fn check(self, is_text: bool) -> Result<(), Failure> {
        match self.explain && !is_text {
            true => Err(Failure::Usage(
                "--explain works with text output only; `sweepline explain counting` prints only the rules".to_owned(),
            )),
            false => Ok(()),
        }
    }

    /// Prints the rules if they were requested.
    pub(super) fn below(self) -> Result<(), Failure> {
        if self.explain { output::print(&format!("\n{}", COUNTING.text())) } else { Ok(()) }
    }
}
