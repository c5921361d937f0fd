//! Arguments, input and output of `submit`.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::paths::whole;
use super::work::Work;
use crate::cli::changes::Changes;
use crate::cli::options::{Folder, TextOrJson};
use crate::cli::workspace::Workspace;
use crate::submit::Element;
use crate::submit::record::{Cluster, Submission};

/// The arguments of `submit`.
#[derive(Debug, Args)]
pub struct SubmitArgs {
    /// The plan, YAML or TOML
    #[arg(value_name = "PLAN")]
    pub(super) plan: PathBuf,
    /// The cluster that runs the jobs
    #[arg(long, value_enum, value_name = "CLUSTER")]
    pub(super) on: Cluster,
    /// Print the scripts or manifests and their dependencies without writing or submitting anything
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) changes: Changes,
    #[command(flatten)]
    pub(super) folder: Folder,
    /// Text for people, or JSON for programs
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: TextOrJson,
}

/// The output of `submit`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document {
    /// The folder with the scripts or manifests; null with --dry-run or if there was nothing to submit.
    pub(super) folder: Option<PathBuf>,
    /// The elements with open runs. Each element is listed before those that depend on it.
    pub(super) elements: Vec<OneElement>,
    /// The scripts or manifests, in the order of submission.
    pub(super) files: Vec<OneFile>,
}

/// An element with open runs.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OneElement {
    /// The name of the element: the part, and its sweeps if the part has several elements.
    pub(super) name: String,
    /// Number of open runs.
    pub(super) runs: usize,
    /// Maximum number of additional runs that depend on the result of an earlier sweep.
    pub(super) waiting: usize,
    /// The job of the element; null with --dry-run, or if it has not been submitted yet.
    pub(super) job: Option<String>,
    /// Whether a job in the queue already covers all open runs.
    pub(super) was_queued: bool,
}

/// A script or manifest.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OneFile {
    /// The name of the script or manifest.
    pub(super) name: String,
    /// The elements that it runs.
    pub(super) elements: Vec<String>,
    /// The command for its submission.
    pub(super) command: String,
    /// The content of the script or manifest.
    pub(super) text: String,
}

/// The jobs to submit.
pub(super) struct Batch<'a> {
    pub(super) args: &'a SubmitArgs,
    pub(super) workspace: &'a Workspace,
    pub(super) elements: Vec<Element>,
    pub(super) work: Vec<Work>,
    /// For each element, its job, if a job in the queue covers all open runs.
    pub(super) queued: Vec<Option<String>>,
    /// For each element, the queued jobs of its part that cover other runs.
    pub(super) behind: Vec<Vec<String>>,
    /// The job name.
    pub(super) job_name: String,
}

impl Batch<'_> {
    /// Whether an element is to be submitted now.
    pub(super) fn is_wanted(&self, at: usize) -> bool {
        self.work[at].is_any() && self.queued[at].is_none()
    }

    /// Returns an empty record of the submission.
    pub(super) fn record(&self) -> Submission {
        Submission::new(whole(&self.args.plan), self.args.on, self.job_name.clone())
    }

    /// Returns the elements with open runs, with their jobs.
    pub(super) fn told(&self, job: impl Fn(usize) -> Option<String>) -> Vec<OneElement> {
        let told = |(at, element): (usize, &Element)| OneElement {
            name: element.name(),
            runs: self.work[at].todo.len(),
            waiting: self.work[at].waiting,
            job: self.queued[at].clone().or_else(|| job(at)),
            was_queued: self.queued[at].is_some(),
        };
        let with_work = self.elements.iter().enumerate().filter(|(at, _)| self.work[*at].is_any());
        with_work.map(told).collect()
    }
}
