//! Merges ranges along one dimension, so that none has fewer than k.

/// Counts over a range of values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Span<T> {
    /// The minimum and the maximum value.
    pub(super) range: [u64; 2],
    /// The count that must reach k.
    pub(super) weight: u64,
    /// Other sums over the range.
    pub(super) sums: T,
}

/// Merges spans, given in ascending order, from the top down until each has a weight of at least k;
/// also returns what remains below k.
pub(super) fn at_least<T>(spans: Vec<Span<T>>, k: u64, add: impl Fn(&mut T, T)) -> (Vec<Span<T>>, u64) {
    let mut merged: Vec<Span<T>> = Vec::new();
    let mut open: Option<Span<T>> = None;
    for span in spans.into_iter().rev() {
        let span = match open.take() {
            None => span,
            Some(mut above) => {
                above.range[0] = span.range[0];
                above.weight += span.weight;
                add(&mut above.sums, span.sums);
                above
            }
        };
        if span.weight >= k { merged.push(span) } else { open = Some(span) }
    }
    // The remainder joins the lowest range, which is adjacent to it.
    let left = match (open, merged.last_mut()) {
        (Some(rest), Some(lowest)) => {
            lowest.range[0] = rest.range[0];
            lowest.weight += rest.weight;
            add(&mut lowest.sums, rest.sums);
            0
        }
        (Some(rest), None) => rest.weight,
        (None, _) => 0,
    };
    merged.reverse();
    (merged, left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_spans_join_their_neighbours() {
        let spans = |weights: &[u64]| {
            let span = |(at, weight): (usize, &u64)| Span { range: [at as u64; 2], weight: *weight, sums: *weight };
            weights.iter().enumerate().map(span).collect::<Vec<_>>()
        };
        let merged = |weights: &[u64]| {
            let (merged, left) = at_least(spans(weights), 10, |sum: &mut u64, more| *sum += more);
            assert!(merged.iter().all(|span| span.weight == span.sums && span.weight >= 10));
            (merged.iter().map(|span| (span.range, span.weight)).collect::<Vec<_>>(), left)
        };
        assert_eq!(merged(&[20, 3, 30, 4, 1, 5]), (vec![([0, 1], 23), ([2, 2], 30), ([3, 5], 10)], 0));
        assert_eq!(merged(&[2, 12]), (vec![([0, 1], 14)], 0));
        assert_eq!(merged(&[2, 3]), (vec![], 5));
        assert_eq!(merged(&[]), (vec![], 0));
    }
}
