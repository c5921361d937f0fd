//! `sweepline freeze PLAN` writes the fully resolved plan as a plan, with the origin of every value
//! and the ids of its runs. Also implements `--frozen`, which rejects a plan with different runs.

pub(super) mod lock;
pub(super) mod write;

use std::path::{Path, PathBuf};

use clap::Args;

use super::changes::Changes;
use super::replace::{Overwrite, cannot_write, replace};
use super::workspace::Workspace;
use crate::cli::diff::source::Side;
use crate::cli::failure::{Exit, Failure};
use crate::cli::{diff, output};
use crate::expand::{expand, explicit};
use crate::plan::{Loaded, Plan, Unreachable};

/// The arguments of `freeze`.
#[derive(Debug, Args)]
pub struct FreezeArgs {
    /// The plan, YAML or TOML
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    #[command(flatten)]
    changes: Changes,
    /// The file to write; by default the frozen plan goes to stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
}

/// Prints or writes a plan with every default resolved.
pub(super) fn run(args: FreezeArgs) -> Result<Exit, Failure> {
    args.output.as_deref().map_or(Ok(()), is_yaml)?;
    let loaded = args.changes.load(&args.plan)?;
    let expansion = expand(&loaded.plan)?;
    let text = lock::text(&loaded, &plan_of_lock(&args, &loaded)?, &expansion);
    match &args.output {
        None => output::print(&text)?,
        Some(path) => {
            args.overwrite.check(path, "a frozen plan", lock::is_lock)?;
            replace(path, |out| out.write_all(text.as_bytes())).map_err(|error| cannot_write(Some(path), &error))?;
        }
    }
    Ok(Exit::Done)
}

/// Rejects a file name from which other commands would infer a different format.
fn is_yaml(path: &Path) -> Result<(), Failure> {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    match ending.as_deref() {
        None | Some("yaml" | "yml" | "lock") => Ok(()),
        Some(ending) => Err(Failure::Usage(format!(
            "a frozen plan is YAML, but {} ends in `.{ending}`: name it .lock, .yaml or .yml",
            path.display()
        ))),
    }
}

/// Returns the plan with every default resolved. Paths of its files are relative to the lock's folder, or
/// to the plan's folder if the lock goes to stdout.
fn plan_of_lock(args: &FreezeArgs, loaded: &Loaded) -> Result<Plan, Failure> {
    let mut plan = explicit(&loaded.plan);
    let lock = args.output.as_deref().unwrap_or(&args.plan);
    let folder = lock.parent().unwrap_or(Path::new(""));
    plan.moved_to(folder, args.changes.allow_outside()).map_err(|Unreachable { written }| {
        Failure::Usage(format!(
            "the plan's file `{written}` is outside the folder of {}, and a frozen plan may only name files in or \
             below its folder: save the frozen plan in the plan's folder, or allow other files with --allow-outside",
            lock.display()
        ))
    })?;
    Ok(plan)
}

/// The lock file that a plan must match.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Frozen {
    /// Refuse to run if the plan's runs differ from the runs in this lock file, which `freeze` wrote
    #[arg(long, value_name = "FILE")]
    frozen: Option<PathBuf>,
}

impl Frozen {
    /// Rejects a plan whose runs differ from those in the lock, and lists the edits that cause the
    /// difference.
    pub(super) fn check(&self, workspace: &Workspace) -> Result<(), Failure> {
        let Some(path) = &self.frozen else { return Ok(()) };
        let lock = lock::Lock::read(path, workspace.allow_outside)?;
        let frozen = expand(&lock.loaded.plan)?;
        let shown = path.display();
        if lock.ids != lock::ids(&frozen) {
            let by = &lock.version;
            let this = env!("CARGO_PKG_VERSION");
            return Err(Failure::Usage(format!(
                "{shown} does not yield the runs that it lists: it was edited, or sweepline {by}, which wrote it, \
                 expands plans differently from sweepline {this}; freeze the plan again"
            )));
        }
        // Results of earlier sweeps add runs that no lock lists, and gates skip runs that a lock lists.
        // Neither is an edit of the plan, so the plan is expanded without results.
        let asked_for = expand(&workspace.loaded.plan)?;
        if lock.ids == lock::ids(&asked_for) && lock.pending == lock::pending(&asked_for) {
            return Ok(());
        }
        let old = Side::loaded(lock.loaded, frozen);
        let new = Side::loaded(workspace.loaded.clone(), asked_for);
        let plan = workspace.loaded.file().display();
        Err(Failure::Usage(format!(
            "the runs of {plan} differ from those of {shown}\n{}\nundo the edits, or freeze the plan again: sweepline \
             freeze {plan} -o {shown}",
            diff::text(&old, &new)?.trim_end()
        )))
    }
}
