//! `sweepline cancel PLAN` cancels only the jobs that `submit` started for a plan.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::jobs::{Job, jobs};
use super::paths::submitted;
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::{Folder, TextOrJson};
use crate::cli::output;
use crate::store::Store;
use crate::submit::record::Cluster;
use crate::submit::{kubectl, slurm};

/// The arguments of `cancel`.
#[derive(Debug, Args)]
pub struct CancelArgs {
    /// Path of the submitted plan; the file itself is not read
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    #[command(flatten)]
    folder: Folder,
    /// Text for people, or JSON for programs
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
}

/// The output of `cancel`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document {
    /// The cancelled jobs, under the names that the cluster uses.
    cancelled: Vec<String>,
}

/// Cancels all pending and running jobs of a plan.
pub(crate) fn run(args: CancelArgs) -> Result<Exit, Failure> {
    let store = Store::open(&args.folder.results);
    let submissions = submitted(&store, &args.plan)?;
    if submissions.is_empty() {
        let (plan, folder) = (args.plan.display(), args.folder.results.display());
        return Err(Failure::Usage(format!(
            "{folder} contains no submission of {plan}: pass the same plan and --results as to `submit`"
        )));
    }
    let jobs = jobs(&submissions)?;
    let live: Vec<&Job> = jobs.iter().filter(|job| job.is_live()).collect();
    let mut groups: Vec<(Cluster, &str, Vec<&str>)> = Vec::new();
    for job in live.iter().filter(|job| job.element.is_handed_over) {
        match groups.iter_mut().find(|(on, name, _)| (*on, *name) == (job.on, job.job_name.as_str())) {
            Some((.., ids)) => ids.push(&job.element.job),
            None => groups.push((job.on, &job.job_name, vec![&job.element.job])),
        }
    }
    for (on, name, ids) in groups {
        let cancelled = match on {
            Cluster::Slurm => slurm::cancel(name, &ids),
            Cluster::Kubernetes => kubectl::delete(&ids),
        };
        cancelled.map_err(Failure::Usage)?;
    }
    for (folder, mut submission) in submissions {
        let is_live = |job: &str| live.iter().any(|live| live.element.job == job);
        submission.elements.iter_mut().filter(|one| is_live(&one.job)).for_each(|one| one.is_cancelled = true);
        submission.write(&folder).map_err(|error| Failure::Unexpected(error.into()))?;
    }
    let document = Document { cancelled: live.iter().map(|job| job.element.job.clone()).collect() };
    match args.format {
        TextOrJson::Json => output::json(&document)?,
        TextOrJson::Text => output::print(&text(&document))?,
    }
    Ok(Exit::Done)
}

fn text(document: &Document) -> String {
    match document.cancelled.as_slice() {
        [] => "this plan has no pending or running jobs\n".to_owned(),
        jobs => format!("cancelled: {}; committed runs are kept\n", jobs.join(", ")),
    }
}
