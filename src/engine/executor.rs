//! The loop that starts requests. Closed and open loops differ only in their pacer.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::rows::{Lingering, Outcome, Phase, RequestRow};
use crate::workload::Lengths;

use super::checks::Checks;
use super::client::{Common, Ended, EndedRequest, Order};
use super::dispatch::Hands;
use super::error::EngineError;
use super::feed::Feed;
use super::outage::{Depth, Now, Outage, Seen, Step, server_died, token_rejected};
use super::pacer::Pacer;
use super::part::Ending;
use super::phase::PhaseClock;
use super::recorder::Recorder;
use super::start::Start;
use super::tally::{Aside, Asks, Entry, Failure, Tally};
use super::timer::Timer;
use super::workers::Completed;

/// If this machine fails to open this many connections in a row, the run ends, because it would measure
/// nothing.
const NO_ROOM_IN_A_ROW: u32 = 20;
/// Maximum number of requests started in a row before other tasks get a turn.
const MOST_AT_ONCE: usize = 256;
/// A request that was due within this time (in nanoseconds) before the run's end is not counted as
/// missed, because it could not have been sent in time.
const END_TOLERANCE_NS: u64 = 10_000_000;
/// How long before the desired instant the kernel's timer is set to fire, in nanoseconds. The rest of the
/// wait is spent polling the clock. Timers typically fire about this late.
const LEAD_NS: u64 = 50_000;
/// Like `LEAD_NS`, for plans that set `timer: spin`. A timer rarely fires later than this.
const SPIN_LEAD_NS: u64 = 200_000;
/// Waits shorter than this many times the lead do not poll the clock, so that polling takes at most a tenth
/// of a core.
const LEADS_PER_WAIT: u64 = 10;

/// How long a slot of a closed loop waits after a failure while the endpoint is checked for an outage, in
/// nanoseconds.
const HELD_BACK_NS: u64 = 200_000_000;

/// The state of a run in progress.
pub(crate) struct Executor {
    common: Arc<Common>,
    hands: Hands,
    /// Whether every wait, however short, ends by polling the clock.
    spins: bool,
    /// The due time for which the timer was set to fire early, in nanoseconds since the run's start, so that
    /// the rest of the wait polls the clock; `None` if the clock is not polled.
    led: Option<u64>,
    pacer: Pacer,
    phases: PhaseClock,
    feed: Feed,
    recorder: Recorder,
    ended: UnboundedReceiver<Completed>,
    tell_ended: UnboundedSender<Completed>,
    counts: Counts,
    /// Detects outages; `None` if the plan measures errors instead of ending the attempt.
    outage: Option<Outage>,
    checks: Checks,
    /// Coordinates the run's end with the processes that send the rest of the load; `None` if there are none.
    ending: Option<Ending>,
}

/// The executor's request counts, which are recorded in the run's facts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Number of requests that were scheduled.
    pub scheduled: u64,
    /// Number of requests that were scheduled in the measure window.
    pub scheduled_in_window: u64,
    /// Requests of the measure window that were never sent, for reasons other than the in-flight cap.
    pub never_sent: u64,
    /// Maximum number of requests in flight.
    pub max_in_flight: u64,
    in_flight: u64,
    measured_in_flight: u64,
    /// Number of requests whose rows are awaited, because the server holds their streams open.
    held_open: u64,
    /// Like `held_open`, for the requests of the measure window.
    measured_held_open: u64,
    lingering: Lingering,
    no_room_in_a_row: u32,
    /// The lowest request number that was never used.
    next_request: u64,
}

/// A completed run.
pub(crate) struct Done {
    /// The counts of the run.
    pub counts: Counts,
    /// The actual borders of the phases.
    pub phases: PhaseClock,
    /// When the run ended, in nanoseconds since its start.
    pub end: u64,
    /// The recorder, which has received all entries.
    pub(crate) recorder: Recorder,
}

/// The components of a run.
pub(crate) struct Parts {
    /// The state shared by the run's requests.
    pub common: Arc<Common>,
    /// The threads that perform the requests.
    pub hands: Hands,
    /// When each request starts.
    pub(crate) pacer: Pacer,
    /// Whether every wait, however short, ends by polling the clock.
    pub spins: bool,
    /// The phases of the run.
    pub phases: PhaseClock,
    /// The content of requests.
    pub(crate) feed: Feed,
    /// The destination of rows.
    pub(crate) recorder: Recorder,
    /// Detects outages; `None` if the plan measures errors instead of ending the attempt.
    pub outage: Option<Outage>,
    /// Checks whether the endpoint is reachable.
    pub(crate) checks: Checks,
    /// Coordinates the run's end with the processes that send the rest of the load; `None` if there are none.
    pub(crate) ending: Option<Ending>,
}

/// The events that the executor waits for.
enum Event {
    Stopped,
    Ended(Completed),
    Due,
}

impl Executor {
    /// Creates an executor of a run that has not started.
    pub(crate) fn new(parts: Parts) -> Executor {
        let Parts { common, hands, pacer, spins, phases, feed, recorder, outage, checks, ending } = parts;
        let (tell_ended, ended) = unbounded_channel();
        let counts = Counts::default();
        Executor {
            common,
            hands,
            spins,
            led: None,
            pacer,
            phases,
            feed,
            recorder,
            ended,
            tell_ended,
            counts,
            outage,
            checks,
            ending,
        }
    }

    /// Runs to the end, or until `stop` becomes true. However the run ends, the sink has received all rows
    /// recorded until then.
    pub(crate) async fn run(mut self, stop: watch::Receiver<bool>) -> Result<Done, EngineError> {
        let error = match self.go(stop).await {
            Ok(end) => {
                let Executor { counts, phases, recorder, .. } = self;
                return Ok(Done { counts, phases, end, recorder });
            }
            Err(error) => error,
        };
        if matches!(error, EngineError::Spoiled(_)) {
            self.cut_short().await;
        }
        match (error, self.recorder.finish()) {
            // Only the writer's own result contains the reason for its failure.
            (EngineError::WriterGone, Err(reason)) => Err(EngineError::Sink(reason)),
            (error, _) => Err(error),
        }
    }

    /// Starts requests until nothing is left to wait for, then ends the run. Returns when the run ended, in
    /// nanoseconds since its start.
    async fn go(&mut self, mut stop: watch::Receiver<bool>) -> Result<u64, EngineError> {
        let mut timer = Timer::new().map_err(EngineError::Setup)?;
        // Dropping the sender also stops the run.
        let mut stopped = pin!(async move { drop(stop.wait_for(|stop| *stop).await) });
        let mut looks = self.looks();
        loop {
            let now = self.common.clock.now();
            self.look_for_outage()?;
            if self.is_over(now) {
                break;
            }
            let mut launched = 0;
            while launched < MOST_AT_ONCE
                && let Some(start) = self.pacer.take_due(now)
            {
                self.launch(start).await?;
                launched += 1;
            }
            if self.pacer.is_at_its_end() {
                self.phases.no_more();
            }
            self.tell(now);
            if launched == MOST_AT_ONCE {
                // Let requests in flight make progress even if more requests are due than the machine can
                // ever send.
                tokio::task::yield_now().await;
            }
            let border = self.phases.next_border(now);
            let due = [self.pacer.next_due(), border, self.ending.as_ref().and_then(|ending| ending.next_look(now))]
                .into_iter()
                .flatten()
                .min();
            match self.wait(stopped.as_mut(), &mut timer, &mut looks, due, now).await? {
                Event::Stopped => return Err(EngineError::Stopped),
                Event::Due => {}
                Event::Ended(told) => {
                    self.settle(told).await?;
                    while let Ok(told) = self.ended.try_recv() {
                        self.settle(told).await?;
                    }
                }
            }
        }
        let last = now(&self.common, self.counts);
        let end = self.finish().await?;
        self.ask_at_the_end(last, stopped, &mut looks).await?;
        Ok(end)
    }

    /// Handles a run that ends during a series of failures. Such a run is over only when a check has shown
    /// whether the server is unreachable.
    async fn ask_at_the_end(
        &mut self,
        last: Now,
        mut stopped: Pin<&mut impl Future<Output = ()>>,
        looks: &mut Looks,
    ) -> Result<(), EngineError> {
        let step = self.outage.as_mut().map_or(Step::GoOn, |outage| outage.at_the_end(last));
        self.take(step)?;
        while self.outage.as_ref().is_some_and(Outage::asks) {
            let is_stopped = poll_fn(|cx| match stopped.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(true),
                Poll::Pending if self.checks.is_answered(cx) => Poll::Ready(false),
                Poll::Pending => looks.poll(cx).map(|()| false),
            });
            if is_stopped.await {
                return Err(EngineError::Stopped);
            }
            self.look_for_outage()?;
        }
        Ok(())
    }

    /// Cancels requests in flight, because the attempt is spoiled and must not send anything more to the
    /// server.
    async fn cut_short(&mut self) {
        self.cut();
        while self.counts.in_flight + self.counts.held_open > 0 {
            let Some(completed) = self.ended.recv().await else { break };
            // Errors of the writer do not matter, because the attempt is over.
            if self.close(completed).is_err() {
                break;
            }
        }
    }

    /// Records a request after the run's end.
    fn close(&mut self, completed: Completed) -> Result<(), EngineError> {
        match completed {
            Completed::Ended(ended, _) => {
                self.counts.leaves(&ended);
                self.keep(ended.request).map(drop)
            }
            Completed::Late(entry) => self.keep_late(entry),
        }
    }

    fn cut(&self) {
        self.common.cut.now();
        #[cfg(debug_assertions)]
        if let Some(server) = self.hands.simulated() {
            server.cut();
        }
    }

    /// Waits for the next event: a stop, the end of a request, or the instant `due`, in nanoseconds since
    /// the run's start.
    async fn wait(
        &mut self,
        mut stopped: Pin<&mut impl Future<Output = ()>>,
        timer: &mut Timer,
        looks: &mut Looks,
        due: Option<u64>,
        now: u64,
    ) -> Result<Event, EngineError> {
        #[cfg(debug_assertions)]
        if let Some(server) = self.hands.simulated() {
            let is_stopped = poll_fn(|cx| Poll::Ready(stopped.as_mut().poll(cx).is_ready())).await;
            return match (is_stopped, server.advance(due)) {
                (true, _) => Ok(Event::Stopped),
                (false, _) => Ok(self.ended.try_recv().map_or(Event::Due, Event::Ended)),
            };
        }
        let lead = if self.spins { SPIN_LEAD_NS } else { LEAD_NS };
        let left = due.map_or(0, |at| at.saturating_sub(now));
        if due.is_some() && left <= lead && (self.spins || self.led == due) {
            // While this task yields, the runtime polls the sockets.
            tokio::task::yield_now().await;
            return Ok(self.ended.try_recv().map_or(Event::Due, Event::Ended));
        }
        self.led = due.filter(|_| self.spins || left >= LEADS_PER_WAIT * lead);
        let due = if self.led.is_some() { due.map(|at| at - lead) } else { due };
        let at = due.map(|due| due + self.common.clock.origin());
        poll_fn(|cx| {
            if stopped.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(Event::Stopped));
            }
            if let Poll::Ready(Some(told)) = self.ended.poll_recv(cx) {
                return Poll::Ready(Ok(Event::Ended(told)));
            }
            // The main loop takes the result in its next iteration.
            if looks.poll(cx).is_ready() || self.checks.is_answered(cx) {
                return Poll::Ready(Ok(Event::Due));
            }
            timer.poll_until(at, cx).map_ok(|()| Event::Due).map_err(EngineError::Setup)
        })
        .await
    }

    /// Whether nothing is left to wait for.
    fn is_over(&mut self, now: u64) -> bool {
        let end = self.phases.measure_end();
        let measured_waits = self.pacer.oldest_waiting().is_some_and(|at| at < end);
        let measured_comes = self.pacer.next_due().is_some_and(|at| at < end);
        let nothing_open = self.counts.measured_in_flight + self.counts.measured_held_open == 0;
        let all_measured = nothing_open && !measured_waits && !measured_comes;
        let Some(ending) = &mut self.ending else {
            return now >= self.phases.deadline() || (now >= end && all_measured);
        };
        if now >= end && all_measured {
            ending.measured();
        }
        now >= ending.end(self.phases.deadline())
    }

    async fn launch(&mut self, start: Start) -> Result<(), EngineError> {
        let phase = self.phases.enter(start.scheduled);
        let (content, ticket) = self.feed.next(&start, self.common.clock).await.ok_or(EngineError::Content)?;
        let row = RequestRow {
            class: content.class.map(|class| class.to_string()),
            conversation: content.conversation,
            turn: content.turn,
            released_ns: Some(start.released),
            requested_tokens: content.requested_tokens,
            intended_prompt_tokens: content.intended_prompt_tokens,
            reusable_tokens: Some(content.seen_tokens),
            content_wait_ns: Some(self.feed.waited_since(start.released)),
            ..RequestRow::wanted(start.request, phase, start.scheduled)
        };
        self.count(phase);
        self.counts.next_request = self.counts.next_request.max(start.request + 1);
        self.counts.in_flight += 1;
        self.counts.measured_in_flight += u64::from(phase == Phase::Measure);
        self.counts.max_in_flight = self.counts.max_in_flight.max(self.counts.in_flight);
        if let Some(trail) = content.trail
            && !self.recorder.sent(start.request, trail)
        {
            return Err(EngineError::WriterGone);
        }
        let mut tally = Tally::new(row, self.common.protocol);
        tally.asks(Asks {
            bytes: content.body.len(),
            class: content.lane,
            values: content.values,
            can_count: self.recorder.can_count(),
        });
        if self.recorder.keeps_texts() {
            tally.keep_texts(content.body.clone());
        }
        let order = Order { start, body: content.body, tally };
        self.hands.perform(order, ticket, &self.tell_ended);
        Ok(())
    }

    /// Creates the row of a request whose content was never created.
    fn unmade_row(&mut self, request: u64, scheduled: u64, phase: Phase) -> RequestRow {
        let (class, Lengths { prompt_tokens, output_tokens }) = self.feed.skip();
        RequestRow {
            class: class.map(|class| class.to_string()),
            requested_tokens: output_tokens,
            intended_prompt_tokens: prompt_tokens,
            ..RequestRow::wanted(request, phase, scheduled)
        }
    }

    fn count(&mut self, phase: Phase) {
        self.counts.scheduled += 1;
        self.counts.scheduled_in_window += u64::from(phase == Phase::Measure);
    }

    /// Handles a request that has ended, and starts the request that can now start in its place, if any.
    async fn settle(&mut self, completed: Completed) -> Result<(), EngineError> {
        let (ended, ticket) = match completed {
            Completed::Ended(ended, ticket) => (ended, ticket),
            Completed::Late(entry) => return self.keep_late(entry),
        };
        self.counts.leaves(&ended);
        let outcome = ended.request.outcome();
        let verdict = self.judge(&ended);
        let ok = self.keep(ended.request)?;
        let think = self.feed.give_back(ticket, ok.then_some(ended.answer), ended.freed);
        verdict?;
        let think = if self.holds_back(outcome) { Some(think.unwrap_or(0).max(HELD_BACK_NS)) } else { think };
        if self.is_over(self.common.clock.now()) {
            return Ok(());
        }
        if let Some(start) = self.pacer.ended(ended.freed, ended.start.slot, think) {
            self.launch(start).await?;
        }
        Ok(())
    }

    /// Whether a slot of a closed loop waits after a request with this outcome before it sends the next one.
    /// Without this wait, a server that is starting or failing, and rejects requests at once, would receive
    /// thousands of requests per second. Slots wait after a failure while the server may be unreachable; if
    /// the plan measures errors, they wait after every connection that could not be opened. Arrivals of an
    /// open loop are not delayed.
    fn holds_back(&self, outcome: Outcome) -> bool {
        let may_be_away = match &self.outage {
            Some(outage) => !outcome.is_ok() && outage.suspects_a_row(),
            None => outcome == Outcome::Connect,
        };
        may_be_away && self.pacer.is_closed()
    }

    /// Decides whether the run can continue after this request; returns an error if not.
    fn judge(&mut self, ended: &Ended) -> Result<(), EngineError> {
        self.look_for_expiry(&ended.request)?;
        let request = &ended.request;
        let error = request.error();
        let no_room = ended.aside == Some(Aside::Local);
        self.counts.no_room_in_a_row = if no_room { self.counts.no_room_in_a_row + 1 } else { 0 };
        if self.counts.no_room_in_a_row >= NO_ROOM_IN_A_ROW {
            return Err(EngineError::NoRoom(error.to_owned()));
        }
        let Some(outage) = &mut self.outage else { return Ok(()) };
        let took = request.sent().map(|sent| ended.freed.saturating_sub(sent));
        let seen = Seen { request: request.number(), outcome: request.outcome(), error, aside: ended.aside, took };
        let now = now(&self.common, self.counts);
        let step = outage.ended(now, seen, self.counts.next_request);
        self.take(step)
    }

    /// Returns an error if the server rejects a token that expires. Later requests would fail too, although the
    /// server is well.
    fn look_for_expiry(&self, request: &EndedRequest) -> Result<(), EngineError> {
        if self.common.target.expires && request.outcome() == Outcome::Http(401) {
            return Err(EngineError::Spoiled(token_rejected(request.error())));
        }
        Ok(())
    }

    /// Processes the results of endpoint checks, and checks whether enough time has passed to suspect or
    /// confirm an outage.
    fn look_for_outage(&mut self) -> Result<(), EngineError> {
        let now = now(&self.common, self.counts);
        while let Some(checked) = self.checks.take() {
            let step = self.outage.as_mut().map_or(Step::GoOn, |outage| outage.answered(now, checked));
            self.take(step)?;
        }
        let step = self.outage.as_mut().map_or(Step::GoOn, |outage| outage.look(now));
        self.take(step)
    }

    fn take(&self, step: Step) -> Result<(), EngineError> {
        match step {
            Step::GoOn => Ok(()),
            Step::Check => {
                self.checks.begin(self.outage.as_ref().map_or(Depth::Presence, Outage::depth));
                Ok(())
            }
            Step::End(spoiled) => Err(EngineError::Spoiled(spoiled)),
        }
    }

    /// Returns the timer that wakes the executor to look for an outage.
    fn looks(&self) -> Looks {
        Looks(self.outage.as_ref().map(|outage| {
            let mut looks = interval(Duration::from_nanos(outage.every()));
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            looks
        }))
    }

    /// Records a request that has ended. Returns whether it succeeded.
    fn keep(&mut self, request: EndedRequest) -> Result<bool, EngineError> {
        let ok = request.outcome().is_ok();
        self.common.progress.ended.add(1);
        self.common.progress.failed.add(u64::from(!ok));
        match request {
            EndedRequest::Complete(entry) => self.push(entry)?,
            EndedRequest::HeldOpen { phase, .. } => self.counts.is_held_open(phase),
        }
        Ok(ok)
    }

    /// Records the row of a request whose stream was held open.
    fn keep_late(&mut self, entry: Entry) -> Result<(), EngineError> {
        self.counts.held_open -= 1;
        self.counts.measured_held_open -= u64::from(entry.row().phase == Phase::Measure);
        self.push(entry)
    }

    fn push(&mut self, entry: Entry) -> Result<(), EngineError> {
        self.common.progress.recent.take(entry.row());
        if self.recorder.push(entry) { Ok(()) } else { Err(EngineError::WriterGone) }
    }

    fn tell(&self, now: u64) {
        let progress = &self.common.progress;
        progress.at(self.phases.phase(now), now);
        progress.measures(self.phases.window());
        progress.in_window.set(self.phases.in_window());
        progress.in_flight.set(self.counts.in_flight);
        progress.waiting.set(self.pacer.waiting());
    }

    /// Ends the run: cancels requests in flight, and records requests that were due but never started.
    /// Returns when the run ended, in nanoseconds since its start.
    async fn finish(&mut self) -> Result<u64, EngineError> {
        let now = self.common.clock.now();
        let end = self.ending.as_ref().map_or(now, |ending| now.min(ending.end(self.phases.deadline())));
        self.tell(end);
        self.cut();
        while self.counts.in_flight + self.counts.held_open > 0 {
            let Some(completed) = self.ended.recv().await else { break };
            let expiry = match &completed {
                Completed::Ended(ended, _) => self.look_for_expiry(&ended.request),
                Completed::Late(_) => Ok(()),
            };
            self.close(completed)?;
            expiry?;
        }
        while let Some(missed) = self.pacer.take_unstarted(end) {
            let phase = self.phases.enter(missed.scheduled);
            self.count(phase);
            let expected = missed.scheduled + END_TOLERANCE_NS < end && !missed.held_by_cap;
            self.counts.never_sent += u64::from(phase == Phase::Measure && expected);
            let text = if missed.held_by_cap { "still waiting for the in-flight cap" } else { "never sent" };
            let row = self.unmade_row(missed.request, missed.scheduled, phase);
            let (entry, _) = Tally::new(row, self.common.protocol).finish(Err(Failure::new(Outcome::CutAtDrain, text)));
            if !self.recorder.push(entry) {
                return Err(EngineError::WriterGone);
            }
        }
        let alive = self.common.target.alive.as_ref().is_none_or(|alive| alive.load(Ordering::Relaxed));
        if !alive && self.outage.is_some() {
            return Err(EngineError::Spoiled(server_died()));
        }
        Ok(end)
    }
}

/// Returns the current state of the run, for outage detection.
fn now(common: &Common, counts: Counts) -> Now {
    let progress = &common.progress;
    let (received, tokens) = (progress.received(), progress.token_events.get());
    Now { at: common.clock.now(), received, in_flight: counts.in_flight, tokens }
}

impl Counts {
    /// Updates the counts after a request has ended.
    fn leaves(&mut self, ended: &Ended) {
        self.in_flight -= 1;
        self.measured_in_flight -= u64::from(ended.request.phase() == Phase::Measure);
    }

    /// Updates the counts after a request has ended whose stream the server holds open.
    fn is_held_open(&mut self, phase: Phase) {
        self.held_open += 1;
        self.measured_held_open += u64::from(phase == Phase::Measure);
        self.lingering.responses += 1;
        self.lingering.most = self.lingering.most.max(self.held_open);
    }

    /// Returns the streams that the server held open; `None` if there were none.
    pub(crate) fn lingering(&self) -> Option<Lingering> {
        (self.lingering.responses > 0).then_some(self.lingering)
    }
}

/// Wakes the executor regularly to look for an outage; never if outages are not detected.
struct Looks(Option<Interval>);

impl Looks {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.0 {
            Some(looks) => looks.poll_tick(cx).map(drop),
            None => Poll::Pending,
        }
    }
}
