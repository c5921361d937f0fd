//! Estimates where the objective is crossed, from a curve fitted to the observations of the runs.
//!
//! Model: latency is the sum of a floor, which an idle server also has, and a wait, which grows as 1 /
//! (1 − u) as the load approaches the server's capacity; u is 0 at the crossing and 1 at the pole. So
//! the pressure (percentile over limit) is f + (1 − f) / (1 − s·d), where d is the distance from the
//! crossing in logarithms of the load. The posterior of the crossing is summed over steepness s, floor
//! f and the variation between runs, so few or noisy runs leave the posterior wide. Far from the
//! crossing, the curve is known only roughly, so pressures beyond a factor of three count only as
//! "below" or "above".

use statrs::function::erf::erfc;

use super::grid::Grid;
use super::question::Probe;
use crate::analysis::slo::Answer;

/// Logarithms of pressures are clamped to this value, a factor of three.
const CUT: f64 = 1.1;
/// Possible deviation of the true curve from the model, relative to the logarithm of the pressure.
const ROUGH: f64 = 0.25;
/// The share of runs that may be arbitrary outliers.
const STRAY: f64 = 0.02;
const STEEP: [f64; 7] = [0.7, 1.5, 3.0, 6.0, 12.0, 25.0, 50.0];
const FLOORS: [f64; 4] = [0.0, 0.4, 0.7, 0.85];
/// Possible standard deviations, from run to run, of the logarithm of the pressure at the crossing.
const NOISES: [f64; 4] = [0.03, 0.08, 0.18, 0.4];
/// Minimum standard deviation, from run to run, of the logarithm of the pressure.
const LEAST_NOISE: f64 = 0.02;
const POINTS: usize = 40;

/// The evidence of a run on the pressure at its load.
#[derive(Debug, Clone, Copy)]
enum Seen {
    /// The logarithm of the pressure.
    At(f64),
    Below(f64),
    Above(f64),
}

/// The evidence of one run, with its load and position in the sequence of runs.
#[derive(Debug, Clone, Copy)]
struct Point {
    /// Logarithm of the load.
    at: f64,
    seen: Seen,
    /// Factor by which the noise is multiplied, depending on the number of requests.
    noise: f64,
    /// The position of the run in the sequence of runs, from 0 for the first to 1 for the last.
    time: f64,
}

/// Causes other than noise for a crossing that changes from run to run.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Course {
    Steady,
    /// The logarithm of the crossing changes steadily by this amount from the first run to the last. The
    /// posterior is for the last run.
    Drift(f64),
    /// The logarithm of the crossing is lower by this amount in some runs.
    Modes(f64),
}

/// The posterior of the logarithm of the crossing.
#[derive(Debug, Clone)]
pub(super) struct Fit {
    /// Possible positions of the crossing, in rising order. Their `weights` add up to 1.
    places: Vec<f64>,
    weights: Vec<f64>,
}

/// Alternatives that explain the runs better than noise does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Movement {
    /// The most likely drift, as a logarithm, and how many times better it explains the runs than no
    /// drift.
    pub drift: (f64, f64),
    /// The most likely distance between two modes, as a logarithm, and how many times better it
    /// explains the runs than a single mode.
    pub modes: (f64, f64),
}

impl Fit {
    /// Fits the runs so far; `None` if none provides evidence.
    pub(super) fn of(grid: &Grid, probes: &[Probe]) -> Option<Fit> {
        let points = points(probes);
        if points.is_empty() {
            return None;
        }
        let (low, high) = (grid.first().ln() - 0.2, grid.last().ln() + 0.2);
        let coarse = Fit::between(low, high, &points);
        let (from, to) = (coarse.likely(0), coarse.likely(1));
        Some(Fit::between(from, to, &points))
    }

    fn between(low: f64, high: f64, points: &[Point]) -> Fit {
        let places: Vec<f64> = (0..POINTS).map(|at| low + (high - low) * at as f64 / (POINTS - 1) as f64).collect();
        let logs: Vec<f64> = places.iter().map(|place| log_likelihood(*place, points, Course::Steady)).collect();
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let raw: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
        let sum: f64 = raw.iter().sum();
        Fit { places, weights: raw.iter().map(|weight| weight / sum).collect() }
    }

    /// Returns the first (0) or last (1) position that is not practically ruled out, extended outwards by one
    /// position.
    fn likely(&self, end: usize) -> f64 {
        let is_likely = |weight: &f64| *weight > 1e-5;
        let last = self.places.len() - 1;
        let at = match end {
            0 => self.weights.iter().position(is_likely).unwrap_or(0).saturating_sub(1),
            _ => (self.weights.iter().rposition(is_likely).unwrap_or(last) + 1).min(last),
        };
        self.places[at]
    }

    /// Returns the load below which the crossing lies with this probability.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let mut sum = 0.0;
        for (place, weight) in self.places.iter().zip(&self.weights) {
            if *weight > 0.0 && sum + weight >= share {
                let step = self.places[1] - self.places[0];
                return (place + step * ((share - sum) / weight - 0.5)).exp();
            }
            sum += weight;
        }
        self.places.last().map_or(f64::NAN, |place| place.exp())
    }

    /// Returns the standard deviation of the crossing, in logarithms of the load.
    pub(super) fn deviation(&self) -> f64 {
        let moment = |power: i32, mean: f64| -> f64 {
            self.places.iter().zip(&self.weights).map(|(place, weight)| (place - mean).powi(power) * weight).sum()
        };
        let mean = moment(1, 0.0);
        moment(2, mean).sqrt()
    }

    /// Returns how much better a drift, or two modes, explain the runs than noise alone.
    pub(super) fn movement(&self, probes: &[Probe], within: f64) -> Movement {
        let points = points(probes);
        let (low, high) = (self.quantile(0.001).ln() - 0.3, self.quantile(0.999).ln() + 0.3);
        let places: Vec<f64> = (0..POINTS).map(|at| low + (high - low) * at as f64 / (POINTS - 1) as f64).collect();
        let evidence = |course| {
            let logs: Vec<f64> = places.iter().map(|place| log_likelihood(*place, &points, course)).collect();
            log_sum(&logs)
        };
        let steady = evidence(Course::Steady);
        let best = |courses: &[Course]| {
            let logs: Vec<f64> = courses.iter().map(|course| evidence(*course)).collect();
            let first = (0..logs.len()).max_by(|a, b| logs[*a].total_cmp(&logs[*b])).unwrap_or(0);
            (first, (log_sum(&logs) - (logs.len() as f64).ln() - steady).exp())
        };
        let step = (1.0 + within).ln();
        let drifts = [-8.0, -5.0, -3.0, -1.5, 1.5, 3.0, 5.0, 8.0].map(|steps| steps * step.max(0.03));
        let modes = [1.5, 2.5, 4.0, 6.0, 9.0].map(|steps| steps * step.max(0.03));
        let (drift, of_drift) = best(&drifts.map(Course::Drift));
        let (mode, of_modes) = best(&modes.map(Course::Modes));
        Movement { drift: (drifts[drift], of_drift), modes: (modes[mode], of_modes) }
    }
}

fn points(probes: &[Probe]) -> Vec<Point> {
    let last = probes.len().saturating_sub(1).max(1) as f64;
    let ordinary = probes.iter().filter(|probe| !probe.confirms);
    let most = ordinary.map(|probe| probe.requests).max().unwrap_or(1) as f64;
    let point = |(at, probe): (usize, &Probe)| {
        let noise = (most / probe.requests.max(1) as f64).sqrt().clamp(0.6, 5.0);
        Some(Point { at: probe.load.ln(), seen: seen(probe)?, noise, time: at as f64 / last })
    };
    probes.iter().enumerate().filter_map(point).collect()
}

/// Returns the evidence of a run; `None` if there is none. If the server did not keep up, the run misses
/// even if its percentile does not show it.
fn seen(probe: &Probe) -> Option<Seen> {
    let log = probe.pressure.map(f64::ln).filter(|log| !log.is_nan());
    match (probe.answer?, log) {
        (Answer::Misses, Some(log)) if log > 0.0 && log < CUT => Some(Seen::At(log)),
        (Answer::Misses, Some(log)) if log >= CUT => Some(Seen::Above(CUT)),
        (Answer::Misses, _) => Some(Seen::Above(0.0)),
        (_, Some(log)) if log <= -CUT => Some(Seen::Below(-CUT)),
        (_, Some(log)) if log >= CUT => Some(Seen::Above(CUT)),
        (_, Some(log)) => Some(Seen::At(log)),
        (Answer::Holds, None) => Some(Seen::Below(0.0)),
        (Answer::Undecided, None) => None,
    }
}

/// Returns the log-likelihood of the crossing, summed over steepnesses, floors and noises.
fn log_likelihood(crossing: f64, points: &[Point], course: Course) -> f64 {
    // Each factor is above STRAY / (2 CUT), so even for a hundred runs the product is far above the
    // smallest representable number.
    let mut products = [1.0; STEEP.len() * FLOORS.len() * NOISES.len()];
    let shapes = STEEP.iter().flat_map(|steep| FLOORS.iter().map(move |floor| (*steep, *floor)));
    for ((steep, floor), products) in shapes.zip(products.chunks_mut(NOISES.len())) {
        let curve = |distance: f64, point: &Point| likelihoods(steep * distance, floor, point);
        for point in points {
            let distance = point.at - crossing;
            let said = match course {
                Course::Steady => curve(distance, point),
                Course::Drift(by) => curve(distance + by * (1.0 - point.time), point),
                Course::Modes(apart) => {
                    let (upper, lower) = (curve(distance, point), curve(distance + apart, point));
                    std::array::from_fn(|at| 0.65 * upper[at] + 0.35 * lower[at])
                }
            };
            products.iter_mut().zip(said).for_each(|(product, said)| *product *= said);
        }
    }
    products.iter().sum::<f64>().ln()
}

/// Returns the likelihood of one run's evidence for each noise level; `way` is 0 at the crossing and 1
/// at the pole.
fn likelihoods(way: f64, floor: f64, point: &Point) -> [f64; NOISES.len()] {
    let rest = (1.0 - way).max(0.1);
    let pressure = floor + (1.0 - floor) / rest;
    let mean = pressure.ln();
    let rough = ROUGH * mean;
    // A shift of the crossing is more visible where the curve is steeper.
    let steep = (1.0 / (rest * rest * pressure)).clamp(0.3, 3.0);
    NOISES.map(|noise| {
        let own = ((noise * steep).powi(2) + LEAST_NOISE * LEAST_NOISE) * point.noise * point.noise;
        let deviation = (own + rough * rough).sqrt();
        match point.seen {
            Seen::At(seen) => {
                let z = (seen - mean) / deviation;
                (1.0 - STRAY) * (-0.5 * z * z).exp() / (deviation * 2.507) + STRAY / (2.0 * CUT)
            }
            Seen::Below(than) => (1.0 - STRAY) * tail((mean - than) / deviation) + STRAY / 2.0,
            Seen::Above(than) => (1.0 - STRAY) * tail((than - mean) / deviation) + STRAY / 2.0,
        }
    })
}

/// Returns the probability that a standard normal variable exceeds `z`.
fn tail(z: f64) -> f64 {
    0.5 * erfc(z / std::f64::consts::SQRT_2)
}

fn log_sum(logs: &[f64]) -> f64 {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most + logs.iter().map(|log| (log - most).exp()).sum::<f64>().ln()
}
