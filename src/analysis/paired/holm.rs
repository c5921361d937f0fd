//! Adjusts the p-values of several tests by Holm's method: the chance of any false finding among all
//! tests is at most the level.

/// Returns the adjusted p-values, in the order of `p`, each of which can be compared with the level
/// individually. By Holm (1979), the i-th smallest of m p-values is multiplied by m − i + 1 and is never
/// below the previous one.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut rising: Vec<usize> = (0..p.len()).collect();
    rising.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let (mut adjusted, mut least) = (vec![0.0; p.len()], 0.0f64);
    for (rank, at) in rising.into_iter().enumerate() {
        least = least.max(p[at] * (p.len() - rank) as f64).min(1.0);
        adjusted[at] = least;
    }
    adjusted
}
