//! Contents ahead of time. Requests that do not depend on answers are made and encoded by a thread of its own, a bounded
//! number ahead; turns of a conversation carry the answers that came, so they are encoded when their turn starts.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{Receiver, channel};

use crate::expand::RunSpec;
use crate::plan::scenario::Reuse;
use crate::workload::{Conversation, Generator, Lengths, Shape, body};

use super::clock::Clock;
use super::observe::Observer;
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
pub struct Ticket(Option<Turn>);

/// A turn of a conversation under way.
struct Turn {
    conversation: Conversation,
    slot: Option<u32>,
    /// What the user said.
    said: String,
}

/// The contents of one run, in the order in which requests start.
pub struct Feed {
    /// Says how long requests were to be that nobody made.
    generator: Generator,
    source: Source,
    waits: Waits,
}

enum Source {
    Ahead {
        /// What is at hand.
        batch: std::vec::IntoIter<Content>,
        /// What comes next.
        batches: Receiver<Vec<Content>>,
    },
    Conversations(Box<Conversations>),
}

struct Conversations {
    generator: Generator,
    shape: Shape,
    started: u64,
    /// Conversations between two turns: a closed loop's by slot.
    by_slot: HashMap<u32, Conversation>,
    /// An open loop's, the one that has waited longest first.
    waiting: VecDeque<Conversation>,
}

impl Feed {
    /// Starts making the contents of `spec` with its generator.
    pub fn start(spec: &RunSpec, generator: Generator, observer: &Observer) -> std::io::Result<Feed> {
        let shape = shape(spec);
        let source = match spec.scenario.reuse {
            Reuse::Conversation => Source::Conversations(Box::new(Conversations {
                generator: generator.clone(),
                shape,
                started: 0,
                by_slot: HashMap::new(),
                waiting: VecDeque::new(),
            })),
            _ => {
                let batches = make_ahead(generator.clone(), shape, observer.clone())?;
                Source::Ahead { batch: Vec::new().into_iter(), batches }
            }
        };
        Ok(Feed { generator, source, waits: Waits::default() })
    }

    /// How long request `k` was to be, system message included, as far as that is known without the answers before it.
    pub fn wanted(&self, k: u64) -> Lengths {
        let Lengths { prompt_tokens, output_tokens } = self.generator.lengths(k, 0);
        Lengths { prompt_tokens: prompt_tokens + self.generator.lead_tokens(), output_tokens }
    }

    /// The content of the next request, waited for by the run's clock. None when the thread that makes them is gone.
    pub async fn next(&mut self, slot: Option<u32>, clock: Clock) -> Option<(Content, Ticket)> {
        match &mut self.source {
            Source::Ahead { batch, batches } => loop {
                if let Some(content) = batch.next() {
                    return Some((content, Ticket(None)));
                }
                *batch = match batches.try_recv() {
                    Ok(batch) => batch.into_iter(),
                    Err(TryRecvError::Disconnected) => return None,
                    Err(TryRecvError::Empty) => {
                        let from = clock.now();
                        let batch = batches.recv().await?.into_iter();
                        self.waits.add(from, clock.now());
                        batch
                    }
                };
            },
            Source::Conversations(conversations) => {
                let from = clock.now();
                let next = conversations.next(slot);
                self.waits.add(from, clock.now());
                Some(next)
            }
        }
    }

    /// How long contents were waited for since `instant`: a request released then was late for that long because of them.
    pub fn waited_since(&self, instant: u64) -> u64 {
        self.waits.since(instant)
    }

    /// The request has ended: with its answer, its conversation goes on; without one, the conversation is over.
    pub fn give_back(&mut self, ticket: Ticket, answer: Option<String>) {
        if let (Source::Conversations(conversations), Ticket(Some(turn)), Some(answer)) =
            (&mut self.source, ticket, answer)
        {
            conversations.give_back(turn, answer);
        }
    }
}

impl Conversations {
    fn next(&mut self, slot: Option<u32>) -> (Content, Ticket) {
        let going_on = match slot {
            Some(slot) => self.by_slot.remove(&slot),
            None => self.waiting.pop_front(),
        };
        let unfinished = going_on.and_then(|conversation| {
            let prompt = conversation.prompt(&self.generator)?;
            Some((conversation, prompt))
        });
        let (conversation, prompt) = unfinished.unwrap_or_else(|| {
            self.started += 1;
            let conversation = Conversation::new(&self.generator, self.started - 1);
            let prompt = self.generator.turn(conversation.number(), 0);
            (conversation, prompt)
        });
        let content = Content {
            body: body(&self.shape, conversation.history(), &prompt).into(),
            intended_prompt_tokens: prompt.intended_prompt_tokens,
            reusable_tokens: prompt.reusable_tokens,
            requested_tokens: prompt.output_tokens,
            conversation: Some(conversation.number()),
            turn: Some(conversation.turn()),
        };
        (content, Ticket(Some(Turn { conversation, slot, said: prompt.user })))
    }

    fn give_back(&mut self, turn: Turn, answer: String) {
        let Turn { mut conversation, slot, said } = turn;
        conversation.answered(said, answer);
        if conversation.turn() >= self.generator.turns() {
            return;
        }
        match slot {
            Some(slot) => drop(self.by_slot.insert(slot, conversation)),
            None => self.waiting.push_back(conversation),
        }
    }
}

fn make_ahead(generator: Generator, shape: Shape, observer: Observer) -> std::io::Result<Receiver<Vec<Content>>> {
    // Four bytes of text to a token.
    let most = (generator.most_prompt_tokens() as usize).saturating_mul(4);
    let make = move |k: u64| {
        let prompt = generator.request(k);
        Content {
            body: body(&shape, &[], &prompt).into(),
            intended_prompt_tokens: prompt.intended_prompt_tokens,
            reusable_tokens: prompt.reusable_tokens,
            requested_tokens: prompt.output_tokens,
            conversation: None,
            turn: None,
        }
    };
    let first = make(0);
    // Short prompts in large batches, long ones one by one; where they differ, as if all were the longest.
    let size = first.body.len().max(most);
    let in_batch = (AHEAD_BYTES / AHEAD / size).clamp(1, MOST_IN_BATCH) as u64;
    // One that is itself a large part of what may be made ahead leaves room for fewer.
    let (sender, receiver) = channel((AHEAD_BYTES / size).clamp(1, AHEAD));
    std::thread::Builder::new().name("content".to_owned()).spawn(move || {
        let _member = observer.enlist("content");
        threads::step_back();
        // The run is over when nobody takes contents any longer.
        let _ = sender.blocking_send(vec![first]);
        let mut next = 1;
        while sender.blocking_send((next..next + in_batch).map(&make).collect()).is_ok() {
            next += in_batch;
        }
    })?;
    Ok(receiver)
}

fn shape(spec: &RunSpec) -> Shape {
    Shape {
        model: spec.model.id.clone(),
        api: spec.endpoint.api,
        stream: spec.shaping.stream,
        ignore_eos: spec.shaping.ignore_eos,
        conversation: spec.scenario.reuse == Reuse::Conversation,
        temperature: spec.shaping.temperature,
        top_p: spec.shaping.top_p,
        presence_penalty: spec.shaping.presence_penalty,
        frequency_penalty: spec.shaping.frequency_penalty,
    }
}
