//! A run whose load several processes send: what the coordinator hands to each worker, and how a worker makes its
//! job of it.

use std::io;
use std::sync::Arc;

use crate::engine::{Job, Target, Trace};
use crate::expand::PlannedRun;
use crate::expand::resolve::workers as workers_of;
use crate::plan::{Endpoint, Plan, TokenizerFiles};
use crate::server::Question;
use crate::store::Attempt;
use crate::workers::{self, Order, Outlets, StartCommand, TokenizerTexts};
use crate::workload::{NonceKey, Tokenizer};

use super::live::with_secrets;
use super::perform::{check, question, secrets_of};
use super::tokenizers::Tokenizers;

/// Serves the coordinator behind standard input and output.
///
/// # Errors
///
/// The pipes are broken, or nobody coordinates.
pub fn serve() -> io::Result<()> {
    workers::serve(job)
}

/// Returns how the workers of a run are started; empty if one process sends its load alone.
pub(super) fn starts(plan: &Plan, run: &PlannedRun) -> Vec<StartCommand> {
    let count = run.spec.engine.workers;
    if count <= 1 {
        return Vec::new();
    }
    let declared = plan.sweeps.get(&*run.sweep).and_then(|sweep| workers_of(plan, sweep));
    let command = |index| declared.and_then(|workers| workers.command(index)).map(str::to_owned);
    (0..count).map(|index| command(index).map_or(StartCommand::Here, StartCommand::Shell)).collect()
}

/// Returns the order for the workers of a run.
pub(super) fn order(
    (run, attempt): (&PlannedRun, &Attempt),
    (endpoint, target, folder): (&Endpoint, &Target, &std::path::Path),
    ready: Option<String>,
    tokenizers: &Tokenizers,
) -> Result<Order, String> {
    Ok(Order {
        spec: (*run.spec).clone(),
        url: target.url(),
        ready,
        api_key: endpoint.api_key.clone(),
        headers: target.of_endpoint.clone(),
        insecure_tls: target.insecure_tls,
        folder: std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()),
        id_prefix: id_prefix(run, attempt),
        nonce_seed: attempt.nonce_seed(),
        tokenizer: tokenizers.texts(&run.spec)?,
        share: (0, 1),
    })
}

/// Returns what begins every `x-request-id` of an attempt.
pub(super) fn id_prefix(run: &PlannedRun, attempt: &Attempt) -> String {
    format!("{}-{}", run.id.short(), attempt.number())
}

/// Returns the job of a worker.
fn job(order: Order, outlets: Outlets) -> Result<Job, String> {
    let Order { spec, url, ready, api_key, headers, insecure_tls, folder, id_prefix, nonce_seed, tokenizer, .. } =
        order;
    let spec = Arc::new(spec);
    let mut target = Target::parse(&url).map_err(|error| error.to_string())?;
    (target.of_endpoint, target.insecure_tls) = (headers, insecure_tls);
    let of_headers = secrets_of(std::iter::once(&spec));
    let target = with_secrets(target, api_key.as_ref(), &of_headers, &folder).map_err(|error| error.to_string())?;
    let question = Question { ready, ..question(&url, &target, &spec) };
    let tokenizer = match tokenizer {
        Some(texts) => Some(Arc::new(made(texts)?)),
        None => Tokenizers::default().of(&spec, &question)?,
    };
    let Outlets { sink, samples, texts, part } = outlets;
    Ok(Job {
        target,
        id_prefix,
        nonce_key: NonceKey::new(nonce_seed),
        tokenizer,
        trace: Trace::of(&spec),
        sink,
        samples,
        texts: spec.record.text.then_some(texts),
        check: check(&question),
        part: Some(part),
        spec,
    })
}

fn made(TokenizerTexts { tokenizer, config, template }: TokenizerTexts) -> Result<Tokenizer, String> {
    let files = TokenizerFiles {
        tokenizer: tokenizer.into_bytes(),
        config: config.map(String::into_bytes),
        template: template.map(String::into_bytes),
    };
    Tokenizer::new(&files).map_err(|error| error.to_string())
}
