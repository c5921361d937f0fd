//! Computes joint ranges of prompt and response tokens, each with at least k requests.

use std::collections::BTreeMap;

use super::{LengthBucket, Lengths};

/// Number of resolutions, each with cells twice as wide as the previous one. At the coarsest, all lengths
/// are in one cell.
const LEVELS: u32 = 7;

/// Returns the cell of a length, at the finest resolution. Cells begin at 0, 1, 2, 3, 4, 6, 8, 12, 16, 24,
/// …, so there are two cells for each doubling.
fn cell(tokens: u32) -> u32 {
    if tokens < 2 {
        return tokens;
    }
    let octave = tokens.ilog2();
    2 * octave + ((tokens >> (octave - 1)) & 1)
}

/// Returns the smallest length of a cell.
fn first(cell: u32) -> u64 {
    match cell {
        0 | 1 => u64::from(cell),
        _ => (2 + u64::from(cell % 2)) << (cell / 2 - 1),
    }
}

/// Returns the smallest and the largest length of a cell at a level of resolution.
fn range(cell: u32, level: u32) -> [u32; 2] {
    let end = first((cell + 1) << level) - 1;
    [u32::try_from(first(cell << level)).unwrap_or(u32::MAX), u32::try_from(end).unwrap_or(u32::MAX)]
}

/// Number of requests by the cell of the prompt length and the cell of the response length.
#[derive(Default)]
pub(super) struct Cells {
    counts: BTreeMap<(u32, Option<u32>), u64>,
    declared: u64,
}

impl Cells {
    pub(super) fn add(&mut self, prompt: u32, output: Option<u32>, is_declared: bool) {
        *self.counts.entry((cell(prompt), output.map(cell))).or_default() += 1;
        self.declared += u64::from(is_declared);
    }

    /// Returns the ranges. A cell with at least k requests becomes a range. The requests in other cells are
    /// counted in cells twice as wide, and so on.
    pub(super) fn lengths(self, k: u64) -> Lengths {
        let mut buckets = Vec::new();
        let mut left = self.counts;
        for level in 0..LEVELS {
            let (common, rare): (Vec<_>, Vec<_>) = left.into_iter().partition(|(_, count)| *count >= k);
            buckets.extend(common.into_iter().map(|((prompt, output), requests)| LengthBucket {
                prompt: range(prompt, level),
                output: output.map(|output| range(output, level)),
                requests,
            }));
            left = BTreeMap::new();
            for ((prompt, output), count) in rare {
                *left.entry((prompt >> 1, output.map(|output| output >> 1))).or_default() += count;
            }
        }
        buckets.sort_by_key(|bucket| (bucket.prompt, bucket.output));
        Lengths { declared: self.declared, buckets, suppressed: left.values().sum() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_leave_no_gap() {
        for tokens in (0..70_000).chain([u32::MAX - 1, u32::MAX]) {
            let at = cell(tokens);
            assert!(first(at) <= u64::from(tokens) && u64::from(tokens) < first(at + 1), "{tokens}: {at}");
            for level in 0..LEVELS {
                let [least, most] = range(at >> level, level);
                assert!((least..=most).contains(&tokens), "{tokens} at level {level}: {least} to {most}");
            }
        }
        assert_eq!((2..8).map(first).collect::<Vec<_>>(), [2, 3, 4, 6, 8, 12]);
        assert_eq!(cell(u32::MAX) >> (LEVELS - 1), 0, "the last level is one cell");
    }
}
