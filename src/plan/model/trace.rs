//! Traces that a scenario replays: arrival times, lengths, and the text that prompts share.
//!
//! When a plan is loaded, each file is read once, however many scenarios name it. The SHA-256 of the file is
//! part of a run's identity, but its path is not. The requests of the file are held in memory for the runs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::dataset::{Field, Format, Mapping, OnBad, TimeUnit};
use crate::plan::model::file_ref::FileRef;
use crate::units::{Decimal, Nanos};

/// A trace to replay. It determines the arrival times and lengths of requests, and the text that their prompts
/// share. No text of the file is sent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceFile {
    /// The file, relative to the plan's: JSON lines, JSON, CSV or Parquet, with entries in chronological
    /// order.
    #[schemars(example = "data/mooncake.jsonl")]
    pub file: FileRef<Replay>,
    /// The format of the file's entries. Default: detected from the first entry.
    #[serde(rename = "as")]
    pub format: Option<Format>,
    /// The meaning of the file's columns, if the format is not a known one.
    #[serde(default, skip_serializing_if = "Columns::is_empty")]
    pub map: Columns,
    /// The action for an invalid entry: `fail` reports its line, `skip` skips it. Default fail.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub on_bad: OnBad,
    /// Replay speed relative to the recording. Default 1.
    #[serde(default = "one")]
    #[schemars(extend("default" = 1), range(min = 0.000001), example = 2)]
    pub speed: Decimal,
    /// The part to replay, as [from, to] on the trace's clock, which starts at the first time in the file.
    /// Default: all of it.
    #[schemars(example = serde_json::json!(["0s", "10m"]))]
    pub window: Option<[Nanos; 2]>,
    /// When the trace has ended, replay it again from its first request. The next pass begins at the end of
    /// `window`; without a `window`, after the last request and one more gap as long as the last one. Default
    /// false: the load ends with the trace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub repeat: bool,
}

fn one() -> Decimal {
    Decimal::new(1, 0)
}

/// The meaning of a file's columns; in JSON and Parquet, a dot selects a field of an object.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Columns(BTreeMap<String, String>);

/// The key for the unit of a time column.
const TIME_UNIT: &str = "time_unit";
/// The possible units of a time column, by name.
const TIME_UNITS: [(&str, TimeUnit); 4] =
    [("s", TimeUnit::S), ("ms", TimeUnit::Ms), ("us", TimeUnit::Us), ("ns", TimeUnit::Ns)];

impl Columns {
    /// Whether no column is mapped.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first unknown key or unit, with an error message; `None` if all are known.
    pub(crate) fn unknown(&self) -> Option<(&str, String)> {
        self.0.iter().find_map(|(key, value)| match key.as_str() {
            TIME_UNIT if TIME_UNITS.iter().any(|(unit, _)| unit == value) => None,
            TIME_UNIT => Some((key.as_str(), format!("unknown time unit `{value}`: write s, ms, us or ns"))),
            key => key.parse::<Field>().err().map(|error| (key, error.0)),
        })
    }

    /// The mapping in the form that file readers accept.
    pub(crate) fn mapping(&self) -> Mapping {
        let field = |(key, column): (&String, &String)| Some((key.parse().ok()?, column.clone()));
        let unit = self.0.get(TIME_UNIT).and_then(|unit| TIME_UNITS.iter().find(|(name, _)| name == unit));
        let time_unit = unit.map_or(TimeUnit::S, |(_, unit)| *unit);
        Mapping { columns: self.0.iter().filter_map(field).collect(), time_unit }
    }

    /// The mapping on one line, as it appears in a run's identity.
    pub(crate) fn line(&self) -> String {
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
        let mut properties: serde_json::Map<_, _> = Field::ALL.iter().copied().map(column).collect();
        let about = "Unit of the numbers in the time column; dates need no unit. Default s.";
        let unit =
            serde_json::json!({ "enum": TIME_UNITS.map(|(name, _)| name), "default": "s", "description": about });
        properties.insert(TIME_UNIT.to_owned(), unit);
        json_schema!({
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
            "description": "The meaning of columns; in JSON and Parquet a dot selects a field of an object.",
            "examples": [{ "time": "ts", "input_tokens": "in", "output_tokens": "out", "time_unit": "ms" }],
        })
    }
}

/// A trace as part of a run, with everything that determines what is sent and when.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Replay {
    /// SHA-256 of the file's bytes, as 64 hex digits.
    pub sha256: String,
    /// A one-line description of how the entries of the file are read.
    pub reading: String,
    /// Replay speed relative to the recording.
    pub speed: Decimal,
    /// The start and end of the part to replay, on the trace's clock; `None` to replay the whole trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<[Nanos; 2]>,
    /// Whether the replay restarts when the trace has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeat: bool,
    /// The requests. They are not stored or compared, because the digest represents them.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceRequest {
    /// Arrival time on the trace's clock.
    pub at: Nanos,
    /// Number of tokens in the prompt.
    pub prompt_tokens: u32,
    /// Number of tokens in the response.
    pub output_tokens: u32,
    /// Names of the prompt's blocks of 512 tokens, from the beginning. Equal names mean equal text.
    pub blocks: Box<[u64]>,
}

impl Replay {
    /// Mean requests per second over the window, at the speed of the replay.
    pub fn qps(&self) -> Decimal {
        let length = if self.repeat { self.period() } else { self.length() };
        let seconds = length.secs() / self.speed.to_f64();
        let rate = self.requests.0.len() as f64 / seconds.max(1e-9);
        // Rounded to six decimal places, because an average needs no more and the digits are part of the
        // run's identity.
        Decimal::new((rate * 1e6).round().clamp(1.0, 1e15) as i64, 6)
    }

    /// The start and end of the replayed part on the trace's clock.
    pub fn window(&self) -> [Nanos; 2] {
        let last = self.requests.0.last().map_or(Nanos::ZERO, |request| request.at);
        self.window.unwrap_or([Nanos::ZERO, Nanos(last.0.saturating_add(1))])
    }

    /// The length of one pass on the trace's clock, if the replay restarts. This is the window, or else the
    /// time up to one gap after the last request.
    pub(crate) fn period(&self) -> Nanos {
        let last_gap = match &self.requests.0[..] {
            [.., before, last] => last.at.saturating_sub(before.at),
            _ => Nanos::ZERO,
        };
        match self.window {
            Some([from, to]) => to.saturating_sub(from),
            None => self.length().saturating_add(last_gap),
        }
    }

    /// The length of the replayed part of the trace, up to its last request.
    fn length(&self) -> Nanos {
        let last = self.requests.0.last().map_or(Nanos::ZERO, |request| request.at);
        last.saturating_sub(self.window()[0])
    }

    /// Mean number of tokens in prompts and in responses.
    pub(crate) fn mean_tokens(&self) -> [f64; 2] {
        let count = self.requests.0.len().max(1) as f64;
        let mean =
            |of: fn(&TraceRequest) -> u32| self.requests.0.iter().map(|one| f64::from(of(one))).sum::<f64>() / count;
        [mean(|request| request.prompt_tokens), mean(|request| request.output_tokens)]
    }
}

impl TraceFile {
    /// A one-line description of how the file's entries are read.
    pub(crate) fn reading(&self) -> String {
        let format = self.format.map_or_else(|| "as found".to_owned(), |format| format!("as {format}"));
        let on_bad = if self.on_bad == OnBad::Skip { ", skip bad" } else { "" };
        format!("{format}{on_bad}{}", self.map.line())
    }

    /// Whether the fields other than the file are valid; `check` reports problems.
    pub(crate) fn is_sound(&self) -> bool {
        let has_length = self.window.is_none_or(|[from, to]| from < to);
        self.speed.is_positive() && has_length && self.map.unknown().is_none()
    }

    /// The trace as part of a run; `None` if its file could not be read, which is an error in the plan.
    pub fn replay(&self) -> Option<&Replay> {
        self.file.found()
    }
}
