//! Contents ahead of time. Requests that do not depend on answers are made and encoded by a thread of its own, a bounded
//! number ahead; turns of a conversation carry the answers that came, so they are encoded when their turn starts.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{Receiver, channel};

use crate::expand::{RunSpec, Shaping};
use crate::plan::scenario::{self, Reuse};
use crate::workload::tokenizer::TokenizerError;
use crate::workload::{Counting, Generator, Lengths, Lineup, Mix, NonceKey, Prompt, Shape, body};

use super::EngineError;
use super::clock::Clock;
use super::observe::Observer;
use super::talks::{Talks, Turn};
use super::threads;
use super::waits::Waits;

/// Bytes that may be made ahead.
const AHEAD_BYTES: usize = 16 << 20;
/// Contents that change hands at once: each hand-over may wake the thread that makes them.
const MOST_IN_BATCH: usize = 16;
/// Batches made ahead.
const AHEAD: usize = 64;

/// What one request carries.
pub struct Content {
    /// Its class, in a mix.
    pub class: Option<Arc<str>>,
    /// The encoded body.
    pub body: Bytes,
    /// Prompt tokens meant to be sent.
    pub intended_prompt_tokens: u32,
    /// Of these, the leading ones that the scenario shares with earlier requests.
    pub reusable_tokens: u32,
    /// Output tokens asked for.
    pub requested_tokens: u32,
    /// Number of the conversation.
    pub conversation: Option<u64>,
    /// Turn of the conversation.
    pub turn: Option<u32>,
}

/// What must be given back when the request has ended.
pub struct Ticket(Option<(usize, Turn)>);

/// How requests of one class are made. A run that is no mix has one class without a name.
#[derive(Clone)]
struct Lane {
    class: Option<Arc<str>>,
    generator: Generator,
    shape: Shape,
}

/// The contents of one run, in the order in which requests start.
pub struct Feed {
    lanes: Vec<Lane>,
    /// The conversations of each lane that has some.
    talks: Vec<Option<Talks>>,
    /// The lane of each request.
    lineup: Lineup,
    /// What is made ahead: requests of the lanes without conversations, in their order.
    ahead: Option<Ahead>,
    waits: Waits,
}

struct Ahead {
    /// What is at hand.
    batch: std::vec::IntoIter<Content>,
    /// What comes next.
    batches: Receiver<Vec<Content>>,
}

impl Ahead {
    /// What the next request carries. None when the thread that makes it is gone.
    async fn next(&mut self, clock: Clock, waits: &mut Waits) -> Option<Content> {
        loop {
            if let Some(content) = self.batch.next() {
                return Some(content);
            }
            self.batch = match self.batches.try_recv() {
                Ok(batch) => batch.into_iter(),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {
                    let from = clock.now();
                    let batch = self.batches.recv().await?.into_iter();
                    waits.add(from, clock.now());
                    batch
                }
            };
        }
    }
}

impl Feed {
    /// Starts making the contents of `spec`, of exact lengths where somebody counts tokens.
    pub fn start(
        spec: &RunSpec,
        nonce_key: NonceKey,
        counting: Option<&Counting>,
        observer: &Observer,
    ) -> Result<Feed, EngineError> {
        let lanes = lanes(spec, spec.shaping.nonce.then_some(nonce_key), counting)?;
        let weights = spec.mix.iter().map(|class| class.weight);
        let mix = (!spec.mix.is_empty()).then(|| Mix::new(weights, spec.seed, spec.repeat));
        let lineup = Lineup::new(mix);
        let talks: Vec<Option<Talks>> = lanes.iter().map(|lane| lane.shape.conversation.then(Talks::default)).collect();
        let ahead = match talks.iter().any(Option::is_none) {
            true => Some(make_ahead(&lanes, lineup.clone(), observer.clone()).map_err(EngineError::Setup)?),
            false => None,
        };
        let ahead = ahead.map(|batches| Ahead { batch: Vec::new().into_iter(), batches });
        Ok(Feed { lanes, talks, lineup, ahead, waits: Waits::default() })
    }

    /// The class of the next request and how long it was to be, what stands before the user's first message included, as far
    /// as that is known without the answers before it: for a request that nobody makes any more.
    pub fn skip(&mut self) -> (Option<Arc<str>>, Lengths) {
        let (lane, number) = self.lineup.step();
        let Lane { class, generator, .. } = &self.lanes[lane];
        let Lengths { prompt_tokens, output_tokens } = generator.lengths(number, 0);
        (class.clone(), Lengths { prompt_tokens: prompt_tokens + generator.lead_tokens(), output_tokens })
    }

    /// The content of the next request, waited for by the run's clock. None when the thread that makes them is gone.
    pub async fn next(&mut self, slot: Option<u32>, clock: Clock) -> Option<(Content, Ticket)> {
        let (lane, _) = self.lineup.step();
        match (&mut self.talks[lane], &mut self.ahead) {
            (Some(talks), _) => {
                let from = clock.now();
                let (content, turn) = self.lanes[lane].turn(talks, slot);
                self.waits.add(from, clock.now());
                Some((content, Ticket(Some((lane, turn)))))
            }
            (None, Some(ahead)) => Some((ahead.next(clock, &mut self.waits).await?, Ticket(None))),
            (None, None) => None,
        }
    }

    /// How long contents were waited for since `instant`: a request released then was late for that long because of them.
    pub fn waited_since(&self, instant: u64) -> u64 {
        self.waits.since(instant)
    }

    /// The request has ended: with its answer, its conversation goes on; without one, the conversation is over.
    pub fn give_back(&mut self, ticket: Ticket, answer: Option<String>) {
        if let (Ticket(Some((lane, turn))), Some(answer)) = (ticket, answer)
            && let Some(talks) = &mut self.talks[lane]
        {
            talks.give_back(turn, answer, &self.lanes[lane].generator);
        }
    }
}

impl Lane {
    fn content(&self, prompt: &Prompt, body: Vec<u8>) -> Content {
        Content {
            class: self.class.clone(),
            body: body.into(),
            intended_prompt_tokens: prompt.intended_prompt_tokens,
            reusable_tokens: prompt.reusable_tokens,
            requested_tokens: prompt.output_tokens,
            conversation: None,
            turn: None,
        }
    }

    /// Request `number` of the class, which is no turn of a conversation.
    fn request(&self, number: u64) -> Content {
        let prompt = self.generator.request(number);
        self.content(&prompt, body(&self.shape, &[], &prompt))
    }

    /// The next turn of a conversation, and what must be given back of it.
    fn turn(&self, talks: &mut Talks, slot: Option<u32>) -> (Content, Turn) {
        let (conversation, prompt) = talks.next(slot, &self.generator);
        let content = Content {
            conversation: Some(conversation.number()),
            turn: Some(conversation.turn()),
            ..self.content(&prompt, body(&self.shape, conversation.history(), &prompt))
        };
        (content, Turn { conversation, slot, said: prompt.user })
    }
}

/// The classes of a run.
fn lanes(spec: &RunSpec, nonce: Option<NonceKey>, counting: Option<&Counting>) -> Result<Vec<Lane>, TokenizerError> {
    let lane = |class, content: &scenario::Content, shaping, nonce| {
        let generator = match counting {
            Some(counting) => Generator::counted(content, (spec.seed, spec.repeat), nonce, counting.clone())?,
            None => Generator::new(content, spec.seed, spec.repeat, nonce),
        };
        Ok(Lane { class, generator, shape: shape(spec, content, shaping) })
    };
    if spec.mix.is_empty() {
        return Ok(vec![lane(None, &spec.scenario, &spec.shaping, nonce)?]);
    }
    let classes = spec.mix.iter().enumerate();
    // Two classes may count the same numbers: their nonces have to differ all the same.
    let key = |number: usize| nonce.map(|key| key.of_class(number as u32));
    classes.map(|(at, class)| lane(Some(class.name.clone()), &class.scenario, &class.shaping, key(at))).collect()
}

fn make_ahead(lanes: &[Lane], lineup: Lineup, observer: Observer) -> std::io::Result<Receiver<Vec<Content>>> {
    // A turn of a conversation carries the answers before it, and is made when it starts.
    let lanes: Vec<Option<Lane>> = lanes.iter().map(|lane| (!lane.shape.conversation).then(|| lane.clone())).collect();
    // Four bytes of text to a token.
    let most = lanes.iter().flatten().map(|lane| lane.generator.most_prompt_tokens() as usize).max().unwrap_or(0);
    let mut contents = lineup.filter_map(move |(lane, number)| Some(lanes[lane].as_ref()?.request(number)));
    let first: Vec<Content> = contents.by_ref().take(1).collect();
    // Short prompts in large batches, long ones one by one; where they differ, as if all were the longest.
    let size = first.iter().map(|content| content.body.len()).max().unwrap_or(0).max(most.saturating_mul(4)).max(1);
    let in_batch = (AHEAD_BYTES / AHEAD / size).clamp(1, MOST_IN_BATCH);
    // One that is itself a large part of what may be made ahead leaves room for fewer.
    let (sender, receiver) = channel((AHEAD_BYTES / size).clamp(1, AHEAD));
    std::thread::Builder::new().name("content".to_owned()).spawn(move || {
        let _member = observer.enlist("content");
        threads::step_back();
        // The run is over when nobody takes contents any longer.
        let _ = sender.blocking_send(first);
        while sender.blocking_send(contents.by_ref().take(in_batch).collect()).is_ok() {}
    })?;
    Ok(receiver)
}

fn shape(spec: &RunSpec, content: &scenario::Content, shaping: &Shaping) -> Shape {
    Shape {
        model: spec.model.id.clone(),
        api: spec.endpoint.api,
        stream: shaping.stream,
        ignore_eos: shaping.ignore_eos,
        conversation: content.reuse == Reuse::Conversation,
        temperature: shaping.temperature,
        top_p: shaping.top_p,
        presence_penalty: shaping.presence_penalty,
        frequency_penalty: shaping.frequency_penalty,
        stop: shaping.stop.clone(),
        extra: shaping.extra.clone(),
    }
}
