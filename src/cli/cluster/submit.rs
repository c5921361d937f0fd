//! `sweepline submit PLAN --on slurm` submits the open runs of a plan to a cluster.

use super::batch::{Batch, Document, OneElement, SubmitArgs};
use super::jobs::{Job, jobs, live_of_part};
use super::paths::submitted;
use super::work::Work;
use super::{to_kubernetes, to_slurm};
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::TextOrJson;
use crate::cli::output;
use crate::cli::workspace::Workspace;
use crate::submit::record::Cluster;
use crate::submit::{Element, elements};
use crate::units::text::counted;

/// Submits a plan.
pub(crate) fn run(args: SubmitArgs) -> Result<Exit, Failure> {
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

/// Determines the jobs to submit from the results folder and the queue.
fn batch<'a>(args: &'a SubmitArgs, workspace: &'a Workspace) -> Result<Batch<'a>, Failure> {
    let elements = elements(workspace.plan(), &workspace.expansion).map_err(Failure::Usage)?;
    let work: Vec<Work> = elements.iter().map(|element| Work::of(workspace, element)).collect();
    let mut earlier = submitted(&workspace.store, &args.plan)?;
    earlier.retain(|(_, submission)| submission.on == args.on);
    // With an empty record, no queue is queried, so a dry run needs no cluster.
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

/// Returns a job name that every queue accepts: lower-case letters, digits and `-`, at most 40
/// characters.
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
            text.push_str(&format!(
                "# {}: {}\n# {}\n{}\n",
                file.name,
                file.elements.join("; "),
                file.command,
                file.text
            ));
        }
    }
    let is_written_only = |element: &OneElement| element.job.is_none();
    if let Some(folder) = document.folder.as_ref().filter(|_| document.elements.iter().all(is_written_only)) {
        let files: Vec<&str> = document.files.iter().map(|file| file.name.as_str()).collect();
        let (folder, files) = (folder.display(), files.join(", "));
        text.push_str(&format!(
            "kubectl is not installed here; apply these files in {folder} in this order: {files}\n"
        ));
    }
    for element in &document.elements {
        let more = if element.waiting > 0 { format!(", up to {} more later", element.waiting) } else { String::new() };
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
