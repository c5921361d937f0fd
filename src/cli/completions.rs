//! `sweepline completions SHELL` prints the script that a shell uses to complete commands, flags,
//! their values and file names.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::cli::failure::{Exit, Failure};
use crate::cli::output;

/// The arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell to write the script for
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Prints the completion script of a shell.
pub(super) fn run(args: CompletionsArgs, mut program: Command) -> Result<Exit, Failure> {
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, name, &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
