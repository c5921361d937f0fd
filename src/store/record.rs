//! `run.json`, the commit of a run, and `attempt.json`, what is known before there is one.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::StoreError;
use super::folder::{self, Folder};
use super::layout::{ATTEMPT_JSON, MOST_ATTEMPTS, RUN_JSON};
use super::seal;
use crate::expand::{RunId, RunSpec};
use crate::rows::{Environment, Facts, RunLabels, Spoiled, Table};
use crate::units::NonceSeed;

/// Format of the store's JSON files. Raised when a reader of the old one would misread the new; a new optional field does
/// not raise it. The digest at the end of `run.json` did not: an earlier program reads the same figures beside it.
pub const FORMAT: u32 = 1;

/// An instant of the wall clock, written as RFC 3339 in UTC with nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(inline, extend("format" = "date-time"))]
pub struct Moment(#[schemars(with = "String")] pub Timestamp);

impl Moment {
    /// This instant.
    pub fn now() -> Moment {
        Moment(Timestamp::now())
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.9}", self.0)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Timestamp::from_str(&text).map(Moment).map_err(D::Error::custom)
    }
}

/// One file of a committed run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Its size in bytes.
    pub bytes: u64,
    /// Its SHA-256, 64 hex digits.
    pub sha256: String,
    /// Its rows.
    pub rows: u64,
}

/// The committed run that this one took the place of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Replaced {
    /// Its attempt; none where its `run.json` could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Why it was repeated; none where nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `run.json`: the commit of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Format of this file.
    pub format: u32,
    /// The full RunId, 64 hex digits.
    pub id: String,
    /// Which attempt at the run this was, from 1.
    pub attempt: u32,
    /// When the attempt began.
    pub started: Moment,
    /// When it was over and its commit began.
    pub ended: Moment,
    /// The run as it was asked for, every default explicit.
    pub spec: RunSpec,
    /// What the nonces of its requests derive from; none in records of before there was one, whose nonces derived from id and
    /// attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce_seed: Option<NonceSeed>,
    /// The circumstances as they were found.
    pub environment: Environment,
    /// What the verdict is computed from, besides the rows.
    pub facts: Facts,
    /// Digest of what the generator sent, without nonces: equal for the two arms of a comparison.
    pub generator_digest: String,
    /// What it took the place of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<Replaced>,
    /// The row files, by name.
    pub files: BTreeMap<String, FileRecord>,
    /// The digest at the end of the file, which covers all of it; none in what an earlier sweepline wrote. The file has it
    /// behind everything else, so it is not written as a field.
    #[serde(default, skip_serializing)]
    pub sha256: Option<String>,
}

/// The last field of a `run.json` without a digest, as every earlier sweepline wrote it.
const LAST_FIELD: &str = "files";

/// What all rows of an attempt at a run share.
pub fn run_labels(id: &str, attempt: u32, spec: &RunSpec) -> RunLabels {
    RunLabels {
        run_id: id.to_owned(),
        attempt,
        endpoint: spec.endpoint.name.clone(),
        model: spec.labels.model.to_string(),
        scenario: spec.labels.scenario.to_string(),
        batch_size: spec.load.batch_size(),
        qps: spec.load.qps().map(|qps| qps.to_f64()),
        repeat: spec.repeat,
        axes: spec.labels.axes.to_map(),
    }
}

impl RunRecord {
    /// What all rows of the run share, also where it has none.
    pub fn labels(&self) -> RunLabels {
        run_labels(&self.id, self.attempt, &self.spec)
    }

    /// The tables that the run has, and those that it would have to have.
    pub fn tables(&self) -> impl Iterator<Item = Table> {
        Table::ALL.into_iter().filter(|table| !table.is_optional() || self.has(*table))
    }

    /// Whether the run names the file of `table`.
    pub fn has(&self, table: Table) -> bool {
        self.files.contains_key(table.file())
    }

    /// Whether its rows may say too little of what prompts share. A version that did not look at what was sent knew it by
    /// construction; not of the blocks of a trace, nor, without a nonce, of recorded texts and of classes that say the same.
    pub(crate) fn reuse_is_unknown(&self) -> bool {
        let RunSpec { scenario, mix, shaping, .. } = &self.spec;
        let contents = || mix.iter().map(|class| &class.scenario).chain([scenario]);
        let has_trace = contents().any(|content| content.trace.is_some());
        let has_texts = !mix.is_empty() || contents().any(|content| content.data.is_some());
        self.facts.reuse_count.is_none() && (has_trace || (shaping.nonce.name() == "off" && has_texts))
    }

    /// Reads the `run.json` in `dir` and checks it against its digest.
    pub fn read(dir: &Path) -> Result<RunRecord, StoreError> {
        RunRecord::read_in(&Folder::open(dir)?)
    }

    /// Likewise, in an open folder.
    pub(super) fn read_in(folder: &Folder) -> Result<RunRecord, StoreError> {
        RunRecord::of_text(&folder.path().join(RUN_JSON), &folder.json(RUN_JSON)?)
    }

    /// Likewise, of a text that lies at `path`.
    pub(super) fn of_text(path: &Path, text: &[u8]) -> Result<RunRecord, StoreError> {
        let damaged = |reason| StoreError::Damaged { path: path.to_owned(), reason };
        let sha256 = seal::digest(text).map_err(damaged)?;
        let record: RunRecord = parse(path, text)?;
        if record.attempt > MOST_ATTEMPTS {
            return Err(damaged(format!("{} is no number of an attempt", record.attempt)));
        }
        if sha256.is_none() {
            is_of_earlier(text, &record).map_err(damaged)?;
        }
        Ok(RunRecord { sha256, ..record })
    }
}

/// Whether a text without a whole digest at its end can be what an earlier sweepline wrote; if not, why.
///
/// A record that has lost its digest to damage ends in something else than the last field of those days.
fn is_of_earlier(text: &[u8], record: &RunRecord) -> Result<(), String> {
    let raw: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let last = raw.keys().next_back().map_or("", String::as_str);
    if last != LAST_FIELD || record.sha256.is_some() {
        return Err(format!("it does not end with its digest, but with `{last}`"));
    }
    // Ids were made by other rules before plans said how connections are opened, and where texts were made by other rules.
    let spec = &record.spec;
    let has_today_s_rules = raw.get("spec").is_some_and(|spec| spec.get("connections").is_some());
    let contents = std::iter::once(&spec.scenario).chain(spec.mix.iter().map(|class| &class.scenario));
    let is_plain =
        contents.into_iter().all(|content| content.trace.is_none() && content.talk.history == Default::default());
    let is_changed = has_today_s_rules && is_plain && RunId::of(spec).to_string() != record.id;
    if is_changed { Err("it describes another run than its id names".to_owned()) } else { Ok(()) }
}

/// `attempt.json`: what is known of an attempt before it is a run, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// Format of this file.
    pub format: u32,
    /// The full RunId, 64 hex digits.
    pub id: String,
    /// Which attempt at the run this is, from 1.
    pub attempt: u32,
    /// When it began.
    pub started: Moment,
    /// The process that makes it.
    pub pid: u32,
    /// What the nonces of its requests derive from; none in records of before there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce_seed: Option<NonceSeed>,
    /// When it failed; none while it is under way, or where its process was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Moment>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// What the environment did to it, where that is why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoiled: Option<Spoiled>,
    /// That it was spoiled once more than the run is tried again: how often it is. The run is given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_up: Option<u32>,
    /// It is the first since the user asked for the run although it was given up: earlier ones count no more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub afresh: bool,
    /// The run as it was asked for.
    pub spec: RunSpec,
}

impl AttemptRecord {
    /// Reads the `attempt.json` in `dir`.
    pub fn read(dir: &Path) -> Result<AttemptRecord, StoreError> {
        read(&dir.join(ATTEMPT_JSON))
    }
}

/// The one field that every format has.
#[derive(Deserialize)]
struct Head {
    format: u32,
}

/// Reads a JSON file of the store.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, StoreError> {
    parse(path, &folder::json(path)?)
}

/// What the text of the file `path` says. The format is looked at before anything else is said of a file that a later
/// program wrote.
pub(super) fn parse<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T, StoreError> {
    let damaged = |error: serde_json::Error| StoreError::Damaged { path: path.to_owned(), reason: error.to_string() };
    let Head { format } = serde_json::from_slice(text).map_err(damaged)?;
    if format > FORMAT {
        return Err(StoreError::Newer { path: path.to_owned(), found: format, known: FORMAT });
    }
    serde_json::from_slice(text).map_err(damaged)
}
