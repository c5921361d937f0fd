//! Converts ranges of lengths to a table to draw from.

use crate::dataset::profile::{LengthBucket, Lengths};
use crate::plan::model::lengths::resolved::{Joint, Range, Rows};
use crate::plan::model::lengths::{LEAST_OUTPUT, LEAST_PROMPT, MOST_TOKENS};
use crate::units::Decimal;

/// A range whose end is more than this many times its start was merged from many ranges. It contains
/// little information about the lengths within it, and none about the largest length.
const WIDE: u64 = 4;

/// The table of a profile's lengths.
///
/// Within a narrow range, all lengths are equally likely. A wide range is split into octaves of equal
/// weight, up to the end of the narrow ranges, because a range up to four billion tokens exists to hide
/// some requests, not to be sent.
pub(crate) fn rows(lengths: &Lengths) -> Result<Rows<Joint>, String> {
    let buckets = &lengths.buckets;
    let prompts = most(buckets.iter().map(|bucket| bucket.prompt));
    let outputs = most(buckets.iter().filter_map(|bucket| bucket.output));
    let no_answer = buckets.iter().all(|bucket| bucket.output.is_none());
    let (Some(prompts), true) = (prompts, outputs.is_some() || no_answer) else {
        return Err("all ranges of its lengths are too wide to draw lengths from".to_owned());
    };
    let rows: Vec<Joint> = buckets.iter().flat_map(|bucket| of_bucket(bucket, prompts, outputs.unwrap_or(1))).collect();
    match rows.iter().any(|row| row.weight.is_positive()) {
        true => Ok(Rows::new(rows)),
        false => Err("it has no lengths".to_owned()),
    }
}

/// The longest length in a narrow range.
fn most(ranges: impl Iterator<Item = [u32; 2]>) -> Option<u32> {
    ranges.filter(|range| !is_wide(*range)).map(|range| range[1]).max()
}

fn is_wide([from, to]: [u32; 2]) -> bool {
    u64::from(to) > WIDE * u64::from(from.max(1))
}

fn of_bucket(bucket: &LengthBucket, prompts: u32, outputs: u32) -> Vec<Joint> {
    let prompts = pieces(bucket.prompt, prompts, LEAST_PROMPT);
    let outputs = pieces(bucket.output.unwrap_or([1, 1]), outputs, LEAST_OUTPUT);
    let parts = (prompts.len() * outputs.len()).max(1) as f64;
    let weight = part(bucket.requests, parts);
    let both = prompts.iter().flat_map(|prompt| outputs.iter().map(|output| (*prompt, *output)));
    both.map(|(prompt, output)| Joint { prompt, output, weight }).collect()
}

/// A count, or an equal part of it, rounded to a millionth.
fn part(requests: u64, parts: f64) -> Decimal {
    Decimal::new((requests as f64 * 1e6 / parts).round().min(9e18) as i64, 6)
}

/// The ranges to draw from: a narrow range as a whole, and a wide range in octaves. Lengths below the
/// minimum for a request are raised to the minimum.
fn pieces(range: [u32; 2], longest: u32, least: u32) -> Vec<Range> {
    let within = |from: u32, to: u32| {
        let min = from.clamp(least, MOST_TOKENS);
        Range { min, max: to.clamp(min, MOST_TOKENS) }
    };
    if !is_wide(range) {
        return vec![within(range[0], range[1])];
    }
    let end = range[1].min(longest.max(range[0]));
    let mut from = range[0].max(1);
    let mut pieces = Vec::new();
    while from <= end {
        let to = from.saturating_mul(2).saturating_sub(1).min(end);
        pieces.push(within(from, to));
        from = to.saturating_add(1);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(prompt: [u32; 2], output: Option<[u32; 2]>, requests: u64) -> LengthBucket {
        LengthBucket { prompt, output, requests }
    }

    fn rows_of(buckets: Vec<LengthBucket>) -> Result<Vec<(Range, Range, String)>, String> {
        let rows = rows(&Lengths { declared: 0, buckets, suppressed: 0 })?;
        Ok(rows.rows().iter().map(|row| (row.prompt, row.output, row.weight.to_string())).collect())
    }

    #[test]
    fn narrow_ranges_stay_and_wide_ones_are_cut() {
        let range = |min, max| Range { min, max };
        let narrow = rows_of(vec![bucket([64, 95], Some([2, 2]), 30), bucket([4, 5], Some([0, 0]), 10)]);
        let shortest = (range(16, 16), range(1, 1), "10".to_owned());
        assert_eq!(narrow.unwrap(), [(range(64, 95), range(2, 2), "30".to_owned()), shortest]);
        let wide = rows_of(vec![bucket([64, 95], Some([2, 3]), 30), bucket([16, u32::MAX], Some([2, 3]), 9)]).unwrap();
        let prompts: Vec<Range> = wide[1..].iter().map(|row| row.0).collect();
        assert_eq!(prompts, [range(16, 31), range(32, 63), range(64, 95)], "no longer than the longest narrow range");
        assert!(wide[1..].iter().all(|row| row.2 == "3"), "{wide:?}");
    }

    #[test]
    fn what_cannot_be_drawn_is_said() {
        assert!(rows_of(vec![bucket([0, u32::MAX], Some([0, u32::MAX]), 30)]).unwrap_err().contains("too wide"));
        assert!(rows_of(vec![]).is_err());
        assert!(rows_of(vec![bucket([64, 95], None, 0)]).unwrap_err().contains("no lengths"));
        assert_eq!(rows_of(vec![bucket([64, 95], None, 3)]).unwrap()[0].1, Range::one(1));
    }
}
