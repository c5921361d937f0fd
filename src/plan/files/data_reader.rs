//! Reads files into the texts of a data set, or into pairs of lengths.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::dataset::{Dataset, DatasetError, Record, Skipped, digest, estimated_tokens};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::files::loader::Loader;
use crate::plan::files::tables::Found;
use crate::plan::model::data::corpus::{Dialogue, Exchange, OfTurn, Source};
use crate::plan::model::data::data_file::TableOf;
use crate::plan::model::data::left_out::{LeftOut, NO_TEXT, UNANSWERED, all, count};
use crate::plan::model::data::length_pairs;
use crate::plan::model::data::length_pairs::FoundLengths;
use crate::plan::text::span::Span;

/// Maximum number of bytes of text that the runs of a plan hold in memory for one data set. A
/// larger data set is rejected.
const MOST_BYTES: usize = 1 << 30;

/// The data files of a plan. A file is read once for each combination of settings that the plan uses for it.
#[derive(Default)]
pub(crate) struct DataReader {
    texts: HashMap<(PathBuf, String, bool), Arc<Source>>,
    pairs: HashMap<(PathBuf, String), FoundLengths>,
}

type Parsed<T> = Result<T, Box<Diagnostic>>;

impl DataReader {
    /// Reads the texts of a data set. If `unanswered` is true, questions without a response are included.
    pub(crate) fn texts(
        &mut self,
        table: &TableOf,
        unanswered: bool,
        span: &Span,
        loader: &Loader<'_>,
    ) -> Found<Arc<Source>> {
        let path = loader.on_disk("data set", table.file, span)?;
        let key = (path.clone(), table.reading(), unanswered);
        if let Some(known) = self.texts.get(&key) {
            return Ok((Arc::clone(known), path));
        }
        let mut collected = Collected { unanswered, ..Collected::default() };
        let skipped = each(&path, table, |record| collected.add(record))?;
        let source = Arc::new(collected.source(
            table,
            &skipped,
            digest(&path).map_err(|error| cannot(table, &path, &error))?,
        )?);
        self.texts.insert(key, Arc::clone(&source));
        Ok((source, path))
    }

    /// Reads the lengths of a data set.
    pub(crate) fn pairs(&mut self, table: &TableOf, span: &Span, loader: &Loader<'_>) -> Found<FoundLengths> {
        let path = loader.on_disk("data set", table.file, span)?;
        let key = (path.clone(), table.reading());
        if let Some(known) = self.pairs.get(&key) {
            return Ok((known.clone(), path));
        }
        let mut collected = length_pairs::Collected::default();
        let skipped = each(&path, table, |record| {
            collected.add(&record);
            true
        })?;
        let found = collected.found(left_out(&skipped));
        if found.is_empty() {
            let remedy = "inspect it with sweepline dataset inspect; `map` names the columns with lengths";
            let message =
                format!("the data set `{}` has no prompt with a response: {}", table.file, all(&found.left_out));
            return Err(Diagnostic::new(Code::Empty, message).remedy(remedy).into());
        }
        self.pairs.insert(key, found.clone());
        Ok((found, path))
    }
}

/// The error if the file at `path` cannot be read. The message shows the path as written in the plan.
fn cannot(table: &TableOf, path: &Path, error: &DatasetError) -> Box<Diagnostic> {
    let told = error.to_string().replace(&path.display().to_string(), table.file);
    let remedy =
        "`sweepline dataset inspect` shows the content of a file; docs/DATASETS.md describes the supported formats";
    Diagnostic::new(Code::File, format!("the data set cannot be read: {told}")).remedy(remedy).into()
}

/// Passes every record to `take` until it returns false; returns the skipped entries.
fn each(path: &Path, table: &TableOf, mut take: impl FnMut(Record) -> bool) -> Parsed<Skipped> {
    let mut dataset = Dataset::open(path, &table.options()).map_err(|error| cannot(table, path, &error))?;
    for record in dataset.by_ref() {
        if !take(record.map_err(|error| cannot(table, path, &error))?) {
            break;
        }
    }
    Ok(dataset.skipped().clone())
}

/// The entries that the reader skipped, keyed by the reason in words.
fn left_out(skipped: &Skipped) -> BTreeMap<String, LeftOut> {
    let words = skipped.0.iter().map(|(reason, skips)| {
        let left_out = LeftOut { count: skips.count, first: skips.first, entry: skips.entry };
        (reason.words().to_owned(), left_out)
    });
    words.collect()
}

/// The records of a data set that can be sent.
#[derive(Default)]
struct Collected {
    unanswered: bool,
    dialogues: Vec<Dialogue>,
    left_out: BTreeMap<String, LeftOut>,
    bytes: usize,
    hash: Sha256,
}

impl Collected {
    /// Adds a record; returns false if the collected texts then exceed the memory limit.
    fn add(&mut self, record: Record) -> bool {
        let place = record.place;
        match self.dialogue(&record) {
            Ok(dialogue) => {
                self.bytes += self.hashed(&dialogue);
                self.dialogues.push(dialogue);
            }
            Err(why) => count(&mut self.left_out, why, place),
        }
        self.bytes <= MOST_BYTES
    }

    fn dialogue(&self, record: &Record) -> Result<Dialogue, &'static str> {
        let mut asked: Vec<Exchange> = Vec::new();
        for exchange in record.exchanges() {
            // The declared output length refers to the first response.
            let declared = record.output_tokens.filter(|_| asked.is_empty());
            let answer = exchange.answer.map(Box::from);
            let output_tokens = declared.or(exchange.answer.map(estimated_tokens));
            if output_tokens.is_none() && !self.unanswered {
                break;
            }
            let user_tokens = estimated_tokens(exchange.user);
            let output_tokens = output_tokens.map_or(0, |tokens| tokens.max(1));
            asked.push(Exchange { user: exchange.user.into(), answer, declared, user_tokens, output_tokens });
        }
        match (asked.is_empty(), record.turns.is_empty()) {
            (false, _) => {
                let system = record.system().map(Box::from);
                let system_tokens = record.system().map_or(0, estimated_tokens);
                Ok(Dialogue { system, system_tokens, asked: asked.into() })
            }
            (true, true) => Err(NO_TEXT),
            (true, false) => Err(UNANSWERED),
        }
    }

    /// Adds a record to the digest; returns the size of its texts in bytes.
    fn hashed(&mut self, dialogue: &Dialogue) -> usize {
        let mut bytes = 0;
        let mut text = |text: Option<&str>| {
            // The length is hashed as well, so that a missing text differs from an empty one, and the
            // boundaries between texts are unambiguous.
            self.hash.update(text.map_or(0, |text| text.len() as u64 + 1).to_le_bytes());
            self.hash.update(text.unwrap_or_default());
            bytes += text.map_or(0, str::len);
        };
        text(dialogue.system.as_deref());
        for asked in &dialogue.asked {
            text(Some(&asked.user));
            text(asked.answer.as_deref());
        }
        self.hash.update((dialogue.asked.len() as u64).to_le_bytes());
        for asked in &dialogue.asked {
            self.hash.update(asked.declared.map_or(0, |tokens| u64::from(tokens) + 1).to_le_bytes());
        }
        bytes
    }

    fn source(mut self, table: &TableOf, skipped: &Skipped, sha256: String) -> Parsed<Source> {
        let file = table.file;
        let mistake = |code, message: String, remedy: &str| Err(Diagnostic::new(code, message).remedy(remedy).into());
        if self.bytes > MOST_BYTES {
            let message = format!("the texts of the data set `{file}` exceed 1 GiB, the limit of texts in memory");
            return mistake(
                Code::TooLarge,
                message,
                "draw a sample: sweepline dataset sample FILE --n 10000 -o some.jsonl",
            );
        }
        self.left_out.extend(left_out(skipped));
        if self.dialogues.is_empty() {
            let message = format!("the data set `{file}` has nothing to send: {}", all(&self.left_out));
            let remedy = match (self.left_out.contains_key(UNANSWERED), self.left_out.contains_key(NO_TEXT)) {
                (true, _) => "set the number of requested tokens: output_tokens: 256",
                (false, true) => {
                    "it contains only lengths: draw them with lengths: { data: … }, or replay it with trace: { … }"
                }
                (false, false) => "inspect it with sweepline dataset inspect",
            };
            return mistake(Code::Empty, message, remedy);
        }
        let unanswered = if self.unanswered { ", unanswered too" } else { "" };
        Ok(Source {
            texts: self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect(),
            sha256,
            reading: format!("{}{unanswered}", table.reading()),
            records: self.dialogues.len() as u64,
            left_out: self.left_out,
            turns: OfTurn::all(&self.dialogues),
            dialogues: self.dialogues,
        })
    }
}
