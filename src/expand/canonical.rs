//! The canonical form of a RunSpec: the input of the hash, and the output of `why`.
//!
//! The form is a list of `(path, typed value)` entries: first the versions, then the rest sorted by path. An
//! optional field that is not set has no entry, so a new optional field does not change old ids. In the byte
//! form, every path and every value is prefixed with its length, so that no text can be confused with two
//! entries. Numbers are written as decimal text, because with floats or JSON's 53 bits, two different specs
//! could get the same id.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;

use crate::plan::model::content::{Content, Reuse};
use crate::plan::model::lengths::Lengths;
use crate::plan::model::talk::Talk;
use crate::plan::{
    Arrivals, Between, Corpus, Drain, Gamma, History, HookAction, HookPoint, Json, Measure, MockFigures, NonceMode,
    Prefix, Process, Replay, Scalar, Sessions, Timeouts,
};
use crate::plan::{FieldValue, TextOrSecret};
use crate::units::{Decimal, Nanos, PerToken, Seed, Share};

use super::{ClassSpec, EndpointSpec, Http2, Load, LoadEngine, ModelSpec, Phases, Recording, RunSpec, Shaping};

/// Version of the canonical form itself.
const HASH: u32 = 1;

/// Version of the meaning of the measured numbers. Increase it only when the same run would produce different
/// numbers, because every id changes with it. Version 1: the program itself read the times, and the first
/// request that needed a connection opened it. Version 2: times are the kernel's timestamps, and
/// `connections` specifies how connections are opened.
const MEASUREMENT: u32 = 2;

/// A value of the canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// true or false.
    Bool(bool),
    /// A whole number.
    Int(u64),
    /// An exact decimal.
    Decimal(Decimal),
    /// A duration.
    Duration(Nanos),
    /// A time per token.
    PerToken(PerToken),
    /// A share of a whole.
    Share(Share),
    /// A text.
    Text(String),
    /// A list or table, as JSON without spaces.
    Json(String),
}

impl Value {
    /// Writes the type letter, the length of the value's text, and the text itself. Durations are in
    /// nanoseconds.
    fn write(&self, into: &mut Vec<u8>, text: &mut Vec<u8>) {
        text.clear();
        let (letter, written) = match self {
            Value::Bool(value) => ('b', write!(text, "{value}")),
            Value::Int(value) => ('i', write!(text, "{value}")),
            Value::Decimal(value) => ('d', write!(text, "{value}")),
            Value::Duration(Nanos(ns)) => ('n', write!(text, "{ns}")),
            Value::PerToken(PerToken(Nanos(ns))) => ('p', write!(text, "{ns}")),
            Value::Share(Share(value)) => ('s', write!(text, "{value}")),
            Value::Text(value) => ('t', text.write_all(value.as_bytes())),
            Value::Json(value) => ('j', text.write_all(value.as_bytes())),
        };
        let written = written.and_then(|()| write!(into, "{letter}{}:", text.len()));
        written.expect("memory accepts every byte");
        into.extend_from_slice(text);
    }
}

impl fmt::Display for Value {
    /// Formats the value as in a plan: `120s`, `5`, `1%`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Decimal(value) => write!(f, "{value}"),
            Value::Duration(value) => write!(f, "{value}"),
            Value::PerToken(value) => write!(f, "{value}"),
            Value::Share(value) => write!(f, "{value}"),
            Value::Text(value) | Value::Json(value) => f.write_str(value),
        }
    }
}

/// The canonical form of a RunSpec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canonical {
    entries: Vec<(String, Value)>,
}

impl Canonical {
    /// Path and value of every field that is set: first the two versions, then the rest sorted by path.
    pub fn entries(&self) -> &[(String, Value)] {
        &self.entries
    }

    /// The value at `path`.
    pub fn get(&self, path: &str) -> Option<&Value> {
        self.entries.iter().find(|(at, _)| at == path).map(|(_, value)| value)
    }
}

/// The canonical form of `spec`.
pub fn canonical(spec: &RunSpec) -> Canonical {
    let mut entries = Vec::new();
    each(spec, &mut |prefix, name, value| entries.push((format!("{prefix}{name}"), value)));
    Canonical { entries }
}

/// A reusable buffer for the bytes of canonical forms.
#[derive(Debug, Default)]
pub struct Bytes {
    all: Vec<u8>,
    text: Vec<u8>,
}

impl Bytes {
    /// Returns the bytes that are hashed. Each entry consists of `length:path=`, type letter, `length:value`
    /// and newline.
    pub fn of(&mut self, spec: &RunSpec) -> &[u8] {
        let Bytes { all, text } = self;
        all.clear();
        each(spec, &mut |prefix, name, value| {
            write!(all, "{}:{prefix}{name}=", prefix.len() + name.len()).expect("memory accepts every byte");
            value.write(all, text);
            all.push(b'\n');
        });
        all
    }
}

/// A callback that receives each entry of a form: the prefix and the name of its path, and its value.
type Put<'p> = &'p mut dyn FnMut(&'static str, &str, Value);

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

fn int(value: u32) -> Value {
    Value::Int(u64::from(value))
}

/// Passes the entries of `spec` to `put` in canonical order. The entries are not sorted afterwards, so that a
/// million specs take only seconds; a test checks their order. Every struct is destructured field by field,
/// so that a new field cannot be forgotten.
fn each(spec: &RunSpec, put: Put) {
    let RunSpec {
        // Not hashed: names for readers.
        labels: _,
        endpoint,
        model,
        scenario,
        shaping,
        mix,
        load,
        phases,
        between: Between { cooldown },
        timeouts: Timeouts { connect, request, stall },
        connections,
        // Not hashed: these settings of the load generator affect only how much load it can generate, and its
        // timing error is measured in every run. A run with other threads or another timer is therefore the
        // same run; its facts record the settings.
        engine: LoadEngine { threads: _, timer: _, workers: _ },
        // Not hashed: additional recordings do not affect the measured numbers.
        record: Recording { text: _ },
        errors: _,
        start,
        // Not hashed: the origin of a load. The load itself is hashed.
        taken: _,
        seed: Seed(seed),
        repeat,
    } = spec;
    put("", "hash", int(HASH));
    put("", "measurement", int(MEASUREMENT));
    put("between.", "cooldown", Value::Duration(*cooldown));
    put("", "connections", text(connections.name()));
    each_of_endpoint(endpoint, put);
    each_of_load(load, scenario.trace.is_some(), put);
    if *start {
        put("", "measure", text("start"));
    }
    each_of_mix(mix, put);
    let ModelSpec { id, precision, tokenizer } = &**model;
    put("model.", "id", text(id));
    some(precision, |precision| put("model.", "precision", text(precision)));
    some(tokenizer, |tokenizer| put("model.", "tokenizer", text(tokenizer)));
    if let Some(fits) = tokenizer.as_ref().and_then(|_| fits(scenario, mix)) {
        put("model.", "tokenizer.fits", text(fits));
    }
    each_of_phases(phases, put);
    put("", "repeat", int(*repeat));
    each_of_scenario(scenario, put);
    put("", "seed", Value::Int(*seed));
    each_of_shaping(shaping, put);
    put("timeouts.", "connect", Value::Duration(*connect));
    put("timeouts.", "request", Value::Duration(*request));
    put("timeouts.", "stall", Value::Duration(*stall));
}

/// Calls `put` if the value is set: a field that is not set has no entry.
fn some<T>(value: &Option<T>, put: impl FnMut(&T)) {
    value.iter().for_each(put);
}

/// Returns which texts, in addition to prompts without context, are adjusted with a tokenizer to have exactly
/// the required number of tokens. Earlier versions used estimates for these texts, so runs with such content
/// have other ids now; the ids of all other runs are unchanged.
fn fits(scenario: &Content, mix: &[ClassSpec]) -> Option<&'static str> {
    let contents = || mix.iter().map(|class| &class.scenario).chain([scenario]);
    let is_scripted = |content: &Content| {
        content.reuse == Reuse::Conversation && content.turns > 1 && content.talk.history == History::Scripted
    };
    match (contents().any(|content| content.trace.is_some()), contents().any(is_scripted)) {
        (true, true) => Some("traces and histories"),
        (true, false) => Some("traces"),
        (false, true) => Some("histories"),
        (false, false) => None,
    }
}

fn each_of_endpoint(spec: &EndpointSpec, put: Put) {
    let EndpointSpec { name, engine, api, gpu, gpus, http, server, mock, launch, reset, hooks } = spec;
    put("endpoint.", "api", text(api.name()));
    put("endpoint.", "engine", text(engine.name()));
    some(gpu, |gpu| put("endpoint.", "gpu", text(gpu)));
    some(gpus, |gpus| put("endpoint.", "gpus", int(*gpus)));
    each_of_hooks(hooks, put);
    if let Some(Http2 { streams }) = http {
        put("endpoint.", "http", int(2));
        put("endpoint.", "http.streams", int(*streams));
    }
    if let Some(launch) = launch {
        let command = serde_json::to_string(&launch.hashed_command()).expect("texts are JSON");
        put("endpoint.launch.", "command", Value::Json(command));
        for (name, value) in &launch.env {
            let value = match value {
                TextOrSecret::Text(value) => text(value),
                TextOrSecret::Secret(reference) => Value::Json(reference.identity()),
            };
            put("endpoint.launch.env.", name, value);
        }
    }
    if let Some(MockFigures { ttft, itl, slots, prefill, prefix_cache, prefix_block, load, jitter, seed }) = mock {
        put("endpoint.mock.", "itl", Value::Duration(*itl));
        put("endpoint.mock.", "jitter", Value::Share(*jitter));
        put("endpoint.mock.", "load", Value::Decimal(*load));
        put("endpoint.mock.", "prefill", Value::PerToken(*prefill));
        some(prefix_block, |tokens| put("endpoint.mock.", "prefix_block", int(*tokens)));
        some(prefix_cache, |tokens| put("endpoint.mock.", "prefix_cache", int(*tokens)));
        put("endpoint.mock.", "seed", Value::Int(seed.0));
        put("endpoint.mock.", "slots", int(*slots));
        put("endpoint.mock.", "ttft", Value::Duration(*ttft));
    }
    put("endpoint.", "name", text(name));
    some(reset, |reset| put("endpoint.", "reset", text(reset.name())));
    for (name, fact) in server {
        let value = match fact {
            Scalar::Bool(value) => Value::Bool(*value),
            Scalar::Number(value) => Value::Decimal(*value),
            Scalar::Text(value) => text(value),
        };
        put("endpoint.server.", name, value);
    }
}

/// Passes the hooks to `put` with paths such as `endpoint.hooks.before_run.0.request`, where the number is
/// the index among the hashed hooks of this point.
fn each_of_hooks(hooks: &BTreeMap<HookPoint, Vec<HookAction>>, put: Put) {
    let mut entries: Vec<(String, Value)> = Vec::new();
    for (point, actions) in hooks {
        for (number, action) in actions.iter().enumerate() {
            let (field, value) = match action.hashed() {
                HookAction::Request(request) => ("request", Value::Text(request)),
                HookAction::Command(command) => {
                    ("command", Value::Json(serde_json::to_string(&command).expect("texts are JSON")))
                }
            };
            entries.push((format!("{}.{number}.{field}", point.name()), value));
        }
    }
    entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    for (name, value) in entries {
        put("endpoint.hooks.", &name, value);
    }
}

fn each_of_load(load: &Load, replays: bool, put: Put) {
    match load {
        Load::Closed { batch_size } => {
            put("load.", "batch_size", int(*batch_size));
            put("load.", "pattern", text("closed"));
        }
        Load::Open { qps, arrivals, cap } => {
            let Arrivals { process, profile } = arrivals;
            // The arrival times of a trace replace an arrival process.
            put("load.", "arrivals", text(if replays { "trace" } else { process.name() }));
            match process {
                Process::Poisson | Process::Constant | Process::Trace => {}
                Process::Gamma(Gamma::Burstiness(shape)) => put("load.", "arrivals.burstiness", Value::Decimal(*shape)),
                Process::Gamma(Gamma::Cv(cv)) => put("load.", "arrivals.cv", Value::Decimal(*cv)),
            }
            some(cap, |cap| put("load.", "cap", int(*cap)));
            put("load.", "pattern", text("open"));
            some(profile, |profile| put("load.", "profile", Value::Text(profile.to_string())));
            put("load.", "qps", Value::Decimal(*qps));
        }
    }
}

fn each_of_phases(phases: &Phases, put: Put) {
    let Phases { idle, fill, stabilize, measure, drain } = phases;
    let Drain { duration, mode } = drain;
    put("phases.", "drain.for", Value::Duration(*duration));
    put("phases.", "drain.mode", text(mode.into()));
    put("phases.", "fill", Value::Duration(*fill));
    some(idle, |idle| put("phases.", "idle", Value::Duration(*idle)));
    let Measure { duration, min_requests, at_most } = measure;
    some(at_most, |at_most| put("phases.", "measure.at_most", Value::Duration(*at_most)));
    put("phases.", "measure.for", Value::Duration(*duration));
    some(min_requests, |requests| put("phases.", "measure.min_requests", Value::Int(*requests)));
    put("phases.", "stabilize", Value::Duration(*stabilize));
}

fn each_of_scenario(content: &Content, put: Put) {
    let Content {
        reuse,
        system_tokens,
        prompt_tokens,
        output_tokens,
        turns,
        talk,
        lengths,
        trace,
        data,
        prefix,
        sharing,
        turn_counts,
        cache,
    } = content;
    let Talk { think, history, sessions, context_limit, context_cut } = talk;
    if !cache.is_warm() {
        put("scenario.", "cache", text(cache.name()));
    }
    if let Some(limit) = context_limit {
        put("scenario.", "context_cut", text(context_cut.name()));
        put("scenario.", "context_limit", int(*limit));
    }
    // Only the digest of the texts is hashed, regardless of where they came from and how they were read.
    if let Some(Corpus { order, output_tokens, source }) = data {
        put("scenario.data.", "order", text(order.name()));
        some(output_tokens, |tokens| put("scenario.data.", "output_tokens", int(*tokens)));
        put("scenario.data.", "texts", text(&source.texts));
    }
    if *history != History::default() {
        put("scenario.", "history", text(history.name()));
    }
    match lengths {
        Some(Lengths::Each { prompt, output }) => {
            put("scenario.lengths.", "output", text(&output.to_string()));
            put("scenario.lengths.", "prompt", text(&prompt.to_string()));
        }
        Some(joint @ Lengths::Joint(_)) => put("scenario.lengths.", "joint", text(&joint.to_string())),
        None => {}
    }
    put("scenario.", "output_tokens", int(*output_tokens));
    if let Some(Prefix { share, tokens, groups, order }) = prefix {
        put("scenario.", "prefix.groups", int(*groups));
        put("scenario.", "prefix.order", text(order.name()));
        put("scenario.", "prefix.share", Value::Share(*share));
        put("scenario.", "prefix.tokens", int(*tokens));
    }
    put("scenario.", "prompt_tokens", int(*prompt_tokens));
    put("scenario.", "reuse", text(reuse.into()));
    if *sessions != Sessions::default() {
        put("scenario.", "sessions", text(sessions.name()));
    }
    some(sharing, |sharing| put("scenario.", "sharing", text(sharing.digest())));
    put("scenario.", "system_tokens", int(*system_tokens));
    some(think, |think| {
        put("scenario.", "think", think.constant().map_or_else(|| text(&think.to_string()), Value::Duration));
    });
    if let Some(Replay { sha256, reading, speed, window, repeat, requests: _ }) = trace {
        some(window, |[from, _]| put("scenario.trace.", "from", Value::Duration(*from)));
        put("scenario.trace.", "reading", text(reading));
        if *repeat {
            put("scenario.trace.", "repeat", Value::Bool(true));
        }
        put("scenario.trace.", "sha256", text(sha256));
        put("scenario.trace.", "speed", Value::Decimal(*speed));
        some(window, |[_, to]| put("scenario.trace.", "to", Value::Duration(*to)));
    }
    some(turn_counts, |counts| put("scenario.", "turn_counts", text(counts.digest())));
    put("scenario.", "turns", int(*turns));
}

/// Passes the classes to `put` in the order of the plan, because the order determines the class of each
/// request.
fn each_of_mix(mix: &[ClassSpec], put: Put) {
    for (number, ClassSpec { name: _, weight, scenario, shaping }) in mix.iter().enumerate() {
        let mut put_in = |prefix: &'static str, name: &str, value: Value| {
            put("mix.", &format!("{number:02}.{prefix}{name}"), value);
        };
        each_of_scenario(scenario, &mut put_in);
        each_of_shaping(shaping, &mut put_in);
        put_in("", "weight", Value::Int(*weight));
    }
}

fn each_of_shaping(shaping: &Shaping, put: Put) {
    let Shaping { stream, ignore_eos, fields: of_request, extra, nonce } = shaping;
    for (name, field) in extra {
        let value = match field {
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(value) => Value::Decimal(*value),
            Json::Text(value) => text(value),
            Json::List(_) | Json::Table(_) => Value::Json(field.to_string()),
        };
        put("shaping.extra.", name, value);
    }
    let nonce = match nonce {
        // Hashed as true or false, as before the mode `run` existed.
        NonceMode::On => Value::Bool(true),
        NonceMode::Off => Value::Bool(false),
        NonceMode::Run => text(nonce.name()),
    };
    let own = [("ignore_eos", Value::Bool(*ignore_eos)), ("nonce", nonce), ("stream", Value::Bool(*stream))];
    let mut fields: Vec<(Cow<'static, str>, Value)> = own.map(|(name, value)| (name.into(), value)).into();
    fields.extend(of_request.entries().into_iter().map(|(name, value)| {
        let value = match value {
            FieldValue::Decimal(value) => Value::Decimal(value),
            FieldValue::Text(value) => Value::Text(value),
            FieldValue::Json(value) => Value::Json(value),
        };
        (name, value)
    }));
    fields.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    for (name, value) in fields {
        put("shaping.", &name, value);
    }
}
