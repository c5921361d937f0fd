//! `sweepline diff A B` shows the runs that are added, removed and kept between two plans or two revisions
//! of a plan, the edits that cause these differences, and the change in cost: requests, tokens, time,
//! money. Sends no requests; results are used only for the number of requests of closed loops and the duration of
//! server starts.

pub(super) mod compare;
pub(super) mod costs;
pub(super) mod edits;
pub(super) mod show;
pub(super) mod source;

use clap::{Args, ValueEnum};
use compare::compare;
use costs::{Costs, Estimated};
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
    /// The old plan: a file, or FILE@REV for the file at a git revision
    #[arg(value_name = "A")]
    a: String,
    /// The new plan, in the same notation; by default the current file if A is FILE@REV, otherwise A with
    /// the values of --set
    #[arg(value_name = "B")]
    b: Option<String>,
    #[command(flatten)]
    changes: Changes,
    /// Maximum number of concurrent runs, for the time estimate; runs on one resource never overlap
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,
    /// Text for people, Markdown for a pull request, or JSON for programs (schemas/diff.schema.json)
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    explain: Explain,
}

/// The output format.
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
        // With two plans, the changes apply to both; a single plan is compared with its changed
        // version.
        None if args.changes.set_something() => (&unset, Source::file(&a.path)),
        None => {
            let text = format!(
                "name two plans; or one plan at a revision, to compare it with the current file: {0}@main; or one \
                 plan and values to set: {0} --set vars.smoke=true",
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
    let [before, after] = [&a, &b].map(|side| Estimated::new(side, Some(&args.folder), args.jobs));
    let costs = Costs::of(&before?, &after?, &compared);
    let diff = Diff::new(&a, &b, compared, costs);
    match args.format {
        OutputFormat::Text => output::print_fitted(&diff.text())?,
        OutputFormat::Markdown => output::print(&diff.markdown())?,
        OutputFormat::Json => output::json(&diff)?,
    }
    args.explain.below()?;
    Ok(Exit::Done)
}

/// Returns the differences between the runs of two plans, as text.
pub(super) fn text(a: &Side, b: &Side) -> Result<String, Failure> {
    let compared = compare(a, b);
    let costs = Costs::of(&Estimated::new(a, None, 1)?, &Estimated::new(b, None, 1)?, &compared);
    Ok(Diff::new(a, b, compared, costs).text())
}
