//! The differences between two endpoints, models or scenarios. A value that one side omits or marks as
//! `unknown` does not count as different. The disclosure rules report that it is not known to be equal
//! either.

use super::equal::facts;
use crate::plan::model::content::Resolved;
use crate::plan::{Endpoint, Engine, Model, Scalar};

/// Settings that every engine has, with their aliases. They also count in comparisons of two engines.
const SHARED: [(&str, &[&str]); 6] = [
    ("tensor_parallel", &["tensor_parallel_size", "tp", "tp_size", "num_shard"]),
    ("pipeline_parallel", &["pipeline_parallel_size", "pp", "pp_size"]),
    ("quantization", &["quantize"]),
    ("kv_cache_dtype", &[]),
    ("dtype", &["torch_dtype"]),
    ("max_model_len", &["context_length"]),
];

/// Shared settings that depend on the number of accelerators.
const PARALLEL: [&str; 2] = ["tensor_parallel", "pipeline_parallel"];
/// Shared settings that are off by default: if only one side sets such a setting, the sides differ.
const QUANTIZED: [&str; 2] = ["quantization", "kv_cache_dtype"];

/// Whether a text marks a value as unknown.
pub(crate) fn is_unknown(text: &str) -> bool {
    text.trim().eq_ignore_ascii_case("unknown")
}

/// Whether two texts are both known, and differ.
fn differ(a: Option<&str>, b: Option<&str>) -> bool {
    let known = |text: Option<&str>| text.map(|text| text.trim().to_lowercase()).filter(|text| !is_unknown(text));
    known(a).zip(known(b)).is_some_and(|(a, b)| a != b)
}

/// Variables in which two endpoints differ, each named once. A difference that follows from a different
/// engine, accelerator or number of accelerators is not a separate variable.
pub(crate) fn endpoints(a: &Endpoint, b: &Endpoint) -> Vec<String> {
    // Mocks differ only in their figures, which do not count.
    if a.engine == Engine::Mock && b.engine == Engine::Mock {
        return Vec::new();
    }
    let own = [("engine", a.engine != b.engine), ("api", a.api != b.api), ("extra", a.extra != b.extra)];
    let own = own.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name.to_owned());
    own.chain(hardware(a, b)).chain(settings(a, b)).collect()
}

fn hardware(a: &Endpoint, b: &Endpoint) -> Vec<String> {
    let (Some(left), Some(right)) = (&a.hardware, &b.hardware) else { return Vec::new() };
    let text = |a: &Option<String>, b: &Option<String>| differ(a.as_deref(), b.as_deref());
    let other_gpu = text(&left.gpu, &right.gpu);
    let other_count = left.gpus().zip(right.gpus()).is_some_and(|(a, b)| a != b);
    let found = [
        ("gpu", other_gpu),
        ("gpus", other_count),
        ("memory", !other_gpu && text(&left.memory, &right.memory)),
        ("memory_bandwidth", !other_gpu && text(&left.memory_bandwidth, &right.memory_bandwidth)),
        ("interconnect", !other_gpu && !other_count && text(&left.interconnect, &right.interconnect)),
        ("network", text(&left.network, &right.network)),
        ("storage", text(&left.storage, &right.storage)),
    ];
    found.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name.to_owned()).collect()
}

/// Server facts in which two endpoints differ; for different engines, only the facts that both engines
/// have.
fn settings(a: &Endpoint, b: &Endpoint) -> Vec<String> {
    let (left, right) = (named(a), named(b));
    let count = |endpoint: &Endpoint| endpoint.hardware.as_ref().and_then(|hardware| hardware.gpus());
    let scaled = count(a) != count(b);
    let is_shared = |name: &str| SHARED.iter().any(|(shared, _)| *shared == name);
    let of = |facts: &[(String, Scalar)], name: &str| {
        facts.iter().find(|(known, _)| known == name).map(|(_, value)| value.to_string())
    };
    let mut found: Vec<String> = Vec::new();
    for (name, value) in left.iter().chain(&right) {
        let follows = (scaled && PARALLEL.contains(&name.as_str())) || (a.engine != b.engine && !is_shared(name));
        let (own, other) = (of(&left, name), of(&right, name));
        let is_other = if QUANTIZED.contains(&name.as_str()) {
            quantized(own.as_deref()) != quantized(other.as_deref()) && !is_unknown(&value.to_string())
        } else {
            differ(own.as_deref(), other.as_deref())
        };
        if is_other && !follows && !found.contains(name) {
            found.push(name.clone());
        }
    }
    found
}

/// The facts of an endpoint, with shared settings under their primary names.
fn named(endpoint: &Endpoint) -> Vec<(String, Scalar)> {
    let first = |name: String| {
        let shared = SHARED.iter().find(|(_, others)| others.contains(&name.as_str()));
        shared.map_or(name, |(first, _)| (*first).to_owned())
    };
    facts(endpoint).into_iter().map(|(name, value)| (first(name), value)).collect()
}

/// The quantization; `None` if there is none, or if the checkpoint determines it.
fn quantized(value: Option<&str>) -> Option<String> {
    let value = value?.trim().to_lowercase();
    (!["none", "auto", "no", "false", "off"].contains(&value.as_str())).then_some(value)
}

/// Models for which two engines use ids that identify different weights.
pub(crate) fn ids(models: &[(&str, &Model)], a: Engine, b: Engine) -> Vec<String> {
    if a == Engine::Mock || b == Engine::Mock {
        return Vec::new();
    }
    let other = |(_, model): &&(&str, &Model)| {
        model.id.for_engine(a).zip(model.id.for_engine(b)).is_some_and(|(a, b)| weights(a) != weights(b))
    };
    models.iter().filter(other).map(|(name, _)| format!("the id of model `{name}`")).collect()
}

/// The part of an id that identifies the weights: registries and engines write owner, case and punctuation
/// differently.
fn weights(id: &str) -> String {
    let last = id.trim_end_matches('/').rsplit('/').next().unwrap_or(id);
    last.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Variables in which two models differ, not counting their weights.
pub(crate) fn models(a: &Model, b: &Model) -> Vec<String> {
    let size = a.parameters.zip(b.parameters).is_some_and(|(a, b)| a != b).then(|| "parameters".to_owned());
    let precision = differ(a.precision.as_deref(), b.precision.as_deref()).then(|| "precision".to_owned());
    size.into_iter().chain(precision).collect()
}

/// Variables in which two scenarios differ.
pub(crate) fn scenarios(a: &Resolved, b: &Resolved) -> Vec<String> {
    let (left, right) = (&a.content, &b.content);
    // Requests share text through a system prompt or turns.
    let shared = |content: &crate::plan::model::content::Content| {
        let by_profile = (content.sharing.clone(), content.turn_counts.clone());
        (content.reuse, content.system_tokens, content.turns, content.talk, content.prefix, content.cache, by_profile)
    };
    let differ = [
        (shared(left) != shared(right), "shared text"),
        (left.prompt_tokens != right.prompt_tokens, "prompt_tokens"),
        (left.output_tokens != right.output_tokens, "output_tokens"),
        (left.lengths != right.lengths, "lengths"),
        (left.trace != right.trace, "trace"),
        (left.data != right.data, "data"),
        (a.nonce != b.nonce, "nonce"),
        (a.stream != b.stream, "stream"),
        (a.ignore_eos != b.ignore_eos, "ignore_eos"),
        (a.extra != b.extra, "extra"),
        (a.mix != b.mix, "mix"),
    ];
    let names = differ.into_iter().filter(|(differ, _)| *differ).map(|(_, name)| name);
    names.map(str::to_owned).chain(a.fields.differences(&b.fields)).collect()
}
