//! `sweepline diff A B`: the runs that come, go and stay between two plans, or two revisions of one, and the edits that
//! made it so, and what that costs: requests, tokens, time, money. Sends nothing; of results it takes what closed loops sent.

pub(super) mod compare;
pub(super) mod costs;
pub(super) mod edits;
pub(super) mod show;
pub(super) mod source;

use clap::{Args, ValueEnum};
use compare::compare;
use costs::Costs;
use show::Diff;
use source::Source;

use super::changes::Changes;
use super::counting::Explain;
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::Folder;
use crate::cli::output;

pub(crate) use source::Side;

/// The arguments of `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The plan before: a file, or FILE@REV for the file as it was at a git revision
    #[arg(value_name = "A")]
    a: String,
    /// The plan after, written likewise; left out, it is the file of A@REV as it is now, or A with what --set sets
    #[arg(value_name = "B")]
    b: Option<String>,
    #[command(flatten)]
    changes: Changes,
    /// Text for people, Markdown for a pull request, or JSON for programs (schemas/diff.schema.json)
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    explain: Explain,
}

/// How the difference is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// For people.
    Text,
    /// For a pull request.
    Markdown,
    /// For programs.
    Json,
}

/// Compares two plans.
pub(super) fn run(args: DiffArgs) -> Result<Exit, Failure> {
    args.explain.check(args.format == OutputFormat::Text)?;
    let a = Source::parse(&args.a);
    let unset = args.changes.without_set();
    let (before, b) = match &args.b {
        Some(b) => (&args.changes, Source::parse(b)),
        None if a.revision.is_some() => (&args.changes, Source::file(&a.path)),
        // Two plans are changed alike; one plan is compared with what the changes make of it.
        None if args.changes.set_something() => (&unset, Source::file(&a.path)),
        None => {
            let text = format!(
                "give two plans, one at a revision that is compared with the file: {0}@main, or one and what to set: {0} --set \
                 vars.smoke=true",
                args.a
            );
            return Err(Failure::Usage(text));
        }
    };
    let (a, mut b) = (a.load(before)?, b.load(&args.changes)?);
    if args.b.is_none() && a.name == b.name {
        b.name += &args.changes.typed(str::to_owned);
    }
    let compared = compare(&a, &b);
    let costs = Costs::of(&a, &b, &compared, Some(&args.folder))?;
    let diff = Diff::new(&a, &b, compared, costs);
    match args.format {
        OutputFormat::Text => output::print_fitted(&diff.text())?,
        OutputFormat::Markdown => output::print(&diff.markdown())?,
        OutputFormat::Json => output::json(&diff)?,
    }
    args.explain.below()?;
    Ok(Exit::Done)
}

/// What differs between the runs of two plans that were read, for people.
pub(super) fn text(a: &Side, b: &Side) -> Result<String, Failure> {
    let compared = compare(a, b);
    let costs = Costs::of(a, b, &compared, None)?;
    Ok(Diff::new(a, b, compared, costs).text())
}
