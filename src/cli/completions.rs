//! `sweepline completions SHELL`: what a shell needs to complete commands, flags, their values and file names.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, Exit, Failure, output};

/// The arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell that is to complete
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Prints the script of a shell.
pub fn run(args: CompletionsArgs) -> Result<Exit, Failure> {
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
