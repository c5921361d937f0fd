//! `sweepline cancel PLAN`: ends the jobs that `submit` started for a plan, and no others.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::jobs::{Job, jobs};
use super::submitted;
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::{Folder, TextOrJson};
use crate::cli::output;
use crate::store::Store;
use crate::submit::record::Cluster;
use crate::submit::{kubernetes, slurm};

/// The arguments of `cancel`.
#[derive(Debug, Args)]
pub struct CancelArgs {
    /// The plan that was submitted; it is not read
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    #[command(flatten)]
    folder: Folder,
    /// Text for people, or JSON for programs
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
}

/// What was cancelled.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Document {
    /// The jobs, as the cluster names them.
    cancelled: Vec<String>,
}

/// Cancels what waits or runs.
pub(in crate::cli) fn run(args: CancelArgs) -> Result<Exit, Failure> {
    let store = Store::open(&args.folder.results);
    let submissions = submitted(&store, &args.plan)?;
    if submissions.is_empty() {
        let (plan, folder) = (args.plan.display(), args.folder.results.display());
        return Err(Failure::Usage(format!(
            "nothing was submitted of {plan} into {folder}: name the plan and --results as `submit` did"
        )));
    }
    let jobs = jobs(&submissions)?;
    let live: Vec<&Job> = jobs.iter().filter(|job| job.is_live()).collect();
    for on in [Cluster::Slurm, Cluster::Kubernetes] {
        let own: Vec<&&Job> = live.iter().filter(|job| job.on == on).collect();
        let Some(first) = own.first() else { continue };
        let mut names: Vec<&str> = own.iter().map(|job| job.job_name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        debug_assert!(names.contains(&first.job_name.as_str()));
        for name in names {
            let of_name = own.iter().filter(|job| job.job_name == name);
            let ids: Vec<&str> = of_name.map(|job| job.element.job.as_str()).collect();
            match on {
                Cluster::Slurm => slurm::cancel(name, &ids),
                Cluster::Kubernetes => kubernetes::delete(&ids),
            }
            .map_err(Failure::Usage)?;
        }
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
        [] => "no job of this plan waits or runs\n".to_owned(),
        jobs => format!("cancelled: {}; what they have committed stays\n", jobs.join(", ")),
    }
}
