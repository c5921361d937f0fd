//! Series of numbers that may depend on each other: blocks, ranks, and their dependence.

/// Number of parts of a window, and of blocks of the requests of a run, wherever dependence is
/// estimated. Divisible by 8, 10, 12, 15, 16, 20, 24 and 30.
pub const PARTS: usize = 240;

/// Returns the mean; NaN without values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the sample variance, divided by n − 1; 0 below two values.
pub fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0).max(1.0)
}

/// Returns the means of `count` blocks of nearly equal size; if there are fewer values, each value is a
/// block.
pub fn blocks(values: &[f64], count: usize) -> Vec<f64> {
    edges(values.len(), count).windows(2).map(|edge| mean(&values[edge[0]..edge[1]])).collect()
}

/// Returns the first index of each of `count` nearly equal blocks of `n` values, followed by the end.
/// There are at most `n` blocks.
pub fn edges(n: usize, count: usize) -> Vec<usize> {
    let count = count.min(n);
    (0..=count).map(|block| block * n / count.max(1)).collect()
}

/// Returns the indices of values in rising order of the values.
pub(crate) fn rising_order(values: &[f64]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    order.sort_unstable_by(|a, b| values[*a as usize].total_cmp(&values[*b as usize]));
    order
}

/// Returns the rank of each value in [`rising_order`], as a share between 0 and 1. Equal values get the
/// mean of their ranks.
pub(crate) fn ranks(values: &[f64], order: &[u32]) -> Vec<f64> {
    let n = values.len();
    let mut ranks = vec![0.0; n];
    let mut first = 0;
    for equal in order.chunk_by(|a, b| values[*a as usize] == values[*b as usize]) {
        let rank = (2 * first + equal.len()) as f64 / 2.0 / n as f64;
        equal.iter().for_each(|index| ranks[*index as usize] = rank);
        first += equal.len();
    }
    ranks
}

/// Returns the integrated autocorrelation time of a series in its own steps, 1 + 2 Σ ρ, by the initial
/// monotone sequence of Geyer (Practical Markov Chain Monte Carlo, 1992); at least 1. This many values
/// of the series carry as much information as one independent value.
pub fn autocorrelation_time(series: &[f64]) -> f64 {
    let n = series.len();
    let mean = mean(series);
    let centred: Vec<f64> = series.iter().map(|value| value - mean).collect();
    let covariance =
        |lag: usize| centred[..n - lag].iter().zip(&centred[lag..]).map(|(a, b)| a * b).sum::<f64>() / n.max(1) as f64;
    let all = covariance(0);
    if !(all > 0.0 && all.is_finite()) {
        return 1.0;
    }
    let (mut sum, mut last, mut lag) = (0.0, f64::INFINITY, 0);
    while lag + 1 < n {
        let pair = (covariance(lag) + covariance(lag + 1)).min(last);
        if pair <= 0.0 {
            break;
        }
        (sum, last, lag) = (sum + pair, pair, lag + 2);
    }
    (2.0 * sum / all - 1.0).max(1.0)
}

/// Returns how often a series goes from its lower 30 % to its upper 30 % or back. If a queue has swung
/// often, it has been observed to fill and to drain. Any queue that returns has about 55 swings in
/// [`PARTS`] parts over 200 relaxation times, and a queue that only grows has one to four
/// (`docs/METRICS.md`, Dependence).
pub fn swings(series: &[f64]) -> u32 {
    let mut rising = series.to_vec();
    rising.sort_unstable_by(f64::total_cmp);
    let Some(last) = rising.len().checked_sub(1) else { return 0 };
    let at = |share: f64| rising[(last as f64 * share).round() as usize];
    let (low, high) = (at(0.3), at(0.7));
    let side = |value: &f64| if *value <= low { Some(false) } else { (*value >= high).then_some(true) };
    let mut sides = series.iter().filter_map(side);
    let Some(mut now) = sides.next() else { return 0 };
    let mut count = 0;
    for side in sides {
        count += u32::from(side != now);
        now = side;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_a_rank() {
        let ranked = |values: &[f64]| ranks(values, &rising_order(values));
        assert_eq!(ranked(&[3.0, 1.0, 3.0, 2.0]), [0.75, 0.125, 0.75, 0.375]);
        assert!(ranked(&[]).is_empty());
    }

    #[test]
    fn blocks_are_nearly_equal() {
        assert_eq!(blocks(&[1.0, 2.0, 3.0, 4.0, 5.0], 2), [1.5, 4.0]);
        assert_eq!(blocks(&[1.0, 2.0], 5), [1.0, 2.0]);
        assert!(blocks(&[], 5).is_empty());
    }

    #[test]
    fn a_series_swings_where_it_goes_from_one_end_to_the_other() {
        let saw: Vec<f64> = (0..40).map(|at| f64::from(at % 4)).collect();
        assert_eq!(swings(&saw), 19);
        let rising: Vec<f64> = (0..40).map(f64::from).collect();
        assert_eq!(swings(&rising), 1);
        assert_eq!((swings(&[1.0; 9]), swings(&[])), (0, 0));
    }

    #[test]
    fn what_depends_is_worth_less() {
        let held: Vec<f64> = (0..400).map(|at| f64::from((at / 10) % 2)).collect();
        assert!(autocorrelation_time(&held) > 4.0);
        assert_eq!(autocorrelation_time(&[2.0; 50]), 1.0);
        assert_eq!(autocorrelation_time(&[]), 1.0);
    }
}
