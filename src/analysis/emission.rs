//! The rate at which a run produced tokens, for equal parts of its window.
//!
//! Parts are never shorter than a typical request, so an event that affects one request mostly stays within
//! one part. In a closed loop, tokens count when they arrive. In an open loop, the tokens of a request count
//! when it completes, relative to the tokens requested by the requests that arrived in the same part.

use crate::rows::{Facts, Measured};

use super::request::Metric;
use super::series::PARTS;
use super::window;

/// Maximum and minimum number of parts.
const MOST_PARTS: usize = 20;
const FEWEST_PARTS: usize = super::change::FEWEST;

/// Equal parts of the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Parts {
    from: u64,
    /// Length of a part in nanoseconds.
    pub(crate) part_ns: f64,
    /// Number of parts.
    pub count: usize,
    /// Length of a typical request, in nanoseconds. One wave of synchronized slots contributes as many
    /// tokens as the run produces in this time.
    pub(crate) typical: f64,
}

impl Parts {
    fn at(&self, instant: u64) -> Option<usize> {
        let part = (instant.checked_sub(self.from)? as f64 / self.part_ns) as usize;
        (part < self.count).then_some(part)
    }
}

/// Tokens of a closed loop, by the part of the window in which their events occurred.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Emitted {
    /// The parts; an error states why they cannot be compared.
    parts: Result<Parts, String>,
    /// Number of tokens in each part.
    tokens: Vec<f64>,
}

impl Emitted {
    /// Creates empty counts for a run whose requests are `rows`.
    pub(super) fn new(rows: &[Measured], facts: &Facts) -> Emitted {
        let parts = parts(rows, facts);
        let count = parts.as_ref().map_or(0, |parts| parts.count);
        Emitted { tokens: vec![0.0; count], parts }
    }

    /// Adds the tokens of one event.
    pub(super) fn add(&mut self, at: u64, tokens: f64) {
        if let Some(part) = self.parts.as_ref().ok().and_then(|parts| parts.at(at)) {
            self.tokens[part] += tokens;
        }
    }
}

fn parts(rows: &[Measured], facts: &Facts) -> Result<Parts, String> {
    let windows = &facts.windows;
    let mut latencies: Vec<f64> = window::members(rows, facts)
        .filter_map(|row| window::request(row, facts).observe(Metric::E2eFromSchedule).value())
        .collect();
    latencies.sort_unstable_by(f64::total_cmp);
    let typical = *latencies.get(latencies.len() / 2).ok_or("no request of the window completed")?;
    let typical = typical.max(cycle(rows, facts).unwrap_or(0.0));
    let half_ns = (windows.measure_end_ns - windows.measure_start_ns) / 2;
    let half = ((half_ns as f64 / (typical * 1e6)) as usize).min(MOST_PARTS / 2);
    if half < FEWEST_PARTS / 2 {
        return Err(format!(
            "half of the window ({:.3} s) is shorter than {} typical requests ({:.3} s each)",
            half_ns as f64 / 1e9,
            FEWEST_PARTS / 2,
            typical / 1e3
        ));
    }
    let part_ns = half_ns as f64 / half as f64;
    Ok(Parts { from: windows.measure_start_ns, part_ns, count: 2 * half, typical: typical * 1e6 })
}

/// Returns the average time that a slot of a closed loop spends on a request and the following think
/// time, in ms; `None` without think time. Computed by Little's law: the number of slots equals the
/// request rate times the duration of a round.
fn cycle(rows: &[Measured], facts: &Facts) -> Option<f64> {
    let slots = facts.batch_size.filter(|_| facts.thinks && !facts.open_loop)?;
    let requests = window::members(rows, facts).count();
    (requests > 0).then(|| f64::from(slots) * facts.windows.measure_secs() * 1e3 / requests as f64)
}

impl Emitted {
    /// Returns the tokens in each part of a run's window; an error states why the parts cannot be
    /// compared.
    pub(super) fn series(&self, rows: &[Measured], facts: &Facts) -> Result<Series, String> {
        let parts = self.parts.clone()?;
        Ok(match facts.open_loop {
            true => completed(rows, facts, parts),
            false => {
                let expected = vec![parts.part_ns / 1e9; parts.count];
                Series { parts, out: self.tokens.clone(), expected }
            }
        })
    }
}

/// Returns the token rates of completed requests in [`PARTS`] parts of the window, for an open loop
/// whose server is never idle. A request counts in the part in which it completes, so a part may be
/// shorter than a request.
pub(super) fn done(rows: &[Measured], facts: &Facts) -> Series {
    let windows = &facts.windows;
    let part_ns = (windows.measure_end_ns - windows.measure_start_ns) as f64 / PARTS as f64;
    let parts = Parts { from: windows.measure_start_ns, part_ns, count: PARTS, typical: 0.0 };
    let mut out = vec![0.0; parts.count];
    for row in rows.iter().filter(|row| row.outcome.is_ok()) {
        if let Some(part) = window::request(row, facts).answered_ns().and_then(|at| parts.at(at)) {
            out[part] += row.output_tokens().map_or(1.0, f64::from);
        }
    }
    Series { parts, out, expected: vec![part_ns / 1e9; parts.count] }
}

/// Tokens produced in each part, and the quantity to which they should be proportional.
pub(super) struct Series {
    /// The parts.
    pub parts: Parts,
    out: Vec<f64>,
    expected: Vec<f64>,
}

impl Series {
    /// Returns the ratio of the produced tokens to the quantity to which they should be proportional,
    /// over a range of parts.
    pub(super) fn ratio(&self, from: usize, to: usize) -> f64 {
        self.out[from..to].iter().sum::<f64>() / self.expected[from..to].iter().sum::<f64>()
    }

    /// Returns how far each part deviates from the overall ratio, as a share of this ratio.
    pub(crate) fn residuals(&self) -> Vec<f64> {
        let (ratio, n) = (self.ratio(0, self.out.len()), self.out.len() as f64);
        let whole = ratio * self.expected.iter().sum::<f64>() / n;
        self.out.iter().zip(&self.expected).map(|(out, expected)| (out - ratio * expected) / whole).collect()
    }
}

/// Returns how long after its arrival a request of each half of the window should complete, in
/// nanoseconds. Under a steady load, this delay does not matter, because the same number of requests
/// arrive in every part. If a profile changes the rate, the requests that complete in a part arrived
/// earlier by the latency of a typical request. Each half has its own typical request, because latency
/// depends on the load.
fn lags(rows: &[Measured], facts: &Facts, parts: Parts) -> [u64; 2] {
    if facts.window_qps.is_none() {
        return [0; 2];
    }
    let mut latencies = [vec![], vec![]];
    for row in rows {
        let latency = window::request(row, facts).observe(Metric::E2eFromSchedule).value();
        if let Some((part, latency)) = parts.at(row.scheduled_ns).zip(latency) {
            latencies[usize::from(2 * part >= parts.count)].push(latency);
        }
    }
    latencies.map(|mut latencies| {
        latencies.sort_unstable_by(f64::total_cmp);
        latencies.get(latencies.len() / 2).map_or(0, |typical| (typical * 1e6) as u64)
    })
}

/// Returns, for an open loop, the tokens of the requests that completed in each part. They should be
/// proportional to the tokens requested by the requests that arrived in the same part or, if there is a lag,
/// earlier by the lag.
fn completed(rows: &[Measured], facts: &Facts, parts: Parts) -> Series {
    let (mut out, mut expected) = (vec![0.0; parts.count], vec![0.0; parts.count]);
    let lags = lags(rows, facts, parts);
    for row in rows {
        for (half, lag) in lags.iter().enumerate() {
            let part = parts.at(row.scheduled_ns.saturating_add(*lag));
            if let Some(part) = part.filter(|part| usize::from(2 * part >= parts.count) == half) {
                expected[part] += f64::from(row.requested_tokens);
            }
        }
        let answered = window::request(row, facts).answered_ns().filter(|_| row.outcome.is_ok());
        if let (Some(part), Some(tokens)) = (answered.and_then(|at| parts.at(at)), row.output_tokens()) {
            out[part] += f64::from(tokens);
        }
    }
    Series { parts, out, expected }
}
