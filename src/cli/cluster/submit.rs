//! `sweepline submit PLAN --on slurm`: hands what is to do of a plan to a cluster.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::jobs::{Job, jobs, live_of_part};
use super::work::Work;
use super::{submitted, to_kubernetes, to_slurm, whole};
use crate::cli::changes::Changes;
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::{Folder, TextOrJson};
use crate::cli::output;
use crate::cli::workspace::Workspace;
use crate::submit::record::{Cluster, Submission};
use crate::submit::{Element, elements};
use crate::units::text::counted;

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
pub(in crate::cli) struct Document {
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

/// Submits a plan.
pub(in crate::cli) fn run(args: SubmitArgs) -> Result<Exit, Failure> {
    let workspace = Workspace::open(&args.plan, &args.changes, &args.folder)?;
    workspace.budget_allows_a_run()?;
    let batch = batch(&args, &workspace)?;
    let document = match args.on {
        Cluster::Slurm => to_slurm::submit(&batch)?,
        Cluster::Kubernetes => to_kubernetes::submit(&batch)?,
    };
    match args.format {
        TextOrJson::Json => output::json(&document)?,
        TextOrJson::Text => output::print(&text(&args, &document))?,
    }
    Ok(Exit::Done)
}

/// What is to be submitted of a plan, by what lies in the results folder and in the queue.
fn batch<'a>(args: &'a SubmitArgs, workspace: &'a Workspace) -> Result<Batch<'a>, Failure> {
    let elements = elements(workspace.plan(), &workspace.expansion).map_err(Failure::Usage)?;
    let work: Vec<Work> = elements.iter().map(|element| Work::of(workspace, element)).collect();
    let mut earlier = submitted(&workspace.store, &args.plan)?;
    earlier.retain(|submission| submission.on == args.on);
    // A look into an empty record asks no queue, so that a dry run needs no cluster.
    let jobs = jobs(&earlier)?;
    let covers = |job: &&Job, at: usize| {
        let has = |id: &String| job.element.runs.contains(id);
        let element: &Element = &elements[at];
        work[at].todo.iter().all(has) && (work[at].waiting == 0 || job.element.name == element.name())
    };
    let mut queued = Vec::with_capacity(elements.len());
    let mut behind = Vec::with_capacity(elements.len());
    for (at, element) in elements.iter().enumerate() {
        let live: Vec<&Job> = live_of_part(&jobs, &element.part.name).collect();
        let own = live.iter().find(|job| work[at].is_any() && covers(job, at));
        queued.push(own.map(|job| job.element.job.clone()));
        behind.push(live.iter().map(|job| job.element.job.clone()).collect());
    }
    let job_name = job_name(&workspace.plan().name);
    Ok(Batch { args, workspace, elements, work, queued, behind, job_name })
}

/// A name that every queue takes: small letters, digits and `-`, at most 40.
fn job_name(plan: &str) -> String {
    let simple = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = plan.chars().map(simple).collect();
    let words: Vec<&str> = name.split('-').filter(|word| !word.is_empty()).collect();
    let name: String = format!("sweepline-{}", words.join("-")).chars().take(40).collect();
    name.trim_end_matches('-').to_owned()
}

fn text(args: &SubmitArgs, document: &Document) -> String {
    if document.elements.is_empty() {
        return "nothing to submit: all runs are done\n".to_owned();
    }
    let mut text = String::new();
    if args.dry_run {
        for file in &document.files {
            text.push_str(&format!("# {}: {}\n# {}\n{}\n", file.name, file.elements.join("; "), file.command, file.text));
        }
    }
    for element in &document.elements {
        let more = if element.waiting > 0 { format!(", {} more to come", element.waiting) } else { String::new() };
        let job = match (&element.job, element.was_queued) {
            (Some(job), true) => format!("job {job} is in the queue already"),
            (Some(job), false) => format!("job {job}"),
            (None, _) if args.dry_run => "not submitted: --dry-run".to_owned(),
            (None, _) => "written, not submitted".to_owned(),
        };
        text.push_str(&format!("{}: {}{more}: {job}\n", element.name, counted(element.runs, "run")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::job_name;

    #[test]
    fn the_name_of_jobs_is_one_that_queues_take() {
        assert_eq!(job_name("Chat 70B, nightly"), "sweepline-chat-70b-nightly");
        assert_eq!(job_name(&"long ".repeat(20)).len(), 39);
        assert_eq!(job_name("日本"), "sweepline");
    }
}
