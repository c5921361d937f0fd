//! Contents ahead of time. Requests that do not depend on answers are made and encoded by a thread of its own, a bounded
//! number ahead; turns of a conversation carry the answers that came, so they are encoded when their turn starts.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::expand::{ClassSpec, RunSpec, Shaping};
use crate::plan::model::content;
use crate::plan::model::content::Reuse;
use crate::workload::{
    Common, Conversation, Counting, Generator, Lengths, Lineup, Mix, NonceKey, Prompt, Shape, Trail, body,
};

use super::EngineError;
use super::ahead::Ahead;
use super::clock::Clock;
use super::conversations::{Conversations, Turn};
use super::observe::Observer;
use super::start::Start;
use super::tally::Reply;
use super::waits::Waits;

/// What one request carries.
pub struct Content {
    /// Its class, in a mix.
    pub class: Option<Arc<str>>,
    /// The encoded body.
    pub body: Bytes,
    /// Prompt tokens meant to be sent.
    pub intended_prompt_tokens: u32,
    /// Of these, the leading ones that the server has seen in the same conversation.
    pub seen_tokens: u32,
    /// What other requests may begin with too, if anything: how much of it the server has seen of them shows when it is sent.
    pub trail: Option<Arc<Trail>>,
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
pub(super) struct Lane {
    pub class: Option<Arc<str>>,
    pub generator: Generator,
    pub shape: Shape,
    /// Tells apart what the server renders apart whatever the messages are.
    salt: u32,
    trails: RefCell<Trails>,
}

/// Trails of what many requests begin with alike, so that each is made once.
#[derive(Clone, Default)]
struct Trails {
    same: Option<Arc<Trail>>,
    /// By the text, which the entry holds, and the part of it.
    fronts: HashMap<(usize, usize), (Arc<str>, Arc<Trail>)>,
}

/// Fronts that are remembered.
const MOST_FRONTS: usize = 64;

/// The contents of one run, in the order in which requests start.
pub struct Feed {
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
    pub fn start(
        spec: &RunSpec,
        nonce_key: NonceKey,
        counting: Option<&Counting>,
        observer: &Observer,
    ) -> Result<Feed, EngineError> {
        let lanes = lanes(spec, nonce_key, counting)?;
        let weights = spec.mix.iter().map(|class| class.weight);
        let mix = (!spec.mix.is_empty()).then(|| Mix::new(weights, spec.seed, spec.repeat));
        let lineup = Lineup::new(mix);
        let start =
            |lane: &Lane| lane.shape.conversation.then(|| Conversations::start(lane.clone(), observer)).transpose();
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
    pub fn skip(&mut self) -> (Option<Arc<str>>, Lengths) {
        let (lane, number) = self.lineup.step();
        let Lane { class, generator, .. } = &self.lanes[lane];
        let Lengths { prompt_tokens, output_tokens } = generator.lengths(number, 0);
        (class.clone(), Lengths { prompt_tokens: prompt_tokens + generator.lead_tokens(number), output_tokens })
    }

    /// Tokens of the shortest prompt that can be made, where shorter ones are asked for too: those have as many.
    pub fn shortest_prompt(&self) -> Option<u32> {
        let short = self.lanes.iter().filter_map(|Lane { generator, .. }| {
            let shortest = generator.shortest_prompt()?;
            (generator.prompt_range().min < shortest).then_some(shortest + generator.least_lead())
        });
        short.max()
    }

    /// The content of the request that starts with `start`, waited for by the run's clock. None when the thread that makes
    /// them is gone.
    pub async fn next(&mut self, start: &Start, clock: Clock) -> Option<(Content, Ticket)> {
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
    pub fn waited_since(&self, instant: u64) -> u64 {
        self.waits.since(instant)
    }

    /// The request has ended at `at`, with an answer or without. If its conversation goes on, says how long the user thinks
    /// before its next turn, in nanoseconds.
    pub fn give_back(&mut self, ticket: Ticket, answer: Option<Reply>, at: u64) -> Option<u64> {
        let (lane, turn) = ticket.0?;
        self.talks[lane].as_mut()?.give_back(turn, answer, at)
    }
}

impl Lane {
    fn content(&self, prompt: &Prompt, body: Vec<u8>) -> Content {
        Content {
            class: self.class.clone(),
            body: body.into(),
            intended_prompt_tokens: prompt.intended_prompt_tokens,
            seen_tokens: prompt.seen_tokens.min(prompt.intended_prompt_tokens),
            trail: None,
            requested_tokens: prompt.output_tokens,
            conversation: None,
            turn: None,
        }
    }

    /// Request `number` of the class, which is no turn of a conversation.
    fn request(&self, number: u64) -> Content {
        let prompt = self.generator.request(number);
        Content { trail: self.trail(&prompt), ..self.content(&prompt, body(&self.shape, &[], &prompt)) }
    }

    /// The next turn of a conversation; none after its last.
    pub fn turn(&self, conversation: &mut Conversation) -> Option<Content> {
        let trail = match conversation.whole_trail(self.salt) {
            Some(whole) => Some(whole),
            None => self.trail(conversation.prompt()?),
        };
        let prompt = conversation.prompt()?;
        Some(Content {
            conversation: Some(conversation.number()),
            turn: Some(conversation.turn()),
            trail,
            ..self.content(prompt, body(&self.shape, conversation.history(), prompt))
        })
    }

    /// What a prompt without history is compared in.
    fn trail(&self, prompt: &Prompt) -> Option<Arc<Trail>> {
        let mut trails = self.trails.borrow_mut();
        match (prompt.common, &prompt.system) {
            (Common::Nothing, _) => None,
            (Common::Same, _) => {
                Some(Arc::clone(trails.same.get_or_insert_with(|| Arc::new(Trail::of(self.salt, prompt)))))
            }
            (Common::Front(bytes), Some(system)) => {
                let key = (system.as_ptr() as usize, bytes);
                if let Some((_, trail)) = trails.fronts.get(&key) {
                    return Some(Arc::clone(trail));
                }
                if trails.fronts.len() == MOST_FRONTS {
                    trails.fronts.clear();
                }
                let trail = Arc::new(Trail::of(self.salt, prompt));
                trails.fronts.insert(key, (Arc::clone(system), Arc::clone(&trail)));
                Some(trail)
            }
            (Common::Front(_) | Common::All, _) => Some(Arc::new(Trail::of(self.salt, prompt))),
        }
    }
}

/// The classes of a run.
fn lanes(spec: &RunSpec, key: NonceKey, counting: Option<&Counting>) -> Result<Vec<Lane>, EngineError> {
    let lane = |class, number, content: &content::Content, shaping: &Shaping| {
        let nonce = key.under(shaping.nonce, number);
        let generator = match counting {
            Some(counting) => Generator::counted(content, (spec.seed, spec.repeat), nonce, counting.clone())?,
            None => Generator::new(content, spec.seed, spec.repeat, nonce),
        };
        if let (Some(shortest), asked) = (generator.shortest_prompt(), generator.prompt_range().max)
            && asked < shortest
        {
            return Err(EngineError::TooShort { asked, shortest });
        }
        let salt = salt(shaping);
        let shape = shape(spec, content, shaping);
        Ok(Lane { class, generator, shape, salt, trails: RefCell::default() })
    };
    if spec.mix.is_empty() {
        return Ok(vec![lane(None, None, &spec.scenario, &spec.shaping)?]);
    }
    let class = |(number, class): (u32, &ClassSpec)| {
        lane(Some(class.name.clone()), Some(number), &class.scenario, &class.shaping)
    };
    Ok(find_twins((0..).zip(&spec.mix).map(class).collect::<Result<_, _>>()?))
}

/// Marks the classes whose first requests say the same, as far as a class knows it: so do the others.
fn find_twins(mut lanes: Vec<Lane>) -> Vec<Lane> {
    let said = |lane: &Lane| {
        let Prompt { system, user, .. } = lane.generator.request(0);
        (system, user)
    };
    let firsts: Vec<_> = lanes.iter().map(said).collect();
    for (at, lane) in lanes.iter_mut().enumerate() {
        if firsts.iter().enumerate().any(|(other, first)| other != at && *first == firsts[at]) {
            lane.generator.has_twin();
        }
    }
    lanes
}

/// Tells apart the classes whose fields of the body change what the server makes of equal messages.
fn salt(shaping: &Shaping) -> u32 {
    const FIELDS: [&str; 7] =
        ["cache_salt", "chat_template", "chat_template_kwargs", "documents", "functions", "tools", "tool_choice"];
    let fields: Vec<_> = FIELDS.iter().filter_map(|name| shaping.extra.get_key_value(*name)).collect();
    if fields.is_empty() {
        return 0;
    }
    let digest = Sha256::digest(serde_json::to_vec(&fields).expect("fields are plain data"));
    u32::from_le_bytes(std::array::from_fn(|at| digest[at]))
}

fn make_ahead(lanes: &[Lane], lineup: Lineup, observer: Observer) -> std::io::Result<Ahead<Content>> {
    // A turn of a conversation carries the answers before it, and is made elsewhere.
    let lanes: Vec<Option<Lane>> = lanes.iter().map(|lane| (!lane.shape.conversation).then(|| lane.clone())).collect();
    // Four bytes of text to a token.
    let most = lanes.iter().flatten().map(|lane| lane.generator.most_prompt_tokens() as usize).max().unwrap_or(0);
    let contents = lineup.filter_map(move |(lane, number)| Some(lanes[lane].as_ref()?.request(number)));
    // Where requests differ in length, as if all were the longest.
    Ahead::start(contents, move |content| content.body.len().max(most.saturating_mul(4)), observer)
}

fn shape(spec: &RunSpec, content: &content::Content, shaping: &Shaping) -> Shape {
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
