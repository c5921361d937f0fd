//! Determines, from the generator's own observations, whether it was the bottleneck, and what delayed it.

use crate::plan::Percentile;
use crate::rows::{Facts, Observed, Spread, ThreadTime};

use super::quantile;
use super::stats::raw_quantile;

/// CPU share above which the generator is saturated: a share of all its cores, or of one core for a thread that
/// sends and reads.
const BUSY: f64 = 0.9;
/// p99 of stalls, in milliseconds, above which the generator is saturated.
const STALLED_MS: f64 = 10.0;
/// Minimum share of the window that a thread must have waited for a core for the wait to be named as
/// the cause of a delay.
const WAITED: f64 = 0.02;
/// Minimum share of the machine's CPU time that a hypervisor must have taken for it to be named as the
/// cause of a delay.
const STOLEN: f64 = 0.05;
/// A sleep longer than this, in milliseconds, means that the process or the machine stood still.
const STOOD_STILL_MS: f64 = 100.0;
/// Minimum share of a core that a thread must have used for bursts of its own work to be named as the cause.
/// A thread that did little may have been delayed by something else.
const BURSTS: f64 = 0.5;

/// Name of the thread that starts requests when other threads send them and read the responses.
const EXECUTOR: &str = "executor";

/// The generator of one run.
#[derive(Debug, Clone, Copy)]
pub struct Generator<'a> {
    facts: &'a Facts,
    /// p99 of the read delays in the rows, in ms; `None` if there are too few.
    read_delay_p99: Option<f64>,
}

/// How long the generator was kept from working, as a p99.
struct Stalls {
    millis: f64,
    what: &'static str,
}

impl<'a> Generator<'a> {
    /// Creates the generator of a run from its facts and the read delays of its measured requests, in ms.
    pub fn new(facts: &'a Facts, read_delays: Vec<f64>) -> Generator<'a> {
        let enough = is_enough(read_delays.len() as u64);
        let p99 = raw_quantile(read_delays, quantile::permille(Percentile::P99));
        Generator { facts, read_delay_p99: p99.filter(|_| enough) }
    }

    fn observed(&self) -> Option<&'a Observed> {
        self.facts.observed.as_ref().filter(|observed| observed.for_ns > 0)
    }

    /// Returns the CPU time of the process as a share of the cores it may use, over the window if known,
    /// otherwise over the whole run.
    pub(crate) fn cpu_share(&self) -> Option<f64> {
        let cores = f64::from(self.facts.client_cores);
        let whole_run = self.facts.client_cpu_ns.map(|cpu| cpu as f64 / self.facts.monotonic_ns as f64);
        let used = self.observed().map(|observed| observed.share(observed.process_cpu_ns)).or(whole_run);
        used.map(|used| used / cores).filter(|share| share.is_finite())
    }

    /// Returns the read delay if it is known, because it affects the results directly; otherwise the delay of
    /// the canaries; `None` if neither is known.
    fn stalls(&self) -> Option<Stalls> {
        let read_delay = self.read_delay_p99.map(|millis| Stalls { millis, what: "the read delay" });
        let canary = |spread: Option<Spread>, what| {
            let p99 = spread.filter(|spread| is_enough(spread.count)).map(|spread| spread.p99_ns);
            p99.map(|nanos| Stalls { millis: millis(nanos), what })
        };
        let observed = self.observed();
        read_delay
            .or_else(|| canary(observed?.turns, "the delay of the I/O thread's loop"))
            .or_else(|| canary(observed?.wakes, "the delay of a thread that only sleeps"))
    }

    /// Returns the evidence of saturation in words; an error if nothing is known.
    pub fn saturated(&self) -> Result<Option<String>, String> {
        let (busy, stalls) = (self.cpu_share(), self.stalls());
        if busy.is_none() && stalls.is_none() {
            return Err("neither CPU time nor read delays are known".into());
        }
        let whole = busy.filter(|busy| *busy > BUSY);
        let cores = self.facts.client_cores;
        let whole = whole.map(|busy| format!("sweepline used {:.0}% of its {cores} cores", busy * 100.0));
        let thread = self.observed().and_then(|observed| self.busy_thread(observed));
        let stalled = stalls.filter(|stalls| stalls.millis > STALLED_MS);
        let stalled = stalled.map(|Stalls { millis, what }| match (&thread, self.cause(millis)) {
            // If a thread is busy, that is itself the cause.
            (None, Some(cause)) => format!("p99 of {what} was {millis:.1} ms: {cause}"),
            _ => format!("p99 of {what} was {millis:.1} ms"),
        });
        let found: Vec<String> = [whole, thread, stalled].into_iter().flatten().collect();
        Ok((!found.is_empty()).then(|| found.join("; ")))
    }

    /// Returns which part of the saturation check was not possible; `None` if the check was complete, or
    /// if nothing is known.
    pub(crate) fn unchecked(&self) -> Option<String> {
        match (self.cpu_share(), self.stalls()) {
            (Some(_), None) if self.observed().is_some() => {
                Some("the window is too short to judge stalls: only the CPU was checked".into())
            }
            (Some(_), None) => Some("read delays are not known: only the CPU was checked".into()),
            (None, Some(_)) => Some("CPU time is not known: only read delays were checked".into()),
            (Some(_), Some(_)) => self.observed().and_then(|observed| self.looks_busy(observed)),
            (None, None) => None,
        }
    }

    /// Describes what kept the generator from working for `delay` milliseconds: the strongest cause in the
    /// facts that is large enough; `None` if there is none.
    pub fn cause(&self, delay: f64) -> Option<String> {
        let observed = self.observed()?;
        self.busy_thread(observed)
            .or_else(|| stopped(observed, delay))
            .or_else(|| writer_behind(observed))
            .or_else(|| no_core(observed, delay))
            .or_else(|| stolen(observed, delay))
            .or_else(|| crowded_out(observed, delay))
            .or_else(|| self.long_turns(observed, delay))
    }

    /// Describes a thread that starts, sends or reads requests and uses a whole core, regardless of how
    /// many cores the machine has; `None` if there is no such thread.
    fn busy_thread(&self, observed: &Observed) -> Option<String> {
        let (thread, share) = most(observed, self.working(observed), |thread| Some(thread.cpu_ns))?;
        let (threads, cores) = (observed.io_threads().count(), self.facts.client_cores as usize);
        // More I/O threads do not help the thread that dispatches requests to them.
        let better = (threads * 2).min(cores).max(threads);
        let more = if thread.is_io() && better > threads {
            format!("engine: {{ threads: {better} }} or ")
        } else {
            String::new()
        };
        let text = || format!("{} used {:.0}% of a core: use {more}a second client", called(thread), share * 100.0);
        (share > BUSY).then(text)
    }

    /// Returns the threads whose CPU time is all work: those that start, send and read requests and never
    /// busy-wait on the clock.
    fn working<'o>(&self, observed: &'o Observed) -> impl Iterator<Item = &'o ThreadTime> {
        let spinning = self.spinning(observed);
        hot(observed).filter(move |thread| spinning.is_none_or(|spinning| spinning.name != thread.name))
    }

    /// Returns the thread that busy-waits on the clock during the last part of each wait for an arrival;
    /// `None` for closed loops, which have no arrivals.
    fn spinning<'o>(&self, observed: &'o Observed) -> Option<&'o ThreadTime> {
        let spins = self.facts.open_loop && self.facts.client_timer == "spin";
        observed.thread(EXECUTOR).or(observed.thread("io")).filter(|_| spins)
    }

    /// Describes a thread that looks busy but busy-waits on the clock, so it is unknown how much of its CPU
    /// time was actual work. `None` if the thread is not busy even with its busy-waiting.
    fn looks_busy(&self, observed: &Observed) -> Option<String> {
        let thread = self.spinning(observed)?;
        let share = observed.share(thread.cpu_ns);
        let text = || {
            let (who, percent) = (called(thread), share * 100.0);
            format!(
                "{who} used {percent:.0}% of a core, maybe only for busy-waiting on the clock: only stalls \
                    were checked"
            )
        };
        (share > BUSY).then(text)
    }

    fn long_turns(&self, observed: &Observed, delay: f64) -> Option<String> {
        let longest = millis(observed.turns?.max_ns);
        let (thread, share) =
            most(observed, self.working(observed).filter(|thread| thread.is_io()), |thread| Some(thread.cpu_ns))?;
        let text = || format!("bursts kept {} busy for up to {longest:.0} ms at a time", called(thread));
        (longest > STALLED_MS && is_size_of(longest, delay) && share >= BURSTS).then(text)
    }
}

/// Returns the threads that start, send and read requests. If one of these threads is delayed, its requests
/// are delayed too.
fn hot(observed: &Observed) -> impl Iterator<Item = &ThreadTime> {
    observed.threads.iter().filter(|thread| thread.is_io() || thread.name == EXECUTOR)
}

/// Returns the thread with the largest value, and the value as a share of the window.
fn most<'o>(
    observed: &Observed,
    threads: impl Iterator<Item = &'o ThreadTime>,
    of: impl Fn(&ThreadTime) -> Option<u64>,
) -> Option<(&'o ThreadTime, f64)> {
    let amounts = threads.filter_map(|thread| Some((thread, of(thread)?)));
    amounts.max_by_key(|(_, nanos)| *nanos).map(|(thread, nanos)| (thread, observed.share(nanos)))
}

fn called(thread: &ThreadTime) -> String {
    match thread.name.as_str() {
        "io" => "the I/O thread".to_owned(),
        EXECUTOR => "the thread that starts requests".to_owned(),
        name => format!("I/O thread {name}"),
    }
}

fn writer_behind(observed: &Observed) -> Option<String> {
    let full = observed.writer_backlog_limit > 0 && observed.writer_backlog_max >= observed.writer_backlog_limit;
    let busy = observed.thread("writer").map(|writer| writer.cpu_ns);
    let busy = busy.map_or(String::new(), |cpu| format!(" and used {:.0}% of a core", observed.share(cpu) * 100.0));
    full.then(|| format!("the writer fell behind ({} batches waited for it{busy})", observed.writer_backlog_max))
}

/// Describes the waits of a thread for a core. All waits together must be as long as the delay that they
/// explain.
fn no_core(observed: &Observed, delay: f64) -> Option<String> {
    let (thread, share) = most(observed, hot(observed), |thread| thread.wait_ns)?;
    let who = match observed.others_ns() {
        Some(others) if others >= observed.process_cpu_ns => "other processes held the cores",
        Some(_) => "sweepline's own threads held the cores that it may use",
        None => "the cores were taken",
    };
    let text = || format!("{who}: {} waited {:.0}% of the window for a core", called(thread), share * 100.0);
    (share >= WAITED && thread.wait_ns.is_some_and(|waited| millis(waited) >= delay)).then(text)
}

fn stolen(observed: &Observed, delay: f64) -> Option<String> {
    let machine = observed.machine?;
    let share = observed.share(machine.stolen_ns) / f64::from(machine.cores.max(1));
    // A single core may have lost all of the stolen time, so the time is not divided by the number of
    // cores here.
    (share > STOLEN && millis(machine.stolen_ns) >= delay)
        .then(|| format!("the hypervisor took {:.0}% of the machine's CPU time", share * 100.0))
}

/// Returns the longest sleep of the canary and its total wait for a core, in nanoseconds; `None` if the
/// sleep is too short to explain `delay`, which is in milliseconds.
fn longest_sleep(observed: &Observed, delay: f64) -> Option<(u64, Option<u64>)> {
    let longest = observed.wakes?.max_ns;
    let waited = observed.thread("canary").and_then(|thread| thread.wait_ns);
    (millis(longest) > STOOD_STILL_MS && is_size_of(millis(longest), delay)).then_some((longest, waited))
}

/// Describes a stop of the process or the machine. A stopped thread does not wait for a core, so a long
/// sleep without such a wait means that the thread was stopped.
fn stopped(observed: &Observed, delay: f64) -> Option<String> {
    let (longest, waited) = longest_sleep(observed, delay)?;
    let what = waited.map_or("no thread of sweepline ran", |_| "the process or the machine was stopped");
    let text = || format!("{what} for up to {:.0} ms at a time", millis(longest));
    waited.is_none_or(|waited| waited < longest / 2).then(text)
}

/// Describes long waits for a core that are too rare to make up a large share of the window.
fn crowded_out(observed: &Observed, delay: f64) -> Option<String> {
    let (longest, waited) = longest_sleep(observed, delay)?;
    let text = || format!("other processes held the cores for up to {:.0} ms at a time", millis(longest));
    waited.is_some_and(|waited| waited >= longest / 2).then(text)
}

/// Returns whether an event that took `longest` explains `delay`, both in milliseconds. At least half of the
/// delay is enough, because the delayed work then had to catch up.
fn is_size_of(longest: f64, delay: f64) -> bool {
    longest >= delay / 2.0
}

fn is_enough(count: u64) -> bool {
    count >= quantile::need(Percentile::P99)
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

#[cfg(test)]
#[path = "generator_tests.rs"]
mod tests;
