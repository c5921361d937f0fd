//! Contents ahead of time. Requests that do not depend on answers are made and encoded by a thread of its own, a bounded
//! number ahead; turns of a conversation carry the answers that came, so they are encoded when their turn starts.

use bytes::Bytes;

use crate::expand::RunSpec;
use crate::plan::scenario::Reuse;
use crate::workload::{Generator, Lengths, NonceKey, Shape, body};

use super::ahead::Ahead;
use super::clock::Clock;
use super::conversations::{Conversations, Turn};
use super::observe::Observer;
use super::pacer::Start;
use super::waits::Waits;

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

/// The contents of one run, in the order in which requests start.
pub struct Feed {
    /// Says how long requests were to be that nobody made.
    generator: Generator,
    source: Source,
    waits: Waits,
}

enum Source {
    Ahead(Ahead<Content>),
    Conversations(Box<Conversations>),
}

impl Feed {
    /// Starts making the contents of `spec`.
    pub fn start(spec: &RunSpec, nonce_key: NonceKey, observer: &Observer) -> std::io::Result<Feed> {
        let nonce = spec.shaping.nonce.then_some(nonce_key);
        let generator = Generator::new(&spec.scenario, spec.seed, spec.repeat, nonce);
        let shape = shape(spec);
        let source = match spec.scenario.reuse {
            Reuse::Conversation => {
                Source::Conversations(Box::new(Conversations::start(generator.clone(), shape, observer)?))
            }
            _ => Source::Ahead(make_ahead(generator.clone(), shape, observer.clone())?),
        };
        Ok(Feed { generator, source, waits: Waits::default() })
    }

    /// How long request `k` was to be, system message included, as far as that is known without the answers before it.
    pub fn wanted(&self, k: u64) -> Lengths {
        let Lengths { prompt_tokens, output_tokens } = self.generator.lengths(k, 0);
        Lengths { prompt_tokens: prompt_tokens + self.generator.lead_tokens(), output_tokens }
    }

    /// The content of the request that starts with `start`, waited for by the run's clock. None when the thread that makes
    /// them is gone.
    pub async fn next(&mut self, start: &Start, clock: Clock) -> Option<(Content, Ticket)> {
        match &mut self.source {
            Source::Ahead(ahead) => Some((ahead.next(clock, &mut self.waits).await?, Ticket(None))),
            Source::Conversations(conversations) => {
                let (content, turn) = conversations.next(start, clock, &mut self.waits).await?;
                Some((content, Ticket(Some(turn))))
            }
        }
    }

    /// How long contents were waited for since `instant`: a request released then was late for that long because of them.
    pub fn waited_since(&self, instant: u64) -> u64 {
        self.waits.since(instant)
    }

    /// The request has ended at `at`, with an answer or without. If its conversation goes on, says how long the user thinks
    /// before its next turn, in nanoseconds.
    pub fn give_back(&mut self, ticket: Ticket, answer: Option<String>, at: u64) -> Option<u64> {
        match (&mut self.source, ticket) {
            (Source::Conversations(conversations), Ticket(Some(turn))) => conversations.give_back(turn, answer, at),
            _ => None,
        }
    }
}

fn make_ahead(generator: Generator, shape: Shape, observer: Observer) -> std::io::Result<Ahead<Content>> {
    // Four bytes of text to a token; where lengths differ, as if all were the longest.
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
    Ahead::start(make, |content| content.body.len().max(most), observer)
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
