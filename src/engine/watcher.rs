//! The sampling thread. It acts as a canary with a tick every 10 ms, takes a sample every second, and takes a
//! snapshot at each border of the measure window. The facts of the run are computed from the two snapshots.

use std::thread::JoinHandle;
use std::time::Duration;

use crate::rows::{MachineTime, Observed, Phase, Sample, Spread, ThreadTime};

use super::canary::{self, Ticks};
use super::clock::Clock;
use super::histogram::Counted;
use super::observe::{Gauge, Observer};
use super::pauses::Book;
use super::sink::{SampleSink, SinkError};
use super::threads::{Kernel, Machine, Used, machine_cores};

/// Time between two samples.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// Number of samples that are passed to the sink together. This bounds the memory, however long the run is.
const BATCH: usize = 1024;

/// The observations of a run.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Number of samples in the time series, or why they could not be written.
    pub samples: Result<u64, SinkError>,
    /// The observations in the measure window; `None` if the window was too short to be observed.
    pub window: Option<Observed>,
    /// The periods in which no thread of sweepline ran; `None` if the sampling thread did not reach the end
    /// of the run.
    pub pauses: Option<Book>,
}

/// A handle to the sampling thread, which ends when the handle is dropped.
pub(crate) struct Watch {
    observer: Observer,
    thread: Option<JoinHandle<Seen>>,
}

impl Watch {
    /// Starts the sampling thread.
    pub(crate) fn start(observer: Observer, clock: Clock, samples: Box<dyn SampleSink>) -> std::io::Result<Watch> {
        let watcher = Watcher::new(observer.clone(), clock, samples);
        let thread = std::thread::Builder::new().name("canary".to_owned()).spawn(move || watcher.watch())?;
        Ok(Watch { observer, thread: Some(thread) })
    }

    /// Takes the last sample and returns the observations.
    pub(crate) fn finish(mut self) -> Seen {
        self.end().unwrap_or_else(|| Seen {
            samples: Err("the sampling thread panicked".into()),
            window: None,
            pauses: None,
        })
    }

    fn end(&mut self) -> Option<Seen> {
        self.observer.set_over();
        self.thread.take()?.join().ok()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

/// The state of the sampling thread.
struct Watcher {
    observer: Observer,
    clock: Clock,
    kernel: Kernel,
    /// Samples that have not been passed to the sink yet.
    samples: Vec<Sample>,
    sink: Box<dyn SampleSink>,
    failed: Option<SinkError>,
    next_sample: u64,
    opened: Option<Look>,
    closed: Option<Look>,
    recent_backlog: u64,
    window_backlog: u64,
}

/// A snapshot of all statistics at one moment. The process's CPU time and the clock are read before and
/// after the other values, so that between two snapshots the CPU time of the process is at least the sum
/// over its threads, and the elapsed time is at least the CPU time of any thread.
struct Look {
    began: u64,
    cpu_at_begin: u64,
    threads: Vec<Option<Used>>,
    machine: Option<Machine>,
    cpu_at_end: u64,
    ended: u64,
}

impl Watcher {
    /// Creates the state of the thread, without observations.
    fn new(observer: Observer, clock: Clock, sink: Box<dyn SampleSink>) -> Watcher {
        Watcher {
            observer,
            clock,
            kernel: Kernel::open(),
            samples: Vec::with_capacity(BATCH + BATCH / 4),
            sink,
            failed: None,
            next_sample: 0,
            opened: None,
            closed: None,
            recent_backlog: 0,
            window_backlog: 0,
        }
    }

    /// Ticks and takes samples until the run is over. Returns the observations.
    fn watch(mut self) -> Seen {
        #[cfg(debug_assertions)]
        if self.clock.is_simulated() {
            return Seen { window: None, samples: self.sink.finish(), pauses: Some(Book::default()) };
        }
        let member = self.observer.enlist("canary");
        canary::be_exact();
        let clock = self.clock;
        let mut ticks = Ticks::new(canary::TICK_NS, clock.now());
        let mut pauses = Book::default();
        let mut waited = member.waited();
        while !self.observer.is_over() {
            let due = ticks.next();
            canary::sleep_until(clock, due);
            let now = clock.now();
            let before = std::mem::replace(&mut waited, member.waited());
            pauses.slept(due, now, waited.zip(before).map(|(now, before)| now.saturating_sub(before)));
            let observer = &self.observer;
            ticks.take_due(now).for_each(|late| observer.wakes().add(late, observer.is_measured(now - late)));
            self.look_at_backlog(self.observer.phase() == Phase::Measure);
            self.look_at_borders();
            if now >= self.next_sample {
                self.sample();
                if self.samples.len() >= BATCH {
                    self.hand_over();
                    // A slow disk delays only this thread, so the ticks that it missed meanwhile are not
                    // counted.
                    ticks.skip_to(clock.now());
                }
                let every = SAMPLE_EVERY.as_nanos() as u64;
                self.next_sample = (now / every + 1) * every;
            }
        }
        self.sample();
        self.hand_over();
        if self.opened.is_some() && self.closed.is_none() {
            self.closed = Some(self.look());
        }
        let window = self.window();
        let samples = self.failed.map_or_else(|| self.sink.finish(), Err);
        Seen { window, samples, pauses: Some(pauses) }
    }

    fn hand_over(&mut self) {
        if self.failed.is_none() {
            self.failed = self.sink.append(&self.samples).err();
        }
        self.samples.clear();
    }

    fn look_at_backlog(&mut self, measured: bool) {
        let most = self.observer.backlog().take_most();
        self.recent_backlog = self.recent_backlog.max(most);
        if measured {
            self.window_backlog = self.window_backlog.max(most);
        }
    }

    fn look_at_borders(&mut self) {
        let phase = self.observer.phase();
        if phase == Phase::Measure && self.opened.is_none() {
            self.opened = Some(self.look());
        }
        if phase > Phase::Measure && self.opened.is_some() && self.closed.is_none() {
            self.closed = Some(self.look());
        }
    }

    fn look(&self) -> Look {
        let clock = self.clock;
        Look {
            began: clock.now(),
            cpu_at_begin: clock.cpu(),
            threads: self.observer.threads().iter().map(|enlisted| enlisted.used()).collect(),
            machine: self.kernel.machine(),
            cpu_at_end: clock.cpu(),
            ended: clock.now(),
        }
    }

    /// Returns the observations in the measure window, from the two snapshots at its borders; `None` unless
    /// both snapshots were taken.
    fn window(&self) -> Option<Observed> {
        let (opened, closed) = (self.opened.as_ref()?, self.closed.as_ref()?);
        let observer = &self.observer;
        let spread = |gauge: &Gauge| gauge.window.take().spread();
        Some(Observed {
            for_ns: closed.ended - opened.began,
            process_cpu_ns: closed.cpu_at_end - opened.cpu_at_begin,
            threads: self.thread_times(opened, closed),
            machine: opened.machine.zip(closed.machine).map(|(opened, closed)| MachineTime {
                cores: machine_cores(),
                busy_ns: closed.busy_ns.saturating_sub(opened.busy_ns),
                stolen_ns: closed.stolen_ns.saturating_sub(opened.stolen_ns),
            }),
            lateness: spread(observer.lateness()),
            read_delay: spread(observer.read_delay()),
            wakes: spread(observer.wakes()),
            turns: spread(observer.turns()),
            writer_backlog_max: self.window_backlog,
            writer_backlog_limit: self.observer.backlog().limit(),
        })
    }

    /// Returns the CPU and waiting time of each thread between two snapshots. A thread that registered
    /// after the first snapshot is counted from its registration; a thread that left before the second is
    /// counted until it left. Threads that send and read come first.
    fn thread_times(&self, opened: &Look, closed: &Look) -> Vec<ThreadTime> {
        let threads = self.observer.threads();
        let times = threads.iter().zip(&closed.threads).enumerate().filter_map(|(index, (enlisted, closed))| {
            let opened = opened.threads.get(index).copied().flatten().unwrap_or(enlisted.before);
            let used = since(opened, (*closed)?);
            Some(ThreadTime { name: enlisted.name.clone(), cpu_ns: used.cpu_ns, wait_ns: used.wait_ns })
        });
        let mut times: Vec<ThreadTime> = times.collect();
        // Sorts `io-2` before `io-10`.
        times.sort_by(|a, b| (!a.is_io(), a.name.len(), &a.name).cmp(&(!b.is_io(), b.name.len(), &b.name)));
        times
    }

    fn sample(&mut self) {
        let at_ns = self.clock.now();
        let Watcher { observer, clock, kernel, samples, .. } = self;
        let mut add = |name: String, value: f64| {
            samples.push(Sample { at_ns, source: "generator".to_owned(), name, value, ..Sample::default() });
        };
        let progress = observer.progress();
        add("in_flight".into(), progress.in_flight.get() as f64);
        add("waiting".into(), progress.waiting.get() as f64);
        add("requests_ended_total".into(), progress.ended.get() as f64);
        add("requests_failed_total".into(), progress.failed.get() as f64);
        add("token_events_total".into(), progress.token_events.get() as f64);
        add("cpu_seconds_total".into(), seconds(clock.passed().cpu));
        if let Some(bytes) = kernel.resident_bytes() {
            add("resident_bytes".into(), bytes as f64);
        }
        add("writer_backlog_batches".into(), observer.backlog().waiting() as f64);
        add("writer_backlog_batches_max".into(), std::mem::take(&mut self.recent_backlog) as f64);
        threads(observer, &mut add);
        if let Some(machine) = kernel.machine() {
            add("machine_busy_seconds_total".into(), seconds(machine.busy_ns));
            add("machine_stolen_seconds_total".into(), seconds(machine.stolen_ns));
        }
        for (name, gauge) in [
            ("lateness", observer.lateness()),
            ("read_delay", observer.read_delay()),
            ("wake_delay", observer.wakes()),
            ("turn_delay", observer.turns()),
        ] {
            delays(name, &gauge.recent.take(), &mut add);
        }
    }
}

/// Adds samples of each thread's CPU and waiting time since the thread registered.
fn threads(observer: &Observer, add: &mut impl FnMut(String, f64)) {
    for enlisted in observer.threads().iter() {
        let name = &enlisted.name;
        let Some(used) = enlisted.used().map(|used| since(enlisted.before, used)) else { continue };
        add(format!("thread_cpu_seconds_total.{name}"), seconds(used.cpu_ns));
        if let Some(wait) = used.wait_ns {
            add(format!("thread_wait_seconds_total.{name}"), seconds(wait));
        }
    }
}

/// Adds samples of the delays since the last sample: the 99th percentile, the maximum, and the number of
/// delays in each octave.
fn delays(name: &str, counted: &Counted, add: &mut impl FnMut(String, f64)) {
    let Some(Spread { p99_ns, max_ns, .. }) = counted.spread() else { return };
    add(format!("{name}_p99_seconds"), seconds(p99_ns));
    add(format!("{name}_max_seconds"), seconds(max_ns));
    for (below, count) in counted.octaves() {
        add(format!("{name}_count.below_{below}ns"), count as f64);
    }
}

fn since(before: Used, now: Used) -> Used {
    Used {
        cpu_ns: now.cpu_ns.saturating_sub(before.cpu_ns),
        wait_ns: now.wait_ns.zip(before.wait_ns).map(|(now, before)| now.saturating_sub(before)),
    }
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
