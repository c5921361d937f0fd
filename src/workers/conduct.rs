//! The coordinator of one run: starts the workers, compares clocks, begins the run, merges the
//! results, and ends the workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::engine::{self, EngineError, Finished, Progress, SampleSink, Sink, TextSink, monotonic};
use crate::rows::{ClockOffset, SpoilCause, Spoiled};

use super::child::{Crew, Event};
use super::clocks::{Estimate, Exchange, PINGS, estimate};
use super::end::{Ended, finished};
use super::material;
use super::message::{Build, Failed, FromWorker, Order, ToWorker, Told};
use super::start::StartCommand;
use super::under_way::UnderWay;

/// How long a worker may take to send its first message, because a scheduler may take a while to
/// start it.
const HELLO_WITHIN: Duration = Duration::from_secs(60);
/// How long a worker may take to prepare contents and open connections.
const READY_WITHIN: Duration = Duration::from_secs(600);
/// How long a worker may take to respond to a ping.
const PONG_WITHIN: Duration = Duration::from_secs(10);
/// Time between the last message before the start and the start itself, in nanoseconds.
const START_LEAD_NS: u64 = 50_000_000;

/// A run whose load several processes send.
pub struct Load {
    /// The order for each worker; the coordinator sets the share.
    pub order: Order,
    /// The start command of each worker.
    pub starts: Vec<StartCommand>,
    /// The destination of rows.
    pub sink: Box<dyn Sink>,
    /// The destination of time series.
    pub samples: Box<dyn SampleSink>,
    /// The destination of texts, if they are recorded.
    pub texts: Option<Box<dyn TextSink>>,
    /// Becomes false when the server process that sweepline started has ended.
    pub alive: Option<Arc<AtomicBool>>,
    /// The function that removes secrets from a worker's messages.
    pub redact: Box<dyn Fn(&str) -> String + Send>,
}

/// Executes one run with workers, until its end or until `stop` becomes true. Rows go to the load's sink
/// while it runs. However the run ends, no worker remains.
///
/// # Errors
///
/// Same as [`engine::execute`]; the loss of a worker spoils the attempt.
pub fn execute(load: Load, progress: &Progress, stop: &watch::Receiver<bool>) -> Result<Finished, EngineError> {
    let Load { order, starts, sink, samples, texts, alive, redact } = load;
    let material = material::encode(&order.spec).map_err(|error| EngineError::Workers(error.to_string()))?;
    let mut run = UnderWay::new(&order.spec, order.url.clone(), (sink, samples, texts), starts.len());
    let crew = Crew::start(&starts, (&order, material), stop.clone(), redact)?;
    let mut conductor = Conductor { crew, order: &order, alive };
    let ended = conductor.conduct(&mut run, progress, stop);
    drop(conductor);
    match ended {
        Ok(ended) => finished(run, ended, &order.spec),
        Err(error) => {
            // The rows that have arrived so far stay with the attempt; the first error is the one
            // to report.
            let _ = run.close();
            Err(error)
        }
    }
}

struct Conductor<'a> {
    crew: Crew,
    order: &'a Order,
    alive: Option<Arc<AtomicBool>>,
}

impl Conductor<'_> {
    fn conduct(
        &mut self,
        run: &mut UnderWay,
        progress: &Progress,
        stop: &watch::Receiver<bool>,
    ) -> Result<Ended, EngineError> {
        // A worker that fails to start does not spoil an attempt because a retry would not help.
        self.greet().map_err(|error| match error {
            EngineError::Spoiled(Spoiled { cause: SpoilCause::WorkerLost, detail, .. }) => EngineError::Workers(detail),
            other => other,
        })?;
        self.idle(progress, stop)?;
        self.crew.tell_all(&ToWorker::Open)?;
        self.reach(Told::Opened)?;
        let before = self.compare_clocks()?;
        let origin = self.begin(&before)?;
        progress.starts(origin);
        self.follow(run, progress, &before, origin)?;
        let after = self.compare_clocks()?;
        self.crew.tell_all(&ToWorker::Bye)?;
        let clock = |(before, after): (&Estimate, &Estimate)| ClockOffset {
            offset_ns: before.offset_ns,
            uncertainty_ns: before.uncertainty_ns,
            drift_ns: after.offset_ns - before.offset_ns,
            drift_uncertainty_ns: after.uncertainty_ns + before.uncertainty_ns,
        };
        let clocks = before.iter().zip(&after).map(clock).collect();
        let called = self.crew.members.iter().map(|member| (member.name.clone(), member.host.clone())).collect();
        Ok(Ended { origin, clocks, called })
    }

    /// Waits until every worker has sent its first message and has prepared its contents.
    fn greet(&mut self) -> Result<(), EngineError> {
        let count = self.crew.members.len();
        let (mut greeted, mut prepared, mut took) = (vec![false; count], vec![false; count], vec![false; count]);
        let (hello_by, ready_by) = (Instant::now() + HELLO_WITHIN, Instant::now() + READY_WITHIN);
        while !prepared.iter().chain(&took).all(|is| *is) {
            let silent = greeted.iter().position(|is| !is);
            let deadline = if silent.is_some() { hello_by } else { ready_by };
            let Some((index, event)) = self.crew.next(deadline)? else {
                let (late, within) = match silent {
                    Some(silent) => (silent, HELLO_WITHIN),
                    None => (prepared.iter().position(|is| !is).unwrap_or(0), READY_WITHIN),
                };
                return Err(self.crew.lost(late, Some(format!("no response within {} s", within.as_secs()))));
            };
            match event {
                Event::Took(input) => {
                    self.crew.took(index, input);
                    took[index] = true;
                }
                Event::Told(FromWorker::Hello(build, host), _) => {
                    self.crew.members[index].host = host;
                    self.is_like(index, &build)?;
                    greeted[index] = true;
                }
                Event::Told(FromWorker::Stage(Told::Prepared), _) => prepared[index] = true,
                other => self.ignore(index, other)?,
            }
        }
        Ok(())
    }

    /// Rejects a worker of another version, because its numbers may have a different meaning.
    fn is_like(&self, index: usize, theirs: &Build) -> Result<(), EngineError> {
        let own = Build::own();
        if *theirs == own {
            return Ok(());
        }
        let what =
            format!("runs sweepline {}, but this is {}: install the same version there", theirs.version, own.version);
        Err(self.crew.wrong(index, &what))
    }

    fn idle(&self, progress: &Progress, stop: &watch::Receiver<bool>) -> Result<(), EngineError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(EngineError::Setup)?;
        runtime.block_on(engine::leave_idle(&self.order.spec, progress, stop.clone()))
    }

    /// Waits until every worker has reached a stage.
    fn reach(&mut self, stage: Told) -> Result<(), EngineError> {
        let mut is_there = vec![false; self.crew.members.len()];
        let deadline = Instant::now() + READY_WITHIN;
        while let Some(late) = is_there.iter().position(|is| !is) {
            let Some((index, event)) = self.crew.next(deadline)? else {
                return Err(self.crew.lost(late, Some(format!("no response within {} s", READY_WITHIN.as_secs()))));
            };
            match event {
                Event::Told(FromWorker::Stage(told), _) if told == stage => is_there[index] = true,
                other => self.ignore(index, other)?,
            }
        }
        Ok(())
    }

    /// Compares each worker's clock with the coordinator's.
    fn compare_clocks(&mut self) -> Result<Vec<Estimate>, EngineError> {
        (0..self.crew.members.len()).map(|index| self.compare_clock(index)).collect()
    }

    fn compare_clock(&mut self, of: usize) -> Result<Estimate, EngineError> {
        let mut exchanges = Vec::new();
        for number in 0..PINGS {
            let asked = monotonic();
            self.crew.tell(of, &ToWorker::Ping(number))?;
            let deadline = Instant::now() + PONG_WITHIN;
            loop {
                let Some((index, event)) = self.crew.next(deadline)? else {
                    return Err(self.crew.lost(of, Some(format!("no response within {} s", PONG_WITHIN.as_secs()))));
                };
                match event {
                    Event::Told(FromWorker::Pong(told, answered), arrived) if (index, told) == (of, number) => {
                        exchanges.push(Exchange { asked, answered, arrived });
                        break;
                    }
                    other => self.ignore(index, other)?,
                }
            }
        }
        Ok(estimate(&exchanges).unwrap_or_default())
    }

    /// Sends every worker the start time of the run. Returns the start on this machine's clock.
    fn begin(&mut self, clocks: &[Estimate]) -> Result<u64, EngineError> {
        let slowest = clocks.iter().map(|clock| clock.uncertainty_ns).max().unwrap_or(0);
        let origin = monotonic() + START_LEAD_NS + 4 * slowest;
        for (index, clock) in clocks.iter().enumerate() {
            self.crew.tell(index, &ToWorker::Start(origin.saturating_add_signed(clock.offset_ns)))?;
        }
        Ok(origin)
    }

    /// Follows the run to its end.
    fn follow(
        &mut self,
        run: &mut UnderWay,
        progress: &Progress,
        clocks: &[Estimate],
        origin: u64,
    ) -> Result<(), EngineError> {
        let slowest = clocks.iter().map(|clock| clock.uncertainty_ns).max().unwrap_or(0);
        self.crew.members.iter_mut().for_each(|member| member.heard = Instant::now());
        while !run.is_done() {
            if self.alive.as_ref().is_some_and(|alive| !alive.load(Ordering::Relaxed)) {
                return Err(EngineError::Spoiled(engine::server_died()));
            }
            if let Some((index, event)) = self.crew.next(Instant::now() + Duration::from_millis(100))? {
                self.crew.members[index].heard = Instant::now();
                if let Some(other) = run.take(index, event, progress)? {
                    self.ignore(index, other)?;
                }
            }
            if run.takes_end() {
                let at = monotonic().saturating_sub(origin) + START_LEAD_NS + 4 * slowest;
                self.crew.tell_all(&ToWorker::Finish(at))?;
            }
            self.look_for_silence(run)?;
        }
        Ok(())
    }

    /// Treats a silent worker as lost, because workers report ten times a second.
    fn look_for_silence(&mut self, run: &UnderWay) -> Result<(), EngineError> {
        let patience = Duration::from_nanos(crate::units::patience().0);
        let silent = |(index, member): (usize, &super::child::Member)| {
            !run.has_ended(index) && member.heard.elapsed() > patience
        };
        match self.crew.members.iter().enumerate().position(silent) {
            Some(index) => {
                let reason = format!("no message for {:.1} s", patience.as_secs_f64());
                Err(self.crew.lost(index, Some(reason)))
            }
            None => Ok(()),
        }
    }

    /// Handles events that may arrive at any time.
    fn ignore(&mut self, index: usize, event: Event) -> Result<(), EngineError> {
        match event {
            Event::Gone(reason) => Err(self.crew.lost(index, reason)),
            Event::Told(FromWorker::Failed(Failed::Spoiled(spoiled)), _) => Err(EngineError::Spoiled(spoiled)),
            Event::Told(FromWorker::Failed(Failed::Other(reason)), _) => {
                Err(self.crew.wrong(index, &format!("cannot send its share: {reason}")))
            }
            Event::Told(FromWorker::Failed(Failed::Stopped), _) => {
                Err(self.crew.lost(index, Some("it was stopped".to_owned())))
            }
            Event::Took(input) => {
                self.crew.took(index, input);
                Ok(())
            }
            Event::Told(..) | Event::Records(_) => Ok(()),
        }
    }
}
