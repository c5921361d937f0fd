//! Medians and ranges.

/// The median of some rounds and the range around it.
#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    /// The middle value, or the mean of the middle two.
    pub median: f64,
    /// The smallest value.
    pub least: f64,
    /// The largest value.
    pub most: f64,
}

impl Rounds {
    /// Computes the median and range of at least one value.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Rounds {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (values[0], values[values.len() - 1]);
        Rounds { median: quantile(&values, 0.5), least, most }
    }
}

/// Returns a quantile of sorted values, by linear interpolation.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

/// Returns the ratio of standard deviation to mean.
pub fn cv(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    variance.sqrt() / mean
}

/// Returns the Kolmogorov-Smirnov distance between values and the exponential distribution with this mean.
pub fn ks_exponential(values: &[f64], mean: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let distance = |(at, value): (usize, &f64)| {
        let expected = 1.0 - (-value / mean).exp();
        (expected - at as f64 / count).abs().max((expected - (at + 1) as f64 / count).abs())
    };
    sorted.iter().enumerate().map(distance).fold(0.0, f64::max)
}
