//! Determines whether the level of a series changed, by a step at one place or by a trend from beginning to
//! end.
//!
//! A series is one quantity of a run over time: logarithms of the requests' latencies in scheduled
//! order, or rates of equal parts of the window. [`find`] is the only entry point. It does not depend on
//! runs, so simulations of its power need only a slice of numbers.
//!
//! Model: a level, plus one change, plus noise that may be autocorrelated. The change is the step or line
//! that explains the largest share of the sum of squares (least squares over every place; Hinkley, Inference
//! about the change-point in a sequence of random variables, 1970). The residual is noise, and its long-run
//! variance determines how certain the change is. The variance is estimated by batch means and by the
//! autocorrelation; the larger estimate is used, increased to allow for the uncertainty of the dependence in
//! short series, as in [`super::worth`]. Because the data choose the place, the limit is higher than for a
//! single test; it was chosen by simulation (`docs/METRICS.md`, Steadiness).
//!
//! A *companion* is another quantity that explains the level, such as the requests in flight: a server
//! that serves more requests at once is slower for each of them. Only the part of a change that is not
//! proportional to the companion counts.

use super::series::{PARTS, autocorrelation_time, blocks, mean, variance};
use super::student;

/// Minimum number of values in a series.
pub const FEWEST: usize = 6;
/// Minimum share of the series on either side of a step.
const EDGE: f64 = 0.025;
/// Number of batches from whose means the noise is estimated.
const BATCHES: usize = 15;
/// Constant for the uncertainty of the dependence: the variance is multiplied by 1 + `UNSURE` /
/// √(independent values).
const UNSURE: f64 = 4.0;
/// The two-sided level of Student's t that a change must pass.
const LEVEL: f64 = 0.0008;
/// If a companion explains more than this share of a step's sum of squares, the step cannot be
/// distinguished from the companion.
const CONFOUNDED: f64 = 0.99;

/// The form of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A step from one level to another.
    Step,
    /// A steady change in one direction.
    Trend,
}

/// The largest change of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The form of the change.
    pub form: Form,
    /// The position of a step in the series, as a share of its length; 0 for a trend.
    pub at: f64,
    /// The change of the level, on the scale of the values: across the step, or from the beginning
    /// of the trend to its end. Excludes the part that a companion explains.
    pub by: f64,
    /// The change of the level, in standard errors.
    pub errors: f64,
    /// The number of standard errors above which the change is not attributed to chance.
    pub limit: f64,
}

impl Change {
    /// Returns whether the change exceeds chance.
    pub(crate) fn is_shown(&self) -> bool {
        self.errors > self.limit
    }
}

/// Returns the largest change of a series over time; `None` for fewer than [`FEWEST`] values, and for a
/// constant series. A companion has a value for each value of the series.
pub fn find(values: &[f64], companion: Option<&[f64]>) -> Option<Change> {
    let series = blocks(values, PARTS);
    if series.len() < FEWEST {
        return None;
    }
    let companion = companion.map(|values| centred(&blocks(values, PARTS))).filter(|values| squares(values) > 0.0);
    let adjusted = without(&centred(&series), companion.as_deref());
    let step = step(&adjusted, companion.as_deref());
    let trend = trend(&adjusted, companion.as_deref());
    let found = [step, trend].into_iter().flatten();
    let found = found.map(|fit| fit.change(&adjusted));
    found.max_by(|a, b| (a.errors - a.limit).total_cmp(&(b.errors - b.limit)))
}

/// A change fitted to a series: its form, position and size.
struct Fit {
    form: Form,
    at: f64,
    /// The values of the step or line along the series, without the part that a companion explains.
    shape: Vec<f64>,
    /// The least-squares coefficient by which `shape` is multiplied to fit the series.
    times: f64,
}

impl Fit {
    fn change(&self, series: &[f64]) -> Change {
        let left: Vec<f64> = series.iter().zip(&self.shape).map(|(value, shape)| value - self.times * shape).collect();
        let n = series.len();
        let batches = if n < 2 * BATCHES { n } else { BATCHES };
        let error = (long_run(&left, batches) / squares(&self.shape)).sqrt();
        let errors = match (self.times != 0.0, error > 0.0) {
            (true, true) => self.times.abs() / error,
            (true, false) => f64::INFINITY,
            (false, _) => 0.0,
        };
        let limit = student::critical(LEVEL, batches as f64 - 3.0);
        Change { form: self.form, at: self.at, by: self.times, errors, limit }
    }
}

/// Returns the long-run variance of noise after removal of a level and a change.
fn long_run(left: &[f64], batches: usize) -> f64 {
    let n = left.len() as f64;
    let time = autocorrelation_time(left);
    let of_all = squares(left) / (n - 3.0) * time;
    let means = blocks(left, batches);
    let fitted = (batches as f64 - 1.0) / (batches as f64 - 3.0);
    let of_batches = variance(&means) * fitted * n / batches as f64;
    of_batches.max(of_all) * (1.0 + UNSURE / (n / time).sqrt())
}

/// Returns the step that explains the largest share of the sum of squares; `None` if a companion
/// explains every step.
fn step(series: &[f64], companion: Option<&[f64]>) -> Option<Fit> {
    let n = series.len();
    let edge = ((n as f64 * EDGE).ceil() as usize).max(2);
    let weight = companion.map_or(0.0, squares);
    let (mut of_series, mut of_companion) = (0.0, 0.0);
    let mut best: Option<(f64, usize)> = None;
    for at in 1..=n - edge {
        of_series += series[at - 1];
        of_companion += companion.map_or(0.0, |values| values[at - 1]);
        let whole = at as f64 * (n - at) as f64 / n as f64;
        let own = if weight > 0.0 { whole - of_companion * of_companion / weight } else { whole };
        let explains = of_series * of_series / own;
        if at >= edge && own > (1.0 - CONFOUNDED) * whole && best.is_none_or(|(most, _)| explains > most) {
            best = Some((explains, at));
        }
    }
    let (_, at) = best?;
    let step: Vec<f64> = (0..n).map(|place| f64::from(u8::from(place >= at))).collect();
    Some(fit(Form::Step, at as f64 / n as f64, series, &step, companion))
}

/// Returns the line through a series, from beginning to end; `None` if a companion explains it.
fn trend(series: &[f64], companion: Option<&[f64]>) -> Option<Fit> {
    let n = series.len();
    let line: Vec<f64> = (0..n).map(|place| place as f64 / (n as f64 - 1.0)).collect();
    let fit = fit(Form::Trend, 0.0, series, &line, companion);
    (squares(&fit.shape) > (1.0 - CONFOUNDED) * squares(&centred(&line))).then_some(fit)
}

fn fit(form: Form, at: f64, series: &[f64], shape: &[f64], companion: Option<&[f64]>) -> Fit {
    let shape = without(&centred(shape), companion);
    let times = product(series, &shape) / squares(&shape);
    Fit { form, at, shape, times }
}

/// Returns the part of a series that is not proportional to a companion; both series must have mean 0.
fn without(series: &[f64], companion: Option<&[f64]>) -> Vec<f64> {
    let Some(companion) = companion else { return series.to_vec() };
    let times = product(series, companion) / squares(companion);
    series.iter().zip(companion).map(|(value, other)| value - times * other).collect()
}

fn centred(values: &[f64]) -> Vec<f64> {
    let mean = mean(values);
    values.iter().map(|value| value - mean).collect()
}

fn product(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

fn squares(values: &[f64]) -> f64 {
    product(values, values)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Returns an autoregressive series with standard deviation 1.
    fn noise(n: usize, phi: f64, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let mut state = 0.0;
        let mut next = || {
            state = phi * state + (1.0 - phi * phi).sqrt() * (0..12).map(|_| rng.random::<f64>() - 0.5).sum::<f64>();
            state
        };
        (0..50 + n).map(|_| next()).skip(50).collect()
    }

    fn with(values: &[f64], add: impl Fn(usize) -> f64) -> Vec<f64> {
        values.iter().enumerate().map(|(at, value)| value + add(at)).collect()
    }

    #[test]
    fn a_step_is_found_where_it_is_and_a_trend_as_one() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for place in [60, 300, 540] {
            let step = with(&noise(600, 0.5, &mut rng), |at| if at < place { 0.0 } else { 4.0 });
            let found = find(&step, None).unwrap();
            assert_eq!(found.form, Form::Step);
            assert!(found.is_shown() && (found.at - place as f64 / 600.0).abs() < 0.02, "{found:?}");
            assert!((found.by - 4.0).abs() < 0.6, "{found:?}");
        }
        let trend = find(&with(&noise(600, 0.5, &mut rng), |at| at as f64 / 100.0), None).unwrap();
        assert!(trend.form == Form::Trend && trend.is_shown() && (trend.by - 6.0).abs() < 1.0, "{trend:?}");
    }

    #[test]
    fn what_a_companion_explains_is_no_change() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let companion = with(&noise(600, 0.9, &mut rng), |at| at as f64 / 100.0);
        let follows: Vec<f64> = noise(600, 0.0, &mut rng).iter().zip(&companion).map(|(a, b)| a + 2.0 * b).collect();
        assert!(find(&follows, None).unwrap().is_shown());
        assert!(!find(&follows, Some(&companion)).unwrap().is_shown());
        let both = with(&follows, |at| if at < 300 { 0.0 } else { 5.0 });
        assert!(find(&both, Some(&companion)).unwrap().is_shown());
    }

    #[test]
    fn few_values_and_equal_ones_say_nothing() {
        assert_eq!(find(&[1.0; FEWEST - 1], None), None);
        assert!(!find(&[1.0; 100], None).unwrap().is_shown());
        assert!(find(&with(&[1.0; 100], |at| f64::from(u8::from(at > 40))), None).unwrap().is_shown());
    }

    /// An autocorrelated series moves up and down for a while by chance.
    #[test]
    fn chance_is_seldom_taken_for_a_change() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let shown = |phi: f64, n: usize, rng: &mut ChaCha8Rng| {
            (0..150).filter(|_| find(&noise(n, phi, rng), None).unwrap().is_shown()).count()
        };
        for (phi, n) in [(0.0, 12), (0.0, 300), (0.5, 300), (0.9, 300)] {
            let count = shown(phi, n, &mut rng);
            assert!(count <= 2, "{phi} {n}: {count} of 150");
        }
    }
}
