//! Simulates many workers and many streams without sockets. Schedules, pacers, encoding, merging, checks and
//! clock estimates are those of real runs; only the server is replaced by a formula. This command prints the
//! figures in docs/SCALE.md for 1000 workers and a million streams:
//!
//! ```text
//! SWEEPLINE_SIMULATED=1000:1000000 cargo test --release -p sweepline-core --lib workers::simulations -- \
//!     --nocapture --test-threads=1
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::child::Event;
use super::clocks::{Exchange, PINGS, estimate};
use super::cover::Cover;
use super::end::{Ended, finished};
use super::message::{Counters, FromWorker, Told};
use super::under_way::UnderWay;
use crate::engine::{Finished, Pacer, Progress, SampleSink, Share, Sink, SinkError, pacer_of};
use crate::expand::{RunSpec, expand};
use crate::plan::ResolvedPlan;
use crate::rows::{
    ClockOffset, Facts, Journal, Outcome, Phase, Record, RecordDecoder, RecordEncoder, RequestRow, RunLabels, Sample,
    Windows,
};

/// The number of workers and the number of streams in ordinary test runs, which may be built without
/// optimization.
const FEW: (u32, u64) = (50, 5_000);
/// Duration of a simulated run, in nanoseconds.
const END: u64 = 4_000_000_000;
/// Interval at which a worker sends its rows and counters, in nanoseconds.
const SLICE: u64 = 100_000_000;
/// Number of gaps between the tokens of a response.
const GAPS: usize = 15;

/// Returns the number of workers and the number of streams to simulate.
fn size() -> (u32, u64) {
    let chosen = std::env::var("SWEEPLINE_SIMULATED").ok();
    chosen.map_or(FEW, |text| {
        let (workers, streams) = text.split_once(':').expect("WORKERS:STREAMS");
        (workers.parse().expect("a number of workers"), streams.parse().expect("a number of streams"))
    })
}

/// Returns the resident memory of this process, in bytes.
fn memory() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

fn mb(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

/// Returns the spec of a run with this load.
fn spec(load: Value) -> RunSpec {
    let mut axes = json!({ "endpoint": "e", "model": "m" });
    axes.as_object_mut().unwrap().extend(load.as_object().unwrap().clone());
    let plan: ResolvedPlan = serde_json::from_value(json!({
        "sweepline": 1, "name": "t", "endpoints": { "e": { "engine": "mock" } }, "models": { "m": { "id": "x" } },
        "phases": { "fill": { "for": "1s" }, "stabilize": "0s", "measure": { "for": "2s" }, "drain": { "for": "1s" } },
        "sweeps": { "s": { "matrix": axes } },
    }))
    .unwrap();
    RunSpec::clone(&expand(&plan).unwrap().runs[0].spec)
}

fn shares(workers: u32) -> impl Iterator<Item = Share> {
    (0..workers).filter_map(move |index| Share::new(index, workers))
}

/// Returns the time from a request's start to its end, in nanoseconds: a pseudorandom value between 0.5 and
/// 1.5 s.
fn duration(request: u64) -> u64 {
    500_000_000 + request.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 1_000_000_000
}

fn record(request: u64, scheduled: u64, ended: u64) -> Record {
    let row = RequestRow {
        released_ns: Some(scheduled),
        sent_ns: Some(scheduled),
        first_token_ns: Some(scheduled + 1_000_000),
        last_token_ns: Some(ended),
        ended_ns: Some(ended),
        outcome: Outcome::Ok,
        ..RequestRow::wanted(request, Phase::Measure, scheduled)
    };
    Record { row, gaps_ns: (0..GAPS as u64).map(|gap| 9_000_000 + request % 1_000_000 + gap).collect() }
}

/// Writes rows to a journal on disk, as a real run does.
struct ToJournal(Journal);

impl Sink for ToJournal {
    fn append(&mut self, records: &[Record]) -> Result<(), SinkError> {
        Ok(self.0.append(records)?)
    }

    fn finish(self: Box<Self>) -> Result<(), SinkError> {
        Ok(self.0.finish()?)
    }
}

struct NoSamples;

impl SampleSink for NoSamples {
    fn append(&mut self, _: &[Sample]) -> Result<(), SinkError> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<u64, SinkError> {
        Ok(0)
    }
}

/// A request in flight: the time at which it will end, its number, the time at which it was scheduled, and
/// its slot.
type InFlight = (u64, u64, u64, Option<u32>);

/// A worker whose server ends each request after [`duration`].
struct Simulated {
    pacer: Pacer,
    in_flight: BinaryHeap<Reverse<InFlight>>,
    encoder: RecordEncoder,
    slots: u64,
}

impl Simulated {
    fn new(spec: &RunSpec, share: Share) -> Simulated {
        let encoder = RecordEncoder::new().unwrap();
        Simulated { pacer: pacer_of(spec, share), in_flight: BinaryHeap::new(), encoder, slots: 0 }
    }

    /// Simulates the time up to, but not including, `until`. Returns the records of the requests that ended.
    /// No request starts at or after the end of the run.
    fn go_on(&mut self, until: u64) -> Vec<Record> {
        let mut records = Vec::new();
        loop {
            let due = self.pacer.next_due().filter(|at| *at < until.min(END));
            let ends = self.in_flight.peek().map(|Reverse((at, ..))| *at).filter(|at| *at < until);
            let start = match (due, ends) {
                (Some(due), ends) if ends.is_none_or(|ends| due <= ends) => {
                    self.slots += 1;
                    self.pacer.take_due(due)
                }
                (_, Some(at)) => {
                    let Reverse((_, request, scheduled, slot)) = self.in_flight.pop().unwrap();
                    records.push(record(request, scheduled, at));
                    // The run is over, so a closed loop starts no further requests.
                    if at >= END {
                        continue;
                    }
                    self.pacer.ended(at, slot, None)
                }
                _ => return records,
            };
            let started = start.map(|start| {
                let ends = start.released + duration(start.request);
                Reverse((ends, start.request, start.scheduled, start.slot))
            });
            self.in_flight.extend(started);
        }
    }

    fn counters(&self, elapsed_ns: u64) -> FromWorker {
        let in_flight = self.in_flight.len() as u64;
        FromWorker::Progress(Counters { phase: 2, elapsed_ns, in_flight, ..Counters::default() })
    }
}

/// The time spent by all workers (`workers`) and by the coordinator (`decode`, `take`), and the total size of
/// the encoded records in bytes.
#[derive(Default)]
struct Took {
    workers: Duration,
    decode: Duration,
    take: Duration,
    bytes: usize,
}

fn timed<T>(took: &mut Duration, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let made = work();
    *took += start.elapsed();
    made
}

/// Simulates a run. Returns the finished run, and the number of requests that were started by the clock
/// rather than by the end of another request.
fn simulate(spec: &RunSpec, count: u32) -> (Finished, u64) {
    let before = memory();
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(&folder.path().join("journal"), &RunLabels::default()).unwrap();
    let sinks: (Box<dyn Sink>, Box<dyn SampleSink>, _) = (Box::new(ToJournal(journal)), Box::new(NoSamples), None);
    let mut run = UnderWay::new(spec, "http://simulated".to_owned(), sinks, count as usize);
    let (progress, mut took) = (Progress::default(), Took::default());
    let mut workers: Vec<Simulated> = shares(count).map(|share| Simulated::new(spec, share)).collect();
    let mut decoders: Vec<RecordDecoder> = workers.iter().map(|_| RecordDecoder::default()).collect();
    let mut until = 0;
    while until == 0 || workers.iter().any(|worker| !worker.in_flight.is_empty()) || until < END {
        until += SLICE;
        for (index, worker) in workers.iter_mut().enumerate() {
            let (bytes, told) = timed(&mut took.workers, || {
                let records = worker.go_on(until);
                let bytes = (!records.is_empty()).then(|| worker.encoder.encode(&records).unwrap());
                (bytes, serde_json::to_vec(&worker.counters(until)).unwrap())
            });
            if let Some(bytes) = bytes {
                took.bytes += bytes.len();
                let records = timed(&mut took.decode, || decoders[index].decode(bytes).unwrap());
                timed(&mut took.take, || run.take(index, Event::Records(records), &progress).map(drop).unwrap());
            }
            timed(&mut took.take, || {
                let told: FromWorker = serde_json::from_slice(&told).unwrap();
                run.take(index, Event::Told(told, until), &progress).map(drop).unwrap();
            });
        }
    }
    let joined = workers.iter().map(|worker| worker.slots).sum();
    drop((workers, decoders));
    let windows =
        Windows { stabilize_ns: 1_000_000_000, measure_start_ns: 1_000_000_000, measure_end_ns: END, end_ns: END };
    for index in 0..count as usize {
        let facts = Box::new(Facts { windows, client_cores: 1, ..Facts::default() });
        for told in [FromWorker::Stage(Told::Measured), FromWorker::Done(facts)] {
            run.take(index, Event::Told(told, END), &progress).map(drop).unwrap();
        }
    }
    assert!(run.takes_end() && run.is_done());
    let requests: u64 = (0..count as usize).map(|index| run.cover.requests(index)).sum();
    let (peak, end) = (memory(), Instant::now());
    let clocks = vec![ClockOffset::default(); count as usize];
    let called = (0..count).map(|index| (format!("worker {}", index + 1), format!("host-{index}"))).collect();
    let finished = finished(run, Ended { origin: 0, clocks, called }, spec).unwrap();
    let per_request = |time: Duration| time.as_nanos() as f64 / requests as f64;
    println!(
        "{count} workers, {requests} requests, {:.0} B each on the wire; coordinator: decode {:.0} ns, merge and journal \
         {:.0} ns a request, check {:.2} s; all workers together: {:.0} ns a request; memory {:.0} MB, with the workers; \
         facts: {:.0} B a worker",
        took.bytes as f64 / requests as f64,
        per_request(took.decode),
        per_request(took.take),
        end.elapsed().as_secs_f64(),
        per_request(took.workers),
        mb(peak.saturating_sub(before)),
        serde_json::to_vec(&finished.facts.workers).unwrap().len() as f64 / f64::from(count),
    );
    (finished, joined)
}

#[test]
fn many_workers_share_the_slots_of_a_closed_loop() {
    let (workers, streams) = size();
    // The number of slots is set afterwards, because it may be larger than a plan permits.
    let mut spec = spec(json!({ "batch_size": 4 }));
    let crate::expand::Load::Closed { batch_size, .. } = &mut spec.load else { panic!("a closed loop") };
    *batch_size = u32::try_from(streams).unwrap();
    let (finished, joined) = simulate(&spec, workers);
    assert_eq!(joined, streams, "each slot joins once");
    assert_eq!(finished.facts.max_in_flight, streams, "no request is shorter than a pause");
    assert_eq!(finished.facts.workers.len(), workers as usize);
}

#[test]
fn many_workers_send_the_schedule_of_an_open_loop_exactly() {
    let (workers, streams) = size();
    let spec = spec(json!({ "qps": streams.min(1_000_000) }));
    // `simulate` calls `finished`, which compares each request with the schedule.
    let (finished, sent) = simulate(&spec, workers);
    let requests: u64 = finished.facts.workers.iter().map(|worker| worker.requests).sum();
    assert_eq!(requests, sent);
    let start = Instant::now();
    let mut alone = pacer_of(&spec, Share::WHOLE);
    let whole = std::iter::from_fn(|| alone.take_due(END - 1)).count() as u64;
    assert_eq!(whole, sent, "as many as one process sends");
    println!("one process draws {whole} arrivals in {:.2} s", start.elapsed().as_secs_f64());
}

#[test]
fn the_check_of_a_run_keeps_three_numbers_of_a_request() {
    let (workers, streams) = size();
    let requests = streams * 10;
    let (before, start) = (memory(), Instant::now());
    let mut cover = Cover::new(workers as usize);
    for request in 0..requests {
        let row = record(request, request, request + requests).row;
        cover.take((request % u64::from(workers)) as usize, &row).unwrap();
    }
    let (held, took) = (memory().saturating_sub(before), start.elapsed());
    assert_eq!(cover.max_in_flight(), requests);
    cover.check(Some(0..requests), 0).unwrap();
    println!(
        "{requests} requests: {:.0} MB, {:.0} B each, {:.2} s to take, {:.2} s to take and check",
        mb(held),
        held as f64 / requests as f64,
        took.as_secs_f64(),
        start.elapsed().as_secs_f64(),
    );
}

#[test]
fn the_clocks_of_many_workers_are_known_to_within_their_uncertainty() {
    let (workers, _) = size();
    let mut state = 1u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut now, mut worst, mut widest) = (0u64, 0u64, 0u64);
    for _ in 0..workers {
        let offset = random(2_000_000_000) as i64 - 1_000_000_000;
        // Each way takes 0.1 ms plus a queueing delay: up to 2 ms in one of four cases, otherwise up to 0.02
        // ms.
        let mut way = || 100_000 + if random(4) == 0 { random(2_000_000) } else { random(20_000) };
        let mut exchange = || {
            let asked = 2_000_000_000 + now;
            let (there, back) = (way(), way());
            now += there + back;
            Exchange { asked, answered: (asked + there).saturating_add_signed(offset), arrived: asked + there + back }
        };
        let exchanges: Vec<Exchange> = (0..PINGS).map(|_| exchange()).collect();
        let found = estimate(&exchanges).unwrap();
        let wrong = found.offset_ns.abs_diff(offset);
        assert!(wrong <= found.uncertainty_ns, "{wrong} ns: {found:?}");
        (worst, widest) = (worst.max(wrong), widest.max(found.uncertainty_ns));
    }
    println!(
        "{workers} workers, 0.2 ms there and back: offsets are wrong by at most {:.3} ms, uncertainty at most {:.3} ms; \
         one comparison takes {:.1} s",
        worst as f64 / 1e6,
        widest as f64 / 1e6,
        now as f64 / 1e9,
    );
    // The fastest of 32 exchanges was not delayed by a long queue.
    assert!(widest < 150_000, "{widest} ns");
}
