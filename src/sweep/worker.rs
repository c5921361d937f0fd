//! A worker, which sends a share of a run's load. It converts the order from the coordinator to a job for
//! the engine.

use std::io;
use std::sync::Arc;

use crate::engine::{Job, Target, Trace};
use crate::plan::TokenizerFiles;
use crate::server::Question;
use crate::workers::{self, Order, Outlets, TokenizerTexts};
use crate::workload::{NonceKey, Tokenizer};

use super::live::{route, with_secrets};
use super::perform::{check, question, secrets_of};
use super::tokenizers::Tokenizers;

/// Runs this process as a worker, which communicates with the coordinator on standard input and output.
///
/// # Errors
///
/// Fails if the pipes are broken, or no coordinator is connected.
pub fn serve() -> io::Result<()> {
    workers::serve(job)
}

/// Creates the engine's job for an order.
fn job(order: Order, outlets: Outlets) -> Result<Job, String> {
    let Order { spec, url, access, ready, api_key, headers, folder, id_prefix, nonce_seed, tokenizer, .. } = order;
    let spec = Arc::new(spec);
    let mut target = Target::new(route(&url, &access, &folder).map_err(|error| error.to_string())?);
    target.of_endpoint = headers;
    let of_headers = secrets_of(std::iter::once(&spec));
    let target = with_secrets(target, api_key.as_ref(), &of_headers, &folder).map_err(|error| error.to_string())?;
    let question = Question { ready, ..question(&target, &spec) };
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
        virtual_time: false,
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
