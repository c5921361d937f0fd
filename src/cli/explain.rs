//! `sweepline explain CODE` explains a code of `check`, with a wrong and a right example.

use clap::Args;

use crate::cli::failure::{Exit, Failure};
use crate::cli::output;
use crate::explain::{self, Answer};

/// The arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A code like E012, a word that describes it, or `counting` for how numbers are counted; by default
    /// all codes are listed
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

/// Prints the page of a code, or the list of all codes.
pub(super) fn run(args: ExplainArgs) -> Result<Exit, Failure> {
    let Some(asked) = args.code else {
        output::print(&explain::list())?;
        return Ok(Exit::Done);
    };
    match explain::find(&asked) {
        Answer::Found(page) => output::print(&page.text())?,
        Answer::Perhaps(near) => return Err(Failure::Usage(no_such_code(&asked, &near))),
    }
    Ok(Exit::Done)
}

fn no_such_code(asked: &str, near: &[&explain::Page]) -> String {
    let mut text = format!("unknown code `{asked}`");
    match near {
        [] => text.push_str("; `sweepline explain` lists all"),
        near => {
            text.push_str("; did you mean one of these?\n");
            near.iter().for_each(|page| text.push_str(&format!("  {}  {}\n", page.code, page.title())));
            text.push_str("`sweepline explain` lists all");
        }
    }
    text
}
