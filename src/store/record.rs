//! The content of `run.json`, which commits a run, and of `attempt.json`, which describes an attempt before
//! its commit.

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

/// Format version of the store's JSON files. It is incremented when readers of the old format would misread
/// the new format. It is not incremented for a new optional field. It was not incremented for the digest at
/// the end of `run.json` either, because earlier versions of sweepline ignore the digest and read the same
/// values.
pub const FORMAT: u32 = 1;

/// An instant of the wall clock, written as RFC 3339 in UTC with nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(inline, extend("format" = "date-time"))]
pub struct Moment(#[schemars(with = "String")] pub Timestamp);

impl Moment {
    /// Returns the current instant.
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

/// The record of one row file of a committed run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The SHA-256 of the file, as 64 hex digits.
    pub sha256: String,
    /// Number of rows in the file.
    pub rows: u64,
}

/// The committed run that this run replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Replaced {
    /// The attempt number of the replaced run; null if its `run.json` could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Why the run was repeated; null if no reason was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `run.json`: the commit of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Format version of this file.
    pub format: u32,
    /// The full RunId, 64 hex digits.
    pub id: String,
    /// The number of this attempt at the run, from 1.
    pub attempt: u32,
    /// When the attempt began.
    pub started: Moment,
    /// When the attempt ended and its commit began.
    pub ended: Moment,
    /// The spec of the run, with every default explicit.
    pub spec: RunSpec,
    /// The seed from which the nonces of the requests are derived. `None` in records from before this field
    /// existed; their nonces were derived from the run's id and the attempt number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce_seed: Option<NonceSeed>,
    /// The observed circumstances of the run.
    pub environment: Environment,
    /// The facts that, together with the rows, determine the verdict.
    pub facts: Facts,
    /// Digest of the generated requests, without nonces. It is equal for the two arms of a comparison.
    pub generator_digest: String,
    /// The committed run that this run replaced; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<Replaced>,
    /// The row files, by name.
    pub files: BTreeMap<String, FileRecord>,
    /// The digest at the end of the file, which covers everything before it; `None` in files of earlier
    /// versions of sweepline. It is written after all other fields, so it is not serialized with them.
    #[serde(default, skip_serializing)]
    pub sha256: Option<String>,
}

/// The last field of a `run.json` that was written by a version of sweepline without the digest.
const LAST_FIELD: &str = "files";

/// Returns the labels that all rows of an attempt at a run share.
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
    /// Returns the labels that all rows of the run share, even if the run has no rows.
    pub fn labels(&self) -> RunLabels {
        run_labels(&self.id, self.attempt, &self.spec)
    }

    /// Returns the tables of the run: all required tables, and the optional tables that it has.
    pub fn tables(&self) -> impl Iterator<Item = Table> {
        Table::ALL.into_iter().filter(|table| !table.is_optional() || self.has(*table))
    }

    /// Whether the run lists the file of `table`.
    pub fn has(&self, table: Table) -> bool {
        self.files.contains_key(table.file())
    }

    /// Whether `reusable_tokens` in the rows may be too low. Older versions of sweepline did not compare
    /// the sent prompts, but derived the number from how prompts were constructed. This missed the shared
    /// blocks of a trace. Without a nonce, it also missed text that is shared by prompts from a data set,
    /// or by several classes.
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

    /// Reads and checks the `run.json` in an open folder.
    pub(super) fn read_in(folder: &Folder) -> Result<RunRecord, StoreError> {
        RunRecord::of_text(&folder.path().join(RUN_JSON), &folder.json(RUN_JSON)?)
    }

    /// Parses and checks the text of the `run.json` at `path`.
    pub(super) fn of_text(path: &Path, text: &[u8]) -> Result<RunRecord, StoreError> {
        let damaged = |reason| StoreError::Damaged { path: path.to_owned(), reason };
        let sha256 = seal::digest(text).map_err(damaged)?;
        let record: RunRecord = parse(path, text)?;
        if record.attempt > MOST_ATTEMPTS {
            return Err(damaged(format!("{} is not a valid attempt number", record.attempt)));
        }
        if sha256.is_none() {
            is_of_earlier(text, &record).map_err(damaged)?;
        }
        Ok(RunRecord { sha256, ..record })
    }
}

/// Checks that a text without a complete digest at its end could have been written by an earlier version
/// of sweepline. If not, returns the reason.
///
/// The check detects a damaged record that has lost its digest, because such a record does not end
/// with the last field that earlier versions wrote.
fn is_of_earlier(text: &[u8], record: &RunRecord) -> Result<(), String> {
    let raw: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let last = raw.keys().next_back().map_or("", String::as_str);
    if last != LAST_FIELD || record.sha256.is_some() {
        return Err(format!("it ends with `{last}`, not with its digest"));
    }
    // The id is checked only if it was computed by today's rules. The rules were different before plans
    // specified how connections are opened, and the rules for generating texts have also changed since.
    let spec = &record.spec;
    let has_today_s_rules = raw.get("spec").is_some_and(|spec| spec.get("connections").is_some());
    let contents = std::iter::once(&spec.scenario).chain(spec.mix.iter().map(|class| &class.scenario));
    let is_plain =
        contents.into_iter().all(|content| content.trace.is_none() && content.talk.history == Default::default());
    let is_changed = has_today_s_rules && is_plain && RunId::of(spec).to_string() != record.id;
    if is_changed { Err("its id does not match its contents".to_owned()) } else { Ok(()) }
}

/// `attempt.json`: the data of an attempt before it becomes a run, and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// Format version of this file.
    pub format: u32,
    /// The full RunId, 64 hex digits.
    pub id: String,
    /// The number of this attempt at the run, from 1.
    pub attempt: u32,
    /// When the attempt began.
    pub started: Moment,
    /// The id of the process that makes the attempt.
    pub pid: u32,
    /// The seed from which the nonces of the requests are derived; `None` in records from before this
    /// field existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce_seed: Option<NonceSeed>,
    /// When the attempt failed; `None` while it is in progress, or if its process was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Moment>,
    /// Why the attempt failed; `None` while it is in progress, or if its process was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// How the environment spoiled the attempt; `None` if the attempt did not fail for that reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoiled: Option<Spoiled>,
    /// The number of retries if the run was given up with this attempt, because all retries were spoiled;
    /// otherwise `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_up: Option<u32>,
    /// Whether the user requested this attempt although the run had been given up. If so, spoiled attempts
    /// before this one are no longer counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub afresh: bool,
    /// The spec of the run.
    pub spec: RunSpec,
}

impl AttemptRecord {
    /// Reads the `attempt.json` in `dir`.
    pub fn read(dir: &Path) -> Result<AttemptRecord, StoreError> {
        read(&dir.join(ATTEMPT_JSON))
    }
}

/// The only field that is present in every format version.
#[derive(Deserialize)]
struct Head {
    format: u32,
}

/// Reads a JSON file of the store.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, StoreError> {
    parse(path, &folder::json(path)?)
}

/// Parses the text of the file `path`. The format version is checked first, so that a file of a later
/// version of sweepline is not reported as damaged.
pub(super) fn parse<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T, StoreError> {
    let damaged = |error: serde_json::Error| StoreError::Damaged { path: path.to_owned(), reason: error.to_string() };
    let Head { format } = serde_json::from_slice(text).map_err(damaged)?;
    if format > FORMAT {
        return Err(StoreError::Newer { path: path.to_owned(), found: format, known: FORMAT });
    }
    serde_json::from_slice(text).map_err(damaged)
}
