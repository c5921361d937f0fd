//! Ensures that a server is idle before a run. If it has not finished the requests that the previous run
//! left behind, the run waits for it.
//!
//! A server with a gauge is checked before every run. Without one it is checked by generating one token, and
//! only if requests may be left: at the start of an invocation, because a killed sweep may have left some,
//! and after a run whose requests did not all end by themselves. Endpoints on one resource share its
//! hardware, so requests that one of them left also affect the others.

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
/// Pauses between checks, from the first to the longest; each is twice the previous one.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// Waits that are longer than this are reported.
const TELL_AFTER: Duration = Duration::from_secs(2);
/// A gauge that shows the same value for this long may be updated only while the server works. A generation
/// makes it update.
const STUCK_AFTER: Duration = Duration::from_secs(1);

/// Tracks whether the servers of an invocation are idle.
#[derive(Debug, Default)]
pub(crate) struct Settle {
    servers: Mutex<HashMap<String, Server>>,
}

/// One run that is about to begin.
pub(crate) struct Beginning<'a> {
    /// The endpoint of the run.
    pub endpoint: &'a str,
    /// The resource of the endpoint.
    pub resource: &'a str,
    /// The request settings of a probe of the endpoint.
    pub question: Question,
    /// The run's live counters.
    pub(crate) progress: &'a Progress,
    /// Becomes true when the sweep must stop.
    pub stop: watch::Receiver<bool>,
    /// Called once with the reason for the wait, if it takes long.
    pub tell: &'a dyn Fn(String),
}

/// The sweep was stopped during the wait.
#[derive(Debug)]
pub(crate) struct Stopped;

impl Settle {
    /// Waits until the server is idle or the time is over. `None` if the server was not checked or
    /// cannot be checked.
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
        // Whatever its outcome, the run is assumed to have left work behind until the opposite is
        // known.
        own.is_doubted = true;
        self.servers().extend(others.into_iter().chain([(endpoint.to_owned(), own)]));
        ended
    }

    /// Records that a run on an endpoint has ended, and that `left_behind` of its requests may still be in
    /// progress at the server.
    pub(crate) fn after(&self, endpoint: &str, left_behind: u64) {
        if let Some(server) = self.servers().get_mut(endpoint) {
            server.is_doubted = left_behind > 0;
        }
    }

    /// Takes the endpoint's server, and the servers on the same resource that may still be working on
    /// earlier requests. Nothing else needs them at this time, because runs on one resource never overlap.
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

/// Returns the time waited, and the last observation.
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

/// Returns the limit, which a test may shorten in builds with debug assertions.
fn limit() -> Duration {
    let chosen = || std::env::var("SWEEPLINE_IDLE_WITHIN").ok()?.parse::<Nanos>().ok();
    if cfg!(debug_assertions) { chosen().map_or(WITHIN, Duration::from) } else { WITHIN }
}

/// Checks the other servers first; they are checked only if they may be busy.
async fn all_idle(own: &mut Server, others: &mut [(String, Server)], wait: &Wait) -> Option<Began> {
    let mut last = None;
    for (name, other) in others {
        let began = other.idle(wait).await;
        last = began.map(|began| Began { endpoint: Some(name.clone()), ..began }).or(last);
        // An unreachable server may be gone, and a run waits for a hanging server only once.
        other.is_doubted = false;
        if last.as_ref().is_some_and(|began| !began.idle) {
            return last;
        }
    }
    own.idle(wait).await.or(last)
}

/// One endpoint's server.
#[derive(Debug)]
struct Server {
    resource: String,
    busy: Busy,
    /// The location of the server's gauge; `None` before the first look.
    gauge: Option<Option<Gauge>>,
    /// Whether earlier requests may still be in progress.
    is_doubted: bool,
    /// The shortest TTFT of a probe, by model.
    fastest: HashMap<String, Nanos>,
}

impl Server {
    fn new(resource: &str, busy: Busy) -> Server {
        Server { resource: resource.to_owned(), busy, gauge: None, is_doubted: true, fastest: HashMap::new() }
    }

    /// Checks the server until it is idle or the time is over. `None` if it need not be checked or does
    /// not report its state.
    async fn idle(&mut self, wait: &Wait) -> Option<Began> {
        let mut first = None;
        if self.gauge.is_none() {
            match self.busy.find_gauge().await {
                Ok(found) => {
                    self.gauge = Some(found.map(|(gauge, _)| gauge));
                    first = found.map(|(_, load)| load);
                }
                // The gauge may be found at another time.
                Err(ProbeError::Refused { .. }) => {}
                Err(_) => return None,
            }
        }
        if let Some(gauge) = self.gauge.flatten() {
            match self.idle_by_gauge(gauge, first, wait).await {
                Ok(Some(began)) => return Some(began),
                // Another server has replaced it.
                Ok(None) => self.gauge = None,
                Err(ProbeError::Refused { .. }) => {}
                Err(_) => return None,
            }
        }
        if self.is_doubted { self.idle_by_probe(wait).await } else { None }
    }

    /// Waits using the server's gauge, whose value was just `first`; `None` if the gauge is gone.
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
                // vLLM updates its gauges only while it works: after the last request is cancelled they are
                // stale, and one token refreshes them. This is done only once, because SGLang updates the
                // gauge only 30 s after its last work.
                is_nudged = true;
                let _ = self.busy.one_token(wait.left()).await;
                continue;
            }
            pause(&mut pauses, wait).await;
        }
    }

    /// Waits, using probes, until the TTFT has returned to its value on the idle server.
    async fn idle_by_probe(&mut self, wait: &Wait) -> Option<Began> {
        let model = self.busy.model().to_owned();
        let known = self.fastest.get(&model).copied();
        let (mut pauses, mut before, mut shortest) = (pauses(), None, known);
        loop {
            let ttft = match self.busy.one_token(wait.left().max(Duration::from_millis(1))).await {
                Ok(ttft) => Some(ttft),
                Err(ProbeError::Silent { .. } | ProbeError::Unfinished { .. }) => None,
                // The server is too busy to accept the probe.
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
            // If two probes must agree, the second follows the first without a pause.
            if known.is_some() || before.is_some() {
                pause(&mut pauses, wait).await;
            }
            before = ttft;
        }
    }
}

/// Whether a TTFT is back at its baseline: at most twice the baseline plus 50 ms.
fn is_back(ttft: Nanos, baseline: Nanos) -> bool {
    ttft.0 <= 2 * baseline.0 + Nanos::from_millis(50).0
}

/// Whether two TTFTs may belong to the same state of a server: the longer one exceeds the shorter one by
/// at most half of it plus 20 ms.
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

/// A sink that counts the requests of a run on which the server may still work when the run is over.
pub(crate) struct Leftovers {
    sink: Box<dyn Sink>,
    count: Arc<AtomicU64>,
}

impl Leftovers {
    /// Creates a sink that counts and passes requests on to `sink`. Returns the new sink and the
    /// count.
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

/// Whether the client left before the server had finished. A gateway that times out (504) is also such a
/// client.
fn is_left(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Timeout | Outcome::Reset | Outcome::Stalled | Outcome::Malformed | Outcome::CutAtDrain => true,
        Outcome::Http(status) => status == 504,
        Outcome::Ok | Outcome::Connect | Outcome::StreamError | Outcome::Empty | Outcome::ServerDied => false,
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
