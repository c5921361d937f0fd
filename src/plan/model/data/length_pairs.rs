//! Lengths that are drawn from a data set. Each exchange is a pair, so that the dependence between
//! prompt and response lengths is preserved.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dataset::{Format, OnBad, Place, Record, estimated_tokens};
use crate::plan::model::data::data_file::{DataFilter, TableOf};
use crate::plan::model::data::left_out::{LeftOut, UNANSWERED, count};
use crate::plan::model::file_ref::FileRef;
use crate::plan::model::lengths::resolved::{Joint, Lengths, Range, Rows};
use crate::plan::model::lengths::{LEAST_PROMPT, MOST_TOKENS};
use crate::plan::model::trace::Columns;
use crate::units::Decimal;

/// Maximum number of rows in a table of lengths, which each run stores. If there are more different
/// pairs, similar pairs are merged into one row.
const MOST_ROWS: usize = 10_000;

/// Lengths of a data set: pairs of prompt and output tokens, each as frequent as in the data set. Its
/// texts are not sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LengthsFile {
    /// The file, relative to the plan's: a data set or a trace.
    #[schemars(example = "data/sharegpt.json")]
    pub file: FileRef<FoundLengths>,
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
}

impl LengthsFile {
    pub(crate) fn table(&self) -> TableOf<'_> {
        let LengthsFile { file, format, map, on_bad, filter, .. } = self;
        TableOf { file: file.written(), format: *format, map, on_bad: *on_bad, filter }
    }

    /// The lengths; `None` if the file could not be read, which is an error in the plan.
    pub(crate) fn lengths(&self) -> Option<Lengths> {
        Some(Lengths::Joint(self.file.found()?.rows.clone()))
    }
}

/// The pairs of lengths in a data set.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundLengths {
    pub(crate) rows: Rows<Joint>,
    /// Number of exchanges.
    pub(crate) pairs: u64,
    /// Number of exchanges whose prompts were too short for a nonce, and were lengthened.
    pub(crate) raised: u64,
    /// For each reason: the skipped entries.
    pub(crate) left_out: BTreeMap<String, LeftOut>,
}

impl FoundLengths {
    pub(crate) fn is_empty(&self) -> bool {
        self.pairs == 0
    }
}

/// The pairs of lengths that were collected so far, with their frequencies.
#[derive(Default)]
pub(crate) struct Collected {
    pairs: BTreeMap<(u32, u32), u64>,
    raised: u64,
    left_out: BTreeMap<String, LeftOut>,
}

impl Collected {
    /// Adds each exchange of a record. For the first exchange, lengths that the file declares override
    /// the lengths of the texts.
    pub(crate) fn add(&mut self, record: &Record) {
        self.pair(record.prompt_tokens(), record.answer_tokens(), record.place);
        for exchange in record.exchanges().skip(1) {
            self.pair(Some(estimated_tokens(exchange.user)), exchange.answer.map(estimated_tokens), record.place);
        }
    }

    fn pair(&mut self, prompt: Option<u32>, output: Option<u32>, place: Place) {
        let (Some(prompt), Some(output)) = (prompt, output) else {
            return count(&mut self.left_out, UNANSWERED, place);
        };
        if prompt.max(output) > MOST_TOKENS {
            return count(&mut self.left_out, "more tokens than any context holds", place);
        }
        self.raised += u64::from(prompt < LEAST_PROMPT);
        *self.pairs.entry((prompt.max(LEAST_PROMPT), output.max(1))).or_default() += 1;
    }

    pub(crate) fn found(mut self, skipped: BTreeMap<String, LeftOut>) -> FoundLengths {
        self.left_out.extend(skipped);
        let pairs = self.pairs.values().sum();
        FoundLengths { rows: Rows::new(rows(&self.pairs)), pairs, raised: self.raised, left_out: self.left_out }
    }
}

/// Returns one row for each pair. If there are too many pairs, pairs whose lengths have the same leading binary
/// digits share a row. As many digits are compared as the maximum number of rows allows. The ranges of a row
/// extend from the minimum to the maximum of its pairs.
fn rows(pairs: &BTreeMap<(u32, u32), u64>) -> Vec<Joint> {
    let mut digits = u32::BITS;
    loop {
        let mut rows: BTreeMap<(u32, u32), Joint> = BTreeMap::new();
        for ((prompt, output), times) in pairs {
            let one = Joint { prompt: Range::one(*prompt), output: Range::one(*output), weight: Decimal::default() };
            let row = rows.entry((leading(*prompt, digits), leading(*output, digits))).or_insert(one);
            let widen = |range: &mut Range, tokens: u32| {
                *range = Range { min: range.min.min(tokens), max: range.max.max(tokens) };
            };
            widen(&mut row.prompt, *prompt);
            widen(&mut row.output, *output);
            let times = Decimal::new(i64::try_from(*times).unwrap_or(i64::MAX), 0);
            row.weight = row.weight.checked_add(times).unwrap_or(row.weight);
        }
        if rows.len() <= MOST_ROWS || digits == 1 {
            return rows.into_values().collect();
        }
        digits = digits.min(12) - 1;
    }
}

/// A number with all but its first `digits` binary digits set to 0.
fn leading(number: u32, digits: u32) -> u32 {
    let dropped = (u32::BITS - number.leading_zeros()).saturating_sub(digits);
    number >> dropped << dropped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_a_row_of_its_own_unless_there_are_too_many() {
        let few: BTreeMap<(u32, u32), u64> = [((100, 7), 3), ((101, 7), 1)].into();
        let made = rows(&few);
        assert_eq!(made.len(), 2);
        assert_eq!(
            (made[0].prompt, made[0].output, made[0].weight),
            (Range::one(100), Range::one(7), Decimal::from(3))
        );
        let many: BTreeMap<(u32, u32), u64> = (0..60_000u32).map(|k| ((16 + k, 1 + k % 1_000), 2)).collect();
        let made = rows(&many);
        assert!((1_000..=MOST_ROWS).contains(&made.len()), "{}", made.len());
        let sum = made.iter().try_fold(Decimal::default(), |sum, row| sum.checked_add(row.weight));
        assert_eq!(sum, Some(Decimal::from(120_000)));
        for row in &made {
            for Range { min, max } in [row.prompt, row.output] {
                assert!(max - min < min.max(8) / 4, "{row:?}");
            }
        }
        // The mean of the draws deviates from the mean of the pairs by at most a few percent, because of
        // the width of the ranges.
        let mean =
            made.iter().map(|row| f64::from(row.prompt.min + row.prompt.max) / 2.0 * row.weight.to_f64()).sum::<f64>()
                / 120_000.0;
        assert!((mean / (16.0 + 59_999.0 / 2.0) - 1.0).abs() < 0.001, "{mean}");
    }

    #[test]
    fn leading_digits_are_binary_ones() {
        assert_eq!((leading(1023, 3), leading(1023, 32), leading(5, 1), leading(0, 4)), (896, 1023, 4, 0));
    }
}
