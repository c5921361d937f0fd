//! What a run is, as bytes: the same measurement has the same name everywhere, and a changed field another one.
//!
//! The canonical form is a list of `(path, typed value)` entries: first the versions, then the rest sorted by path. An
//! optional field that is not set has no entry, so a new optional field leaves old ids as they are. In the bytes every
//! path and every value carries its length, so that no text can pass for two entries. Numbers travel as decimal text:
//! a float, or JSON's 53 bits, would give two different specs one name.

use std::fmt::{self, Write};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};

use crate::plan::scenario::{Content, Reuse};
use crate::plan::shorthand::DrainMode;
use crate::plan::{Between, Drain, Measure, MockFigures, Scalar, Timeouts};
use crate::units::{Decimal, Nanos, PerToken, Seed, Share};

use super::{EndpointSpec, Load, LoadEngine, ModelSpec, Phases, RunSpec, Shaping};

/// Version of the canonical form itself.
const HASH: u32 = 1;

/// Version of what the numbers mean. Bump it only when the same run would give other numbers: every id changes with it.
/// 1: instants as the program read them, connections opened by the first request that needed one. 2: instants by the
/// kernel's stamps, and `connections` says how they are opened.
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
}

impl Value {
    /// The letter of the type and the value as text, durations in nanoseconds.
    fn typed(&self) -> (char, String) {
        match self {
            Value::Bool(value) => ('b', value.to_string()),
            Value::Int(value) => ('i', value.to_string()),
            Value::Decimal(value) => ('d', value.to_string()),
            Value::Duration(Nanos(ns)) => ('n', ns.to_string()),
            Value::PerToken(PerToken(Nanos(ns))) => ('p', ns.to_string()),
            Value::Share(Share(value)) => ('s', value.to_string()),
            Value::Text(value) => ('t', value.clone()),
        }
    }
}

impl fmt::Display for Value {
    /// As a plan would write it: `120s`, `5`, `1%`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Decimal(value) => write!(f, "{value}"),
            Value::Duration(value) => write!(f, "{value}"),
            Value::PerToken(value) => write!(f, "{value}"),
            Value::Share(value) => write!(f, "{value}"),
            Value::Text(value) => f.write_str(value),
        }
    }
}

/// The canonical form of a RunSpec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canonical {
    entries: Vec<(String, Value)>,
}

impl Canonical {
    /// Path and value of every field that is set: the two versions, then the rest sorted by path.
    pub fn entries(&self) -> &[(String, Value)] {
        &self.entries
    }

    /// The bytes that are hashed: `length:path=`, type letter, `length:value`, newline, for each entry.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = String::new();
        for (path, value) in &self.entries {
            let (letter, text) = value.typed();
            // Writing to a String cannot fail.
            let _ = writeln!(bytes, "{}:{path}={letter}{}:{text}", path.len(), text.len());
        }
        bytes.into_bytes()
    }

    /// The value at `path`.
    fn get(&self, path: &str) -> Option<&Value> {
        self.entries.iter().find(|(at, _)| at == path).map(|(_, value)| value)
    }
}

/// Entries under one prefix.
struct Entries<'a> {
    prefix: String,
    into: &'a mut Vec<(String, Value)>,
}

impl Entries<'_> {
    fn put(&mut self, name: &str, value: Value) {
        self.into.push((format!("{}{name}", self.prefix), value));
    }

    fn put_some<T>(&mut self, name: &str, value: &Option<T>, wrap: impl Fn(&T) -> Value) {
        if let Some(value) = value {
            self.put(name, wrap(value));
        }
    }

    fn under(&mut self, name: &str) -> Entries<'_> {
        Entries { prefix: format!("{}{name}.", self.prefix), into: self.into }
    }
}

fn text(value: &impl ToString) -> Value {
    Value::Text(value.to_string())
}

fn int(value: &u32) -> Value {
    Value::Int(u64::from(*value))
}

/// The canonical form of `spec`. Every struct is taken apart field by field, so that a new field cannot be forgotten.
pub fn canonical(spec: &RunSpec) -> Canonical {
    let RunSpec {
        // Names for people.
        labels: _,
        endpoint,
        model,
        scenario,
        shaping,
        load,
        phases,
        between,
        timeouts,
        connections,
        // How the generator is built decides how much load it can make, and its own error is measured in every run: with
        // other threads or another timer it is the same run, and its facts say how it was made.
        engine: LoadEngine { threads: _, timer: _ },
        seed,
        repeat,
    } = spec;
    let mut body = Vec::new();
    let mut all = Entries { prefix: String::new(), into: &mut body };
    put_endpoint(all.under("endpoint"), endpoint);
    put_model(all.under("model"), model);
    put_scenario(all.under("scenario"), scenario);
    put_shaping(all.under("shaping"), shaping);
    put_load(all.under("load"), load);
    put_phases(all.under("phases"), phases);
    let Between { cooldown } = between;
    all.put("between.cooldown", Value::Duration(*cooldown));
    let Timeouts { connect, request, stall } = timeouts;
    all.put("timeouts.connect", Value::Duration(*connect));
    all.put("timeouts.request", Value::Duration(*request));
    all.put("timeouts.stall", Value::Duration(*stall));
    all.put("connections", text(&connections.name()));
    let Seed(seed) = seed;
    all.put("seed", Value::Int(*seed));
    all.put("repeat", int(repeat));
    body.sort_by(|(a, _), (b, _)| a.cmp(b));
    let versions = [("hash".to_owned(), int(&HASH)), ("measurement".to_owned(), int(&MEASUREMENT))];
    Canonical { entries: versions.into_iter().chain(body).collect() }
}

fn put_endpoint(mut entries: Entries, spec: &EndpointSpec) {
    let EndpointSpec { name, engine, api, gpu, gpus, server, mock } = spec;
    entries.put("name", text(name));
    entries.put("engine", text(&engine.name()));
    entries.put("api", text(&api.name()));
    entries.put_some("gpu", gpu, text);
    entries.put_some("gpus", gpus, int);
    let mut facts = entries.under("server");
    for (name, fact) in server {
        facts.put(
            name,
            match fact {
                Scalar::Bool(value) => Value::Bool(*value),
                Scalar::Number(value) => Value::Decimal(*value),
                Scalar::Text(value) => text(value),
            },
        );
    }
    if let Some(MockFigures { ttft, itl, slots, prefill, load, jitter, seed }) = mock {
        let mut mock = entries.under("mock");
        mock.put("ttft", Value::Duration(*ttft));
        mock.put("itl", Value::Duration(*itl));
        mock.put("slots", int(slots));
        mock.put("prefill", Value::PerToken(*prefill));
        mock.put("load", Value::Decimal(*load));
        mock.put("jitter", Value::Share(*jitter));
        mock.put("seed", Value::Int(seed.0));
    }
}

fn put_model(mut entries: Entries, spec: &ModelSpec) {
    let ModelSpec { id, precision } = spec;
    entries.put("id", text(id));
    entries.put_some("precision", precision, text);
}

fn put_scenario(mut entries: Entries, content: &Content) {
    let Content { reuse, system_tokens, prompt_tokens, output_tokens, turns } = content;
    let reuse = match reuse {
        Reuse::SamePrompt => "same_prompt",
        Reuse::None => "none",
        Reuse::SharedSystem => "shared_system",
        Reuse::Conversation => "conversation",
    };
    entries.put("reuse", text(&reuse));
    entries.put("system_tokens", int(system_tokens));
    entries.put("prompt_tokens", int(prompt_tokens));
    entries.put("output_tokens", int(output_tokens));
    entries.put("turns", int(turns));
}

fn put_shaping(mut entries: Entries, shaping: &Shaping) {
    let Shaping { stream, ignore_eos, temperature, top_p, presence_penalty, frequency_penalty, nonce } = shaping;
    entries.put("stream", Value::Bool(*stream));
    entries.put("ignore_eos", Value::Bool(*ignore_eos));
    entries.put("temperature", Value::Decimal(*temperature));
    let decimal = |value: &Decimal| Value::Decimal(*value);
    entries.put_some("top_p", top_p, decimal);
    entries.put_some("presence_penalty", presence_penalty, decimal);
    entries.put_some("frequency_penalty", frequency_penalty, decimal);
    entries.put("nonce", Value::Bool(*nonce));
}

fn put_load(mut entries: Entries, load: &Load) {
    match load {
        Load::Closed { batch_size } => {
            entries.put("pattern", text(&"closed"));
            entries.put("batch_size", int(batch_size));
        }
        Load::Open { qps, arrivals, cap } => {
            entries.put("pattern", text(&"open"));
            entries.put("qps", Value::Decimal(*qps));
            entries.put("arrivals", text(&arrivals.name()));
            entries.put_some("cap", cap, int);
        }
    }
}

fn put_phases(mut entries: Entries, phases: &Phases) {
    let Phases { fill, stabilize, measure, drain } = phases;
    entries.put("fill", Value::Duration(*fill));
    entries.put("stabilize", Value::Duration(*stabilize));
    let Measure { duration, min_requests, at_most } = measure;
    entries.put("measure.for", Value::Duration(*duration));
    entries.put_some("measure.min_requests", min_requests, |value| Value::Int(*value));
    entries.put_some("measure.at_most", at_most, |value| Value::Duration(*value));
    let Drain { duration, mode } = drain;
    entries.put("drain.for", Value::Duration(*duration));
    let mode = match mode {
        DrainMode::Keep => "keep",
        DrainMode::Stop => "stop",
    };
    entries.put("drain.mode", text(&mode));
}

/// The name of a run: SHA-256 over the canonical bytes of its spec. Prints as 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub [u8; 32]);

impl RunId {
    /// The id of `spec`.
    pub fn of(spec: &RunSpec) -> RunId {
        RunId(Sha256::digest(canonical(spec).bytes()).into())
    }

    /// The first 16 hex digits: the name of the run's folder.
    pub fn short(&self) -> String {
        hex(&self.0[..8])
    }
}

/// Two digits a byte. Ids are written by the thousand where a plan has nothing to do.
fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&hex(&self.0))
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunId({})", self.short())
    }
}

/// Why a text is not a RunId.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a run id: write all its 64 hex digits, in lower case")]
pub struct RunIdError(pub String);

impl FromStr for RunId {
    type Err = RunIdError;

    fn from_str(text: &str) -> Result<Self, RunIdError> {
        let wrong = || RunIdError(text.to_owned());
        if text.len() != 64 || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(wrong());
        }
        let mut id = [0; 32];
        for (byte, digits) in id.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(RunId(id))
    }
}

impl Serialize for RunId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// One field in which two specs differ, in the form a plan would write it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The canonical path, like `load.qps`.
    pub field: String,
    /// The value in the first spec; `None` where it is not set.
    pub old: Option<String>,
    /// The value in the second spec; `None` where it is not set.
    pub new: Option<String>,
}

impl fmt::Display for Difference {
    /// `load.qps: 5 → 6`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        write!(f, "{}: {} → {}", self.field, side(&self.old), side(&self.new))
    }
}

/// The fields in which `a` and `b` differ, in canonical order; empty when they are the same run.
pub fn differences(a: &RunSpec, b: &RunSpec) -> Vec<Difference> {
    let (a, b) = (canonical(a), canonical(b));
    let only_new = b.entries().iter().filter(|(path, _)| a.get(path).is_none());
    let mut paths: Vec<&String> = a.entries().iter().chain(only_new).map(|(path, _)| path).collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| (path, a.get(path), b.get(path)))
        .filter(|(_, old, new)| old != new)
        .map(|(path, old, new)| Difference {
            field: path.clone(),
            old: old.map(Value::to_string),
            new: new.map(Value::to_string),
        })
        .collect()
}
