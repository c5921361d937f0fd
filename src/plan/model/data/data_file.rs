//! `data` as written by the user.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dataset::{Filter, Format, OnBad, Options, Range};
use crate::plan::model::data::corpus::{Corpus, Order, Source};
use crate::plan::model::file_ref::FileRef;
use crate::plan::model::trace::Columns;

/// A data set that provides the texts: prompts are sent unchanged, and responses have the recorded
/// lengths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataFile {
    /// The file, relative to the plan's: JSON, JSON lines, CSV or Parquet.
    #[schemars(example = "data/sharegpt.json")]
    pub file: FileRef<Arc<Source>>,
    /// The format of the file's entries. Default: detected from the first entry.
    #[serde(rename = "as", default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// The meaning of the file's columns, if the format is not a known one.
    #[serde(default, skip_serializing_if = "Columns::is_empty")]
    pub map: Columns,
    /// The action for an invalid entry: `fail` reports its line, `skip` skips it. Default fail.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub on_bad: OnBad,
    /// The records to keep. Default: all.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub filter: DataFilter,
    /// The order of the records. Default shuffled.
    #[serde(default)]
    pub order: Order,
}

/// The records of a data set to keep; unset fields impose no filter.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataFilter {
    /// Tokens of a record's first prompt, including the system message: as declared in the file, else
    /// characters / 4.
    #[schemars(example = serde_json::json!({ "min": 4, "max": 4000 }))]
    pub prompt_tokens: Option<Bounds>,
    /// Tokens of a record's first response: as declared in the file, else characters / 4. Records without a
    /// response are excluded.
    #[schemars(example = serde_json::json!({ "min": 1, "max": 2000 }))]
    pub output_tokens: Option<Bounds>,
    /// Number of user messages in a record.
    #[schemars(example = serde_json::json!({ "min": 2 }))]
    pub turns: Option<Bounds>,
    /// Languages of the records, as declared in the file. Languages are never guessed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = serde_json::json!(["en"]))]
    pub languages: Vec<String>,
}

/// A range from minimum to maximum, both included; an unset bound imposes no limit.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub struct Bounds {
    /// The minimum value to keep.
    #[schemars(example = 4)]
    pub min: Option<u32>,
    /// The maximum value to keep.
    #[schemars(example = 4000)]
    pub max: Option<u32>,
}

impl Bounds {
    fn range(self) -> Range {
        Range { least: self.min.map_or(0, u64::from), most: self.max.map_or(u64::MAX, u64::from) }
    }

    /// Formats the range as `4..4000`.
    fn words(self) -> String {
        let end = |end: Option<u32>| end.map(|end| end.to_string()).unwrap_or_default();
        format!("{}..{}", end(self.min), end(self.max))
    }

    /// Whether any value lies within the range.
    pub(crate) fn holds_something(self) -> bool {
        self.min.is_none_or(|min| self.max.is_none_or(|max| min <= max))
    }
}

impl DataFilter {
    /// The ranges that are set, by name.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = (&'static str, Bounds)> {
        let all = [("prompt_tokens", self.prompt_tokens), ("output_tokens", self.output_tokens), ("turns", self.turns)];
        all.into_iter().filter_map(|(name, bounds)| Some((name, bounds?)))
    }
}

/// The settings that data sets of texts and of lengths have in common: the file, and how it is read.
#[derive(Clone, Copy)]
pub(crate) struct TableOf<'a> {
    pub file: &'a str,
    pub format: Option<Format>,
    pub map: &'a Columns,
    pub on_bad: OnBad,
    pub filter: &'a DataFilter,
}

impl TableOf<'_> {
    /// A one-line description of how the entries are read.
    pub(crate) fn reading(&self) -> String {
        let format = self.format.map_or_else(|| "as found".to_owned(), |format| format!("as {format}"));
        let on_bad = if self.on_bad == OnBad::Skip { ", skip bad" } else { "" };
        let bounds: String =
            self.filter.bounds().map(|(name, bounds)| format!(", {name} {}", bounds.words())).collect();
        let languages = match self.filter.languages.is_empty() {
            true => String::new(),
            false => format!(", languages {}", self.filter.languages.join(" ")),
        };
        format!("{format}{on_bad}{}{bounds}{languages}", self.map.line())
    }

    /// Whether the fields other than the file are valid; `check` reports problems.
    pub(crate) fn is_sound(&self) -> bool {
        self.map.unknown().is_none() && self.filter.bounds().all(|(_, bounds)| bounds.holds_something())
    }

    pub(crate) fn options(&self) -> Options {
        let DataFilter { prompt_tokens, output_tokens, turns, languages } = self.filter;
        let filter = Filter {
            prompt_chars: None,
            prompt_tokens: prompt_tokens.map(Bounds::range),
            output_tokens: output_tokens.map(Bounds::range),
            turns: turns.map(Bounds::range),
            languages: languages.iter().cloned().collect(),
        };
        Options { format: self.format, mapping: self.map.mapping(), on_bad: self.on_bad, filter, ..Options::default() }
    }
}

impl DataFile {
    pub(crate) fn table(&self) -> TableOf<'_> {
        let DataFile { file, format, map, on_bad, filter, .. } = self;
        TableOf { file: file.written(), format: *format, map, on_bad: *on_bad, filter }
    }

    /// The content of the file; `None` if it could not be read.
    pub(crate) fn source(&self) -> Option<&Source> {
        self.file.found().map(Arc::as_ref)
    }

    /// The data set as part of a run; `None` if its file could not be read, which is an error in the
    /// plan.
    pub(crate) fn corpus(&self) -> Option<Corpus> {
        let source = Arc::clone(self.file.found()?);
        Some(Corpus { order: self.order, output_tokens: None, source })
    }
}
