//! Scenarios with every default explicit: the built-ins, and what a plan makes of them.

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

/// What requests of one scenario have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Reuse {
    /// Every request carries the same prompt (A).
    SamePrompt,
    /// No two requests share text (B).
    None,
    /// One system prompt, a different question each (C).
    SharedSystem,
    /// Turns of a conversation, each carrying the history so far (D).
    Conversation,
}

/// The content of a scenario: all that decides what is sent, nothing that is only a name.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Content {
    /// What requests have in common.
    pub reuse: Reuse,
    /// Tokens of the shared system prompt; 0 for none.
    pub system_tokens: u32,
    /// Tokens of the user's text of one request or turn; where they differ, the most.
    pub prompt_tokens: u32,
    /// Tokens asked for; where they differ, the most.
    pub output_tokens: u32,
    /// Turns of a conversation; 1 where there is none; where they differ, the most.
    pub turns: u32,
    /// How conversations go on.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub talk: Talk,
    /// Lengths of prompts and answers, where they differ from request to request.
    pub lengths: Option<Lengths>,
    /// The trace that gives lengths and arrivals, and what prompts share.
    pub trace: Option<Replay>,
    /// The data set whose texts are sent.
    pub data: Option<Corpus>,
    /// Texts that prompts open with, shared by groups of them.
    pub prefix: Option<Prefix>,
    /// What prompts have in common at their beginnings by a profile: a part of their length.
    pub sharing: Option<Rows<Sharing>>,
    /// Turns of conversations, where they differ from one to the next.
    pub turn_counts: Option<Rows<TurnCount>>,
    /// Whether prompts share anything at all.
    #[serde(default, skip_serializing_if = "Cache::is_warm")]
    pub cache: Cache,
}

/// A scenario with its built-in, the plan's scenarios and the axes merged; `None` means: not said anywhere.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Resolved {
    /// What is sent.
    pub content: Content,
    /// How far the nonce reaches, where the scenario says so.
    pub nonce: Option<NonceMode>,
    /// Streaming, where the scenario says so.
    pub stream: Option<bool>,
    /// `ignore_eos`, where the scenario says so.
    pub ignore_eos: Option<bool>,
    /// What requests carry beside their text.
    pub fields: RequestFields,
    /// What an outage means, where the scenario says so.
    pub errors: Option<ErrorPolicy>,
    /// Further fields of the body, an engine's own under its name.
    pub extra: Table<Json>,
    /// When requests come, where a profile says it and the sweep does not.
    pub arrivals: Option<Arc<Recorded>>,
    /// A profile says, here or at a base, what is not said otherwise.
    pub(crate) profiled: bool,
    /// Arrivals of an open loop are conversations, as in the log of the profile.
    pub opens_sessions: bool,
    /// The scenarios of a mix; what stands above is then what holds for all of them, and the most that one of them sends.
    pub mix: Vec<Member>,
}

/// One scenario of a mix.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its name in the plan.
    pub name: String,
    /// Its part of the sum of all weights is its share of the requests.
    pub weight: u64,
    /// What it sends.
    pub scenario: Resolved,
}

/// The built-in scenarios: name, what they send, and for whom.
pub(crate) static BUILT_IN: [(&str, Content, &str); 6] = [
    ("A1", content(Reuse::SamePrompt, 0, 50, 1), "the same short prompt every time: the best case of a prefix cache"),
    ("A2", content(Reuse::SamePrompt, 0, 2_500, 1), "the same long prompt every time"),
    ("B1", content(Reuse::None, 0, 50, 1), "short prompts that differ: nothing to reuse"),
    ("B2", content(Reuse::None, 0, 2_500, 1), "long prompts that differ: prefill at work"),
    ("C", content(Reuse::SharedSystem, 2_000, 50, 1), "one long system prompt, short questions that differ"),
    ("D", content(Reuse::Conversation, 0, 50, 5), "conversations whose history grows with the server's own answers"),
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

/// The scenario of a plan that declares none, and what a scenario without `base` starts from.
pub(crate) const SCENARIO: &str = "B1";

/// The content of a built-in scenario, by name.
pub fn built_in(name: &str) -> Option<&'static Content> {
    BUILT_IN.iter().find(|(built_in, ..)| *built_in == name).map(|(_, content, _)| content)
}

impl Content {
    /// Tokens of a first turn, or of a request, with the output that is asked for: what a context must hold.
    pub(crate) fn least_context(&self) -> u64 {
        let Content { system_tokens, prompt_tokens, output_tokens, data, prefix, .. } = self;
        if let Some(data) = data {
            return data.most_tokens(1)[2].into();
        }
        let prefix = prefix.map_or(0, |prefix| prefix.tokens);
        [*system_tokens, prefix, *prompt_tokens, *output_tokens].into_iter().map(u64::from).sum()
    }

    /// Requests that an arrival of an open loop brings, on average: where conversations arrive, their turns, as far as none
    /// is cut short.
    pub fn requests_per_arrival(&self) -> f64 {
        let arrive = self.reuse == Reuse::Conversation && self.talk.sessions == Sessions::Open;
        if arrive { self.mean_turns() } else { 1.0 }
    }

    /// Turns of a conversation on average; 1 where there is none.
    pub fn mean_turns(&self) -> f64 {
        let counted = self.turn_counts.as_ref().map_or(f64::from(self.turns), Rows::mean);
        self.data.as_ref().map_or(counted, |data| data.means(self.turns).turns)
    }
}

impl Default for Content {
    /// B1, the scenario of a plan that declares none.
    fn default() -> Content {
        content(Reuse::None, 0, 50, 1)
    }
}

impl Content {
    /// Lays lengths over those that are there, then single lengths over these: a number takes the place of what varied.
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
        // Requests of one length are what they would be without `lengths`, and the same run.
        self.lengths = Some(lengths).filter(|lengths| !lengths.is_constant());
    }

    /// Lays a profile over what is there.
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

    /// Lays a trace over the lengths that are there.
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
    /// A mix without any adjustment.
    fn mixed(mix: Vec<Member>) -> Resolved {
        Resolved { mix, ..Resolved::default() }.summed_up()
    }

    /// A mix, with what all its members have in common, or the most that one of them has.
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
        // Classes may differ in it; what all of them say is what the mix says.
        self.nonce = first.nonce.filter(|nonce| self.mix.iter().all(|member| member.scenario.nonce == Some(*nonce)));
        self
    }

    /// This scenario, or those of the mix that it is.
    pub fn classes(&self) -> impl Iterator<Item = &Resolved> {
        let one = self.mix.is_empty().then_some(self);
        one.into_iter().chain(self.mix.iter().map(|member| &member.scenario))
    }

    /// Lays the fields that `patch` gives over this scenario, or over each one of a mix.
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
            // All at once below.
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
            // The times of a file of conversations are those of their beginnings.
            self.opens_sessions = profiled.turns.is_some() && profiled.arrivals.is_some();
        }
        let asked = patch.asked_tokens();
        self.content.take_lengths(lengths.as_ref(), *prompt_tokens, asked);
        set(&mut self.content.system_tokens, system_tokens);
        set(&mut self.content.turns, turns);
        self.content.turn_counts.take_if(|_| turns.is_some());
        let talk = &mut self.content.talk;
        if let Some(think) = think {
            // No time to think is no think time.
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

/// The scenario called `name` in a plan whose own scenarios are `table`; `None` for an unknown name, a circle of bases or a
/// mix that cannot be (all are plan errors that `check` names).
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

/// The plan's own scenarios from the one called `name` down, the nearest first, and the built-in that they end at.
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

/// Scenarios by name, each based on the next.
pub(crate) type Chain<'t> = Vec<(&'t str, &'t Scenario)>;

/// A scenario with patches laid over it, the last one first.
fn patched(mut scenario: Resolved, chain: &[(&str, &Scenario)]) -> Resolved {
    chain.iter().rev().for_each(|(_, patch)| scenario.apply(patch));
    scenario
}
