//! `--explain`: how an answer is counted, in full, below it. `sweepline explain counting` prints the same text.

use clap::Args;

use crate::cli::failure::Failure;
use crate::cli::output;
use crate::explain::COUNTING;

/// Whether the rules stand below an answer.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Explain {
    /// Print below the answer how it is counted: requests, errors, few samples, intervals, loads, money
    #[arg(long)]
    explain: bool,
}

impl Explain {
    /// Refuses rules below an answer that is for programs, or for a pull request.
    pub(super) fn check(self, is_text: bool) -> Result<(), Failure> {
        match self.explain && !is_text {
            true => Err(Failure::Usage(
                "--explain stands below an answer in text; `sweepline explain counting` prints the rules alone"
                    .to_owned(),
            )),
            false => Ok(()),
        }
    }

    /// Prints the rules, where they are asked for.
    pub(super) fn below(self) -> Result<(), Failure> {
        if self.explain { output::print(&format!("\n{}", COUNTING.text())) } else { Ok(()) }
    }
}
