//! Creates the requests of one class: generates their content, encodes their bodies, and determines which
//! parts of their prompts are shared.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::expand::{ClassSpec, RunSpec, Shaping};
use crate::plan::RequestFields;
use crate::plan::model::content::{self, Reuse};
use crate::protocol::Task;
use crate::workload::{
    BodyWriter, Common, Conversation, Counting, Generator, NonceKey, Prompt, RequestShape, Says, Trail,
};

use super::error::EngineError;

/// The content of one request.
pub(crate) struct Content {
    /// The class of the request; `None` if the run is not a mix.
    pub class: Option<Arc<str>>,
    /// The encoded body.
    pub body: Bytes,
    /// Number of prompt tokens to send.
    pub intended_prompt_tokens: u32,
    /// Number of leading prompt tokens that the server has already seen in the same conversation.
    pub seen_tokens: u32,
    /// The beginning of the prompt that other requests may share; `None` if other requests cannot
    /// share any part of it. How much of it the server has already seen is determined when the
    /// request is sent.
    pub(crate) trail: Option<Arc<Trail>>,
    /// Number of requested output tokens.
    pub requested_tokens: u32,
    /// The index of the request's class in the run, counted from 0.
    pub(crate) lane: usize,
    /// Number of requested vectors or scores; 0 if the response consists of tokens.
    pub values: usize,
    /// Number of the conversation; `None` if the request is not part of one.
    pub conversation: Option<u64>,
    /// Number of the turn within its conversation; `None` if the request is not part of one.
    pub turn: Option<u32>,
}

/// Creates the requests of one class. A run that is not a mix has one unnamed class.
#[derive(Clone)]
pub(super) struct Lane {
    pub class: Option<Arc<str>>,
    pub generator: Generator,
    pub bodies: BodyWriter,
    /// The index of the class in the run, counted from 0.
    number: usize,
    /// Number of vectors or scores per request; 0 if responses consist of tokens.
    values: usize,
    /// Distinguishes classes whose equal messages the server renders differently (see `salt`).
    salt: u32,
    trails: RefCell<Trails>,
}

/// A cache of the trails of common prompt beginnings, so that each is created only once.
#[derive(Clone, Default)]
struct Trails {
    same: Option<Arc<Trail>>,
    /// Keyed by the address of the text, which the entry keeps alive, and by the length of its common part.
    fronts: HashMap<(usize, usize), (Arc<str>, Arc<Trail>)>,
}

/// Maximum number of cached trails of common beginnings.
const MOST_FRONTS: usize = 64;

impl Lane {
    fn content(&self, prompt: &Prompt, body: Vec<u8>) -> Content {
        Content {
            class: self.class.clone(),
            body: body.into(),
            intended_prompt_tokens: prompt.intended_prompt_tokens,
            seen_tokens: prompt.seen_tokens.min(prompt.intended_prompt_tokens),
            trail: None,
            requested_tokens: prompt.output_tokens,
            lane: self.number,
            values: self.values,
            conversation: None,
            turn: None,
        }
    }

    /// Creates request `number` of a class without conversations.
    pub(crate) fn request(&self, number: u64) -> Content {
        let prompt = self.generator.request(number);
        Content { trail: self.trail(&prompt), ..self.content(&prompt, self.bodies.write(&[], &prompt)) }
    }

    /// Creates the request for the next turn of a conversation; `None` after its last turn.
    pub(crate) fn turn(&self, conversation: &mut Conversation) -> Option<Content> {
        let trail = match conversation.whole_trail(self.salt) {
            Some(whole) => Some(whole),
            None => self.trail(conversation.prompt()?),
        };
        let prompt = conversation.prompt()?;
        Some(Content {
            conversation: Some(conversation.number()),
            turn: Some(conversation.turn()),
            trail,
            ..self.content(prompt, self.bodies.write(conversation.history(), prompt))
        })
    }

    /// Returns the trail of a prompt without history, which is compared with other trails to find common
    /// beginnings; `None` if the prompt shares nothing.
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

/// Returns the lanes of a run: one for each class of a mix, or a single one.
pub(super) fn lanes(spec: &RunSpec, key: NonceKey, counting: Option<&Counting>) -> Result<Vec<Lane>, EngineError> {
    let lane = |class, number, content: &content::Content, shaping: &Shaping| {
        let nonce = key.under(shaping.nonce, number);
        let mut generator = match counting {
            Some(counting) => Generator::counted(content, (spec.seed, spec.repeat), nonce, counting.clone())?,
            None => Generator::new(content, spec.seed, spec.repeat, nonce),
        };
        if let (Some(shortest), asked) = (generator.shortest_prompt(), generator.prompt_range().max)
            && asked < shortest
        {
            return Err(EngineError::TooShort { asked, shortest });
        }
        let says = says(spec.endpoint.api.protocol().task(), shaping);
        generator.says_several(says);
        let salt = salt(shaping);
        let values = says.values();
        let bodies = BodyWriter::new(shape(spec, content, shaping));
        let number = number.map_or(0, |number| number as usize);
        Ok(Lane { class, number, generator, bodies, values, salt, trails: RefCell::default() })
    };
    if spec.mix.is_empty() {
        return Ok(vec![lane(None, None, &spec.scenario, &spec.shaping)?]);
    }
    let class = |(number, class): (u32, &ClassSpec)| {
        lane(Some(class.name.clone()), Some(number), &class.scenario, &class.shaping)
    };
    Ok(find_twins((0..).zip(&spec.mix).map(class).collect::<Result<_, _>>()?))
}

/// Marks classes whose first requests have equal texts. All other requests of these classes are then equal,
/// too.
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

/// Returns what the requests contain: a prompt, inputs to embed, or documents to rank.
fn says(task: Task, shaping: &Shaping) -> Says {
    let RequestFields { inputs, documents, query_tokens, .. } = shaping.fields;
    match task {
        Task::Generate => Says::Prompt,
        Task::Embed => Says::Inputs(inputs.unwrap_or(1)),
        Task::Rank => Says::Documents { count: documents.unwrap_or(1), query_tokens: query_tokens.unwrap_or(1) },
    }
}

/// Returns a number that distinguishes classes whose body fields change how the server renders equal
/// messages; 0 without such fields.
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

fn shape(spec: &RunSpec, content: &content::Content, shaping: &Shaping) -> RequestShape {
    RequestShape {
        model: shaping.fields.model.clone().unwrap_or_else(|| spec.model.id.clone()),
        api: spec.endpoint.api,
        stream: shaping.stream,
        ignore_eos: shaping.ignore_eos,
        conversation: content.reuse == Reuse::Conversation,
        fields: shaping.fields.clone(),
        extra: shaping.extra.clone(),
    }
}
