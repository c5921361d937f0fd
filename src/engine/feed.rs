//! Prepares the contents of requests. Requests that do not depend on responses are created and encoded
//! ahead of time by a separate thread, up to a limited number. Turns of a conversation may contain the
//! received responses, so they are handled separately (see `conversations`).

use std::sync::Arc;

use crate::expand::RunSpec;
use crate::workload::{Counting, Lengths, Lineup, Mix, NonceKey};

use super::clock::Clock;
use super::conversations::{Conversations, Turn};
use super::error::EngineError;
use super::lane::{Content, Lane, lanes};
use super::observe::Observer;
use super::prefetch::Ahead;
use super::share::Share;
use super::start::Start;
use super::tally::Reply;
use super::waits::Waits;

/// Identifies the conversation turn that a request belongs to, if any. The caller passes it to `give_back`
/// when the request has ended.
pub(crate) struct Ticket(Option<(usize, Turn)>);

/// The contents of a run's requests, in the order in which requests start.
pub(crate) struct Feed {
    lanes: Vec<Lane>,
    /// The conversations of each lane that has conversations.
    talks: Vec<Option<Conversations>>,
    /// Determines the lane of each request.
    lineup: Lineup,
    /// Content prepared ahead for the lanes without conversations, in the order of their requests; `None`
    /// if all lanes have conversations.
    ahead: Option<Ahead<Content>>,
    waits: Waits,
}

impl Feed {
    /// Starts to prepare the contents of a share of `spec`, with exact lengths if tokens can be counted
    /// (`counting`).
    pub(crate) fn start(
        spec: &RunSpec,
        share: Share,
        nonce_key: NonceKey,
        counting: Option<&Counting>,
        observer: &Observer,
    ) -> Result<Feed, EngineError> {
        let lanes = lanes(spec, nonce_key, counting)?;
        let weights = spec.mix.iter().map(|class| class.weight);
        let mix = (!spec.mix.is_empty()).then(|| Mix::new(weights, spec.seed, spec.repeat));
        let lineup = Lineup::new(mix).every(share.index(), share.count());
        let start = |lane: &Lane| {
            lane.bodies.shape().conversation.then(|| Conversations::start(lane.clone(), share, observer)).transpose()
        };
        let talks: Vec<Option<Conversations>> =
            lanes.iter().map(start).collect::<std::io::Result<_>>().map_err(EngineError::Setup)?;
        let ahead = match talks.iter().any(Option::is_none) {
            true => Some(make_ahead(&lanes, lineup.clone(), observer.clone()).map_err(EngineError::Setup)?),
            false => None,
        };
        Ok(Feed { lanes, talks, lineup, ahead, waits: Waits::default() })
    }

    /// Skips the next request, which will never be sent. Returns its class and its planned length. The
    /// length includes the text before the user's first message, but not the history, which depends on
    /// earlier responses.
    pub(crate) fn skip(&mut self) -> (Option<Arc<str>>, Lengths) {
        let (lane, number) = self.lineup.step();
        let Lane { class, generator, .. } = &self.lanes[lane];
        let Lengths { prompt_tokens, output_tokens } = generator.lengths(number, 0);
        (class.clone(), Lengths { prompt_tokens: prompt_tokens + generator.lead_tokens(number), output_tokens })
    }

    /// Returns the number of tokens of the shortest possible prompt if the run requests shorter prompts,
    /// which then get this length; otherwise `None`.
    pub(crate) fn shortest_prompt(&self) -> Option<u32> {
        let short = self.lanes.iter().filter_map(|Lane { generator, .. }| {
            let shortest = generator.shortest_prompt()?;
            (generator.prompt_range().min < shortest).then_some(shortest + generator.least_lead())
        });
        short.max()
    }

    /// Returns the content of the request that begins with `start`, and records how long the executor
    /// waited for it by the run's clock. `None` if the thread that prepares contents is gone.
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

    /// Returns how long the run has waited for request contents since `instant`, in nanoseconds. For a
    /// request released at `instant`, this is the part of its lateness that these waits caused.
    pub(crate) fn waited_since(&self, instant: u64) -> u64 {
        self.waits.since(instant)
    }

    /// Records that the request has ended at `at`, with or without a response. Returns how long the user
    /// thinks before the next turn, in nanoseconds; `None` if there is no next turn.
    pub(crate) fn give_back(&mut self, ticket: Ticket, answer: Option<Reply>, at: u64) -> Option<u64> {
        let (lane, turn) = ticket.0?;
        self.talks[lane].as_mut()?.give_back(turn, answer, at)
    }
}

fn make_ahead(lanes: &[Lane], lineup: Lineup, observer: Observer) -> std::io::Result<Ahead<Content>> {
    // Lanes with conversations are skipped, because `Conversations` prepares their turns.
    let lanes: Vec<Option<Lane>> =
        lanes.iter().map(|lane| (!lane.bodies.shape().conversation).then(|| lane.clone())).collect();
    // The size of a body is estimated as four bytes of text per token.
    let most = lanes.iter().flatten().map(|lane| lane.generator.most_prompt_tokens() as usize).max().unwrap_or(0);
    let contents = lineup.filter_map(move |(lane, number)| Some(lanes[lane].as_ref()?.request(number)));
    // If requests differ in length, each one is assumed to take as much memory as the longest one.
    Ahead::start(contents, move |content| content.body.len().max(most.saturating_mul(4)), observer)
}
