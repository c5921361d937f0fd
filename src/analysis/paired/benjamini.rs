//! Adjusts the p-values of several tests by the method of Benjamini and Hochberg (Controlling the False
//! Discovery Rate, 1995): on average, the share of false findings is at most the level. It finds more
//! differences than Holm's method, but some of its findings may be false, so it is meant for exploration.

/// Returns the adjusted p-values, in the order of `p`, each of which can be compared with the level
/// individually. The i-th smallest of m p-values is multiplied by m / i and never exceeds the next one. Valid
/// for tests that are independent or positively dependent, like metrics of the same runs.
pub(crate) fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut falling: Vec<usize> = (0..p.len()).collect();
    falling.sort_by(|a, b| p[*b].total_cmp(&p[*a]));
    let (mut adjusted, mut most) = (vec![0.0; p.len()], 1.0f64);
    for (above, at) in falling.into_iter().enumerate() {
        most = most.min(p[at] * p.len() as f64 / (p.len() - above) as f64);
        adjusted[at] = most;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R 4: p.adjust(c(.01, .04, .03, .005, .5), "BH").
    #[test]
    fn as_r_adjusts() {
        let adjusted = benjamini_hochberg(&[0.01, 0.04, 0.03, 0.005, 0.5]);
        let expected = [0.025, 0.05, 0.05, 0.025, 0.5];
        assert!(adjusted.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{adjusted:?}");
        assert!(benjamini_hochberg(&[]).is_empty());
    }
}
