//! Scenarios with every default explicit, both built-in scenarios and those that a plan defines.

use crate::plan::RequestFields;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::plan::model::data::corpus::Corpus;
use crate::plan::model::data::data_file::DataFile;
use crate::plan::model::error_policy::ErrorPolicy;
use crate::plan::model::extra::json::Json;
use crate::plan::model::extra::lay;
use crate::plan::model::lengths::lengths_field::WrittenLengths;
use crate::plan::model::lengths::resolved::{Lengths, Rows};
use crate::plan::model::mix::weights;
use crate::plan::model::nonce::NonceMode;
use crate::plan::model::prefix::{Cache, Prefix};
use crate::plan::model::profiled::Profiled;
use crate::plan::model::profiled::arrivals::Recorded;
use crate::plan::model::profiled::file::ProfileFile;
use crate::plan::model::profiled::sharing::Sharing;
use crate::plan::model::profiled::turns::TurnCount;
use crate::plan::model::scenario::Scenario;
use crate::plan::model::table::Table;
use crate::plan::model::talk::{Sessions, Talk};
use crate::plan::model::trace::{Replay, TraceFile, TraceRequest};
use crate::units::Nanos;

/// Which text the requests of a scenario share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Reuse {
    /// Every request carries the same prompt (A).
    SamePrompt,
    /// No requests share text (B).
    None,
    /// One system prompt, with a different question in each request (C).
    SharedSystem,
    /// Turns of a conversation, each carrying the history so far (D).
    Conversation,
}

/// The content of a scenario: everything that determines the requests, without names.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Content {
    /// Which text the requests share.
    pub reuse: Reuse,
    /// Number of tokens in the shared system prompt; 0 if there is no such prompt.
    pub system_tokens: u32,
    /// Number of tokens in the user's text of one request or turn; the maximum if it varies.
    pub prompt_tokens: u32,
    /// Number of requested output tokens; the maximum if it varies.
    pub output_tokens: u32,
    /// Number of turns in each conversation; the maximum if it varies; 1 without conversations.
    pub turns: u32,
    /// How conversations proceed.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub talk: Talk,
    /// Lengths of prompts and responses, if they vary between requests.
    pub lengths: Option<Lengths>,
    /// The trace that provides lengths, arrivals and shared text.
    pub trace: Option<Replay>,
    /// The data set that provides the texts.
    pub data: Option<Corpus>,
    /// Texts at the beginning of prompts, each shared by a group of prompts.
    pub prefix: Option<Prefix>,
    /// How much text prompts share at their beginnings, from a profile. The shared text is part of their
    /// length.
    pub sharing: Option<Rows<Sharing>>,
    /// The numbers of turns of conversations, if they vary.
    pub turn_counts: Option<Rows<TurnCount>>,
    /// Whether prompts share any text (warm) or none (cold).
    #[serde(default, skip_serializing_if = "Cache::is_warm")]
    pub cache: Cache,
}

/// A scenario, merged from its built-in scenario, the plan's scenarios and the axes. A field is `None` if its
/// value is not set anywhere.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Resolved {
    /// The content of the requests.
    pub content: Content,
    /// The scope of the nonce, if the scenario sets it.
    pub nonce: Option<NonceMode>,
    /// Streaming, if the scenario sets it.
    pub stream: Option<bool>,
    /// `ignore_eos`, if the scenario sets it.
    pub ignore_eos: Option<bool>,
    /// Fields of the requests other than their text.
    pub fields: RequestFields,
    /// How outages are treated, if the scenario sets it.
    pub errors: Option<ErrorPolicy>,
    /// Additional fields of the body; an engine's own fields are under its name.
    pub extra: Table<Json>,
    /// Arrival times from a profile, if the sweep sets none.
    pub arrivals: Option<Arc<Recorded>>,
    /// Whether this scenario or one of its bases has a profile, which provides the values that are not set
    /// otherwise.
    pub(crate) profiled: bool,
    /// Whether arrivals of an open loop start conversations, as in the log from which the profile was
    /// made.
    pub opens_sessions: bool,
    /// The scenarios of a mix. The fields above then contain the values that all of these scenarios share, or
    /// the maximum where they differ.
    pub mix: Vec<Member>,
}

/// One scenario of a mix.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The name in the plan.
    pub name: String,
    /// The weight. The scenario's share of the requests is its weight divided by the sum of all weights.
    pub weight: u64,
    /// The scenario itself, with every default explicit.
    pub scenario: Resolved,
}

/// The built-in scenarios: name, content, and description for users.
pub(crate) static BUILT_IN: [(&str, Content, &str); 6] = [
    ("A1", content(Reuse::SamePrompt, 0, 50, 1), "the same short prompt every time: the best case for a prefix cache"),
    ("A2", content(Reuse::SamePrompt, 0, 2_500, 1), "the same long prompt every time"),
    ("B1", content(Reuse::None, 0, 50, 1), "distinct short prompts: nothing to reuse"),
    ("B2", content(Reuse::None, 0, 2_500, 1), "distinct long prompts: a prefill-heavy load"),
    ("C", content(Reuse::SharedSystem, 2_000, 50, 1), "one long system prompt, distinct short questions"),
    ("D", content(Reuse::Conversation, 0, 50, 5), "conversations whose history grows with the server's own responses"),
];

const fn content(reuse: Reuse, system_tokens: u32, prompt_tokens: u32, turns: u32) -> Content {
    Content {
        reuse,
        system_tokens,
        prompt_tokens,
        output_tokens: 256,
        turns,
        talk: Talk::PLAIN,
        lengths: None,
        trace: None,
        data: None,
        prefix: None,
        sharing: None,
        turn_counts: None,
        cache: Cache::Warm,
    }
}

/// The scenario of a plan that declares none, and the default `base` of scenarios.
pub(crate) const SCENARIO: &str = "B1";

/// The content of a built-in scenario, by its name.
pub fn built_in(name: &str) -> Option<&'static Content> {
    BUILT_IN.iter().find(|(built_in, ..)| *built_in == name).map(|(_, content, _)| content)
}

impl Content {
    /// The minimum context in tokens: the prompt of a request, or of the first turn of a conversation, plus
    /// the requested output.
    pub(crate) fn least_context(&self) -> u64 {
        let Content { system_tokens, prompt_tokens, output_tokens, data, prefix, .. } = self;
        if let Some(data) = data {
            return data.most_tokens(1)[2].into();
        }
        let prefix = prefix.map_or(0, |prefix| prefix.tokens);
        [*system_tokens, prefix, *prompt_tokens, *output_tokens].into_iter().map(u64::from).sum()
    }

    /// Mean number of requests per arrival of an open loop, which is the number of turns if
    /// conversations arrive and none is truncated.
    pub fn requests_per_arrival(&self) -> f64 {
        let arrive = self.reuse == Reuse::Conversation && self.talk.sessions == Sessions::Open;
        if arrive { self.mean_turns() } else { 1.0 }
    }

    /// Mean number of turns of a conversation; 1 without conversations.
    pub fn mean_turns(&self) -> f64 {
        let counted = self.turn_counts.as_ref().map_or(f64::from(self.turns), Rows::mean);
        self.data.as_ref().map_or(counted, |data| data.means(self.turns).turns)
    }
}

impl Default for Content {
    /// The content of B1, the scenario of a plan that declares none.
    fn default() -> Content {
        content(Reuse::None, 0, 50, 1)
    }
}

impl Content {
    /// Replaces the existing lengths with `lengths`, and then applies `prompt` and `output`, because a single
    /// number overrides lengths that vary.
    fn take_lengths(&mut self, lengths: Option<&WrittenLengths>, prompt: Option<u32>, output: Option<u32>) {
        let mut varied = lengths.and_then(WrittenLengths::resolve).or(self.lengths.take());
        if let Some(tokens) = prompt {
            self.prompt_tokens = tokens;
            varied = varied.map(|lengths| lengths.with_prompt(tokens));
        }
        if let Some(tokens) = output {
            self.output_tokens = tokens;
            varied = varied.map(|lengths| lengths.with_output(tokens));
        }
        let Some(lengths) = varied else { return };
        (self.prompt_tokens, self.output_tokens) = (lengths.prompt_range().max, lengths.output_range().max);
        // Constant lengths are dropped, because the requests, and so the run, are the same without `lengths`.
        self.lengths = Some(lengths).filter(|lengths| !lengths.is_constant());
    }

    /// Applies a profile over the existing settings.
    fn take_profile(&mut self, profiled: &Profiled) {
        let lengths = Lengths::Joint(profiled.lengths.clone());
        (self.prompt_tokens, self.output_tokens) = (lengths.prompt_range().max, lengths.output_range().max);
        self.lengths = Some(lengths).filter(|lengths| !lengths.is_constant());
        if profiled.sharing.is_some() {
            (self.sharing, self.prefix) = (profiled.sharing.clone(), None);
        }
        if let Some(counts) = &profiled.turns {
            (self.reuse, self.turns, self.turn_counts) = (Reuse::Conversation, counts.most(), Some(counts.clone()));
        }
    }

    /// Applies a trace over the existing lengths.
    fn take_trace(&mut self, replay: &Replay) {
        let most = |of: fn(&TraceRequest) -> u32| replay.requests.0.iter().map(of).max().unwrap_or(0);
        self.prompt_tokens = most(|request| request.prompt_tokens);
        self.output_tokens = most(|request| request.output_tokens);
        self.lengths = None;
        self.trace = Some(replay.clone());
    }
}

impl From<Content> for Resolved {
    fn from(content: Content) -> Resolved {
        Resolved { content, ..Resolved::default() }
    }
}

impl Resolved {
    /// Creates a mix, without the fields that are set next to `mix`.
    fn mixed(mix: Vec<Member>) -> Resolved {
        Resolved { mix, ..Resolved::default() }.summed_up()
    }

    /// Sets the fields of a mix to the values that all its members share, or to their maximum.
    fn summed_up(mut self) -> Resolved {
        let contents = || self.mix.iter().map(|member| &member.scenario.content);
        let most = |of: fn(&Content) -> u32| contents().map(of).max();
        let reuse = contents().map(|content| content.reuse);
        let talks = reuse.clone().any(|reuse| reuse == Reuse::Conversation);
        let (Some(prompt), Some(output), Some(system), Some(turns)) =
            (most(|c| c.prompt_tokens), most(|c| c.output_tokens), most(|c| c.system_tokens), most(|c| c.turns))
        else {
            return self;
        };
        self.content = Content {
            reuse: if talks { Reuse::Conversation } else { Reuse::None },
            prompt_tokens: prompt,
            output_tokens: output,
            system_tokens: system,
            turns,
            ..Content::default()
        };
        let first = &self.mix[0].scenario;
        (self.stream, self.ignore_eos, self.errors) = (first.stream, first.ignore_eos, first.errors);
        // Members may differ in their nonce. The mix has a nonce only if it is the same for all members.
        self.nonce = first.nonce.filter(|nonce| self.mix.iter().all(|member| member.scenario.nonce == Some(*nonce)));
        self
    }

    /// This scenario or, for a mix, its members.
    pub fn classes(&self) -> impl Iterator<Item = &Resolved> {
        let one = self.mix.is_empty().then_some(self);
        one.into_iter().chain(self.mix.iter().map(|member| &member.scenario))
    }

    /// Applies the fields that `patch` sets to this scenario, or to each member of a mix.
    pub fn apply(&mut self, patch: &Scenario) {
        if self.mix.is_empty() {
            return self.apply_to_one(patch);
        }
        self.mix.iter_mut().for_each(|member| member.scenario.apply(patch));
        *self = std::mem::take(self).summed_up();
    }

    fn apply_to_one(&mut self, patch: &Scenario) {
        let Scenario {
            base: _,
            description: _,
            prompt_tokens,
            output_tokens: _,
            max_completion_tokens: _,
            lengths,
            system_tokens,
            turns,
            think,
            history,
            sessions,
            context_limit,
            context_cut,
            trace,
            data,
            profile,
            prefix,
            cache,
            nonce,
            stream,
            ignore_eos,
            mix: _,
            inputs: _,
            documents: _,
            query_tokens: _,
            headers: _,
            stop: _,
            model: _,
            errors,
            extra,
            // The sampling parameters are applied together with the other request fields below.
            temperature: _,
            top_p: _,
            presence_penalty: _,
            frequency_penalty: _,
        } = patch;
        let set = |field: &mut u32, value: &Option<u32>| *field = value.unwrap_or(*field);
        if let Some(profiled) = profile.as_ref().and_then(ProfileFile::found) {
            self.content.take_profile(profiled);
            self.arrivals = profiled.arrivals.clone();
            self.profiled = true;
            // In a profile of conversations, arrival times are the start times of conversations.
            self.opens_sessions = profiled.turns.is_some() && profiled.arrivals.is_some();
        }
        let asked = patch.asked_tokens();
        self.content.take_lengths(lengths.as_ref(), *prompt_tokens, asked);
        set(&mut self.content.system_tokens, system_tokens);
        set(&mut self.content.turns, turns);
        self.content.turn_counts.take_if(|_| turns.is_some());
        let talk = &mut self.content.talk;
        if let Some(think) = think {
            // A think time of 0 is the same as no think time.
            talk.think = Some(*think).filter(|think| think.constant() != Some(Nanos::ZERO));
        }
        talk.history = history.unwrap_or(talk.history);
        talk.sessions = sessions.unwrap_or(talk.sessions);
        self.opens_sessions &= sessions.is_none();
        talk.context_limit = context_limit.or(talk.context_limit);
        talk.context_cut = context_cut.unwrap_or(talk.context_cut);
        if let Some(replay) = trace.as_ref().and_then(TraceFile::replay) {
            self.content.take_trace(replay);
        }
        if let Some(corpus) = data.as_ref().and_then(DataFile::corpus) {
            self.content.take_data(corpus);
        }
        self.content.adjust_data(*turns, asked);
        self.content.sharing.take_if(|_| prefix.is_some());
        self.content.prefix = prefix.or(self.content.prefix);
        self.content.cache = cache.unwrap_or(self.content.cache);
        self.nonce = nonce.or(self.nonce);
        self.stream = stream.or(self.stream);
        self.ignore_eos = ignore_eos.or(self.ignore_eos);
        self.fields.apply(patch);
        self.errors = errors.or(self.errors);
        lay(&mut self.extra, extra);
    }
}

/// Returns the scenario called `name` in a plan whose own scenarios are `table`; `None` for an unknown
/// name, a cycle of bases or an invalid mix (`check` reports each as an error in the plan).
pub fn resolve(name: &str, table: &Table<Scenario>) -> Option<Resolved> {
    let (chain, content) = chain(name, table)?;
    let Some(at) = chain.iter().position(|(_, own)| !own.mix.is_empty()) else {
        return Some(patched(content.clone().into(), &chain));
    };
    let parts = &chain[at].1.mix;
    let members = parts.iter().zip(weights(parts)?).map(|(part, weight)| {
        let (chain, content) = crate::plan::model::content::chain(&part.scenario, table)?;
        let scenario = patched(content.clone().into(), &chain);
        chain.iter().all(|(_, own)| own.mix.is_empty()).then(|| Member {
            name: part.scenario.clone(),
            weight,
            scenario,
        })
    });
    Some(patched(Resolved::mixed(members.collect::<Option<_>>()?), &chain[..=at]))
}

/// The chain of the plan's own scenarios that starts at `name`, nearest first, and the built-in scenario at
/// which it ends; `None` if a name is unknown or the bases form a cycle.
pub(crate) fn chain<'t>(name: &str, table: &'t Table<Scenario>) -> Option<(Chain<'t>, &'static Content)> {
    let mut chain: Chain<'t> = Vec::new();
    let mut at = name;
    loop {
        match table.get_key_value(at) {
            Some(_) if chain.len() > table.len() => return None,
            Some((own_name, own)) => {
                chain.push((own_name, own));
                let base = own.base.as_deref().unwrap_or(SCENARIO);
                if base == at || !table.contains_key(base) {
                    return Some((chain, built_in(base)?));
                }
                at = base;
            }
            None => return Some((chain, built_in(at)?)),
        }
    }
}

/// Scenarios by name, each of which is based on the next one.
pub(crate) type Chain<'t> = Vec<(&'t str, &'t Scenario)>;

/// Applies the patches of a chain to a scenario, last one first.
fn patched(mut scenario: Resolved, chain: &[(&str, &Scenario)]) -> Resolved {
    chain.iter().rev().for_each(|(_, patch)| scenario.apply(patch));
    scenario
}
