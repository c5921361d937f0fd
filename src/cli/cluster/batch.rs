//! What `submit` is asked for, what it has to do, and what it says of it.

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
    /// What takes the jobs
    #[arg(long, value_enum, value_name = "CLUSTER")]
    pub(super) on: Cluster,
    /// Only print the scripts or manifests, and what they wait for; nothing is written
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

/// What was submitted.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document {
    /// The folder with the scripts or manifests; null with --dry-run, and where nothing was to submit.
    pub(super) folder: Option<PathBuf>,
    /// The elements that have something to do, each before those that wait for it.
    pub(super) elements: Vec<OneElement>,
    /// The scripts, or the manifests, in the order in which they are submitted.
    pub(super) files: Vec<OneFile>,
}

/// An element that has something to do.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OneElement {
    /// Its name: the part, and the sweeps where the part has several elements.
    pub(super) name: String,
    /// How many runs it has to do.
    pub(super) runs: usize,
    /// How many more it may have, once an earlier sweep has answered.
    pub(super) waiting: usize,
    /// Its job; null with --dry-run, and where it was not submitted yet.
    pub(super) job: Option<String>,
    /// Whether the job was in the queue already, and makes all that is to do.
    pub(super) was_queued: bool,
}

/// A script or manifest.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OneFile {
    /// Its name.
    pub(super) name: String,
    /// The elements in it.
    pub(super) elements: Vec<String>,
    /// How it is submitted.
    pub(super) command: String,
    /// Its text.
    pub(super) text: String,
}

/// What is to be submitted.
pub(super) struct Batch<'a> {
    pub(super) args: &'a SubmitArgs,
    pub(super) workspace: &'a Workspace,
    pub(super) elements: Vec<Element>,
    pub(super) work: Vec<Work>,
    /// For each element its job, where one in the queue makes all that is to do.
    pub(super) queued: Vec<Option<String>>,
    /// For each element the jobs of its part that are in the queue and make other runs.
    pub(super) behind: Vec<Vec<String>>,
    /// How its jobs are called.
    pub(super) job_name: String,
}

impl Batch<'_> {
    /// Whether an element is to be submitted now.
    pub(super) fn is_wanted(&self, at: usize) -> bool {
        self.work[at].is_any() && self.queued[at].is_none()
    }

    /// An empty record of it.
    pub(super) fn record(&self) -> Submission {
        Submission::new(whole(&self.args.plan), self.args.on, self.job_name.clone())
    }

    /// The elements that have something to do, with their jobs.
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
