//! `sweepline explain CODE` explains a code of `check`, with a wrong and a right example, or a reason of a
//! verdict.

use clap::Args;

use crate::cli::failure::{Exit, Failure};
use crate::cli::output;
use crate::explain::reasons::{self, VerdictReason};
use crate::explain::{self, Answer};
use crate::report::format::fill;

/// The arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A code like E012, a word that describes it, a verdict's reason like client_late, or `counting`
    /// for the rules by which numbers are computed; by default everything is listed
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

/// Prints the page of a code, or the list of all codes.
pub(super) fn run(args: ExplainArgs) -> Result<Exit, Failure> {
    let Some(asked) = args.code else {
        output::print(&list())?;
        return Ok(Exit::Done);
    };
    match explain::find(&asked) {
        Answer::Found(page) => output::print(&page.text())?,
        Answer::Reason(reason) => output::print(&of_reason(reason))?,
        Answer::Perhaps(near) => return Err(Failure::Usage(no_such_code(&asked, &near))),
    }
    Ok(Exit::Done)
}

/// Lists the codes, one per line, and the names of the reasons.
fn list() -> String {
    let names: Vec<&str> = reasons::all().map(|reason| reason.name).collect();
    let names = fill("", 2, &format!("reasons and labels of a verdict: {}", names.join(", ")));
    format!("{}\n{names}", explain::list())
}

/// Describes a reason of a verdict.
fn of_reason(reason: VerdictReason) -> String {
    let when = fill("", 0, &format!("When: {}.", reason.when()));
    let effect = fill("", 0, &format!("Verdict: {}.", reason.effect()));
    let more = fill("", 0, "`sweepline show RUN` prints the figures of a run. docs/METRICS.md describes all reasons.");
    format!("{}\n\n{when}\n{effect}\n{more}", reason.name)
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
