//! Contents ahead of time. Requests that do not depend on answers are made and encoded by a thread of its own, a bounded
//! number ahead; turns of a conversation carry the answers that came, so they are encoded when their turn starts.

use std::sync::Arc;

use crate::expand::RunSpec;
use crate::workload::{Counting, Lengths, Lineup, Mix, NonceKey};

use super::clock::Clock;
use super::conversations::{Conversations, Turn};
use super::error::EngineError;
use super::lane::{Content, Lane, lanes};
use super::observe::Observer;
use super::prefetch::Ahead;
use super::start::Start;
use super::tally::Reply;
use super::waits::Waits;

/// What must be given back when the request has ended.
pub(crate) struct Ticket(Option<(usize, Turn)>);

/// The contents of one run, in the order in which requests start.
pub(crate) struct Feed {
    lanes: Vec<Lane>,
    /// The conversations of each lane that has some.
    talks: Vec<Option<Conversations>>,
    /// The lane of each request.
    lineup: Lineup,
    /// What is made ahead: requests of the lanes without conversations, in their order.
    ahead: Option<Ahead<Content>>,
    waits: Waits,
}

impl Feed {
    /// Starts making the contents of `spec`, of exact lengths where somebody counts tokens.
    pub(crate) fn start(
        spec: &RunSpec,
        nonce_key: NonceKey,
        counting: Option<&Counting>,
        observer: &Observer,
    ) -> Result<Feed, EngineError> {
        let lanes = lanes(spec, nonce_key, counting)?;
        let weights = spec.mix.iter().map(|class| class.weight);
        let mix = (!spec.mix.is_empty()).then(|| Mix::new(weights, spec.seed, spec.repeat));
        let lineup = Lineup::new(mix);
        let start = |lane: &Lane| {
            lane.bodies.shape().conversation.then(|| Conversations::start(lane.clone(), observer)).transpose()
        };
        let talks: Vec<Option<Conversations>> =
            lanes.iter().map(start).collect::<std::io::Result<_>>().map_err(EngineError::Setup)?;
        let ahead = match talks.iter().any(Option::is_none) {
            true => Some(make_ahead(&lanes, lineup.clone(), observer.clone()).map_err(EngineError::Setup)?),
            false => None,
        };
        Ok(Feed { lanes, talks, lineup, ahead, waits: Waits::default() })
    }

    /// The class of the next request and how long it was to be, what stands before the user's first message included, as far
    /// as that is known without the answers before it: for a request that nobody makes any more.
    pub(crate) fn skip(&mut self) -> (Option<Arc<str>>, Lengths) {
        let (lane, number) = self.lineup.step();
        let Lane { class, generator, .. } = &self.lanes[lane];
        let Lengths { prompt_tokens, output_tokens } = generator.lengths(number, 0);
        (class.clone(), Lengths { prompt_tokens: prompt_tokens + generator.lead_tokens(number), output_tokens })
    }

    /// Tokens of the shortest prompt that can be made, where shorter ones are asked for too: those have as many.
    pub(crate) fn shortest_prompt(&self) -> Option<u32> {
        let short = self.lanes.iter().filter_map(|Lane { generator, .. }| {
            let shortest = generator.shortest_prompt()?;
            (generator.prompt_range().min < shortest).then_some(shortest + generator.least_lead())
        });
        short.max()
    }

    /// The content of the request that starts with `start`, waited for by the run's clock. None when the thread that makes
    /// them is gone.
    pub(crate) async fn next(&mut self, start: &Start, clock: Clock) -> Option<(Content, Ticket)> {
        let (lane, _) = self.lineup.step();
        match (&mut self.talks[lane], &mut self.ahead) {
            (Some(talks), _) => {
                let (content, turn) = talks.next(start, clock, &mut self.waits).await?;
                Some((content, Ticket(Some((lane, turn)))))
            }
            (None, Some(ahead)) => Some((ahead.next(clock, &mut self.waits).await?, Ticket(None))),
            (None, None) => None,
        }
    }

    /// How long contents were waited for since `instant`: a request released then was late for that long because of them.
    pub(crate) fn waited_since(&self, instant: u64) -> u64 {
        self.waits.since(instant)
    }

    /// The request has ended at `at`, with an answer or without. If its conversation goes on, says how long the user thinks
    /// before its next turn, in nanoseconds.
    pub(crate) fn give_back(&mut self, ticket: Ticket, answer: Option<Reply>, at: u64) -> Option<u64> {
        let (lane, turn) = ticket.0?;
        self.talks[lane].as_mut()?.give_back(turn, answer, at)
    }
}

fn make_ahead(lanes: &[Lane], lineup: Lineup, observer: Observer) -> std::io::Result<Ahead<Content>> {
    // A turn of a conversation carries the answers before it, and is made elsewhere.
    let lanes: Vec<Option<Lane>> =
        lanes.iter().map(|lane| (!lane.bodies.shape().conversation).then(|| lane.clone())).collect();
    // Four bytes of text to a token.
    let most = lanes.iter().flatten().map(|lane| lane.generator.most_prompt_tokens() as usize).max().unwrap_or(0);
    let contents = lineup.filter_map(move |(lane, number)| Some(lanes[lane].as_ref()?.request(number)));
    // Where requests differ in length, as if all were the longest.
    Ahead::start(contents, move |content| content.body.len().max(most.saturating_mul(4)), observer)
}
