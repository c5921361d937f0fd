//! Simulated runs for tests, on servers with known timing under closed and open loops.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::slo::gap_limits;
use super::{Events, Gaps, RunMetrics, Verdict, judge, measure};
use crate::plan::{Slo, Validity};
use crate::rows::{
    Facts, MachineTime, Observed, Outcome, Pauses, Phase, READER, Record, Records, Replay, RequestRow, Spread,
    ThreadTime, TokenSource, Windows,
};

/// A server and a load.
#[derive(Debug, Clone)]
pub struct Run {
    /// Number of streams served at once; further requests wait in the server's queue.
    pub slots: usize,
    /// Time to first token once a request is served, ns.
    pub ttft: u64,
    /// Time between tokens, ns.
    pub itl: u64,
    /// Number of output tokens that each request requests and receives.
    pub tokens: u32,
    /// Random variation of every duration, as a share of the duration.
    pub jitter: f64,
    /// How the server's speed changes from request to request.
    pub pace: Pace,
    /// Number of requests in flight of a closed loop.
    pub batch_size: Option<u32>,
    /// Arrivals per second of an open loop.
    pub qps: Option<f64>,
    /// Mean think time of a closed loop's clients after a response (exponentially distributed), ns.
    pub think: u64,
    /// The effect of a profile on the rate: maps a share of the window to a factor.
    pub profile: Option<fn(f64) -> f64>,
    /// Length of the window in seconds; a quarter of it is added before and after.
    pub seconds: f64,
    /// A fault of the server, and the share of the window at which it occurs.
    pub fault: Option<(Fault, f64)>,
    /// Seed of arrivals and jitter.
    pub seed: u64,
}

/// Faults of a server during a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// From the fault on, every duration is multiplied by this factor.
    Slow(f64),
    /// The server pauses for this many seconds.
    Pause(f64),
    /// Requests that arrive within this many seconds after the fault are refused (503).
    Errors(f64),
    /// From the fault on, the server has this many fewer slots.
    Slots(usize),
    /// Until the given share of the window, first tokens take this many times as long.
    Cold(f64),
}

/// The speed of a server: each request's times are multiplied by the exponential of a sum of two terms. Both
/// terms are zero by default.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    /// Standard deviation of the first term, which is a stationary autoregressive series over the requests in the
    /// order of service.
    pub deviation: f64,
    /// Correlation of the first term from one request to the next (φ).
    pub memory: f64,
    /// Rise of the second term over the length of a window.
    pub drift: f64,
}

/// The state of a server while it serves.
struct Server {
    /// When each slot becomes free, ns.
    free: Vec<u64>,
    /// The first term of the server's pace, in standard deviations.
    state: f64,
    rng: ChaCha8Rng,
}

impl Default for Run {
    fn default() -> Run {
        Run {
            slots: 8,
            ttft: 20_000_000,
            itl: 4_000_000,
            tokens: 16,
            jitter: 0.05,
            pace: Pace::default(),
            batch_size: Some(8),
            qps: None,
            think: 0,
            profile: None,
            seconds: 10.0,
            fault: None,
            seed: 1,
        }
    }
}

impl Run {
    /// Creates a run of an open loop with `qps` arrivals per second.
    pub fn open(qps: f64) -> Run {
        Run { batch_size: None, qps: Some(qps), ..Run::default() }
    }

    fn windows(&self) -> Windows {
        let at = |share: f64| (self.seconds * share * 1e9) as u64;
        Windows { stabilize_ns: at(0.1), measure_start_ns: at(0.25), measure_end_ns: at(1.25), end_ns: at(1.5) }
    }

    /// Returns rows and facts of a clean run.
    pub fn make(&self) -> (Vec<Record>, Facts) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let state = if self.pace.deviation > 0.0 { StandardNormal.sample(&mut rng) } else { 0.0 };
        let server = Server { free: vec![0; self.slots], state, rng };
        let windows = self.windows();
        let records = match self.qps {
            Some(qps) => self.open_loop(server, qps, windows),
            None => self.closed_loop(server, windows),
        };
        let facts = facts(self, windows, &records);
        (records, facts)
    }

    fn open_loop(&self, mut server: Server, qps: f64, windows: Windows) -> Vec<Record> {
        let (mut at, mut records) = (0.0, Vec::new());
        loop {
            let share = (at - windows.measure_start_ns as f64) / 1e9 / self.seconds;
            let factor = self.profile.map_or(1.0, |factor| factor(share.clamp(0.0, 1.0)));
            at -= (1.0 - server.rng.random::<f64>()).ln() / (qps * factor) * 1e9;
            if at as u64 >= windows.end_ns {
                return records;
            }
            records.push(self.serve(&mut server, at as u64, windows));
        }
    }

    fn closed_loop(&self, mut server: Server, windows: Windows) -> Vec<Record> {
        let batch = self.batch_size.unwrap_or(1) as usize;
        let mut ready = vec![0u64; batch];
        let mut records = Vec::new();
        loop {
            let next = (0..batch).min_by_key(|client| ready[*client]).expect("a client");
            if ready[next] >= windows.end_ns {
                return records;
            }
            let record = self.serve(&mut server, ready[next], windows);
            let think = if self.think > 0 { -(1.0 - server.rng.random::<f64>()).ln() * self.think as f64 } else { 0.0 };
            ready[next] = record.row.ended_ns.expect("served") + think as u64;
            records.push(record);
        }
    }

    fn serve(&self, server: &mut Server, at: u64, windows: Windows) -> Record {
        let pace = self.pace_at(server, at);
        let Server { free, rng, .. } = server;
        let sent = at + 20_000;
        let fault =
            self.fault.map(|(fault, share)| (fault, windows.measure_start_ns + (share * self.seconds * 1e9) as u64));
        let (mut slots, mut paused) = (free.len(), (u64::MAX, 0));
        match fault {
            Some((Fault::Slots(fewer), from)) if at >= from => slots -= fewer,
            Some((Fault::Pause(seconds), from)) => paused = (from, (seconds * 1e9) as u64),
            Some((Fault::Errors(seconds), from)) if (from..from + (seconds * 1e9) as u64).contains(&at) => {
                let mut refused = record(at, sent, sent, vec![], windows);
                fail(&mut refused, Outcome::Http(503), 5_000_000);
                return refused;
            }
            _ => {}
        }
        // The server's own time, which stands still during a pause.
        let own = |at: u64| if at < paused.0 { at } else { at.saturating_sub(paused.1).max(paused.0) };
        let real = |own: u64| if own <= paused.0 { own } else { own + paused.1 };
        let slot = (0..slots).min_by_key(|slot| free[*slot]).expect("a slot");
        let begin = own(sent).max(free[slot]);
        let (slow, cold) = match fault {
            Some((Fault::Slow(factor), from)) if begin >= from => (factor, 1.0),
            Some((Fault::Cold(factor), until)) if begin < until => (1.0, factor),
            _ => (1.0, 1.0),
        };
        let mut around =
            |nanos: u64| (pace * slow * nanos as f64 * (1.0 + self.jitter * (2.0 * rng.random::<f64>() - 1.0))) as u64;
        let first = begin + (cold * around(self.ttft) as f64) as u64;
        let mut tokens = vec![first];
        (1..self.tokens).for_each(|_| tokens.push(tokens[tokens.len() - 1] + around(self.itl)));
        free[slot] = tokens[tokens.len() - 1];
        let gaps = tokens.windows(2).map(|two| real(two[1]) - real(two[0])).collect();
        record(at, sent, real(first), gaps, windows)
    }

    /// Returns the factor by which the times of the next request are multiplied.
    fn pace_at(&self, server: &mut Server, at: u64) -> f64 {
        let Pace { deviation, memory, drift } = self.pace;
        if deviation == 0.0 && drift == 0.0 {
            return 1.0;
        }
        let state = server.state;
        let new: f64 = StandardNormal.sample(&mut server.rng);
        server.state = memory * state + (1.0 - memory * memory).sqrt() * new;
        (deviation * state + drift * at as f64 / 1e9 / self.seconds).exp()
    }
}

/// Creates a completed request.
pub fn record(scheduled: u64, sent: u64, first: u64, gaps_ns: Vec<u64>, windows: Windows) -> Record {
    let tokens = gaps_ns.len() as u32 + 1;
    let last = first + gaps_ns.iter().sum::<u64>();
    let starts = [(windows.measure_end_ns, Phase::Drain), (windows.measure_start_ns, Phase::Measure)];
    let phase = starts.into_iter().find(|(start, _)| scheduled >= *start).map_or(Phase::Stabilize, |(_, phase)| phase);
    let row = RequestRow {
        released_ns: Some(scheduled),
        sent_ns: Some(sent),
        headers_ns: Some(first),
        first_chunk_ns: Some(first),
        first_token_ns: Some(first),
        first_output_ns: Some(first),
        last_token_ns: Some(last),
        done_ns: Some(last),
        ended_ns: Some(last),
        outcome: Outcome::Ok,
        http_status: Some(200),
        finish_reason: Some("length".into()),
        prompt_tokens: Some(50),
        output_tokens: Some(tokens),
        requested_tokens: tokens,
        intended_prompt_tokens: 50,
        token_source: Some(TokenSource::Usage),
        streamed_tokens: Some(tokens),
        events: tokens,
        bytes: 1000,
        ..RequestRow::wanted(scheduled, phase, scheduled)
    };
    Record { row, gaps_ns }
}

/// Delays a request: moves the instant at which it is sent, and all later instants. `sent` is already 20 µs
/// late.
pub fn postpone(record: &mut Record, by: u64) {
    let row = &mut record.row;
    let instants = [
        &mut row.sent_ns,
        &mut row.headers_ns,
        &mut row.first_chunk_ns,
        &mut row.first_token_ns,
        &mut row.first_output_ns,
        &mut row.last_token_ns,
        &mut row.done_ns,
        &mut row.ended_ns,
    ];
    instants.into_iter().for_each(|instant| *instant = instant.map(|at| at + by));
}

/// Turns a completed request into a request that failed before its first token, `after` ns after sending.
pub fn fail(record: &mut Record, outcome: Outcome, after: u64) {
    let row = &mut record.row;
    row.outcome = outcome;
    row.ended_ns = (outcome != Outcome::CutAtDrain).then(|| row.sent_ns.unwrap_or(row.scheduled_ns) + after);
    row.done_ns = row.ended_ns;
    (row.first_chunk_ns, row.first_token_ns, row.first_output_ns, row.last_token_ns) = (None, None, None, None);
    (row.output_tokens, row.prompt_tokens, row.token_source, row.events) = (None, None, None, 0);
    row.streamed_tokens = None;
    record.gaps_ns.clear();
}

fn facts(run: &Run, windows: Windows, records: &[Record]) -> Facts {
    let inside = |record: &&Record| record.row.phase == Phase::Measure;
    Facts {
        idle_ns: None,
        start_monotonic_ns: 0,
        windows,
        open_loop: run.qps.is_some(),
        batch_size: run.batch_size,
        qps: run.qps,
        window_qps: run.profile.and(run.qps),
        stream: true,
        ignore_eos: true,
        gpus: None,
        thinks: run.think > 0,
        scheduled: records.len() as u64,
        scheduled_in_window: records.iter().filter(inside).count() as u64,
        never_sent: 0,
        monotonic_ns: windows.end_ns,
        wall_ns: windows.end_ns as i64,
        boottime_ns: Some(windows.end_ns),
        client_cpu_ns: Some(windows.end_ns / 10),
        client_cores: 2,
        max_in_flight: 8,
        observed: Some(observed(windows)),
        pauses: Some(Pauses::default()),
        client_threads: 1,
        client_timer: "timerfd".to_owned(),
        reader: READER,
        ..Facts::default()
    }
}

/// Returns the observations of a generator that is far from its limits, on a machine with other users.
fn observed(windows: Windows) -> Observed {
    let for_ns = windows.measure_end_ns - windows.measure_start_ns;
    let percent = |share: u64| for_ns * share / 100;
    let thread = |name: &str, cpu, wait| ThreadTime { name: name.into(), cpu_ns: cpu, wait_ns: Some(wait) };
    let late = |p50_ns, p99_ns, max_ns| Some(Spread { count: for_ns / 10_000_000, p50_ns, p99_ns, max_ns });
    Observed {
        for_ns,
        process_cpu_ns: percent(10),
        threads: vec![
            thread("io", percent(8), percent(1)),
            thread("canary", percent(1) / 5, 0),
            thread("writer", percent(1), 0),
            thread("content", percent(1) / 2, 0),
        ],
        machine: Some(MachineTime { cores: 2, busy_ns: percent(40), stolen_ns: 0 }),
        lateness: late(20_000, 21_000, 25_000),
        read_delay: None,
        wakes: late(8_000, 90_000, 2_500_000),
        turns: late(30_000, 200_000, 4_000_000),
        writer_backlog_max: 2,
        writer_backlog_limit: 1024,
    }
}

/// Returns the records in the form that `judge` reads, and the result of the first pass over them.
pub fn read(records: &[Record], facts: &Facts, slo: Option<&Slo>) -> (Records, Events) {
    let run = Records::from_iter(records.iter().cloned());
    let Ok(events) = Events::of(&run, facts, &gap_limits(slo));
    (run, events)
}

/// Returns the metrics of records.
pub fn measured(records: &[Record], facts: &Facts) -> RunMetrics {
    let (run, events) = read(records, facts, None);
    let Ok(gaps) = Gaps::of(&run, facts, &events);
    measure(run.rows(), (&events, &gaps), facts)
}

/// Returns the verdict on records.
pub fn verdict(records: &[Record], facts: &Facts, validity: &Validity, slo: Option<&Slo>) -> Verdict {
    let (run, events) = read(records, facts, slo);
    judge((run.rows(), &[]), &events, facts, validity, slo)
}

/// Returns the number of simulations of a test: the number in `SWEEPLINE_SIMULATIONS`, or `many` with
/// `SWEEPLINE_WHOLE=1`, as in the measured suite, otherwise `few`.
#[cfg(test)]
pub(crate) fn number_of_simulations(few: usize, many: usize) -> usize {
    let requested = std::env::var("SWEEPLINE_SIMULATIONS").ok().and_then(|text| text.parse().ok());
    let is_whole = std::env::var("SWEEPLINE_WHOLE").is_ok_and(|whole| whole == "1");
    requested.unwrap_or(if is_whole { many } else { few })
}
