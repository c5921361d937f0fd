//! Tracks the state of a running sweep. Events update the state, which is available as [`LiveSweep`] at any
//! time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::outlook::{Outlook, StartsAhead};
use super::state::{LivePhase, LiveRun, LiveSweep, LiveWait};
use crate::engine::Progress;
use crate::expand::Course;
use crate::report::format::plain;
use crate::rows::Phase;
use crate::sweep::event::{Event, RunView};

/// The length of the most recent period that rates and latencies cover, in seconds.
pub(super) const RECENT: f64 = 5.0;

/// The state of a running sweep.
#[derive(Default)]
pub(super) struct Tracker {
    /// The counts that events update. The other values of [`LiveSweep`] are computed on demand.
    sweep: LiveSweep,
    /// Time that the sweep takes for each second of its runs and starts; below 1 if resources work in parallel.
    pace: f64,
    starts: StartsAhead,
    /// For each run that has not ended, by number: its endpoint, and its total time in nanoseconds.
    remaining: HashMap<usize, (Arc<str>, u64)>,
    running: Vec<Running>,
    waits: Vec<Wait>,
    /// The names of unfinished searches and ladders, and of sweeps that wait for an earlier sweep.
    open: HashSet<String>,
}

struct Wait {
    endpoint: String,
    reason: String,
    since: Instant,
    /// The maximum waiting time; `None` if no bound is known.
    within: Option<Duration>,
}

struct Running {
    run: RunView,
    progress: Arc<Progress>,
    /// The planned arrivals over time; `None` in a closed loop.
    course: Option<Course>,
    /// The values of the counters at some points during the last seconds, the oldest first.
    seen: Vec<Seen>,
}

/// The counter values at one point in time.
#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Instant,
    sent: u64,
    token_events: u64,
}

impl Tracker {
    /// Creates the state of a sweep that has not begun.
    pub(super) fn new(outlook: Outlook) -> Tracker {
        Tracker { pace: outlook.pace, starts: StartsAhead::knowing(outlook.starts), ..Tracker::default() }
    }

    /// Updates the state with an event.
    pub(super) fn take(&mut self, event: &Event) {
        match event {
            Event::Begin { todo, settled, open, starts } => {
                self.starts.expect(starts);
                self.open = open.iter().cloned().collect();
                (self.sweep.runs, self.sweep.settled) = (settled + todo.len(), *settled);
                self.remaining = todo.iter().map(|run| (run.number, expected(run))).collect();
            }
            Event::Chosen { pool, next: Some(run), .. } => {
                self.open.insert(pool.clone());
                self.sweep.runs = self.sweep.runs.max(run.number);
                self.remaining.insert(run.number, expected(run));
            }
            Event::Pruned { runs, .. } => {
                runs.iter().for_each(|run| self.off(run, true));
                self.sweep.settled += runs.len();
            }
            Event::Started { run, progress } => self.running.push(Running::new(run, progress)),
            Event::Committed { run } => {
                self.off(run, true);
                self.sweep.committed += 1;
            }
            Event::Failed { run, reason } => {
                self.off(run, true);
                self.sweep.failed += 1;
                self.trouble(&run.name, &format!("failed: {reason}"));
            }
            Event::Again { run, reason, again, of } => {
                self.off(run, false);
                self.trouble(&run.name, &format!("spoiled, to be retried ({again} of {of}): {reason}"));
            }
            Event::GivenUp { run, cause, reason, times } => {
                self.off(run, true);
                self.sweep.given_up += 1;
                self.trouble(&run.name, &format!("given up: {}: {reason}", cause.given_up(*times)));
            }
            Event::Skipped { run, reason } => {
                self.off(run, true);
                self.sweep.skipped += 1;
                self.trouble(&run.name, &format!("skipped: {reason}"));
            }
            Event::Waiting { endpoint, waiting } => {
                let since = Instant::now().checked_sub(waiting.waited).unwrap_or_else(Instant::now);
                self.wait(endpoint, &waiting.reason, since, Some(waiting.within));
            }
            Event::Launching { endpoint, .. } => {
                self.starts.begin(endpoint);
                self.wait(endpoint, "its server is being started", Instant::now(), None);
            }
            Event::Slow { endpoint, .. } => {
                self.wait(endpoint, "the server has not responded yet", Instant::now(), None);
            }
            Event::Relaunching { endpoint, reason, .. } => {
                self.trouble(endpoint, &format!("to be restarted: {reason}"));
            }
            Event::Endpoint { endpoint, result } => {
                if result.is_err() {
                    self.starts.ended(endpoint);
                }
                self.waits.retain(|wait| wait.endpoint != *endpoint);
            }
            Event::Launched { endpoint, after, .. } => {
                self.starts.ready(endpoint, *after);
                self.waits.retain(|wait| wait.endpoint != *endpoint);
            }
            Event::Stopping => self.sweep.stopping = true,
            Event::Chosen { pool, next: None, .. } => drop(self.open.remove(pool)),
            Event::Far { .. } | Event::ListRefused { .. } | Event::Busy { .. } | Event::End => {}
        }
    }

    /// Registers a wait for an endpoint, replacing the previous wait.
    fn wait(&mut self, endpoint: &str, reason: &str, since: Instant, within: Option<Duration>) {
        self.waits.retain(|wait| wait.endpoint != endpoint);
        self.waits.push(Wait { endpoint: plain(endpoint), reason: plain(reason), since, within });
    }

    fn trouble(&mut self, of: &str, what: &str) {
        self.sweep.last_trouble = Some(plain(&format!("{of}: {what}")));
    }

    /// Removes a run from the active runs; with `for_good`, the run is not retried.
    fn off(&mut self, run: &RunView, for_good: bool) {
        self.running.retain(|running| running.run.number != run.number);
        if for_good {
            self.remaining.remove(&run.number);
        }
    }

    /// Returns the number of runs on each endpoint that have neither begun nor ended.
    fn runs_waiting(&self) -> HashMap<&str, usize> {
        let is_running = |number: usize| self.running.iter().any(|running| running.run.number == number);
        let mut waiting = HashMap::new();
        for (_, (endpoint, _)) in self.remaining.iter().filter(|(number, _)| !is_running(**number)) {
            *waiting.entry(&**endpoint).or_default() += 1;
        }
        waiting
    }

    /// Returns the current state. Must be called a few times per second, so that rates cover the last
    /// seconds.
    pub(super) fn now(&mut self) -> LiveSweep {
        self.running.iter_mut().for_each(Running::look);
        let whole: u64 = self.remaining.values().map(|(_, ns)| ns).sum();
        let gone: u64 =
            self.running.iter().map(|running| running.progress.elapsed_ns().min(running.run.expected_ns())).sum();
        let (of_starts, starts_not_measured) = self.starts.remaining(&self.runs_waiting());
        let left = (whole.saturating_sub(gone) as f64 / 1e9 + of_starts) * self.pace;
        LiveSweep {
            may_grow: !self.open.is_empty(),
            left_s: (!self.remaining.is_empty()).then_some(left),
            starts_not_measured,
            running: self.running.iter().map(Running::now).collect(),
            waiting: self.waits.iter().map(Wait::now).collect(),
            ..self.sweep.clone()
        }
    }
}

/// Returns the endpoint of a run and its expected time, in nanoseconds.
fn expected(run: &RunView) -> (Arc<str>, u64) {
    (Arc::clone(&run.group.endpoint), run.expected_ns())
}

impl Wait {
    fn now(&self) -> LiveWait {
        let waited = self.since.elapsed();
        LiveWait {
            endpoint: self.endpoint.clone(),
            reason: self.reason.clone(),
            waited_s: self.within.map_or(waited, |within| waited.min(within)).as_secs_f64(),
            within_s: self.within.map(|within| within.as_secs_f64()),
        }
    }
}

impl Running {
    fn new(run: &RunView, progress: &Arc<Progress>) -> Running {
        let course = Course::new(&run.load, &run.phases);
        Running { run: run.clone(), progress: Arc::clone(progress), course, seen: Vec::new() }
    }

    /// Records the current values of the counters, and drops old values.
    fn look(&mut self) {
        let Progress { ended, in_flight, token_events, .. } = &*self.progress;
        let now = Instant::now();
        self.seen.push(Seen { at: now, sent: ended.get() + in_flight.get(), token_events: token_events.get() });
        let is_old = |seen: &Seen| now.duration_since(seen.at).as_secs_f64() > RECENT;
        // One value from before the period is kept, so that rates cover the whole period.
        let old = self.seen.iter().take_while(|seen| is_old(seen)).count();
        self.seen.drain(..old.saturating_sub(1));
    }

    fn now(&self) -> LiveRun {
        let progress = &self.progress;
        let since = progress.elapsed_ns().saturating_sub((RECENT * 1e9) as u64);
        let pace = progress.recent.pace(since);
        let [sent_per_s, tokens_per_s] = self.rates();
        let measure = &self.run.phases.measure;
        let (phase, phase_s, phase_length_s) = self.phase();
        let is_late = phase == LivePhase::Measure && phase_s >= measure.duration.secs();
        let wanted = measure.min_requests.filter(|wanted| is_late && progress.in_window.get() < *wanted);
        LiveRun {
            number: self.run.number,
            id: self.run.id.to_string(),
            name: plain(&self.run.name),
            standing: self.run.standing.as_deref().map(plain),
            phase,
            phase_s,
            phase_length_s,
            requests_wanted: wanted,
            requests_in_window: progress.in_window.get(),
            at_most_s: measure.at_most.map(|at_most| at_most.secs()),
            in_flight: progress.in_flight.get(),
            waiting: progress.waiting.get(),
            sent_per_s,
            wanted_per_s: self.wanted(),
            ttft_ms: pace.ttft_ms,
            tpot_ms: pace.tpot_ms,
            tokens_per_s,
            ended: progress.ended.get(),
            failed: progress.failed.get(),
            latest_failure: progress.recent.failure().map(|what| plain(&what)),
        }
    }

    /// Returns the current phase, its elapsed time and its planned length, both in seconds.
    fn phase(&self) -> (LivePhase, f64, Option<f64>) {
        let (progress, phases) = (&self.progress, &self.run.phases);
        if progress.settling.get() > 0 {
            return (LivePhase::Settle, 0.0, None);
        }
        if let Some(idle) = phases.idle.filter(|_| progress.idling.get() > 0) {
            return (LivePhase::Idle, 0.0, Some(idle.secs()));
        }
        let measure = phases.fill.0 + phases.stabilize.0;
        let (phase, begin, length) = match progress.phase() {
            Phase::Fill => (LivePhase::Fill, 0, phases.fill),
            Phase::Stabilize => (LivePhase::Stabilize, phases.fill.0, phases.stabilize),
            Phase::Measure => (LivePhase::Measure, measure, phases.measure.duration),
            Phase::Drain => (LivePhase::Drain, measure + phases.measure.duration.0, phases.drain.duration),
        };
        let passed = progress.elapsed_ns().saturating_sub(begin);
        (phase, passed as f64 / 1e9, Some(length.secs()))
    }

    /// Returns the requests sent and the token events received per second over the last seconds; `None` at
    /// the very beginning, when rates would be meaningless.
    fn rates(&self) -> [Option<f64>; 2] {
        let (Some(first), Some(last)) = (self.seen.first(), self.seen.last()) else { return [None; 2] };
        let seconds = last.at.duration_since(first.at).as_secs_f64();
        let rate = |before: u64, now: u64| (seconds >= 0.2).then(|| now.saturating_sub(before) as f64 / seconds);
        [rate(first.sent, last.sent), rate(first.token_events, last.token_events)]
    }

    /// Returns the planned requests per second over the same period as the rates; `None` in a closed loop.
    fn wanted(&self) -> Option<f64> {
        let now = self.progress.elapsed_ns() as f64 / 1e9;
        let span = self.seen.last()?.at.duration_since(self.seen.first()?.at).as_secs_f64().min(now);
        let course = self.course.as_ref()?;
        let arrivals = course.expected(now) - course.expected(now - span);
        (span > 0.0).then(|| arrivals / span * self.run.requests_per_arrival)
    }
}
