//! Encodes the texts of data sets and the requests of traces for workers. A run's spec refers to them only
//! by digest, and workers do not have the plan's files.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::expand::RunSpec;
use crate::plan::model::content::Content;
use crate::plan::model::data::corpus::{Dialogue, OfTurn, Source};
use crate::plan::model::trace::{Replay, TraceRequest, TraceRequests};

/// The data sets and traces to which a run's contents refer.
#[derive(Debug, Serialize, Deserialize)]
struct Material<S, T> {
    /// Data sets, keyed by the digest of their texts.
    sources: BTreeMap<String, S>,
    /// Traces, keyed by the digest of their file and a description of how it was read.
    traces: BTreeMap<String, T>,
}

#[derive(Serialize)]
struct TextsOut<'a> {
    dialogues: &'a [Dialogue],
    turns: &'a [OfTurn],
}

#[derive(Deserialize)]
struct TextsIn {
    dialogues: Vec<Dialogue>,
    turns: Vec<OfTurn>,
}

fn key(replay: &Replay) -> String {
    format!("{} {}", replay.sha256, replay.reading)
}

fn contents(spec: &RunSpec) -> impl Iterator<Item = &Content> {
    [&spec.scenario].into_iter().chain(spec.mix.iter().map(|class| &class.scenario))
}

/// Serializes, as JSON, the data sets and traces to which `spec` refers.
pub(super) fn encode(spec: &RunSpec) -> Result<Vec<u8>, serde_json::Error> {
    let mut material = Material { sources: BTreeMap::new(), traces: BTreeMap::new() };
    for content in contents(spec) {
        if let Some(corpus) = &content.data {
            let Source { texts, dialogues, turns, .. } = &*corpus.source;
            material.sources.insert(texts.clone(), TextsOut { dialogues, turns });
        }
        if let Some(replay) = &content.trace {
            material.traces.insert(key(replay), &replay.requests.0[..]);
        }
    }
    serde_json::to_vec(&material)
}

/// Adds the data sets and traces in `bytes` to `spec`, which refers to them by digest.
pub(super) fn fill(spec: &mut RunSpec, bytes: &[u8]) -> Result<(), serde_json::Error> {
    let material: Material<TextsIn, Vec<TraceRequest>> = serde_json::from_slice(bytes)?;
    let sources = material.sources.into_iter().map(|(digest, texts)| (digest, Arc::new(texts)));
    let sources: BTreeMap<String, Arc<TextsIn>> = sources.collect();
    let traces = material.traces.into_iter().map(|(key, requests)| (key, Arc::from(requests)));
    let traces: BTreeMap<String, Arc<[TraceRequest]>> = traces.collect();
    for content in [&mut spec.scenario].into_iter().chain(spec.mix.iter_mut().map(|class| &mut class.scenario)) {
        if let Some(corpus) = &mut content.data
            && let Some(texts) = sources.get(&corpus.source.texts)
        {
            let TextsIn { dialogues, turns } = &**texts;
            let source = Source { dialogues: dialogues.clone(), turns: turns.clone(), ..(*corpus.source).clone() };
            corpus.source = Arc::new(source);
        }
        if let Some(replay) = &mut content.trace
            && let Some(requests) = traces.get(&key(replay))
        {
            replay.requests = TraceRequests(Arc::clone(requests));
        }
    }
    Ok(())
}
