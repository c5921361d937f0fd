//! Counts the server's work as vLLM does: tokens, requests by how they finished, and how long the parts of
//! requests took.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::tell::Took;

/// Bucket borders of vLLM's histograms of the durations of requests and their parts, in seconds.
const REQUEST_BUCKETS: &[f64] = &[
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
    1920.0, 7680.0,
];
/// Bucket borders of vLLM's histogram of the time to first token, in seconds.
const TTFT_BUCKETS: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    160.0, 640.0, 2560.0,
];

/// A histogram of durations.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    borders: &'static [f64],
    /// The number of values in each bucket. A bucket contains the values above the previous border,
    /// up to and including its own border; the last bucket contains the values above the last
    /// border.
    counts: Vec<u64>,
    sum_ns: u64,
}

impl Histogram {
    fn new(borders: &'static [f64]) -> Histogram {
        Histogram { borders, counts: vec![0; borders.len() + 1], sum_ns: 0 }
    }

    fn add(&mut self, ns: u64) {
        let seconds = ns as f64 / 1e9;
        self.counts[self.borders.partition_point(|border| *border < seconds)] += 1;
        self.sum_ns += ns;
    }

    /// Returns each border with the total number of values at or below it; the last border is infinity.
    pub(super) fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        let so_far = self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        self.borders.iter().copied().chain([f64::INFINITY]).zip(so_far)
    }

    /// Returns the number of values.
    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of the values, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.sum_ns as f64 / 1e9
    }
}

/// How a request finished, in vLLM's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    Stop,
    Length,
    /// The client disconnected or a fault occurred.
    Abort,
}

impl Finish {
    /// All ways in which a request can finish. Each has a series in the metrics from the start.
    pub(super) const ALL: [Finish; 3] = [Finish::Stop, Finish::Length, Finish::Abort];

    /// Returns the value of the label in the metrics.
    pub(super) fn name(self) -> &'static str {
        match self {
            Finish::Stop => "stop",
            Finish::Length => "length",
            Finish::Abort => "abort",
        }
    }
}

/// Histograms of the durations of requests and their parts.
#[derive(Debug, Clone)]
pub(super) struct Times {
    pub(super) ttft: Histogram,
    pub(super) queue: Histogram,
    pub(super) prefill: Histogram,
    pub(super) decode: Histogram,
    pub(super) e2e: Histogram,
}

/// Counters of the work that the server has done so far.
#[derive(Debug)]
pub(super) struct Served {
    prompt_tokens: Cell<u64>,
    generation_tokens: Cell<u64>,
    /// Number of tokens of the sequences that have a slot.
    held: Cell<u64>,
    finished: [Cell<u64>; Finish::ALL.len()],
    times: RefCell<Times>,
}

impl Served {
    /// Creates the counters of a server that has not done any work yet.
    pub(super) fn new() -> Served {
        let of_requests = || Histogram::new(REQUEST_BUCKETS);
        let times = Times {
            ttft: Histogram::new(TTFT_BUCKETS),
            queue: of_requests(),
            prefill: of_requests(),
            decode: of_requests(),
            e2e: of_requests(),
        };
        Served {
            prompt_tokens: Cell::new(0),
            generation_tokens: Cell::new(0),
            held: Cell::new(0),
            finished: Default::default(),
            times: RefCell::new(times),
        }
    }

    /// Records that a request that arrived at `arrived` got its slot at `slot_at`.
    pub(super) fn begin(self: &Rc<Self>, (arrived, slot_at): (u64, u64), prompt_tokens: u64) -> Serving {
        self.held.set(self.held.get() + prompt_tokens);
        Serving {
            served: Rc::clone(self),
            arrived,
            slot_at,
            first: None,
            last: slot_at,
            held: prompt_tokens,
            prompt_tokens,
        }
    }

    /// Returns the number of prompt tokens that were computed or found in the prefix cache.
    pub(super) fn prompt_tokens(&self) -> u64 {
        self.prompt_tokens.get()
    }

    /// Returns the number of generated tokens.
    pub(super) fn generation_tokens(&self) -> u64 {
        self.generation_tokens.get()
    }

    /// Returns the number of tokens of the sequences that have a slot.
    pub(super) fn held(&self) -> u64 {
        self.held.get()
    }

    /// Returns the number of requests that finished with `finish`.
    pub(super) fn finished(&self, finish: Finish) -> u64 {
        self.finished[finish as usize].get()
    }

    /// Returns a copy of the histograms of durations.
    pub(super) fn times(&self) -> Times {
        self.times.borrow().clone()
    }
}

/// Counts one request, from when it got its slot to its end. If this is dropped before `end` is called, the
/// request is counted as aborted.
#[derive(Debug)]
pub(super) struct Serving {
    served: Rc<Served>,
    arrived: u64,
    slot_at: u64,
    /// When the prompt was computed and the first token was ready; `None` before that.
    first: Option<u64>,
    last: u64,
    held: u64,
    prompt_tokens: u64,
}

impl Serving {
    /// Records that the prompt was computed.
    pub(super) fn prefilled(&mut self, now: u64) {
        if self.first.is_some() {
            return;
        }
        (self.first, self.last) = (Some(now), now);
        self.served.prompt_tokens.set(self.served.prompt_tokens.get() + self.prompt_tokens);
        self.served.times.borrow_mut().ttft.add(now.saturating_sub(self.arrived));
    }

    /// Records one more token of the response.
    pub(super) fn token(&mut self, now: u64) {
        self.last = now;
        self.held += 1;
        self.served.held.set(self.served.held.get() + 1);
        self.served.generation_tokens.set(self.served.generation_tokens.get() + 1);
    }

    /// Returns how long the request waited for its slot, in nanoseconds.
    pub(super) fn queued(&self) -> u64 {
        self.slot_at.saturating_sub(self.arrived)
    }

    /// Records that the response is complete. Returns how long its parts took.
    pub(super) fn end(mut self, finish: Finish, now: u64) -> Took {
        let first = self.first.unwrap_or(now);
        let last = self.last.max(first);
        let (queue, prefill) = (self.queued(), first.saturating_sub(self.slot_at));
        let (decode, total) = (last - first, now.saturating_sub(self.arrived));
        let mut times = self.served.times.borrow_mut();
        times.queue.add(queue);
        times.prefill.add(prefill);
        times.decode.add(decode);
        times.e2e.add(total);
        drop(times);
        self.count(finish);
        Took { queue, prefill: Some(prefill), decode: Some(decode), total: Some(total) }
    }

    fn count(&mut self, finish: Finish) {
        let count = &self.served.finished[finish as usize];
        count.set(count.get() + 1);
        self.served.held.set(self.served.held.get() - self.held);
        self.held = 0;
        // Marks the request as counted, so that the drop does not count it again.
        self.prompt_tokens = 0;
        self.arrived = u64::MAX;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if self.arrived != u64::MAX {
            self.count(Finish::Abort);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_request_is_counted_by_its_parts() {
        let served = Rc::new(Served::new());
        let mut request = served.begin((0, 400 * MS), 10);
        assert_eq!((served.held(), served.prompt_tokens()), (10, 0));
        request.prefilled(450 * MS);
        request.token(450 * MS);
        request.token(700 * MS);
        assert_eq!((served.held(), served.generation_tokens(), served.prompt_tokens()), (12, 2, 10));
        request.end(Finish::Length, 701 * MS);
        let times = served.times();
        let seconds = [&times.ttft, &times.queue, &times.prefill, &times.decode, &times.e2e].map(Histogram::seconds);
        assert_eq!(seconds, [0.45, 0.4, 0.05, 0.25, 0.701]);
        assert_eq!((served.held(), Finish::ALL.map(|finish| served.finished(finish))), (0, [0, 1, 0]));
    }

    #[test]
    fn one_that_is_dropped_was_aborted() {
        let served = Rc::new(Served::new());
        let mut request = served.begin((0, MS), 10);
        request.prefilled(2 * MS);
        drop(request);
        assert_eq!((served.held(), Finish::ALL.map(|finish| served.finished(finish))), (0, [0, 0, 1]));
        assert_eq!((served.times().ttft.count(), served.times().e2e.count()), (1, 0));
    }

    #[test]
    fn buckets_add_up() {
        let mut histogram = Histogram::new(&[0.1, 1.0]);
        [50, 100, 101, 5_000].into_iter().for_each(|ms| histogram.add(ms * MS));
        assert_eq!(histogram.buckets().collect::<Vec<_>>(), [(0.1, 2), (1.0, 3), (f64::INFINITY, 4)]);
        assert_eq!((histogram.count(), histogram.seconds()), (4, 5.251));
    }
}
