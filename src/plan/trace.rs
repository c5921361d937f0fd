//! Traces that a scenario replays: when requests came, how long they were, and what their prompts share.
//!
//! When a plan is loaded each file is read once, however many scenarios name it: its SHA-256 goes into the identity of runs,
//! its path does not, and its requests are held in memory for the runs.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::error::{Code, Diagnostic};
use super::load::Loader;
use super::model::Plan;
use super::tree::{Node, Span, Step};
use crate::dataset::{Dataset, DatasetError, Field, Format, Mapping, OnBad, Options, Record, TimeUnit, digest};
use crate::units::{Decimal, Nanos};

/// Requests that are replayed: more are refused, because they are held in memory.
const MOST_REQUESTS: usize = 5_000_000;

/// Requests of a trace: when they came, how long they were, and what their prompts share. No text of the file is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceFile {
    /// The file, relative to the plan's: JSON lines, JSON, CSV or Parquet, in the order of its times.
    #[schemars(example = "data/mooncake.jsonl")]
    pub file: String,
    /// What its entries are. Default: what the first one looks like.
    #[serde(rename = "as", default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Which of its columns mean what, where it is no known format.
    #[serde(default, skip_serializing_if = "Columns::is_empty")]
    pub map: Columns,
    /// What happens when an entry breaks its format: `fail` names its line, `skip` leaves it out. Default fail.
    #[serde(default, skip_serializing_if = "is_fail")]
    pub on_bad: OnBad,
    /// How many times as fast as it was recorded. Default 1.
    #[serde(default = "one")]
    #[schemars(extend("default" = 1), range(min = 0.000001), example = 2)]
    pub speed: Decimal,
    /// The part that is replayed: from and to, on the trace's clock, whose 0 is its first time. Default: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = serde_json::json!(["0s", "10m"]))]
    pub window: Option<[Nanos; 2]>,
    /// Begin again when it has ended: from its first request, one last gap after its last, or where the window ends. Default
    /// false: the load ends with it.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("default" = false))]
    pub repeat: bool,
    /// What was found in the file when the plan was loaded.
    #[serde(skip)]
    #[schemars(skip)]
    found: Option<Replay>,
    /// Where it was found, without links.
    #[serde(skip)]
    #[schemars(skip)]
    pub(super) lies_at: Option<PathBuf>,
}

fn one() -> Decimal {
    Decimal::new(1, 0)
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_fail(on_bad: &OnBad) -> bool {
    *on_bad == OnBad::Fail
}

/// Which columns of a file mean what; in JSON and Parquet a dot leads into an object.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Columns(BTreeMap<String, String>);

/// The key that says what the numbers of a time column count, and what they can count.
const TIME_UNIT: &str = "time_unit";
const TIME_UNITS: [(&str, TimeUnit); 4] =
    [("s", TimeUnit::S), ("ms", TimeUnit::Ms), ("us", TimeUnit::Us), ("ns", TimeUnit::Ns)];

impl Columns {
    /// Whether nothing is mapped.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first key or unit that means nothing, with what is known.
    pub(super) fn unknown(&self) -> Option<(&str, String)> {
        self.0.iter().find_map(|(key, value)| match key.as_str() {
            TIME_UNIT if TIME_UNITS.iter().any(|(unit, _)| unit == value) => None,
            TIME_UNIT => Some((key.as_str(), format!("`{value}` is no unit of time: write s, ms, us or ns"))),
            key => key.parse::<Field>().err().map(|error| (key, error.0)),
        })
    }

    /// As readers of files take it.
    pub(super) fn mapping(&self) -> Mapping {
        let field = |(key, column): (&String, &String)| Some((key.parse().ok()?, column.clone()));
        let unit = self.0.get(TIME_UNIT).and_then(|unit| TIME_UNITS.iter().find(|(name, _)| name == unit));
        let time_unit = unit.map_or(TimeUnit::S, |(_, unit)| *unit);
        Mapping { columns: self.0.iter().filter_map(field).collect(), time_unit }
    }

    /// In one line, as it stands in identities.
    pub(super) fn line(&self) -> String {
        self.0.iter().map(|(field, column)| format!(" {field}={column}")).collect()
    }
}

impl JsonSchema for Columns {
    fn schema_name() -> Cow<'static, str> {
        "Columns".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let column = |field: Field| {
            let about = field.meaning();
            let column = serde_json::json!({ "type": "string", "description": about, "examples": [field.name()] });
            (field.name().to_owned(), column)
        };
        let mut properties: serde_json::Map<_, _> = Field::ALL.map(column).into_iter().collect();
        let about = "What the numbers of the time column count; dates need no unit. Default s.";
        let unit =
            serde_json::json!({ "enum": TIME_UNITS.map(|(name, _)| name), "default": "s", "description": about });
        properties.insert(TIME_UNIT.to_owned(), unit);
        json_schema!({
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
            "description": "Which columns mean what; in JSON and Parquet a dot leads into an object.",
            "examples": [{ "time": "ts", "input_tokens": "in", "output_tokens": "out", "time_unit": "ms" }],
        })
    }
}

/// A trace as part of a run: all that decides what is sent and when.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Replay {
    /// SHA-256 of the file's bytes, as 64 hex digits.
    pub sha256: String,
    /// How its entries are read, in one line.
    pub reading: String,
    /// How many times as fast as it was recorded.
    pub speed: Decimal,
    /// The part that is replayed: from and to, on the trace's clock; none: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<[Nanos; 2]>,
    /// It begins again when it has ended.
    #[serde(default, skip_serializing_if = "is_false")]
    pub repeat: bool,
    /// The requests; no part of what is stored or compared, because the digest stands for them.
    #[serde(skip)]
    pub requests: TraceRequests,
}

/// The requests of a trace, in the order of their times.
#[derive(Debug, Clone, Default)]
pub struct TraceRequests(pub Arc<[TraceRequest]>);

impl PartialEq for TraceRequests {
    fn eq(&self, _: &TraceRequests) -> bool {
        true
    }
}

impl Eq for TraceRequests {}

impl std::hash::Hash for TraceRequests {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

/// One request of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceRequest {
    /// When it came, on the trace's clock.
    pub at: Nanos,
    /// Tokens of its prompt.
    pub prompt_tokens: u32,
    /// Tokens of its answer.
    pub output_tokens: u32,
    /// Names of its prompt's blocks of 512 tokens from the beginning: equal names are equal text.
    pub blocks: Box<[u64]>,
}

impl Replay {
    /// Requests per second at the speed of the replay, on average over its window.
    pub fn qps(&self) -> Decimal {
        let length = if self.repeat { self.period() } else { self.length() };
        let seconds = length.secs() / self.speed.to_f64();
        let rate = self.requests.0.len() as f64 / seconds.max(1e-9);
        // Six digits behind the point: an average has no more, and the digits are part of the run's identity.
        Decimal::new((rate * 1e6).round().clamp(1.0, 1e15) as i64, 6)
    }

    /// From where to where on the trace's clock it goes.
    pub fn window(&self) -> [Nanos; 2] {
        let last = self.requests.0.last().map_or(Nanos::ZERO, |request| request.at);
        self.window.unwrap_or([Nanos::ZERO, Nanos(last.0.saturating_add(1))])
    }

    /// What one turn takes on the trace's clock, where it begins again: its window, or up to one last gap after its last request.
    pub fn period(&self) -> Nanos {
        let last_gap = match &self.requests.0[..] {
            [.., before, last] => last.at.saturating_sub(before.at),
            _ => Nanos::ZERO,
        };
        match self.window {
            Some([from, to]) => to.saturating_sub(from),
            None => self.length().saturating_add(last_gap),
        }
    }

    /// How much of the trace's time is replayed: up to its last request.
    fn length(&self) -> Nanos {
        let last = self.requests.0.last().map_or(Nanos::ZERO, |request| request.at);
        last.saturating_sub(self.window()[0])
    }

    /// Means of prompt and answer tokens.
    pub fn mean_tokens(&self) -> [f64; 2] {
        let count = self.requests.0.len().max(1) as f64;
        let mean =
            |of: fn(&TraceRequest) -> u32| self.requests.0.iter().map(|one| f64::from(of(one))).sum::<f64>() / count;
        [mean(|request| request.prompt_tokens), mean(|request| request.output_tokens)]
    }
}

impl TraceFile {
    /// How the file's entries are read, in one line.
    fn reading(&self) -> String {
        let format = self.format.map_or_else(|| "as found".to_owned(), |format| format!("as {format}"));
        let on_bad = if self.on_bad == OnBad::Skip { ", skip bad" } else { "" };
        format!("{format}{on_bad}{}", self.map.line())
    }

    /// Whether what is said beside the file can be followed; `check` tells what cannot.
    fn is_sound(&self) -> bool {
        let has_length = self.window.is_none_or(|[from, to]| from < to);
        self.speed.is_positive() && has_length && self.map.unknown().is_none()
    }

    /// The trace as part of a run; none where its file could not be read, which is a mistake of the plan.
    pub fn replay(&self) -> Option<&Replay> {
        self.found.as_ref()
    }
}

/// Reads the traces that the plan's scenarios name.
pub(super) fn find(plan: &mut Plan, tree: &Node, loader: &mut Loader<'_>) {
    let mut known: HashMap<(PathBuf, String), Replay> = HashMap::new();
    for (name, scenario) in &mut plan.scenarios {
        let Some(trace) = scenario.trace.as_mut().filter(|trace| trace.is_sound()) else { continue };
        let place = tree.walk(&["scenarios", name, "trace", "file"].map(Step::from));
        if place.broken {
            continue;
        }
        match read(trace, &place.span(), loader, &mut known) {
            Ok((replay, path)) => (trace.found, trace.lies_at) = (Some(replay), Some(path)),
            Err(diagnostic) => loader.found.push((*diagnostic).at(Some(place.span())).with(place.related())),
        }
    }
}

fn read(
    trace: &TraceFile,
    span: &Span,
    loader: &Loader<'_>,
    known: &mut HashMap<(PathBuf, String), Replay>,
) -> Result<(Replay, PathBuf), Box<Diagnostic>> {
    let written = &trace.file;
    let (_, canonical) = loader.locate(written, span)?;
    let path = loader.local(&canonical).ok_or_else(|| {
        let message = format!("the trace `{written}` is read from the disk, not from a revision");
        Diagnostic::new(Code::File, message).remedy("compare two files: sweepline diff A B")
    })?;
    let (reading, window) = (trace.reading(), trace.window);
    let key = (path.clone(), format!("{reading} {window:?}"));
    if let Some(replay) = known.get(&key) {
        return Ok((Replay { speed: trace.speed, repeat: trace.repeat, ..replay.clone() }, path));
    }
    let cannot = |error: DatasetError| {
        let remedy = "`sweepline dataset inspect` shows what a file holds; docs/DATASETS.md says what is read";
        Diagnostic::new(Code::File, format!("the trace `{written}` cannot be read: {error}")).remedy(remedy)
    };
    let (mapping, on_bad) = (trace.map.mapping(), trace.on_bad);
    let options = Options { format: trace.format, mapping, on_bad, ..Options::default() };
    let requests = enough(written, requests(&path, &options, window).map_err(cannot)?)?;
    let replay = Replay {
        sha256: digest(&path).map_err(cannot)?,
        reading,
        speed: trace.speed,
        window,
        repeat: trace.repeat,
        requests,
    };
    known.insert(key, replay.clone());
    Ok((replay, path))
}

/// Requests that can be replayed: neither too few nor too many, each with a time and lengths.
fn enough(written: &str, requests: Option<Vec<TraceRequest>>) -> Result<TraceRequests, Box<Diagnostic>> {
    let (what, remedy) = match requests {
        Some(requests) if requests.len() > MOST_REQUESTS => {
            ("has more than 5 000 000 requests", "replay a part of it: window: [0s, 10m]")
        }
        Some(requests) if requests.len() < 2 => {
            ("has fewer than two requests in its window", "see its times: sweepline dataset inspect")
        }
        Some(requests) => return Ok(TraceRequests(requests.into())),
        None => (
            "has entries without a time or without lengths",
            "give it a column with times: map: { time: COLUMN }, and columns with prompt and answer tokens",
        ),
    };
    Err(Diagnostic::new(Code::Empty, format!("the trace `{written}` {what}")).remedy(remedy).into())
}

/// The requests of a file in a window; `None` where one has no time or no lengths.
fn requests(
    path: &Path,
    options: &Options,
    window: Option<[Nanos; 2]>,
) -> Result<Option<Vec<TraceRequest>>, DatasetError> {
    let [from, to] = window.unwrap_or([Nanos::ZERO, Nanos(u64::MAX)]);
    let mut requests = Vec::new();
    for record in Dataset::open(path, options)? {
        let record = record?;
        let (prompt_tokens, output_tokens) = (record.prompt_tokens(), record.answer_tokens());
        let Record { offset, hash_ids, .. } = record;
        let (Some(at), Some(prompt_tokens), Some(output_tokens)) = (offset, prompt_tokens, output_tokens) else {
            return Ok(None);
        };
        if at >= to || requests.len() > MOST_REQUESTS {
            break;
        }
        if at >= from {
            let output_tokens = output_tokens.max(1);
            requests.push(TraceRequest { at, prompt_tokens, output_tokens, blocks: hash_ids.into() });
        }
    }
    Ok(Some(requests))
}
