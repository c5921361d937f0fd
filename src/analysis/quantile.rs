//! The reported percentiles: their exact shares, names, and minimum sample sizes.

use crate::plan::Percentile;

/// Every reported percentile, in rising order.
pub const ALL: [Percentile; 6] = Percentile::ALL;

/// Returns the share in thousandths. Whole numbers keep `(n − 1) × p` exact.
pub(crate) fn permille(percentile: Percentile) -> u64 {
    match percentile {
        Percentile::P50 => 500,
        Percentile::P75 => 750,
        Percentile::P90 => 900,
        Percentile::P95 => 950,
        Percentile::P99 => 990,
        Percentile::P999 => 999,
    }
}

/// Returns the share between 0 and 1.
pub fn share(percentile: Percentile) -> f64 {
    permille(percentile) as f64 / 1000.0
}

/// Returns the share of requests that may lie above it, in percent: `5` for p95, `0.1` for p99.9.
pub fn allowed_percent(percentile: Percentile) -> f64 {
    (1000 - permille(percentile)) as f64 / 10.0
}

/// Returns the readable name: `p99.9`.
pub fn name(percentile: Percentile) -> &'static str {
    match percentile {
        Percentile::P50 => "p50",
        Percentile::P75 => "p75",
        Percentile::P90 => "p90",
        Percentile::P95 => "p95",
        Percentile::P99 => "p99",
        Percentile::P999 => "p99.9",
    }
}

/// Returns the name inside a column name, without a dot that SQL would read as a qualifier: `p999`.
pub fn column(percentile: Percentile) -> &'static str {
    match percentile {
        Percentile::P999 => "p999",
        other => name(other),
    }
}

/// Returns the smallest sample with a two-sided 95 % order-statistic interval: the first n with pⁿ ≤ 2.5
/// % (METRICS, Percentiles).
pub fn need(percentile: Percentile) -> u64 {
    smallest_sample(percentile, 0.025)
}

/// Returns the smallest sample that can show "the percentile is ≤ x" at 95 %: the first n with pⁿ ≤ 5 %
/// (METRICS, `few_samples`).
pub fn need_to_decide(percentile: Percentile) -> u64 {
    smallest_sample(percentile, 0.05)
}

fn smallest_sample(percentile: Percentile, level: f64) -> u64 {
    (level.ln() / share(percentile).ln()).ceil() as u64
}

/// Returns the sample size below which the percentile has the mark `few samples`; 0 if METRICS requires
/// none.
pub fn unmarked_from(percentile: Percentile) -> u64 {
    match percentile {
        Percentile::P99 => 1_000,
        Percentile::P999 => 100_000,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_sizes_are_those_of_metrics() {
        assert_eq!(ALL.map(need), [6, 13, 36, 72, 368, 3_688]);
        let decide = [Percentile::P90, Percentile::P95, Percentile::P99].map(need_to_decide);
        assert_eq!(decide, [29, 59, 299]);
    }
}
