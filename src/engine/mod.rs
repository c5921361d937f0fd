//! Executes one run: schedule, executor, HTTP client, SSE, recorder.
//!
//! This module is independent of plans, tables, terminals and files. It takes a `RunSpec`, sends the contents
//! that `workload` prepares, and passes rows to a sink and counters to observers.

mod canary;
mod checks;
mod client;
mod clock;
mod connection;
mod connector;
mod conversations;
mod demand;
mod dispatch;
mod error;
mod executor;
mod feed;
mod gaps;
mod histogram;
mod http;
mod http2;
mod io;
mod lane;
mod limit;
mod lingering;
mod links;
mod observe;
mod other_body;
mod outage;
mod outcome_counts;
mod pacer;
mod part;
mod pattern;
mod pauses;
mod phase;
mod pool;
mod prefetch;
mod prefix_tree;
mod progress;
mod read_on;
mod recent;
mod recorder;
mod schedule;
mod sessions;
mod share;
#[cfg(debug_assertions)]
mod simulated;
mod sink;
mod socket;
mod sse;
mod stamp;
mod start;
#[doc(hidden)]
pub mod steps;
mod tally;
mod target;
mod template;
mod threads;
mod timer;
mod told;
mod trace;
mod transcripts;
mod unit_gaps;
mod waits;
mod watcher;
mod workers;

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::watch;

use crate::expand::{Course, Load, RunSpec};
use crate::plan::model::content::Content;
use crate::plan::model::talk::Talk;
use crate::plan::{Cache, Corpus, ErrorPolicy, Sessions, Timer};
use crate::rows::{Facts, PromptCount, READER, ReuseCount, Windows};
use crate::units::patience;
use crate::workload::{Counting, NonceKey, Tokenizer};

pub use checks::Check;
pub use clock::monotonic;
pub use demand::{Demand, demand};
pub use error::EngineError;
pub use outage::{Checked, Depth, TurnedAway, server_died};
pub use outcome_counts::OutcomeCounts;
pub use part::{Finish, Part, Stage};
pub use progress::{Counter, Progress};
pub use recent::{Recent, Times, Total};
pub use share::Share;
pub use sink::{SampleSink, Sink, SinkError, TextSink};
pub use target::{Secret, Target};
pub use trace::Trace;

use checks::Checks;
use client::{Common, Cut};
use clock::Clock;
use connector::Connector;
use dispatch::Opened;
use executor::{Done, Executor, Parts};
use feed::Feed;
use http2::Heads;
use observe::Observer;
use outage::Outage;
pub(crate) use pacer::Pacer;
use part::Ending;
use pattern::Pattern;
use phase::PhaseClock;
use recorder::Recorder;
use schedule::Schedule;
use transcripts::Texts;
use watcher::Watch;

/// One run to execute.
pub struct Job {
    /// The spec of the run.
    pub spec: Arc<RunSpec>,
    /// The server to which requests are sent.
    pub target: Target,
    /// The prefix of every `x-request-id`, so that a server's log can be matched with the rows.
    pub id_prefix: String,
    /// The key from which this attempt's nonces are derived.
    pub nonce_key: NonceKey,
    /// The model's tokenizer, which determines the length of prompts; `None` if the plan does not name one.
    pub tokenizer: Option<Arc<Tokenizer>>,
    /// The arrivals of an open loop from a trace; `None` if the rate and the arrival process of `spec`
    /// determine them.
    pub trace: Option<Trace>,
    /// The destination of rows.
    pub sink: Box<dyn Sink>,
    /// The destination of samples for the time series.
    pub samples: Box<dyn SampleSink>,
    /// The destination of the texts of prompts and responses; `None` if they are not recorded.
    pub texts: Option<Box<dyn TextSink>>,
    /// Checks whether the endpoint is reachable.
    pub check: Check,
    /// The share of the load that this process sends; `None` if it sends the whole load.
    pub part: Option<Part>,
    /// Whether a model of the embedded mock, in virtual time, stands in for the server, as far as it can.
    /// Builds without debug assertions ignore this.
    pub virtual_time: bool,
}

/// A completed run.
#[derive(Debug)]
pub struct Finished {
    /// The facts that the run's verdict is based on.
    pub facts: Facts,
    /// Number of samples in the run's time series.
    pub samples: u64,
    /// Number of requests with recorded texts; `None` if texts are not recorded.
    pub texts: Option<u64>,
}

/// Executes one run on the calling thread, until its end or until `stop` becomes true. During the run, rows
/// are written to the job's sink, and any thread may read `progress`.
pub fn execute(job: Job, progress: Arc<Progress>, stop: watch::Receiver<bool>) -> Result<Finished, EngineError> {
    stamp::keep_enabled();
    if matches!(job.spec.load, Load::Open { .. }) {
        threads::ask_for_short_slices();
    }
    dispatch::runtime().map_err(EngineError::Setup)?.block_on(perform(job, progress, stop))
}

async fn perform(job: Job, progress: Arc<Progress>, stop: watch::Receiver<bool>) -> Result<Finished, EngineError> {
    let Job { spec, target, id_prefix, nonce_key, tokenizer, trace, sink, samples, texts, check, part, virtual_time } =
        job;
    let share = part.as_ref().map_or(Share::WHOLE, |part| part.share);
    let observer = Observer::new(Arc::clone(&progress));
    let prompt_count = match tokenizer.as_deref().map(Tokenizer::is_learned) {
        Some(true) => PromptCount::Server,
        Some(false) => PromptCount::Tokenizer,
        None => PromptCount::Estimate,
    };
    // A server's counts of words are those of prompts; only the model's own tokenizer counts any text.
    let own_tokenizer = tokenizer.clone().filter(|tokenizer| !tokenizer.is_learned());
    let counting = tokenizer.map(|tokenizer| Counting { tokenizer, framing: spec.endpoint.api.protocol().framing() });
    let feed = Feed::start(&spec, share, nonce_key, counting.as_ref(), &observer)?;
    let shortest_prompt = feed.shortest_prompt();
    let target = Arc::new(target);
    let began = begin((&spec, share, part), virtual_time, &target, &progress, stop.clone()).await?;
    let Began { opened, clock, ending } = began;
    progress.starts(clock.origin());
    let watch = Watch::start(observer.clone(), clock, samples).map_err(EngineError::Setup)?;
    let mask = Arc::new(target.mask());
    let texts = texts.map(|sink| Texts::new(sink, Arc::clone(&mask)));
    let recorder = Recorder::start(sink, texts, own_tokenizer, share, observer.clone(), clock);
    let recorder = recorder.map_err(EngineError::Setup)?;
    let common = Arc::new(Common {
        protocol: spec.endpoint.api.protocol(),
        clock,
        pattern: Pattern::new(&spec, &target, &id_prefix),
        heads: spec.endpoint.http.map(|_| Heads::new(&spec, &target, &id_prefix)),
        target,
        mask,
        timeouts: spec.timeouts,
        stream: spec.shaping.stream,
        cut: Cut::default(),
        progress,
        observer,
    });
    let outage = (spec.errors == ErrorPolicy::Environment)
        .then(|| Outage::new(common.mask.hide(&common.target.route.to_string()), spec.shaping.stream, patience()));
    let executor = Executor::new(Parts {
        hands: opened.begin(&common, share),
        common,
        pacer: pacer(&spec, trace.clone(), share),
        spins: spec.engine.timer == Timer::Spin,
        phases: phases(&spec, trace, share),
        feed,
        recorder,
        outage,
        checks: Checks::new(check),
        ending,
    });
    let done = executor.run(stop).await?;
    let facts = facts(&spec, &done, clock);
    let texts = done.recorder.finish().map_err(EngineError::Sink)?;
    let seen = watch.finish();
    let samples = seen.samples.map_err(EngineError::Sink)?;
    let prompt_count = Some(prompt_count);
    let pauses = seen.pauses.map(|pauses| pauses.within(&facts.windows));
    let facts = Facts { observed: seen.window, pauses, prompt_count, shortest_prompt, ..facts };
    Ok(Finished { facts, samples, texts })
}

/// A run whose clock has started.
struct Began {
    opened: Opened,
    clock: Clock,
    ending: Option<Ending>,
}

/// Waits for the server's idle time to pass, opens connections, and starts the run's clock. If other
/// processes send the rest of the load, only the coordinator waits for the idle time, and this process waits
/// for the coordinator's cues to open connections and to start the clock.
async fn begin(
    (spec, share, part): (&Arc<RunSpec>, Share, Option<Part>),
    virtual_time: bool,
    target: &Arc<Target>,
    progress: &Progress,
    stop: watch::Receiver<bool>,
) -> Result<Began, EngineError> {
    #[cfg(not(debug_assertions))]
    let _ = virtual_time;
    #[cfg(debug_assertions)]
    if virtual_time
        && part.is_none()
        && let Some(run) = simulated::model(spec)
    {
        return Ok(Began { opened: Opened::Simulated(run), clock: Clock::simulated(), ending: None });
    }
    let Some(Part { open, start, finish, tell, .. }) = part else {
        leave_idle(spec, progress, stop.clone()).await?;
        let opened = open_ahead(spec, share, target, stop).await?;
        return Ok(Began { opened, clock: Clock::start(), ending: None });
    };
    tell(Stage::Prepared);
    part::cue(open, stop.clone()).await?;
    let opened = open_ahead(spec, share, target, stop.clone()).await?;
    tell(Stage::Opened);
    let origin = part::cue(start, stop.clone()).await?;
    let (clock, late) = part::begin_at(origin, stop).await?;
    tell(Stage::Began(late));
    Ok(Began { opened, clock, ending: Some(Ending { finish, tell, is_measured: false }) })
}

/// Waits until the run's idle time has passed, during which the server receives nothing and no connection is
/// open. Request contents may be prepared meanwhile.
pub async fn leave_idle(
    spec: &RunSpec,
    progress: &Progress,
    mut stop: watch::Receiver<bool>,
) -> Result<(), EngineError> {
    let Some(idle) = spec.phases.idle else { return Ok(()) };
    progress.idling.set(1);
    let ended = tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => Err(EngineError::Stopped),
        () = tokio::time::sleep(Duration::from_nanos(idle.0)) => Ok(()),
    };
    progress.idling.set(0);
    ended
}

/// Opens the connections that must be open before the run's clock starts.
async fn open_ahead(
    spec: &Arc<RunSpec>,
    share: Share,
    target: &Arc<Target>,
    mut stop: watch::Receiver<bool>,
) -> Result<Opened, EngineError> {
    let connector =
        Connector::new(Arc::clone(target), Clock::start(), spec.endpoint.http.is_some()).map_err(EngineError::Setup)?;
    tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => Err(EngineError::Stopped),
        opened = Opened::open(spec, share, connector) => opened.map_err(EngineError::Setup),
    }
}

/// Returns the arrival schedule of an open loop; `None` for a closed loop.
fn schedule(spec: &RunSpec, trace: Option<Trace>) -> Option<Schedule> {
    let Load::Open { arrivals, .. } = &spec.load else { return None };
    let course = Course::new(&spec.load, &spec.phases)?;
    let drawn = || Schedule::drawn(arrivals.process, course, timing_seed(spec));
    Some(trace.map_or_else(drawn, Schedule::given))
}

/// Returns the scheduled instants of an open loop's requests, in nanoseconds since the run's start; `None` if
/// they depend on the server's speed, as in a closed loop or for later turns of conversations.
pub fn arrivals(spec: &RunSpec) -> Option<impl Iterator<Item = u64> + use<>> {
    let mut schedule = schedule(spec, Trace::of(spec)).filter(|_| !sends_sessions(spec))?;
    Some(std::iter::from_fn(move || schedule.take()))
}

/// Whether the arrivals of an open loop are conversations.
fn sends_sessions(spec: &RunSpec) -> bool {
    spec.scenario.talk.sessions == Sessions::Open
}

fn pacer(spec: &RunSpec, trace: Option<Trace>, share: Share) -> Pacer {
    match (&spec.load, schedule(spec, trace)) {
        (Load::Open { cap, .. }, Some(schedule)) => match spec.scenario.talk.sessions {
            Sessions::Pooled => Pacer::open(schedule, *cap, share),
            Sessions::Open => Pacer::sessions(schedule, *cap, share),
        },
        (load, _) => Pacer::closed(load.batch_size().unwrap_or(1), spec.phases.fill.0, share),
    }
}

/// Returns the load pattern of a share, for simulations.
#[cfg(test)]
pub(crate) fn pacer_of(spec: &RunSpec, share: Share) -> Pacer {
    pacer(spec, Trace::of(spec), share)
}

/// Returns the phases of a run. A process that sends only a share of the load cannot count all requests of
/// the window, so it determines the end of the window in advance, from the schedule.
fn phases(spec: &RunSpec, trace: Option<Trace>, share: Share) -> PhaseClock {
    let mut phases = PhaseClock::new(&spec.phases);
    if let Some(arrivals) = schedule(spec, trace).filter(|_| !share.is_whole()) {
        phases.look_ahead(arrivals);
    }
    phases
}

/// Returns the seed of arrival times. It is derived from the plan's seed, the scenario and the repeat, so
/// that endpoints and loads share the same gaps. It is independent of the seed of request contents.
fn timing_seed(spec: &RunSpec) -> [u8; 32] {
    // Fields that must not change arrival times are set to a fixed value. A cold variant has the same arrival
    // times as its warm variant, and neither the conversation settings nor the origin of texts matters.
    let data = spec.scenario.data.as_ref().map(Corpus::bare);
    let scenario = Content { cache: Cache::Warm, talk: Talk::PLAIN, data, ..spec.scenario.clone() };
    let scenario = serde_json::to_vec(&scenario).expect("a scenario is plain data");
    Sha256::new()
        .chain_update(b"sweepline arrival times 1\0")
        .chain_update(spec.seed.0.to_le_bytes())
        .chain_update(spec.repeat.to_le_bytes())
        .chain_update(scenario)
        .finalize()
        .into()
}

/// Returns the average rate of arrivals in the measure window, in requests per second, according to the
/// rate profile or the trace; `None` without either.
fn window_qps(spec: &RunSpec, windows: &Windows) -> Option<f64> {
    if let Some(trace) = Trace::of(spec) {
        return Some(trace.between(windows.measure_start_ns, windows.measure_end_ns) as f64 / windows.measure_secs());
    }
    spec.load.profile()?;
    let course = Course::new(&spec.load, &spec.phases)?;
    Some(course.between(windows.measure_start_ns, windows.measure_end_ns) / windows.measure_secs())
}

fn facts(spec: &RunSpec, done: &Done, clock: Clock) -> Facts {
    let passed = clock.passed();
    Facts {
        windows: done.phases.windows(done.end),
        start_monotonic_ns: clock.origin(),
        open_loop: matches!(spec.load, Load::Open { .. }),
        batch_size: spec.load.batch_size(),
        qps: spec.load.qps().map(|qps| qps.to_f64()),
        window_qps: window_qps(spec, &done.phases.windows(done.end)),
        stream: spec.shaping.stream,
        ignore_eos: spec.shaping.ignore_eos,
        idle_ns: spec.phases.idle.map(|idle| idle.0),
        began: None,
        start: None,
        hooks: Vec::new(),
        not_near: None,
        gpus: spec.endpoint.gpus,
        thinks: spec.scenario.talk.think.is_some(),
        scheduled: done.counts.scheduled,
        scheduled_in_window: done.counts.scheduled_in_window,
        never_sent: done.counts.never_sent,
        monotonic_ns: passed.monotonic,
        wall_ns: passed.wall,
        boottime_ns: passed.boottime,
        client_cpu_ns: Some(passed.cpu),
        client_cores: threads::usable_cores(),
        max_in_flight: done.counts.max_in_flight,
        observed: None,
        pauses: None,
        client_threads: spec.engine.threads,
        client_timer: spec.engine.timer.name().to_owned(),
        prompt_count: None,
        reuse_count: Some(ReuseCount::Sent),
        recorded_texts: sends_data(spec),
        probe_prompt: None,
        shortest_prompt: None,
        errors_measured: spec.errors == ErrorPolicy::Measured,
        lingering: done.counts.lingering(),
        reader: READER,
        telemetry: None,
        workers: Vec::new(),
    }
}

/// Whether a run or a class of its mix sends texts from a data set.
fn sends_data(spec: &RunSpec) -> bool {
    spec.scenario.data.is_some() || spec.mix.iter().any(|class| class.scenario.data.is_some())
}
