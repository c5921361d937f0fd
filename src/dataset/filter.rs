//! Selects the records that are kept.

use std::collections::BTreeSet;
use std::str::FromStr;

use crate::units::UnitError;

use super::record::Record;
use super::skipped::Reason;

/// A range of whole numbers, including both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Range {
    /// The minimum.
    pub least: u64,
    /// The maximum.
    pub most: u64,
}

impl Range {
    fn holds(self, value: u64) -> bool {
        (self.least..=self.most).contains(&value)
    }
}

impl FromStr for Range {
    type Err = UnitError;

    /// `100..4000`, `100..`, `..4000`, or one number.
    fn from_str(text: &str) -> Result<Range, UnitError> {
        let wrong = || UnitError(format!("`{text}` is not a range: write 100..4000, 100.. or ..4000"));
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
        let range = match text.split_once("..") {
            None => number(text).map(|exact| Range { least: exact, most: exact })?,
            Some((least, most)) => Range {
                least: if least.trim().is_empty() { 0 } else { number(least)? },
                most: if most.trim().is_empty() { u64::MAX } else { number(most)? },
            },
        };
        if range.least > range.most { Err(UnitError(format!("the range `{text}` is empty"))) } else { Ok(range) }
    }
}

/// Selects the records that are kept. A condition that is not set keeps all records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Filter {
    /// Number of characters in the first request's prompt (system and first user message). A record without
    /// text is not kept.
    pub prompt_chars: Option<Range>,
    /// Number of tokens in the first request's prompt: as declared in the file, otherwise estimated
    /// as characters / 4.
    pub prompt_tokens: Option<Range>,
    /// Number of tokens in the first request's response: as declared in the file, otherwise
    /// estimated as characters / 4. A record without a response is not kept.
    pub output_tokens: Option<Range>,
    /// Number of requests in the record, which are its user messages.
    pub turns: Option<Range>,
    /// Languages as declared in the file (`lang` of oasst, a mapped column). Languages are not guessed
    /// from the text; a record without a declared language is not kept.
    pub languages: BTreeSet<String>,
}

impl Filter {
    /// Returns why a record is not kept, with the details.
    pub(super) fn refuses(&self, record: &Record) -> Option<(Reason, String)> {
        let lengths = [
            ("prompt characters", self.prompt_chars, record.prompt_chars()),
            ("prompt tokens", self.prompt_tokens, record.prompt_tokens().map(u64::from)),
            ("output tokens", self.output_tokens, record.answer_tokens().map(u64::from)),
        ];
        for (what, range, value) in lengths {
            if range.is_some_and(|range| !value.is_some_and(|value| range.holds(value))) {
                let value = value.map_or_else(|| "no".to_owned(), |value| value.to_string());
                return Some((Reason::Length, format!("{value} {what}")));
            }
        }
        let turns = record.requests() as u64;
        if self.turns.is_some_and(|range| !range.holds(turns)) {
            return Some((Reason::Turns, format!("{turns} turns")));
        }
        let language = record.language.as_deref();
        if !self.languages.is_empty() && !language.is_some_and(|language| self.languages.contains(language)) {
            return Some((Reason::Language, language.map_or("no language", |_| "another language").to_owned()));
        }
        None
    }
}
