//! The grid of queues, loads and windows behind the tables of intervals and objectives, and the results of
//! each cell.

use sweepline::analysis::worth::{Answer, Sample, Turns};
use sweepline::analysis::{flight::Flight, series::PARTS};

use super::args::Args;
use super::pool;
use super::queue::{Chain, Queue};
use super::truth::{Distribution, Truth};

pub const LOADS: [f64; 4] = [0.5, 0.7, 0.86, 0.95];
/// Mean service times in seconds, by name.
pub const SERVICES: [(&str, f64); 2] = [("20 ms", 0.02), ("1 s", 1.0)];
pub const WINDOWS: [f64; 4] = [10.0, 30.0, 120.0, 600.0];
/// Percentiles whose intervals are examined.
pub const QUANTILES: [f64; 5] = [0.5, 0.75, 0.9, 0.95, 0.99];
/// Shares that objectives allow.
pub const ALLOWED: [f64; 3] = [0.1, 0.05, 0.01];

/// Indexes of a service time and of a window.
pub type Place = (usize, usize);

/// Returns the true values of every queue of the grid.
pub fn truths(args: &Args) -> Vec<Truth> {
    let queues: Vec<Queue> = LOADS.into_iter().flat_map(Queue::all).collect();
    let seeded: Vec<(usize, Queue)> = queues.into_iter().enumerate().collect();
    let requests = known(args);
    pool::each("truths", args.threads, &seeded, |(at, queue)| Truth::of(*queue, requests, 1_000_000 + *at as u64))
}

/// Returns the number of requests that determine the true values: more than any cell has, and enough for
/// cells that stop early.
pub fn known(args: &Args) -> u64 {
    (2 * args.requests).max(50_000_000)
}

/// How often an interval was available, and contained the true value.
#[derive(Debug, Clone, Copy, Default)]
pub struct Given {
    pub runs: u64,
    pub given: u64,
    /// Intervals with both ends.
    pub both: u64,
    pub holds: u64,
}

impl Given {
    /// Records whether an interval, if available, contained the true value.
    pub fn take(&mut self, holds: Option<bool>) {
        self.runs += 1;
        self.given += u64::from(holds.is_some());
        self.holds += u64::from(holds == Some(true));
    }

    /// Records the interval of a sample.
    pub fn add(&mut self, sample: &Sample, share: f64, truth: f64) {
        let Some(span) = sample.interval(share) else { return self.take(None) };
        let rising = sample.rising();
        let low = span.low.is_none_or(|at| rising[at as usize] <= truth);
        let high = span.high.is_none_or(|at| rising[at as usize] >= truth);
        self.both += u64::from(span.low.is_some() && span.high.is_some());
        self.take(Some(low && high));
    }
}

/// How often a limit was reported as met and as missed, and how the share above it varied between runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Answers {
    pub runs: u64,
    pub holds: u64,
    pub misses: u64,
    shares: f64,
    squares: f64,
    requests: u64,
    /// Runs with an effective size of [`ENOUGH`] or more, and how many of them hold.
    pub worth: (u64, u64),
}

/// Effective requests × allowed share from which a limit with half the allowed share above it can be
/// decided.
pub const ENOUGH: f64 = 30.0;

impl Answers {
    /// Records the decision about a limit from a sample.
    pub fn add(&mut self, sample: &Sample, limit: f64, allowed: f64) {
        let evidence = sample.evidence(limit, allowed);
        let answer = evidence.answer(allowed);
        self.take(answer);
        if evidence.worth.requests * allowed >= ENOUGH {
            self.worth.0 += 1;
            self.worth.1 += u64::from(answer == Answer::Holds);
        }
        self.requests += evidence.n;
        self.shares += evidence.share();
        self.squares += evidence.share().powi(2);
    }

    /// Records a decision.
    pub fn take(&mut self, answer: Answer) {
        self.runs += 1;
        self.holds += u64::from(answer == Answer::Holds);
        self.misses += u64::from(answer == Answer::Misses);
    }

    /// Returns whether a run was large enough to decide a limit with half the allowed share above it.
    pub fn is_enough(&self, allowed: f64) -> bool {
        self.runs > 0 && self.effective() * allowed >= ENOUGH
    }

    /// Returns the number of independent requests that a run is equivalent to, from the variation of the
    /// share between runs.
    pub fn effective(&self) -> f64 {
        let runs = self.runs as f64;
        let (mean, square) = (self.shares / runs, self.squares / runs);
        let variance = (square - mean * mean) * runs / (runs - 1.0);
        if variance > 0.0 { mean * (1.0 - mean) / variance } else { self.requests as f64 / runs }
    }
}

/// Decisions about three limits, for queues that have such limits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Objective {
    /// 1.2 × the allowed share is above the limit.
    pub beyond: Answers,
    /// Exactly the allowed share is above the limit.
    pub exact: Answers,
    /// Half the allowed share is above the limit.
    pub half: Answers,
}

/// Limits with 1.2 ×, exactly and half of the allowed share above them.
pub struct Limits([Option<f64>; 3]);

impl Limits {
    pub fn of(took: &Distribution, allowed: f64) -> Limits {
        Limits([1.2, 1.0, 0.5].map(|times| took.limit(times * allowed)))
    }
}

impl Objective {
    pub fn add(&mut self, sample: &Sample, limits: &Limits, allowed: f64) {
        let mut answers = [&mut self.beyond, &mut self.exact, &mut self.half];
        for (answers, limit) in answers.iter_mut().zip(limits.0) {
            limit.into_iter().for_each(|limit| answers.add(sample, limit, allowed));
        }
    }
}

/// The results of one cell.
pub struct Cell<'a> {
    pub truth: &'a Truth,
    pub place: Place,
    pub runs: u64,
    /// Mean requests of a run.
    pub requests: f64,
    /// Ratio of window to relaxation time.
    pub relaxations: f64,
    pub given: [Given; QUANTILES.len()],
    pub objectives: [Objective; ALLOWED.len()],
}

impl Cell<'_> {
    pub fn name(&self) -> String {
        let (service, window) = (SERVICES[self.place.0].0, WINDOWS[self.place.1]);
        format!("{}, load {}, service {service}, {window} s", self.truth.queue.name(), self.truth.queue.load)
    }

    /// Returns whether a window has at least 200 relaxation times and 1 000 requests.
    pub fn is_long(&self) -> bool {
        self.relaxations >= 200.0 && self.requests >= 1_000.0
    }
}

/// The quantities that a part of the benchmark examines in the runs of the grid.
#[derive(Clone, Copy)]
pub struct Looks {
    pub intervals: bool,
    pub objectives: bool,
}

/// Runs all cells: for each queue those of the first service time by increasing window, then those of the
/// second.
pub fn cells<'a>(args: &Args, truths: &'a [Truth], looks: Looks) -> Vec<Cell<'a>> {
    let place = |truth| (0..SERVICES.len()).flat_map(move |s| (0..WINDOWS.len()).map(move |w| (truth, (s, w))));
    let mut jobs: Vec<(usize, (&Truth, Place))> = truths.iter().flat_map(place).enumerate().collect();
    let requests = |truth: &Truth, (service, window): Place| truth.queue.rate() * WINDOWS[window] / SERVICES[service].1;
    jobs.sort_by(|a, b| requests(a.1.0, a.1.1).total_cmp(&requests(b.1.0, b.1.1)));
    let work = |(at, (truth, place)): &(usize, (&'a Truth, Place))| {
        let runs = args.runs_of(requests(truth, *place));
        (*at, cell(truth, *place, runs, looks, *at as u64))
    };
    let mut cells = pool::each("cells", args.threads, &jobs, work);
    cells.sort_by_key(|(at, _)| *at);
    cells.into_iter().map(|(_, cell)| cell).collect()
}

fn cell(truth: &Truth, place: Place, runs: u64, looks: Looks, seed: u64) -> Cell<'_> {
    let length = WINDOWS[place.1] / SERVICES[place.0].1;
    let quantiles = QUANTILES.map(|share| truth.took.quantile(share));
    let limits = ALLOWED.map(|allowed| Limits::of(&truth.took, allowed));
    let mut chain = Chain::warm(&truth.queue, seed);
    let (mut requests, mut given) = (0, [Given::default(); QUANTILES.len()]);
    let mut objectives = [Objective::default(); ALLOWED.len()];
    for _ in 0..runs {
        let (flight, values) = apart(&mut chain, &truth.queue, length);
        requests += values.len() as u64;
        let sample = Sample::new(values, Turns::of(&flight.averages(PARTS)));
        if looks.intervals {
            let each = given.iter_mut().zip(QUANTILES).zip(quantiles);
            each.for_each(|((given, share), truth)| given.add(&sample, share, truth));
        }
        if looks.objectives {
            let each = objectives.iter_mut().zip(&limits).zip(ALLOWED);
            each.for_each(|((objective, limits), allowed)| objective.add(&sample, limits, allowed));
        }
    }
    let (requests, relaxations) = (requests as f64 / runs as f64, length / truth.queue.relaxation());
    Cell { truth, place, runs, requests, relaxations, given, objectives }
}

/// Returns the next window of a chain, far enough from the previous window to be independent of it.
pub fn apart(chain: &mut Chain, queue: &Queue, length: f64) -> (Flight, Vec<f64>) {
    chain.window(3.0 * queue.relaxation() + 20.0, length)
}
