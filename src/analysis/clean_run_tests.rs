//! How often clean runs raise each reason: 2 000 simulated runs with fixed seeds, each with its own
//! server, load, window and generator. `cargo test --lib clean_runs -- --nocapture` prints the shares that
//! `docs/METRICS.md` quotes.
//!
//! Nothing is wrong with any of these runs, but they are not ideal either. Each share that a reason checks
//! has a true value well below the reason's threshold and comes out above or below it by chance: lateness,
//! read delays, failures, responses whose length differs from the requested one, prompts found in the cache.
//! Quantities that are not shares are drawn from a distribution whose tail exceeds the threshold in fewer
//! than one of a thousand runs: CPU time, the wall clock. A window has about 200 requests or more, so a
//! single failure is not above 1 %. With fewer than 100 requests, the reason `errors` describes what happened
//! in this run, not the long-run behavior of the server.
//!
//! The server's speed is autocorrelated: the log speed of a request is 0.9 × the log speed of the previous
//! request plus noise, with a deviation of 10 %. A mean over n requests then varies as much as a mean over n / 19
//! independent requests, because `(1 + φ) / (1 − φ)` = 19. The dependence is mere noise if half of the
//! window contains several times 19 requests. The shortest halves here contain 110, so one window is
//! representative of the next. If the dependence lasted as long as half of a window, `unsteady` should
//! report it, because another window of the same server would give a different result.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::*;
use crate::analysis::synthetic::{Pace, Run, fail, postpone, verdict};
use crate::rows::{ProbePrompt, PromptCount, Record, Spread};
use crate::units::Nanos;

/// Returns the number of runs: 500 in the plain suite, 2 000 in the measured one.
fn runs() -> u64 {
    crate::analysis::synthetic::number_of_simulations(500, 2_000) as u64
}

const MS: f64 = 1e6;
/// Every reason and label except `not_shown`, because a short window is not an alarm.
const REASONS: [&str; 20] = [
    "empty_window",
    "client_late",
    "client_paused",
    "rate_missed",
    "client_saturated",
    "errors",
    "output_length",
    "prompt_length",
    "warm_cache",
    "impossible_usage",
    "not_idle",
    "hook_failed",
    "not_near",
    "unsteady",
    "warming_up",
    "paused",
    "errors_bunched",
    "few_samples",
    "clock",
    "saturated",
];

/// The random source of one run.
struct Draw(ChaCha8Rng);

impl Draw {
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.random::<f64>()
    }

    /// Draws a value, uniform on the log scale.
    fn scale(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let one: f64 = StandardNormal.sample(&mut self.0);
        mean + deviation * one
    }

    fn happens(&mut self, share: f64) -> bool {
        self.0.random::<f64>() < share
    }

    /// Returns a delay in ns: lognormal around 30 µs and, in the given share of all cases, more than
    /// `long` ms without an upper bound.
    fn delay(&mut self, share: f64, long: f64) -> u64 {
        let delay = match self.happens(share) {
            true => long * MS / (1.0 - self.0.random::<f64>()).powf(0.7),
            false => 30e3 * self.normal(0.0, 0.8).exp(),
        };
        delay as u64
    }
}

/// Returns a random run and the number of requests that its window should contain.
fn drawn(seed: u64, draw: &mut Draw) -> (Run, f64) {
    // Requests per second that the server can serve, and the corresponding service times.
    let (capacity, slots) = (draw.scale(15.0, 100.0), [1, 2, 4, 8, 16][draw.between(0.0, 5.0) as usize]);
    let (service, tokens) = (slots as f64 / capacity * 1e9, draw.between(4.0, 14.0) as u32);
    let first = draw.between(0.1, 0.5);
    let times = (service * first, service * (1.0 - first) / f64::from(tokens - 1));
    let pace = Pace { deviation: 0.1, memory: 0.9, drift: draw.between(-0.02, 0.02) };
    let server = Run {
        slots,
        ttft: times.0 as u64,
        itl: times.1 as u64,
        tokens,
        jitter: draw.between(0.0, 0.3),
        pace,
        seed,
        ..Run::default()
    };
    let (load, rate) = match draw.happens(0.6) {
        true => {
            let rate = capacity * draw.between(0.1, 0.95);
            (Run { batch_size: None, qps: Some(rate), ..server }, rate)
        }
        false => {
            let batch = 1 + draw.between(0.0, 2.0 * slots as f64) as u32;
            let think = if draw.happens(0.25) { draw.between(0.2, 2.0) * service } else { 0.0 };
            let rate = (f64::from(batch) / (service + think) * 1e9).min(capacity);
            (Run { batch_size: Some(batch), think: think as u64, ..server }, rate)
        }
    };
    let requests = draw.scale(220.0, 900.0);
    // 368 wake-ups of the canary, one every 10 ms, are enough for a verdict.
    let seconds = (requests / rate).max(4.0);
    (Run { seconds, ..load }, seconds * rate)
}

/// Adds the imperfections of a clean run to its requests and returns the probe's prompt.
fn blemish(records: &mut [Record], draw: &mut Draw) -> ProbePrompt {
    let [late, read, failed, length] =
        [(0.001, 0.003), (0.001, 0.003), (0.001, 0.002), (0.001, 0.003)].map(|(low, high)| draw.between(low, high));
    let (template, prompt) = (draw.between(4.0, 60.0) as u32, draw.scale(100.0, 4_000.0));
    let (shared, known) = (draw.between(0.0, 0.9), draw.between(0.002, 0.012));
    for record in records {
        // 5 ms is 1 % of the longest TTFT of a request that does not wait in a queue.
        postpone(record, draw.delay(late, 5.0));
        let row = &mut record.row;
        row.read_delay_ns = Some(draw.delay(read, 10.0));
        row.intended_prompt_tokens = (prompt * draw.between(0.8, 1.2)) as u32;
        let told = row.intended_prompt_tokens + template + draw.between(0.0, 3.0) as u32 - 1;
        let reusable = (shared * f64::from(row.intended_prompt_tokens)) as u32;
        (row.prompt_tokens, row.reusable_tokens) = (Some(told), Some(reusable));
        // The cache consists of blocks of 16 tokens. Occasionally it contains the whole prompt.
        let cached = if draw.happens(known) { told } else { template + reusable };
        row.cached_tokens = Some(cached / 16 * 16);
        if draw.happens(length) {
            row.output_tokens = row.output_tokens.map(|tokens| tokens - 1);
        }
        if draw.happens(failed) {
            let outcome = if draw.happens(0.5) { Outcome::Http(500) } else { Outcome::Reset };
            fail(record, outcome, (50.0 * MS) as u64);
        }
    }
    ProbePrompt { ours: 12, server: 12 + u64::from(template) }
}

/// Sets the observations that a clean generator makes of itself and its clocks.
fn observe(facts: &mut Facts, draw: &mut Draw) {
    facts.prompt_count = Some(PromptCount::Tokenizer);
    facts.wall_ns += draw.normal(0.0, 25.0 * MS) as i64;
    facts.boottime_ns = facts.boottime_ns.map(|at| at + draw.between(0.0, 0.01 * MS) as u64);
    let (cores, process, thread) = (facts.client_cores, draw.normal(0.4, 0.15), draw.normal(0.4, 0.15));
    let delays = [draw.between(0.001, 0.003), draw.between(0.001, 0.003)];
    let observed = facts.observed.as_mut().expect("observed");
    let share = |of: f64| (observed.for_ns as f64 * of.max(0.01)) as u64;
    let [wakes, turns] = delays.map(|long| spread(draw, long));
    let (whole, io) = (share(process * f64::from(cores)), share(thread));
    observed.process_cpu_ns = whole.max(io);
    observed.threads.iter_mut().filter(|thread| thread.is_io()).for_each(|thread| thread.cpu_ns = io);
    observed.wakes = Some(Spread { count: observed.for_ns / 10_000_000, ..wakes });
    observed.turns = Some(Spread { count: observed.for_ns / 20_000_000, ..turns });
}

/// Draws 400 delays of a thread, of which the given share is above 10 ms.
fn spread(draw: &mut Draw, long: f64) -> Spread {
    let mut delays: Vec<u64> = (0..400).map(|_| draw.delay(long, 10.0)).collect();
    delays.sort_unstable();
    Spread { count: 400, p50_ns: delays[199], p99_ns: delays[395], max_ns: delays[399] }
}

/// Returns an SLO that a window of about this many requests can decide.
fn slo(requests: f64) -> Slo {
    let percentile = match requests {
        requests if requests > 370.0 => Percentile::P99,
        requests if requests > 100.0 => Percentile::P95,
        _ => Percentile::P90,
    };
    Slo { ttft: [(percentile, Nanos::from_millis(500))].into_iter().collect(), ..Slo::default() }
}

/// Reasons that report a change during the run.
const CHANGES: [&str; 4] = ["unsteady", "warming_up", "paused", "errors_bunched"];

/// Number of alarms by reason, in open loops and in closed loops.
#[derive(Default)]
struct Alarms {
    found: BTreeMap<&'static str, [usize; 2]>,
    /// Number of runs with any of [`CHANGES`].
    changed: [usize; 2],
    first: BTreeMap<&'static str, String>,
    runs: [usize; 2],
}

impl Alarms {
    fn add(&mut self, seed: u64) {
        let mut draw = Draw(ChaCha8Rng::seed_from_u64(1_000_000 + seed));
        let (run, requests) = drawn(seed, &mut draw);
        let (mut records, mut facts) = run.make();
        facts.probe_prompt = Some(blemish(&mut records, &mut draw));
        observe(&mut facts, &mut draw);
        let verdict = verdict(&records, &facts, &Validity::default(), Some(&slo(requests)));
        let is_queue = |why: &str| why == "the run is saturated" || why.starts_with("requests in flight rose");
        let unchecked = verdict.not_checked.iter().filter(|(name, why)| **name != "paused" && !is_queue(why));
        assert_eq!(unchecked.count(), 0, "{:?} of {run:?}", verdict.not_checked);
        let closed = usize::from(!facts.open_loop);
        self.runs[closed] += 1;
        self.changed[closed] += usize::from(verdict.reasons.iter().any(|reason| CHANGES.contains(&reason.name)));
        let labels = verdict.labels.iter().filter(|label| label.name != "not_shown");
        for Reason { name, text, .. } in verdict.reasons.iter().chain(labels) {
            assert!(REASONS.contains(name), "{name}");
            self.found.entry(name).or_default()[closed] += 1;
            self.first.entry(name).or_insert_with(|| format!("{text} (seed {seed})"));
        }
    }

    /// Returns the percentage of runs with this reason: among all runs, among open loops and among closed
    /// loops.
    fn percent(&self, reason: &str) -> [f64; 3] {
        let [open, closed] = self.found.get(reason).copied().unwrap_or_default();
        let [opens, closeds] = self.runs;
        [(open + closed, opens + closeds), (open, opens), (closed, closeds)]
            .map(|(found, runs)| 100.0 * found as f64 / runs as f64)
    }
}

#[test]
fn clean_runs_raise_no_reason_in_more_than_two_of_a_hundred() {
    let mut alarms = Alarms::default();
    (1..=runs()).for_each(|seed| alarms.add(seed));
    println!("| reason | {} clean runs | {} open loops | {} closed loops |", runs(), alarms.runs[0], alarms.runs[1]);
    for reason in REASONS {
        let [all, open, closed] = alarms.percent(reason);
        println!("| `{reason}` | {all:.2} % | {open:.2} % | {closed:.2} % |");
    }
    let changed = [0, 1].map(|closed| 100.0 * alarms.changed[closed] as f64 / alarms.runs[closed] as f64);
    println!("any change during the run: {:.2} % of open loops, {:.2} % of closed ones", changed[0], changed[1]);
    assert!(changed.iter().all(|share| *share <= 2.0), "{changed:?}");
    for (reason, first) in &alarms.first {
        println!("{reason}: {first}");
        assert!(alarms.percent(reason)[0] <= 2.0, "{reason}: {:?} %, {first}", alarms.percent(reason));
    }
}
