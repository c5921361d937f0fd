//! `submit --on slurm`.

use std::collections::HashMap;
use std::path::PathBuf;

use super::batch::{Batch, Document, OneFile};
use super::paths::whole;
use crate::cli::failure::Failure;
use crate::report::format::plain;
use crate::server::own_program;
use crate::submit::Wait;
use crate::submit::record::{Submitted, next_folder};
use crate::submit::slurm::{self, Array, Call, arrays, hold_back};
use crate::units::text::quoted;

/// Writes scripts for the open runs and submits them; a dry run only prints them.
pub(super) fn submit(batch: &Batch) -> Result<Document, Failure> {
    let is_wanted = |at: usize| batch.is_wanted(at);
    let is_queued = |at: usize| batch.queued[at].is_some();
    let arrays = arrays(&batch.elements, &is_wanted, &is_queued);
    let submissions = batch.workspace.store.layout().submissions();
    if arrays.is_empty() {
        return Ok(Document { folder: None, elements: batch.told(|_| None), files: Vec::new() });
    }
    let failed =
        |error: std::io::Error| Failure::Unexpected(anyhow::Error::new(error).context("cannot write the scripts"));
    let folder = match batch.args.dry_run {
        true => whole(&batch.args.folder.results).join("submit").join("NUMBER"),
        false => whole(&next_folder(&submissions).map_err(failed)?),
    };
    let call = call(batch, folder.clone())?;
    let mut record = batch.record();
    let mut jobs: HashMap<usize, String> = HashMap::new();
    let mut files = Vec::new();
    for (number, array) in (1..).zip(&arrays) {
        let name = format!("job-{number}.sh");
        let text = array.script(number, &batch.elements, &call);
        let dependency = dependency(batch, array, &jobs);
        let elements = array.elements.iter().map(|at| batch.elements[*at].name()).collect();
        let options = dependency.as_deref().map(|text| format!(" {text}")).unwrap_or_default();
        let command = format!("sbatch --parsable --kill-on-invalid-dep=yes{options} {name}");
        files.push(OneFile { name: name.clone(), elements, command, text: text.clone() });
        if batch.args.dry_run {
            let placeholder = |(task, at): (usize, &usize)| (*at, format!("JOB{number}_{task}"));
            jobs.extend(array.elements.iter().enumerate().map(placeholder));
            continue;
        }
        let script = folder.join(&name);
        std::fs::write(&script, &text).map_err(failed)?;
        let job = slurm::submit(&script, dependency.as_deref()).map_err(|error| so_far(&error, &jobs))?;
        for (task, at) in array.elements.iter().enumerate() {
            jobs.insert(*at, format!("{job}_{task}"));
            record.elements.push(submitted(batch, array, (number, task, *at), (&job, &folder), &jobs));
        }
        record.write(&folder).map_err(failed)?;
    }
    let folder = (!batch.args.dry_run).then_some(folder);
    let job = |at: usize| jobs.get(&at).cloned().filter(|_| !batch.args.dry_run);
    Ok(Document { folder, elements: batch.told(job), files })
}

fn call(batch: &Batch, submission: PathBuf) -> Result<Call, Failure> {
    let program = own_program().map_err(|error| Failure::Unexpected(error.into()))?;
    let folder = std::env::current_dir().map_err(|error| Failure::Unexpected(error.into()))?;
    Ok(Call {
        program,
        folder,
        plan: batch.args.plan.clone(),
        results: batch.args.folder.results.clone(),
        flags: batch.args.changes.typed(quoted),
        job_name: batch.job_name.clone(),
        submission,
    })
}

/// Returns the dependencies of an array: the elements submitted now or before, and queued jobs of the
/// array's own parts.
fn dependency(batch: &Batch, array: &Array, jobs: &HashMap<usize, String>) -> Option<String> {
    let job = |at: &usize| jobs.get(at).or(batch.queued[*at].as_ref()).map(String::as_str);
    let waits = array.waits.iter().filter_map(|(at, wait)| Some((job(at)?, *wait)));
    let mut all: Vec<(&str, Wait)> = waits.collect();
    for behind in array.elements.iter().flat_map(|at| &batch.behind[*at]) {
        if all.iter().all(|(known, _)| known != behind) {
            all.push((behind, Wait::Ended));
        }
    }
    hold_back(all.into_iter())
}

fn submitted(
    batch: &Batch,
    array: &Array,
    (number, task, at): (usize, usize, usize),
    (job, folder): (&str, &std::path::Path),
    jobs: &HashMap<usize, String>,
) -> Submitted {
    let element = &batch.elements[at];
    let (exit, log) = Array::files(folder, number, task);
    let job_of = |at: &usize| jobs.get(at).or(batch.queued[*at].as_ref()).cloned();
    Submitted {
        name: element.name(),
        part: element.part.name.clone(),
        job: format!("{job}_{task}"),
        log: Some(log),
        exit: Some(exit),
        runs: batch.work[at].todo.iter().cloned().collect(),
        waits_for: array.waits.keys().filter_map(job_of).chain(batch.behind[at].clone()).collect(),
        needs: array
            .waits
            .iter()
            .filter(|(_, wait)| **wait == Wait::Succeeded)
            .filter_map(|(at, _)| job_of(at))
            .collect(),
        file: folder.join(format!("job-{number}.sh")),
        is_handed_over: true,
        is_cancelled: false,
    }
}

/// Reports why an array was rejected, and which arrays were submitted before it.
fn so_far(error: &str, jobs: &HashMap<usize, String>) -> Failure {
    let mut taken: Vec<&str> = jobs.values().map(String::as_str).collect();
    taken.sort_unstable();
    let before = match taken.as_slice() {
        [] => "nothing was submitted".to_owned(),
        taken => format!("submitted before: {}; submit again for the others, or `sweepline cancel`", taken.join(", ")),
    };
    Failure::Usage(plain(&format!("{error}; {before}")))
}
