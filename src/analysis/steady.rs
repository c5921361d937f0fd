//! Whether the two halves of the window tell the same story.
//!
//! Each half is cut into up to ten blocks, none shorter than a typical request: what happens to one request then stays
//! mostly inside one block, so block means vary as much as the halves could by chance. Slots of a closed loop that run
//! in step answer in waves, and blocks of a whole number of waves do not see them: whether a half holds one wave more is
//! chance too, so a closed loop's halves may always differ by one. Where users think, a wave comes once a round, and a
//! round is taken for the length of a request. With fewer blocks the factor of METRICS, 3 standard errors, grows
//! as Student's t asks, so that a false alarm stays as rare as with ten.
//!
//! A server that is slow for a while may be slow for longer than a block. Blocks next to each other are then alike, and a
//! mean of ten says less than ten: the variance of each mean is multiplied by 1 + 2 r, where r is the correlation of
//! neighbours (as of a moving average of the first order; never by less than 1). A slope that both halves share is taken out
//! before: a server that gets slower all the time is what is looked for, not noise.

use crate::plan::Percentile;
use crate::rows::{Facts, Measured};

use super::binomial;
use super::gaps::Events;
use super::quantile;
use super::request::Metric;
use super::stats::{Interval, Ordered, Value};
use super::window;

const MOST_BLOCKS: usize = 10;
const FEWEST_BLOCKS: usize = 3;

/// Standard errors that two halves of 3, 4, … 10 blocks may differ by: the t quantile at the level that 3 has with
/// 2 × (10 − 1) degrees of freedom. scipy: `t.isf(t.sf(3, 18), 2 * (blocks - 1))`.
const ERRORS: [f64; MOST_BLOCKS - FEWEST_BLOCKS + 1] = [4.964, 3.933, 3.534, 3.325, 3.196, 3.110, 3.047, 3.0];

/// How far the halves differ in one respect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Difference {
    /// First half and second half.
    pub halves: [f64; 2],
    /// Their difference as a share of the whole.
    pub share: f64,
    /// The share that chance alone explains.
    pub noise: f64,
}

impl Difference {
    /// Whether it is above both a limit and chance.
    pub fn exceeds(&self, limit: f64) -> bool {
        self.share > limit && self.share > self.noise
    }
}

/// What the halves say. `ttft` is null where either half has no median with an interval, or nothing was streamed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Halves {
    /// Output tokens per second; open loop: completed over offered tokens.
    pub throughput: Option<Difference>,
    /// Median TTFT in ms; its noise is 0 where the intervals are disjoint, else infinite.
    pub ttft: Option<Difference>,
}

/// One half of the window.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Half {
    from: u64,
    block_ns: f64,
    blocks: usize,
    /// Length of a typical request as a share of the half: what one wave of slots in step contributes.
    wave: f64,
}

impl Half {
    fn block(&self, instant: u64) -> Option<usize> {
        let block = (instant.checked_sub(self.from)? as f64 / self.block_ns) as usize;
        (block < self.blocks).then_some(block)
    }
}

/// Compares the halves; an error says why they cannot be compared.
pub(super) fn compare(rows: &[Measured], events: &Events, facts: &Facts) -> Result<Halves, String> {
    let [first, second] = events.emitted.halves.clone()?;
    let series = match facts.open_loop {
        true => [first, second].map(|half| completed(rows, facts, half, lag(rows, facts, half))),
        false => [(first, &events.emitted.tokens[0]), (second, &events.emitted.tokens[1])]
            .map(|(half, out)| Series { out: out.clone(), expected: vec![half.block_ns / 1e9; half.blocks] }),
    };
    Ok(Halves {
        throughput: throughput(series, facts, first),
        ttft: medians(ttft(rows, facts, first), ttft(rows, facts, second), first),
    })
}

/// Tokens by the block of the window's halves that their events fell into: of a closed loop.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Emitted {
    /// The halves; an error says why they cannot be compared.
    halves: Result<[Half; 2], String>,
    /// Tokens of each block of each half.
    tokens: [Vec<f64>; 2],
}

impl Emitted {
    /// Nothing yet, of a run with these requests.
    pub fn new(rows: &[Measured], facts: &Facts) -> Emitted {
        let halves = halves(rows, facts);
        let blocks = |at: usize| halves.as_ref().map_or(0, |halves| halves[at].blocks);
        Emitted { tokens: [0, 1].map(|at| vec![0.0; blocks(at)]), halves }
    }

    /// Adds the tokens of one event.
    pub fn add(&mut self, at: u64, tokens: f64) {
        let Ok(halves) = &self.halves else { return };
        for (half, out) in halves.iter().zip(&mut self.tokens) {
            if let Some(block) = half.block(at) {
                out[block] += tokens;
            }
        }
    }
}

fn halves(rows: &[Measured], facts: &Facts) -> Result<[Half; 2], String> {
    let windows = &facts.windows;
    let mut latencies: Vec<f64> = window::members(rows, facts)
        .filter_map(|row| window::request(row, facts).observe(Metric::E2eFromSchedule).value())
        .collect();
    latencies.sort_unstable_by(f64::total_cmp);
    let typical = *latencies.get(latencies.len() / 2).ok_or("no request of the window completed")?;
    let typical = typical.max(cycle(rows, facts).unwrap_or(0.0));
    let half_ns = (windows.measure_end_ns - windows.measure_start_ns) / 2;
    let blocks = ((half_ns as f64 / (typical * 1e6)) as usize).min(MOST_BLOCKS);
    if blocks < FEWEST_BLOCKS {
        return Err(format!(
            "half of the window ({:.3} s) is shorter than {FEWEST_BLOCKS} typical requests ({:.3} s each)",
            half_ns as f64 / 1e9,
            typical / 1e3
        ));
    }
    let wave = typical * 1e6 / half_ns as f64;
    let half = |from| Half { from, block_ns: half_ns as f64 / blocks as f64, blocks, wave };
    Ok([half(windows.measure_start_ns), half(windows.measure_start_ns + half_ns)])
}

/// How long a slot of a closed loop takes for a request and the thinking after it, on average, in ms; none where nobody
/// thinks. By Little's law: the number in a loop is its rate times the length of a round.
fn cycle(rows: &[Measured], facts: &Facts) -> Option<f64> {
    let slots = facts.batch_size.filter(|_| facts.thinks && !facts.open_loop)?;
    let requests = window::members(rows, facts).count();
    (requests > 0).then(|| f64::from(slots) * facts.windows.measure_secs() * 1e3 / requests as f64)
}

/// Tokens that came out of each block, and what is expected to be proportional to them.
struct Series {
    out: Vec<f64>,
    expected: Vec<f64>,
}

impl Series {
    fn ratio(&self) -> f64 {
        self.out.iter().sum::<f64>() / self.expected.iter().sum::<f64>()
    }

    /// How far each block is from the ratio.
    fn residuals(&self) -> Vec<f64> {
        let ratio = self.ratio();
        self.out.iter().zip(&self.expected).map(|(out, expected)| out - ratio * expected).collect()
    }

    fn mean_expected(&self) -> f64 {
        self.expected.iter().sum::<f64>() / self.expected.len() as f64
    }
}

/// What blocks vary by in each half, without the slope that both share.
struct Residuals([Vec<f64>; 2]);

impl Residuals {
    fn new(mut halves: [Vec<f64>; 2]) -> Residuals {
        let place = |at: usize, blocks: usize| at as f64 - (blocks as f64 - 1.0) / 2.0;
        let (mut along, mut places) = (0.0, 0.0);
        for half in &halves {
            for (at, residual) in half.iter().enumerate() {
                along += place(at, half.len()) * residual;
                places += place(at, half.len()).powi(2);
            }
        }
        let slope = if places > 0.0 { along / places } else { 0.0 };
        for half in &mut halves {
            let blocks = half.len();
            half.iter_mut().enumerate().for_each(|(at, residual)| *residual -= slope * place(at, blocks));
        }
        Residuals(halves)
    }

    /// Variance of a block of each half, were they independent: of the degrees of freedom, both means and the slope take one.
    fn variances(&self) -> [f64; 2] {
        [0, 1].map(|at| self.squares(at) / (self.0[at].len() as f64 - 1.5).max(1.0))
    }

    fn squares(&self, half: usize) -> f64 {
        self.0[half].iter().map(|residual| residual.powi(2)).sum()
    }

    /// What the variance of a mean of blocks is multiplied by because neighbours are alike. Residuals of independent blocks
    /// correlate by −1.5 / blocks (to 0.03), for they add up to nothing and have no slope.
    fn inflation(&self) -> f64 {
        let all = self.squares(0) + self.squares(1);
        let blocks = (self.0[0].len() + self.0[1].len()) as f64 / 2.0;
        let neighbours: f64 = self.0.iter().flat_map(|half| half.windows(2)).map(|two| two[0] * two[1]).sum();
        if all > 0.0 { (1.0 + 2.0 * (neighbours / all + 1.5 / blocks)).max(1.0) } else { 1.0 }
    }
}

fn throughput([first, second]: [Series; 2], facts: &Facts, half: Half) -> Option<Difference> {
    let whole = (first.out.iter().chain(&second.out).sum::<f64>())
        / (first.expected.iter().chain(&second.expected).sum::<f64>());
    let (a, b) = (first.ratio(), second.ratio());
    let factor = ERRORS[half.blocks - FEWEST_BLOCKS];
    let wave = if facts.open_loop { 0.0 } else { half.wave };
    let residuals = Residuals::new([first.residuals(), second.residuals()]);
    let [one, two] = residuals.variances();
    let means = one / first.mean_expected().powi(2) + two / second.mean_expected().powi(2);
    let variance = means / half.blocks as f64 * residuals.inflation();
    let noise = (factor * variance.sqrt() / whole).max(wave);
    let share = (a - b).abs() / whole;
    (whole > 0.0 && share.is_finite()).then_some(Difference { halves: [a, b], share, noise })
}

/// How long after its arrival a request of a half is expected to complete, in nanoseconds. Under a steady load it does not
/// matter: as many arrive in a block as before it. Where a profile changes the rate, what completes in a block was offered
/// a typical request earlier, and each half has a typical request of its own, for latency follows the load.
fn lag(rows: &[Measured], facts: &Facts, half: Half) -> u64 {
    if facts.window_qps.is_none() {
        return 0;
    }
    let latency = |row: &Measured| {
        half.block(row.scheduled_ns)?;
        window::request(row, facts).observe(Metric::E2eFromSchedule).value()
    };
    let mut latencies: Vec<f64> = rows.iter().filter_map(latency).collect();
    latencies.sort_unstable_by(f64::total_cmp);
    latencies.get(latencies.len() / 2).map_or(0, |typical| (typical * 1e6) as u64)
}

/// Open loop: tokens of requests that completed in a block, over the tokens asked for by those that arrived in it, or
/// `lag` before it.
fn completed(rows: &[Measured], facts: &Facts, half: Half, lag: u64) -> Series {
    let (mut out, mut expected) = (vec![0.0; half.blocks], vec![0.0; half.blocks]);
    for row in rows {
        if let Some(block) = half.block(row.scheduled_ns.saturating_add(lag)) {
            expected[block] += f64::from(row.requested_tokens);
        }
        let answered = window::request(row, facts).answered_ns().filter(|_| row.outcome.is_ok());
        if let (Some(block), Some(tokens)) = (answered.and_then(|at| half.block(at)), row.output_tokens()) {
            out[block] += f64::from(tokens);
        }
    }
    Series { out, expected }
}

/// TTFT of the requests scheduled in a half, with the block of each; failures are left to the reason `errors`.
fn ttft(rows: &[Measured], facts: &Facts, half: Half) -> Vec<(f64, usize)> {
    let observe = |row: &Measured| {
        let block = half.block(row.scheduled_ns)?;
        Some((window::request(row, facts).observe(Metric::Ttft).value()?, block))
    };
    let mut values: Vec<(f64, usize)> = rows.iter().filter_map(observe).collect();
    values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    values
}

fn medians(first: Vec<(f64, usize)>, second: Vec<(f64, usize)>, half: Half) -> Option<Difference> {
    let (a, b) = (middle(&first)?, middle(&second)?);
    let effect = design_effect([(&first, a), (&second, b)], half.blocks);
    let (ia, ib) = (interval(&first, effect)?, interval(&second, effect)?);
    let share = (a - b).abs() / ((a + b) / 2.0);
    let noise = if ia.disjoint(&ib) { 0.0 } else { f64::INFINITY };
    share.is_finite().then_some(Difference { halves: [a, b], share, noise })
}

/// The median of one half, where there are enough for an interval.
fn middle(values: &[(f64, usize)]) -> Option<f64> {
    let n = values.len() as u64;
    let at = |index: u64| values[index as usize].0;
    let enough = n >= quantile::need(Percentile::P50);
    enough.then(|| Ordered { observed: n, at: &at, failures: 0, largest: None }.quantile(500).exact()).flatten()
}

/// An interval of the median for as many values as would be independent.
fn interval(values: &[(f64, usize)], effect: f64) -> Option<Interval> {
    let n = values.len() as u64;
    let at = |index: u64| values[index as usize].0;
    let independent = n as f64 / effect;
    let (low, high) = binomial::interval_ranks(independent as u64, 0.5)?;
    let stretch = n as f64 / independent.floor();
    let low = ((low as f64 - 1.0) * stretch) as u64;
    let high = ((high as f64 * stretch).ceil() as u64).min(n) - 1;
    Some(Interval { low: Value::Exact(at(low)), high: Value::Exact(at(high)) })
}

/// By how much the share of values below the median of their half varies more between blocks, and from one block to those
/// beside it, than independent values would: 1 for none. Requests that queue behind one another come early or late
/// together, and n of them say less than n.
fn design_effect(halves: [(&[(f64, usize)], f64); 2], blocks: usize) -> f64 {
    let residuals = halves.map(|(values, median)| {
        let mut counts = vec![(0.0f64, 0.0f64); blocks];
        for (value, block) in values {
            counts[*block].0 += 1.0;
            counts[*block].1 += if *value < median { 1.0 } else { 0.0 } + if *value == median { 0.5 } else { 0.0 };
        }
        // In standard deviations of as many independent values.
        let seen = counts.into_iter().filter(|(n, _)| *n > 0.0);
        seen.map(|(n, below)| (below - n / 2.0) / (n / 4.0).sqrt()).collect::<Vec<f64>>()
    });
    let residuals = Residuals::new(residuals);
    let [one, two] = residuals.variances();
    let few = (ERRORS[blocks - FEWEST_BLOCKS] / ERRORS[MOST_BLOCKS - FEWEST_BLOCKS]).powi(2);
    ((one + two) / 2.0 * residuals.inflation() * few).max(1.0)
}

#[cfg(test)]
#[path = "steady_tests.rs"]
mod tests;
