//! A server and a clock that exist only inside this process, in builds with debug assertions. In virtual
//! time, the engine sends the load of an embedded mock to this server instead: it follows the same timing model (`mock/pace.rs`), and the clock jumps from one event to the next. A run
//! takes milliseconds and has the same figures on any machine, so tests of everything behind the engine
//! need neither time nor a quiet machine. Schedule, executor, phases, tally and recorder are those of real
//! runs; connections and sockets are not involved.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc::UnboundedSender;

use crate::expand::RunSpec;
use crate::plan::MockFigures;
use crate::protocol::Api;
use crate::rows::Outcome;

use super::client::{Common, Ended, EndedRequest, Order};
use super::feed::Ticket;
use super::io::Read;
use super::sse::Event;
use super::tally::{Failure, Tally};
use super::workers::Completed;

/// The server's model for one run.
pub(crate) struct SimulatedRun {
    figures: MockFigures,
    /// The seed of the jitter.
    seed: [u8; 32],
}

/// Returns the server's model for the run of `spec`; `None` if the model lacks something that the run needs, so
/// that the run has to be measured on a real server.
pub(super) fn model(spec: &RunSpec) -> Option<SimulatedRun> {
    let figures = spec.endpoint.mock.as_ref().filter(|figures| figures.prefix_cache.is_none())?;
    let is_plain = spec.endpoint.api == Api::Chat && spec.endpoint.http.is_none() && spec.shaping.stream;
    if !is_plain || spec.engine.threads > 1 {
        return None;
    }
    // Repeats and loads differ, as they do on a server that draws from one stream for all requests.
    let seed = Sha256::new()
        .chain_update(figures.seed.0.to_le_bytes())
        .chain_update(spec.seed.0.to_le_bytes())
        .chain_update(spec.repeat.to_le_bytes())
        .chain_update(format!("{:?}", spec.load))
        .finalize()
        .into();
    Some(SimulatedRun { figures: figures.clone(), seed })
}

/// The server of one run.
pub(crate) struct SimulatedServer {
    common: Arc<Common>,
    figures: MockFigures,
    seed: [u8; 32],
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    /// The tokens that are due: the instant in nanoseconds since the run's start, and the request.
    due: BinaryHeap<Reverse<(u64, u64)>>,
    /// Requests with a slot.
    active: BTreeMap<u64, Stream>,
    /// Requests that wait for a slot.
    queue: VecDeque<Stream>,
}

struct Stream {
    order: Order,
    ticket: Ticket,
    ended: UnboundedSender<Completed>,
    random: ChaCha8Rng,
    tokens: u32,
}

impl SimulatedServer {
    /// Creates an idle server.
    pub(super) fn new(common: Arc<Common>, SimulatedRun { figures, seed }: SimulatedRun) -> SimulatedServer {
        SimulatedServer { common, figures, seed, state: RefCell::default() }
    }

    /// Receives a request now.
    pub(super) fn perform(&self, mut order: Order, ticket: Ticket, ended: &UnboundedSender<Completed>) {
        let mut random = ChaCha8Rng::from_seed(self.seed);
        random.set_stream(order.start.request);
        let now = self.common.clock.now();
        order.tally.row.sent_ns = Some(now);
        let stream = Stream { order, ticket, ended: ended.clone(), random, tokens: 0 };
        let state = &mut *self.state.borrow_mut();
        if state.active.len() < self.figures.slots as usize {
            self.admit(state, stream, now);
        } else {
            state.queue.push_back(stream);
        }
    }

    /// Gives a request its slot at `now`.
    fn admit(&self, state: &mut State, mut stream: Stream, now: u64) {
        let row = &mut stream.order.tally.row;
        row.headers_ns = Some(now);
        row.http_status = Some(200);
        let prefill = self.figures.prefill.0.0 as f64 * f64::from(row.intended_prompt_tokens);
        let first = now + self.spread(&mut stream.random, self.figures.ttft.0 as f64 + prefill);
        let request = stream.order.start.request;
        self.common.progress.signs.add(1);
        state.due.push(Reverse((first, request)));
        state.active.insert(request, stream);
    }

    fn spread(&self, random: &mut ChaCha8Rng, time: f64) -> u64 {
        let jitter = self.figures.jitter.to_f64();
        let factor = if jitter > 0.0 { 1.0 + jitter * (2.0 * random.random::<f64>() - 1.0) } else { 1.0 };
        (time * factor).round() as u64
    }

    /// Moves the clock to the next end of a request, or to `until` if that comes first. Returns whether a
    /// request has ended.
    pub(super) fn advance(&self, until: Option<u64>) -> bool {
        let state = &mut *self.state.borrow_mut();
        loop {
            let next = state.due.peek().map(|Reverse((at, _))| *at);
            match (next, until) {
                (Some(at), until) if until.is_none_or(|until| at <= until) => {
                    self.common.clock.jump_to(at);
                    let Some(Reverse((_, request))) = state.due.pop() else { return false };
                    if self.send_token(state, request, at) {
                        return true;
                    }
                }
                (_, Some(until)) => {
                    self.common.clock.jump_to(until);
                    return false;
                }
                (_, None) => return false,
            }
        }
    }

    /// Sends the next token of a request. Returns whether it was the last one.
    fn send_token(&self, state: &mut State, request: u64, now: u64) -> bool {
        let busy = state.active.len();
        let Some(stream) = state.active.get_mut(&request) else { return false };
        stream.tokens += 1;
        let text = format!(r#"{{"choices":[{{"index":0,"delta":{{"content":" word{}"}}}}]}}"#, stream.tokens % 97);
        receive(&mut stream.order.tally, text.as_bytes(), now);
        self.common.progress.token_events.add(1);
        if stream.tokens < stream.order.tally.row.requested_tokens {
            let load = self.figures.load.to_f64() * busy.saturating_sub(1) as f64;
            let gap = self.spread(&mut stream.random, self.figures.itl.0 as f64 * (1.0 + load));
            state.due.push(Reverse((now + gap, request)));
            return false;
        }
        if let Some(stream) = state.active.remove(&request) {
            self.finish(stream, now);
        }
        if let Some(next) = state.queue.pop_front() {
            self.admit(state, next, now);
        }
        true
    }

    fn finish(&self, mut stream: Stream, now: u64) {
        let tally = &mut stream.order.tally;
        let (prompt, tokens) = (tally.row.intended_prompt_tokens, stream.tokens);
        let usage = format!(r#"{{"choices":[],"usage":{{"prompt_tokens":{prompt},"completion_tokens":{tokens}}}}}"#);
        receive(tally, br#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#, now);
        receive(tally, usage.as_bytes(), now);
        receive(tally, b"[DONE]", now);
        let result = tally.ended(now);
        end(stream, now, result);
    }

    /// Ends every request, because the run is over.
    pub(super) fn cut(&self) {
        let State { active, queue, .. } = std::mem::take(&mut *self.state.borrow_mut());
        let now = self.common.clock.now();
        for stream in active.into_values().chain(queue) {
            let failure = Failure::new(Outcome::CutAtDrain, "still in progress at the end of drain");
            end(stream, now, Err(failure));
        }
    }
}

fn receive(tally: &mut Tally, data: &[u8], now: u64) {
    tally.row.bytes += data.len() as u64;
    // The events above are well-formed.
    let _ = tally.event(&Event { name: b"", data }, Read { at: now, delay: Some(0) });
}

fn end(stream: Stream, now: u64, result: Result<(), Failure>) {
    let Stream { order: Order { start, mut tally, .. }, ticket, ended, .. } = stream;
    tally.row.ended_ns = Some(now);
    let (entry, answer) = tally.finish(result);
    // The receiver is gone if the run was stopped.
    let request = EndedRequest::Complete(entry);
    let _ = ended.send(Completed::Ended(Ended { start, request, answer, freed: now, aside: None }, ticket));
}
