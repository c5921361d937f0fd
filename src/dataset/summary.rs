//! Summarizes the contents of a data set in figures.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use schemars::JsonSchema;
use serde::Serialize;

use super::record::Record;

/// Figures for one quantity; quantiles are values that occur in the data (nearest rank).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Figures {
    /// Number of records that have this quantity.
    pub records: u64,
    /// The minimum.
    pub min: u32,
    /// The median.
    pub p50: u32,
    /// Arithmetic mean.
    pub mean: f64,
    /// 90th percentile.
    pub p90: u32,
    /// 99th percentile.
    pub p99: u32,
    /// The maximum.
    pub max: u32,
    /// Number of records for which the file declares this quantity; for the others it is estimated
    /// as characters / 4.
    pub declared: u64,
}

/// The values of one quantity, four bytes for each record.
#[derive(Default)]
struct Values {
    values: Vec<u32>,
    declared: u64,
}

impl Values {
    fn add(&mut self, value: Option<u32>, is_declared: bool) {
        self.values.extend(value);
        self.declared += u64::from(value.is_some() && is_declared);
    }

    fn figures(mut self) -> Option<Figures> {
        self.values.sort_unstable();
        let (min, max) = (*self.values.first()?, *self.values.last()?);
        let records = self.values.len();
        let rank = |percent: usize| self.values[(records * percent).div_ceil(100).max(1) - 1];
        let sum: u64 = self.values.iter().map(|value| u64::from(*value)).sum();
        let mean = sum as f64 / records as f64;
        let (p50, p90, p99) = (rank(50), rank(90), rank(99));
        Some(Figures { records: records as u64, min, p50, mean, p90, p99, max, declared: self.declared })
    }
}

/// The contents of a data set.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Summary {
    /// Number of records that were kept.
    pub records: u64,
    /// Number of requests: the user messages of all records, and one for each record without text.
    pub requests: u64,
    /// Number of records with text.
    pub with_text: u64,
    /// Number of requests in a record; null if there are no records.
    pub turns: Option<Figures>,
    /// Number of prompt tokens in a record's first request; null if no record has prompt tokens.
    pub prompt_tokens: Option<Figures>,
    /// Number of tokens in a record's first response; null if no record has a response.
    pub output_tokens: Option<Figures>,
    /// Time from the first timestamp in the file to that of the last kept record, in seconds; null if the
    /// file has no times.
    pub span_s: Option<f64>,
    /// Number of named conversations; null if records do not name conversations.
    pub conversations: Option<u64>,
    /// Number of distinct blocks in hash ids; null if there are no hash ids.
    pub blocks: Option<u64>,
    /// Number of records by the language that the file declares.
    pub languages: BTreeMap<String, u64>,
}

/// A summary under construction.
#[derive(Default)]
pub struct Summarizer {
    records: u64,
    requests: u64,
    with_text: u64,
    turns: Values,
    prompt: Values,
    output: Values,
    span_s: Option<f64>,
    hasher: RandomState,
    conversations: HashSet<u64>,
    blocks: HashSet<u64>,
    languages: BTreeMap<String, u64>,
}

impl Summarizer {
    /// Adds a record to the summary.
    pub fn add(&mut self, record: &Record) {
        self.records += 1;
        self.requests += record.requests() as u64;
        self.with_text += u64::from(!record.turns.is_empty());
        self.turns.add(u32::try_from(record.requests()).ok(), true);
        self.prompt.add(record.prompt_tokens(), record.input_tokens.is_some());
        self.output.add(record.answer_tokens(), record.output_tokens.is_some());
        self.span_s = record.offset.map(|offset| offset.secs()).or(self.span_s);
        self.conversations.extend(record.conversation.iter().map(|name| self.hasher.hash_one(name)));
        self.blocks.extend(&record.hash_ids);
        if let Some(language) = &record.language {
            *self.languages.entry(language.clone()).or_default() += 1;
        }
    }

    /// Returns the summary of all records.
    pub fn finish(self) -> Summary {
        let some = |count: usize| (count > 0).then_some(count as u64);
        Summary {
            records: self.records,
            requests: self.requests,
            with_text: self.with_text,
            turns: self.turns.figures(),
            prompt_tokens: self.prompt.figures(),
            output_tokens: self.output.figures(),
            span_s: self.span_s,
            conversations: some(self.conversations.len()),
            blocks: some(self.blocks.len()),
            languages: self.languages,
        }
    }
}
