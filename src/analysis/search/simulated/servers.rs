//! Servers whose highest load within a limit is known, because the limit was taken from a long run at that
//! load.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::analysis::flight::Flight;
use crate::analysis::saturation::{self, State};
use crate::analysis::search::question::{Probe, Question};
use crate::analysis::series::PARTS;
use crate::analysis::slo::Answer;
use crate::analysis::worth::{Evidence, Sample, Turns};

/// The unusual behavior of a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// A queue in front of k servers.
    Queue,
    /// All requests in service, up to a maximum number, slow each other down.
    Batching,
    /// Like `Batching`, but in a closed loop, where the load is the batch size.
    BatchSize,
    /// The server's speed rises or falls steadily from run to run.
    Drifting,
    /// Some runs are slow.
    Bimodal,
    /// The server misses the limit in a range of loads below the knee.
    NonMonotone,
    /// The server misses the limit at every load of the range.
    Never,
    /// The server meets the limit at every load of the range.
    Always,
    /// A queue whose latency barely depends on the load, because its limit is less than a tenth above the
    /// latency of an idle server.
    Flat,
}

pub(super) const KINDS: [Kind; 9] = [
    Kind::Queue,
    Kind::Batching,
    Kind::BatchSize,
    Kind::Drifting,
    Kind::Bimodal,
    Kind::NonMonotone,
    Kind::Never,
    Kind::Always,
    Kind::Flat,
];

/// How requests are served: `k` at once, each for a time drawn from a distribution with mean 1; or all at
/// once, with steps that take longer the more requests there are.
#[derive(Debug, Clone, Copy)]
enum Law {
    Fixed,
    Exponential,
    Lognormal(f64),
}

/// A server, a limit and a search range.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub kind: Kind,
    /// The highest load at which the server meets the limit.
    pub knee: f64,
    pub question: Question,
    /// Length of an ordinary run in seconds; a long run is five times as long.
    window: f64,
    k: usize,
    batching: bool,
    law: Law,
    /// Share of the service time that counts as latency: the part up to the first token, or all of it.
    counted: f64,
    /// How the time of a step grows with the requests in service.
    growth: f64,
    /// Share of requests that may be above the limit.
    allowed: f64,
    limit: f64,
    /// Whether the limit is near the latency of an idle server.
    is_flat: bool,
    /// Standard deviation of the capacity from run to run, and of the speed from request to request (an AR(1) series,
    /// φ = 0.5).
    between: f64,
    within: f64,
    /// Change of the logarithm of the capacity over one ordinary run.
    drift: f64,
    /// Share of slow runs, and the logarithm of the factor by which they are slower than other runs.
    slow: (f64, f64),
    /// The range of loads in which the server misses the limit although they are below the knee.
    hole: (f64, f64),
    rng: ChaCha8Rng,
    /// Elapsed time, as a multiple of the length of an ordinary run.
    pub elapsed: f64,
    /// Number of requests, excluding those of a ladder.
    pub requests: u64,
    /// The evidence of the runs so far, by the bits of their load.
    seen: BTreeMap<u64, Vec<Evidence>>,
    /// The evidence of the runs so far on whether the server keeps up, by the bits of their load.
    flights: BTreeMap<u64, Vec<saturation::Evidence>>,
}

/// Number of requests in an ordinary run at the knee.
const REQUESTS: std::ops::Range<u32> = 4_000..16_000;

/// Minimum factor by which a meaningful limit exceeds an idle server's latency, and the number of requests
/// from which that latency is computed.
const FLAT: f64 = 1.1;
const IDLE: f64 = 20_000.0;

/// The time from arrival to end of each request, and the latency of each request.
struct Served {
    spans: Vec<(f64, f64)>,
    latencies: Vec<f64>,
}

impl Server {
    /// Creates the `seed`-th server of a kind.
    pub(super) fn new(kind: Kind, seed: u64) -> Server {
        // If the limit is within the noise of an idle server's latency, there is no knee below saturation.
        // Such servers are a separate kind.
        let drawn = (0..).map(|time| Server::draw(kind, 1_000_003 * seed + 7_919 * time + kind as u64));
        drawn.into_iter().find(|server| server.is_flat == (kind == Kind::Flat)).expect("some are")
    }

    fn draw(kind: Kind, seed: u64) -> Server {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let batching = match kind {
            Kind::Queue | Kind::Flat => false,
            Kind::Batching | Kind::BatchSize => true,
            _ => rng.random::<bool>(),
        };
        let k = if batching { [24, 48, 96][rng.random_range(0..3)] } else { [1, 2, 4, 8, 16][rng.random_range(0..5)] };
        let law = match rng.random_range(0..4) {
            0 => Law::Fixed,
            1 => Law::Exponential,
            2 => Law::Lognormal(0.5),
            _ => Law::Lognormal(1.0),
        };
        let closed = kind == Kind::BatchSize;
        let mut server = Server {
            kind,
            knee: 0.0,
            question: Question { from: 1.0, to: 200.0, within: 0.05, whole: closed, confirm: true },
            window: 0.0,
            k,
            batching,
            law,
            counted: if batching || rng.random::<bool>() { 1.0 } else { 0.1 },
            growth: rng.random_range(0.02..0.1),
            allowed: [0.1, 0.05, 0.01][rng.random_range(0..3)],
            limit: 0.0,
            is_flat: false,
            between: rng.random_range(0.0..0.02),
            within: rng.random_range(0.05..0.3),
            drift: 0.0,
            slow: (0.0, 0.0),
            hole: (0.0, 0.0),
            rng,
            elapsed: 0.0,
            requests: 0,
            seen: BTreeMap::new(),
            flights: BTreeMap::new(),
        };
        server.place();
        server
    }

    /// Chooses the knee, takes its latency as the limit, and adds the unusual behavior.
    fn place(&mut self) {
        if self.question.whole {
            let knee = self.rng.random_range(16..=96_u32);
            self.k = 256;
            let counts = f64::from(self.rng.random_range(REQUESTS));
            self.growth = self.rng.random_range(1.0..4.0) / f64::from(knee);
            self.knee = f64::from(knee);
            let percentiles = [knee, knee + 1].map(|batch| {
                let served = self.closed(batch as usize, 1.0, long() as f64);
                quantile(&served.latencies[served.latencies.len() / 20..], self.allowed)
            });
            self.limit = (percentiles[0] * percentiles[1]).sqrt();
            // The window in which this many requests are served with the batch size of the knee.
            self.window = counts * (1.0 + self.growth * self.knee) / self.knee;
            (self.question.from, self.question.to) = (1.0, 256.0);
            return;
        }
        let most = if self.batching { self.k as f64 / (1.0 + self.growth * self.k as f64) } else { self.k as f64 };
        self.knee = most * self.rng.random_range(0.7..0.92);
        let served = self.open(self.knee, long() as f64);
        self.limit = quantile(&served.latencies[served.latencies.len() / 20..], self.allowed);
        self.window = f64::from(self.rng.random_range(REQUESTS)) / self.knee;
        let idle = self.open(self.knee / 100.0, IDLE);
        self.is_flat = self.limit < FLAT * quantile(&idle.latencies, self.allowed);
        let lower = self.rng.random_range(8.0..60.0);
        self.question.from = self.knee / lower;
        self.question.to = self.knee * self.rng.random_range(2.0..6.0);
        match self.kind {
            Kind::Drifting => {
                let total = self.rng.random_range(0.05..0.3);
                self.drift = if self.rng.random::<bool>() { total } else { -total } / 30.0;
            }
            Kind::Bimodal => {
                self.slow = (self.rng.random_range(0.35..0.6), self.rng.random_range(0.1..0.4));
                self.place_two_modes();
            }
            Kind::NonMonotone => {
                let begin = self.knee * self.rng.random_range(0.3..0.6);
                self.hole = (begin, begin * self.rng.random_range(1.1..1.3));
            }
            Kind::Never => (self.question.from, self.question.to) = (self.knee * 1.2, self.knee * 20.0),
            Kind::Always => self.question.to = self.knee * 0.85,
            _ => {}
        }
    }

    /// For a server with some slow runs, the limit is the percentile over fast and slow runs together.
    fn place_two_modes(&mut self) {
        let (share, apart) = self.slow;
        let slow = self.open(self.knee, share * long() as f64);
        let fast = self.open(self.knee * (-apart).exp(), (1.0 - share) * long() as f64);
        let steady = |served: &Served| served.latencies[served.latencies.len() / 20..].to_vec();
        self.limit = quantile(&[steady(&slow), steady(&fast)].concat(), self.allowed);
        self.knee *= (-apart).exp();
    }

    /// Simulates a run and judges it by the program's own tests.
    pub(super) fn run(&mut self, load: f64, confirms: bool) -> Probe {
        let times = if confirms { 5.0 } else { 1.0 };
        let noise: f64 = StandardNormal.sample(&mut self.rng);
        let slow = self.rng.random::<f64>() < self.slow.0;
        let moved = self.drift * (self.elapsed + times / 2.0) + self.between * noise;
        let capacity = (moved - if slow { self.slow.1 } else { 0.0 }).exp();
        self.elapsed += times;
        let seconds = self.window * times;
        let served = if self.question.whole {
            self.closed(load as usize, capacity, 1.2 * seconds / (1.0 + self.growth * load) * load * capacity)
        } else {
            let in_hole = (self.hole.0..self.hole.1).contains(&load);
            let asked = if in_hole { self.knee * 1.1 } else { load / capacity };
            self.open(asked, 1.2 * seconds * load)
        };
        self.judge(served, load, confirms)
    }

    /// Judges a run, whose window is its last five sixths.
    fn judge(&mut self, served: Served, load: f64, confirms: bool) -> Probe {
        let Served { spans, latencies } = served;
        let end = spans.last().map_or(0.0, |span| span.0);
        let (from, drained) = (end / 6.0, end * 1.25);
        let first = spans.partition_point(|span| span.0 < from);
        // Requests that are not served by the end of the drain have failed.
        let cut = |(latency, span): (&f64, &(f64, f64))| if span.1 > drained { f64::INFINITY } else { *latency };
        let values: Vec<f64> = latencies[first..].iter().zip(&spans[first..]).map(cut).collect();
        let requests = values.len() as u64;
        self.requests += requests;
        let flight = Flight { from, to: end, spans };
        let turns = if self.question.whole { Turns::CLOSED } else { Turns::of(&flight.averages(PARTS)) };
        let sample = Sample::new(values, turns);
        let evidence = (sample.n() > 0).then(|| sample.evidence(self.limit, self.allowed));
        let kept = if self.question.whole { None } else { saturation::Evidence::of(&flight) };
        let answer = self.answer(evidence, kept);
        let here = self.seen.entry(load.to_bits()).or_default();
        here.extend(evidence);
        let all = Evidence::together(here);
        let flights = self.flights.entry(load.to_bits()).or_default();
        flights.extend(kept);
        let kept = saturation::Evidence::together(flights);
        let together = self.answer(all, kept);
        let is_open = together == Answer::Undecided && kept.is_none_or(|kept| kept.state() == State::KeptUp);
        let met = all.filter(|all| is_open && all.met(self.allowed) == Some(true));
        let grows = met.and_then(|all| all.would_do(self.allowed));
        let rising = sample.rising();
        let at = ((1.0 - self.allowed) * rising.len() as f64) as usize;
        let pressure = rising.get(at.min(rising.len().saturating_sub(1))).map(|value| value / self.limit);
        let (answer, together) = (Some(answer), Some(together));
        Probe { load, confirms, own: true, answer, pressure, requests, short: None, together, grows }
    }

    /// Returns the result of a run, or of several together.
    fn answer(&self, evidence: Option<Evidence>, kept: Option<saturation::Evidence>) -> Answer {
        let answer = evidence.map_or(Answer::Undecided, |evidence| evidence.answer(self.allowed));
        match (kept.map(|kept| kept.state()), answer) {
            (Some(State::Saturated), _) => Answer::Misses,
            (Some(State::NotShown), Answer::Holds) => Answer::Undecided,
            (_, answer) => answer,
        }
    }

    /// Simulates this many requests of an open loop, at a load in requests per mean service time.
    fn open(&mut self, load: f64, requests: f64) -> Served {
        let count = requests.round() as usize;
        let mut at = 0.0;
        let arrivals: Vec<f64> = (0..count)
            .map(|_| {
                at -= (1.0 - self.rng.random::<f64>()).ln() / load;
                at
            })
            .collect();
        if self.batching { self.shared(&arrivals) } else { self.queue(&arrivals) }
    }

    /// Simulates a queue, first come, first served.
    fn queue(&mut self, arrivals: &[f64]) -> Served {
        let mut free = vec![0.0_f64; self.k];
        let mut state = self.normal();
        let mut served = Served { spans: Vec::new(), latencies: Vec::new() };
        for at in arrivals {
            let mut first = 0;
            for slot in 1..self.k {
                if free[slot] < free[first] {
                    first = slot;
                }
            }
            let begin = free[first].max(*at);
            let takes = self.service() * self.pace(&mut state);
            free[first] = begin + takes;
            served.spans.push((*at, begin + takes));
            served.latencies.push(begin - at + self.counted * takes);
        }
        served
    }

    /// All requests in service share the server, so a step takes longer the more there are. At most `k` are
    /// in service; the others wait.
    fn shared(&mut self, arrivals: &[f64]) -> Served {
        let mut batch = Batch::new(self.growth);
        let mut state = self.normal();
        let (mut ends, mut waiting) = (vec![f64::INFINITY; arrivals.len()], std::collections::VecDeque::new());
        let mut next = 0;
        loop {
            let arrival = arrivals.get(next).copied();
            match (batch.next_end(), arrival) {
                (Some(end), arrival) if arrival.is_none_or(|arrival| end <= arrival) => {
                    ends[batch.finish(end)] = end;
                    if let Some(request) = waiting.pop_front() {
                        let work = self.service();
                        batch.start(request, work);
                    }
                }
                (_, Some(arrival)) => {
                    batch.go_to(arrival);
                    if batch.count() < self.k {
                        let work = self.service();
                        batch.start(next, work);
                    } else {
                        waiting.push_back(next);
                    }
                    next += 1;
                }
                _ => break,
            }
            batch.pace = self.pace(&mut state);
        }
        let latencies = arrivals.iter().zip(&ends).map(|(at, end)| end - at).collect();
        Served { spans: arrivals.iter().copied().zip(ends).collect(), latencies }
    }

    /// Simulates this many requests of a closed loop that always has `size` requests in service.
    fn closed(&mut self, size: usize, capacity: f64, requests: f64) -> Served {
        let mut batch = Batch::new(self.growth);
        let mut state = self.normal();
        let mut served = Vec::new();
        let mut begun = Vec::new();
        for _ in 0..size {
            let work = self.service();
            batch.start(begun.len(), work);
            begun.push(0.0);
        }
        while served.len() < (requests as usize).max(1) {
            batch.pace = self.pace(&mut state) / capacity;
            let Some(end) = batch.next_end() else { break };
            let request = batch.finish(end);
            served.push((begun[request], end));
            let work = self.service();
            batch.start(begun.len(), work);
            begun.push(end);
        }
        served.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        Served { latencies: served.iter().map(|(begin, end)| end - begin).collect(), spans: served }
    }

    fn service(&mut self) -> f64 {
        match self.law {
            Law::Fixed => 1.0,
            Law::Exponential => -(1.0 - self.rng.random::<f64>()).ln(),
            Law::Lognormal(deviation) => (deviation * self.normal() - deviation * deviation / 2.0).exp(),
        }
    }

    /// Returns the factor by which the service time of the next request is multiplied.
    fn pace(&mut self, state: &mut f64) -> f64 {
        *state = 0.5 * *state + 0.75_f64.sqrt() * self.normal();
        (self.within * *state - self.within * self.within / 2.0).exp()
    }

    fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.rng)
    }

    /// Returns whether a load is correct within the resolution, compared with the true load at any time of
    /// the run that confirmed it. Whole numbers may also be off by one.
    pub(super) fn is_right(&self, found: f64) -> bool {
        if self.question.whole {
            return (found - self.knee).abs() <= (self.question.within * self.knee).max(1.0);
        }
        let knee = |at: f64| self.knee * (self.drift * at).exp();
        let (begin, end) = (knee((self.elapsed - 5.0).max(0.0)), knee(self.elapsed));
        let within = self.question.within;
        found >= begin.min(end) * (1.0 - within) && found <= begin.max(end) * (1.0 + within)
    }
}

/// The requests that are in service at the same time.
struct Batch {
    growth: f64,
    /// Factor by which a step's time is multiplied.
    pace: f64,
    now: f64,
    /// Work that each request in service has received since the beginning.
    given: f64,
    /// The value of `given` at which each request ends, with its index, as a heap ordered by the value.
    ends: std::collections::BinaryHeap<std::cmp::Reverse<(Rank, usize)>>,
}

/// A number that is never NaN.
#[derive(Clone, Copy, PartialEq)]
struct Rank(f64);

impl Eq for Rank {}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Rank) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Rank) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Batch {
    fn new(growth: f64) -> Batch {
        Batch { growth, pace: 1.0, now: 0.0, given: 0.0, ends: Default::default() }
    }

    fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns the seconds that a unit of work currently takes.
    fn unit(&self) -> f64 {
        self.pace * (1.0 + self.growth * self.count() as f64)
    }

    fn start(&mut self, request: usize, work: f64) {
        self.ends.push(std::cmp::Reverse((Rank(self.given + work), request)));
    }

    fn next_end(&self) -> Option<f64> {
        let std::cmp::Reverse((end, _)) = self.ends.peek()?;
        Some(self.now + (end.0 - self.given) * self.unit())
    }

    fn go_to(&mut self, now: f64) {
        if self.count() > 0 {
            self.given += (now - self.now) / self.unit();
        }
        self.now = now;
    }

    fn finish(&mut self, now: f64) -> usize {
        self.go_to(now);
        self.ends.pop().map_or(0, |std::cmp::Reverse((_, request))| request)
    }
}

/// Returns the requests of the run from which the limit is taken.
fn long() -> usize {
    if cfg!(debug_assertions) { 60_000 } else { 200_000 }
}

fn quantile(values: &[f64], allowed: f64) -> f64 {
    let mut rising = values.to_vec();
    rising.sort_unstable_by(f64::total_cmp);
    rising[((1.0 - allowed) * rising.len() as f64) as usize]
}
