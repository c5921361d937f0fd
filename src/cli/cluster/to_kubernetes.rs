//! `submit --on kubernetes`: writes manifests and applies those without dependencies; `status --advance`
//! applies the others later.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::batch::{Batch, Document, OneFile};
use super::jobs::Job;
use super::paths::whole;
use crate::cli::failure::Failure;
use crate::cli::freeze::lock;
use crate::expand::explicit;
use crate::plan::{Plan, Unreachable};
use crate::submit::kubernetes::Shared;
use crate::submit::record::{Cluster, Submission, Submitted, next_folder, number_of};
use crate::submit::{Wait, kubectl, still_waits};

/// Writes manifests for the open runs and applies those without dependencies; a dry run only prints them.
pub(super) fn submit(batch: &Batch) -> Result<Document, Failure> {
    let wanted: Vec<usize> = (0..batch.elements.len()).filter(|at| batch.is_wanted(*at)).collect();
    if wanted.is_empty() {
        return Ok(Document { folder: None, elements: batch.told(|_| None), files: Vec::new() });
    }
    let plan = spelled_out(&batch.workspace.loaded.plan);
    let text = text_of_plan(batch, &plan)?;
    let submissions = batch.workspace.store.layout().submissions();
    // Every manifest is generated before anything is written.
    let draft = Shared { plan: &plan, job_name: &batch.job_name, number: 1, digest: digest(batch) };
    let files = manifests(batch, &draft, &wanted, &text)?;
    if batch.args.dry_run {
        return Ok(Document { folder: None, elements: batch.told(|_| None), files });
    }
    let folder = whole(&next_folder(&submissions).map_err(unexpected)?);
    let shared = Shared { number: number_of(&folder), ..draft };
    let files = manifests(batch, &shared, &wanted, &text)?;
    for file in &files {
        std::fs::write(folder.join(&file.name), &file.text).map_err(unexpected)?;
    }
    let is_there = |at: usize| batch.is_wanted(at) || batch.queued[at].is_some();
    let waits = still_waits(&batch.elements, &is_there);
    let mut record = batch.record();
    record.elements = wanted.iter().map(|at| submitted(batch, &shared, *at, &waits[*at], &folder)).collect();
    if !kubectl::is_installed() {
        return Ok(Document { folder: Some(folder), elements: batch.told(|_| None), files });
    }
    kubectl::apply(&folder.join(&files[0].name)).map_err(Failure::Usage)?;
    hand_over(&mut record, &folder)?;
    let job = |at: usize| batch.is_wanted(at).then(|| shared.name(Some(at)));
    Ok(Document { folder: Some(folder), elements: batch.told(job), files })
}

/// Applies the Jobs without dependencies and writes the record. If applying a Job fails, the record contains
/// that Job and the ones before it, because the server may have created it and only the response was lost.
fn hand_over(record: &mut Submission, folder: &Path) -> Result<(), Failure> {
    let mut so_far = Submission { elements: Vec::new(), ..record.clone() };
    for element in record.elements.iter_mut().filter(|element| element.waits_for.is_empty()) {
        let applied = kubectl::apply(&element.file);
        element.is_handed_over = true;
        so_far.elements.push(element.clone());
        so_far.write(folder).map_err(unexpected)?;
        applied.map_err(|error| Failure::Usage(format!("{error}; submit again to create the remaining jobs")))?;
    }
    record.write(folder).map_err(unexpected)
}

/// Returns six hexadecimal digits of the digest of the ids of all open runs.
fn digest(batch: &Batch) -> String {
    let mut digest = Sha256::new();
    batch.work.iter().flat_map(|work| &work.todo).for_each(|id| digest.update(id.as_bytes()));
    digest.finalize().iter().take(3).map(|byte| format!("{byte:02x}")).collect()
}

fn unexpected(error: std::io::Error) -> Failure {
    Failure::Unexpected(anyhow::Error::new(error).context("cannot write the manifests"))
}

/// Returns the plan with all defaults made explicit, except the `resource` of each endpoint. On one machine,
/// launched servers share a resource and take turns; on Kubernetes each has its own Job, unless the plan
/// sets a resource.
fn spelled_out(plan: &Plan) -> Plan {
    let mut all = explicit(plan);
    for (name, endpoint) in &mut all.endpoints {
        if let Some(written) = plan.endpoints.get(name) {
            endpoint.resource.clone_from(&written.resource);
        }
    }
    all
}

/// Returns the text of the plan with all values spelled out, because a pod has no other file. A plan that
/// refers to another file is an error.
fn text_of_plan(batch: &Batch, plan: &Plan) -> Result<String, Failure> {
    let mut elsewhere = plan.clone();
    let alone = tempfile::tempdir().map_err(unexpected)?;
    elsewhere.moved_to(alone.path(), false).map_err(|Unreachable { written }| {
        Failure::Usage(format!(
            "the plan refers to the file `{written}`, but pods receive only the plan itself: run this plan on a host \
             or on Slurm"
        ))
    })?;
    Ok(lock::text(&batch.workspace.loaded, plan, &batch.workspace.expansion))
}

/// Returns the manifests: a ConfigMap with the plan, and a Job for each of the `wanted` elements.
fn manifests(batch: &Batch, shared: &Shared, wanted: &[usize], plan: &str) -> Result<Vec<OneFile>, Failure> {
    let one = |name: String, elements: Vec<String>, text: String| {
        let command = format!("kubectl apply -f {name}");
        OneFile { name, elements, command, text }
    };
    let config_map = shared.config_map(plan).map_err(Failure::Usage)?;
    let mut files = vec![one("plan.yaml".to_owned(), Vec::new(), config_map)];
    for at in wanted {
        let element = &batch.elements[*at];
        let text = shared.job(*at, element).map_err(Failure::Usage)?;
        files.push(one(manifest(*at), vec![element.name()], text));
    }
    Ok(files)
}

fn manifest(at: usize) -> String {
    format!("job-{at}.yaml")
}

fn submitted(batch: &Batch, shared: &Shared, at: usize, waits: &BTreeMap<usize, Wait>, folder: &Path) -> Submitted {
    let element = &batch.elements[at];
    let job = |at: &usize| batch.queued[*at].clone().unwrap_or_else(|| shared.name(Some(*at)));
    let needs = waits.iter().filter(|(_, wait)| **wait == Wait::Succeeded);
    Submitted {
        name: element.name(),
        part: element.part.name.clone(),
        job: shared.name(Some(at)),
        log: None,
        exit: None,
        runs: batch.work[at].todo.iter().cloned().collect(),
        waits_for: waits.keys().map(job).chain(batch.behind[at].clone()).collect(),
        needs: needs.map(|(at, _)| job(at)).collect(),
        file: folder.join(manifest(at)),
        is_handed_over: false,
        is_cancelled: false,
    }
}

/// Submits the jobs whose dependencies have all ended and cancels those that need the result of a failed job.
/// Returns whether there were any such jobs.
pub(super) fn advance(submissions: &mut [(PathBuf, Submission)], jobs: &[Job]) -> Result<bool, Failure> {
    let of = |name: &String| jobs.iter().find(|job| job.element.job == *name);
    let has_ended = |name: &String| of(name).is_none_or(|job| !job.is_live());
    let is_well = |name: &String| of(name).and_then(|job| job.state.as_ref()).is_some_and(|state| state.is_completed());
    let mut any = false;
    for (folder, submission) in submissions.iter_mut().filter(|(_, submission)| submission.on == Cluster::Kubernetes) {
        for element in &mut submission.elements {
            let is_held = !element.is_handed_over && !element.is_cancelled;
            if !is_held || !element.waits_for.iter().all(has_ended) {
                continue;
            }
            if element.needs.iter().all(is_well) {
                kubectl::apply(&element.file).map_err(Failure::Usage)?;
                element.is_handed_over = true;
            } else {
                // As with Slurm, the next `submit` creates new jobs, both for this element and for the one
                // whose result it needs.
                element.is_cancelled = true;
            }
            any = true;
        }
        submission.write(folder).map_err(unexpected)?;
    }
    Ok(any)
}
