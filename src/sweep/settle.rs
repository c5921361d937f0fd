//! Ensures that a server is idle before a run. If the server is still working on requests of earlier runs,
//! the run waits.
//!
//! A server with a gauge of running and waiting requests is checked before every run. A server without a
//! gauge is checked by generating one token, and only if it may still be working on earlier requests. This
//! is the case at the start of an invocation, because a sweep may have been killed, and after a run in
//! which the client gave up requests. Endpoints on one resource share its hardware, so unfinished requests
//! of one endpoint also affect the others.

use std::cell::Cell;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::sleep;

use crate::engine::{Progress, Sink, SinkError};
use crate::rows::{Began, Outcome, Record, Seen, ServerLoad};
use crate::server::{Busy, Gauge, ProbeError, Question};
use crate::units::Nanos;

/// The longest wait for a server before a run.
const WITHIN: Duration = Duration::from_secs(60);
/// The first and the longest pause between checks. Each pause is twice as long as the previous one.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// Waits that are longer than this are reported.
const TELL_AFTER: Duration = Duration::from_secs(2);
/// How long a gauge may show the same value before one token is generated. Some servers update their
/// gauges only while they work, and generating a token makes them do so.
const STUCK_AFTER: Duration = Duration::from_secs(1);

/// Tracks whether the servers of an invocation are idle.
#[derive(Debug, Default)]
pub(crate) struct Settle {
    servers: Mutex<HashMap<String, Server>>,
}

/// A run that is about to begin.
pub(crate) struct Beginning<'a> {
    /// The endpoint of the run.
    pub endpoint: &'a str,
    /// The name of the resource that the endpoint uses.
    pub resource: &'a str,
    /// The settings for requests to the server.
    pub question: Question,
    /// The run's live counters.
    pub(crate) progress: &'a Progress,
    /// Becomes true when the sweep must stop.
    pub stop: watch::Receiver<bool>,
    /// Called once with a message if the wait takes a long time.
    pub tell: &'a dyn Fn(String),
}

/// The sweep was stopped during the wait.
#[derive(Debug)]
pub(crate) struct Stopped;

impl Settle {
    /// Waits until the server is idle or the time limit is reached. Returns the state in which the run
    /// begins; `None` if the server was not checked or cannot be checked.
    pub(crate) fn before(&self, run: Beginning<'_>) -> Result<Option<Began>, Stopped> {
        let Beginning { endpoint, resource, question, progress, mut stop, tell } = run;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let (Ok(runtime), Some((mut own, mut others))) = (runtime, self.take(endpoint, resource, question)) else {
            return Ok(None);
        };
        let wait = Wait::start();
        let ended = runtime.block_on(async {
            let mut stopped = pin!(async move { drop(stop.wait_for(|stop| *stop).await) });
            let mut asking = pin!(all_idle(&mut own, &mut others, &wait));
            tokio::select! {
                biased;
                () = &mut stopped => return Err(Stopped),
                began = &mut asking => return Ok(began),
                () = sleep(TELL_AFTER) => {}
            }
            progress.settling.set(1);
            let seen =
                wait.seen.get().map_or_else(|| "a probe has not been answered yet".to_owned(), |seen| seen.to_string());
            tell(format!(
                "still busy with earlier requests ({seen}); waiting for at most {}",
                Nanos::from(wait.within)
            ));
            tokio::select! {
                biased;
                () = &mut stopped => Err(Stopped),
                began = &mut asking => Ok(began),
            }
        });
        progress.settling.set(0);
        // Until `after` is called, the run is assumed to have left unfinished requests.
        own.is_doubted = true;
        self.servers().extend(others.into_iter().chain([(endpoint.to_owned(), own)]));
        ended
    }

    /// Records that a run on an endpoint has ended. `left_behind` is the number of its requests that the
    /// server may still be working on.
    pub(crate) fn after(&self, endpoint: &str, left_behind: u64) {
        if let Some(server) = self.servers().get_mut(endpoint) {
            server.is_doubted = left_behind > 0;
        }
    }

    /// Takes the endpoint's server out of the map, and the other servers on the same resource that may still
    /// be working on earlier requests. No other run needs them in the meantime, because runs on one resource
    /// never overlap. Returns `None` if the server cannot be checked.
    fn take(&self, endpoint: &str, resource: &str, question: Question) -> Option<(Server, Vec<(String, Server)>)> {
        let mut servers = self.servers();
        let own = match servers.remove(endpoint) {
            Some(mut own) => {
                own.busy.ask_for(question);
                own
            }
            None => Server::new(resource, Busy::new(question).ok()?),
        };
        let is_other = |_: &String, server: &mut Server| server.is_doubted && server.resource == resource;
        let others = servers.extract_if(is_other).collect();
        Some((own, others))
    }

    fn servers(&self) -> MutexGuard<'_, HashMap<String, Server>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A wait for a server: its start, its time limit, and the last observation.
struct Wait {
    start: Instant,
    within: Duration,
    seen: Cell<Option<Seen>>,
}

impl Wait {
    fn start() -> Wait {
        Wait { start: Instant::now(), within: limit(), seen: Cell::new(None) }
    }

    fn left(&self) -> Duration {
        self.within.saturating_sub(self.start.elapsed())
    }

    fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    fn began(&self, idle: bool, seen: Seen) -> Began {
        Began { idle, waited_ns: Nanos::from(self.start.elapsed()).0, endpoint: None, seen }
    }
}

/// Returns the time limit of a wait. In builds with debug assertions, tests can change it with an environment
/// variable.
fn limit() -> Duration {
    let chosen = || std::env::var("SWEEPLINE_IDLE_WITHIN").ok()?.parse::<Nanos>().ok();
    if cfg!(debug_assertions) { chosen().map_or(WITHIN, Duration::from) } else { WITHIN }
}

/// Waits for the other servers on the resource, and then for the endpoint's own server. Returns the state
/// of the first server that did not become idle, otherwise the last state.
async fn all_idle(own: &mut Server, others: &mut [(String, Server)], wait: &Wait) -> Option<Began> {
    let mut last = None;
    for (name, other) in others {
        let began = other.idle(wait).await;
        last = began.map(|began| Began { endpoint: Some(name.clone()), ..began }).or(last);
        // The other server is not checked again before the next run: if it is unreachable, it may be gone, and
        // the sweep waits only once for a server that hangs.
        other.is_doubted = false;
        if last.as_ref().is_some_and(|began| !began.idle) {
            return last;
        }
    }
    own.idle(wait).await.or(last)
}

/// The server of an endpoint.
#[derive(Debug)]
struct Server {
    resource: String,
    busy: Busy,
    /// The location of the server's gauge; `Some(None)` if it has no gauge, and `None` if this is not known
    /// yet.
    gauge: Option<Option<Gauge>>,
    /// Whether the server may still be working on earlier requests.
    is_doubted: bool,
    /// For each model: the shortest TTFT of a probe.
    fastest: HashMap<String, Nanos>,
}

impl Server {
    fn new(resource: &str, busy: Busy) -> Server {
        Server { resource: resource.to_owned(), busy, gauge: None, is_doubted: true, fastest: HashMap::new() }
    }

    /// Waits until the server is idle or the time limit is reached. Returns `None` if the server
    /// need not be checked or cannot be checked.
    async fn idle(&mut self, wait: &Wait) -> Option<Began> {
        let mut first = None;
        if self.gauge.is_none() {
            match self.busy.find_gauge().await {
                Ok(found) => {
                    self.gauge = Some(found.map(|(gauge, _)| gauge));
                    first = found.map(|(_, load)| load);
                }
                // The server may be only temporarily unavailable, so the gauge is looked for again before
                // the next run.
                Err(ProbeError::Refused { .. }) => {}
                Err(_) => return None,
            }
        }
        if let Some(gauge) = self.gauge.flatten() {
            match self.idle_by_gauge(gauge, first, wait).await {
                Ok(Some(began)) => return Some(began),
                // The gauge is gone, probably because another server has been started.
                Ok(None) => self.gauge = None,
                Err(ProbeError::Refused { .. }) => {}
                Err(_) => return None,
            }
        }
        if self.is_doubted { self.idle_by_probe(wait).await } else { None }
    }

    /// Waits until the server is idle according to its gauge. `first` is the value that was just
    /// read, if there is one. Returns `None` if the gauge is gone.
    async fn idle_by_gauge(
        &self,
        gauge: Gauge,
        mut first: Option<ServerLoad>,
        wait: &Wait,
    ) -> Result<Option<Began>, ProbeError> {
        let mut pauses = pauses();
        let mut last: Option<(ServerLoad, Instant)> = None;
        let mut is_nudged = false;
        loop {
            let load = match first.take() {
                Some(load) => load,
                None => match self.busy.read(gauge).await? {
                    Some(load) => load,
                    None => return Ok(None),
                },
            };
            let seen = Seen::Gauge(load);
            wait.seen.set(Some(seen));
            if load.is_none() || wait.is_over() {
                return Ok(Some(wait.began(load.is_none(), seen)));
            }
            let since = last.filter(|(before, _)| *before == load).map_or_else(Instant::now, |(_, since)| since);
            last = Some((load, since));
            if !is_nudged && since.elapsed() >= STUCK_AFTER {
                // vLLM updates its gauges only while it works. They are stale after the last request was
                // cancelled, and generating one token updates them. This is done only once, because SGLang
                // updates its gauges only 30 s after it last did any work.
                is_nudged = true;
                let _ = self.busy.one_token(wait.left()).await;
                continue;
            }
            pause(&mut pauses, wait).await;
        }
    }

    /// Waits until the TTFT of a probe is as short as on an idle server. Returns `None` if the server cannot
    /// be checked.
    async fn idle_by_probe(&mut self, wait: &Wait) -> Option<Began> {
        let model = self.busy.model().to_owned();
        let known = self.fastest.get(&model).copied();
        let (mut pauses, mut before, mut shortest) = (pauses(), None, known);
        loop {
            let ttft = match self.busy.one_token(wait.left().max(Duration::from_millis(1))).await {
                Ok(ttft) => Some(ttft),
                Err(ProbeError::Silent { .. } | ProbeError::Unfinished { .. }) => None,
                // With status 503, the server is too busy to accept the probe.
                Err(ProbeError::Refused { status: 503, .. }) if wait.is_over() => None,
                Err(ProbeError::Refused { status: 503, .. }) => {
                    pause(&mut pauses, wait).await;
                    continue;
                }
                Err(_) => return None,
            };
            let is_back = ttft.is_some_and(|ttft| match known {
                Some(baseline) => is_back(ttft, baseline),
                None => before.is_some_and(|before| do_agree(before, ttft)),
            });
            shortest = shortest.into_iter().chain(ttft).min();
            let baseline_ns = if known.is_some() || is_back { shortest.map(|shortest| shortest.0) } else { None };
            let seen = Seen::Probe { ttft_ns: ttft.map(|ttft| ttft.0), baseline_ns };
            wait.seen.set(Some(seen));
            if let (true, Some(shortest)) = (is_back, shortest) {
                self.fastest.insert(model.clone(), shortest);
            }
            if is_back || ttft.is_none() || wait.is_over() {
                return Some(wait.began(is_back, seen));
            }
            // If the baseline is unknown, two probes must agree, and the second follows the first without a
            // pause.
            if known.is_some() || before.is_some() {
                pause(&mut pauses, wait).await;
            }
            before = ttft;
        }
    }
}

/// Whether a TTFT is that of an idle server: at most twice the baseline plus 50 ms.
fn is_back(ttft: Nanos, baseline: Nanos) -> bool {
    ttft.0 <= 2 * baseline.0 + Nanos::from_millis(50).0
}

/// Whether two TTFTs are so similar that the server was probably idle both times: the longer one is at most
/// 1.5 times the shorter one plus 20 ms.
fn do_agree(a: Nanos, b: Nanos) -> bool {
    let (short, long) = (a.min(b), a.max(b));
    long.0 <= short.0 + short.0 / 2 + Nanos::from_millis(20).0
}

fn pauses() -> impl Iterator<Item = Duration> {
    let (first, longest) = PAUSES;
    std::iter::successors(Some(first), move |pause| Some((*pause * 2).min(longest)))
}

/// Sleeps for the next pause, but not beyond the time limit.
async fn pause(pauses: &mut impl Iterator<Item = Duration>, wait: &Wait) {
    if let Some(pause) = pauses.next() {
        sleep(pause.min(wait.left())).await;
    }
}

/// A sink that counts the requests of a run that the server may still be working on after the run.
pub(crate) struct Leftovers {
    sink: Box<dyn Sink>,
    count: Arc<AtomicU64>,
}

impl Leftovers {
    /// Wraps `sink` with a sink that counts the requests that the server may still be working on after the
    /// run. Returns the new sink and the count.
    pub(super) fn of(sink: Box<dyn Sink>) -> (Leftovers, Arc<AtomicU64>) {
        let count = Arc::new(AtomicU64::new(0));
        (Leftovers { sink, count: Arc::clone(&count) }, count)
    }
}

impl Sink for Leftovers {
    fn append(&mut self, records: &[Record]) -> Result<(), SinkError> {
        let left = records.iter().filter(|record| record.row.sent_ns.is_some() && is_left(record.row.outcome)).count();
        self.count.fetch_add(left as u64, Ordering::Relaxed);
        self.sink.append(records)
    }

    fn finish(self: Box<Self>) -> Result<(), SinkError> {
        self.sink.finish()
    }
}

/// Whether a request with this outcome ended for the client before the server finished it. This includes
/// status 504, with which a gateway reports that it has stopped waiting.
fn is_left(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Timeout | Outcome::Reset | Outcome::Stalled | Outcome::Malformed | Outcome::CutAtDrain => true,
        Outcome::Http(status) => status == 504,
        Outcome::Ok
        | Outcome::Connect
        | Outcome::StreamError
        | Outcome::Empty
        | Outcome::Aborted
        | Outcome::NotStreamed
        | Outcome::ServerDied => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_back_at_twice_its_baseline() {
        let ms = Nanos::from_millis;
        assert!(is_back(ms(130), ms(40)) && !is_back(ms(131), ms(40)));
        assert!(do_agree(ms(40), ms(80)) && do_agree(ms(80), ms(40)) && !do_agree(ms(40), ms(81)));
    }

    #[test]
    fn pauses_double_up_to_two_seconds() {
        let ms: Vec<u128> = pauses().take(7).map(|pause| pause.as_millis()).collect();
        assert_eq!(ms, [100, 200, 400, 800, 1600, 2000, 2000]);
    }
}
