//! A data set as part of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::model::data::left_out::LeftOut;

/// The order of the records of a data set.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "DataOrder")]
#[strum(serialize_all = "snake_case")]
pub enum Order {
    /// In a random order drawn from the seed; when all records have been used, in another random order.
    #[default]
    Shuffled,
    /// In the order of the file; when all records have been used, from the first one again.
    File,
}

impl Order {
    /// The name in plans.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A question of a data set, and its response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// The user's text.
    pub user: Box<str>,
    /// The recorded response, if the data set has one.
    pub answer: Option<Box<str>>,
    /// Number of tokens in the response, if the file declares it.
    pub declared: Option<u32>,
    /// Estimated number of tokens in the question.
    pub(crate) user_tokens: u32,
    /// Number of tokens in the response, declared or estimated; 0 without a response.
    pub output_tokens: u32,
}

/// A record of a data set, which is a question or a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Dialogue {
    /// The system message.
    pub system: Option<Box<str>>,
    /// Estimated number of tokens in the system message.
    pub system_tokens: u32,
    /// The questions, at least one.
    pub asked: Box<[Exchange]>,
}

/// The content of a data set's file.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// SHA-256 over all texts and lengths that are kept, as 64 hex digits. Represents these texts
    /// and lengths in the identity of runs.
    pub texts: String,
    /// SHA-256 of the file's bytes, as 64 hex digits.
    pub sha256: String,
    /// A one-line description of how the entries of the file were read.
    pub reading: String,
    /// Number of records that are kept.
    pub records: u64,
    /// For each reason: the skipped entries.
    pub left_out: BTreeMap<String, LeftOut>,
    /// The records, in the order of the file; empty if read from a results folder.
    pub(crate) dialogues: Vec<Dialogue>,
    /// For each turn, from the first one: sums over all records that have it.
    pub(crate) turns: Vec<OfTurn>,
}

impl PartialEq for Source {
    fn eq(&self, other: &Source) -> bool {
        let all = |one: &Source| (one.texts.clone(), one.sha256.clone(), one.reading.clone());
        all(self) == all(other)
    }
}

/// Sums for one turn of conversations, such as the second, over all records that have it.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct OfTurn {
    records: u64,
    /// Sum of the tokens of the system message and of the turn's question.
    prompt: f64,
    /// Sum of the tokens of the turn's response.
    output: f64,
    /// Sum of the tokens of the questions before this turn.
    asked_before: f64,
    /// Sum of the tokens of the responses before this turn.
    answered_before: f64,
    /// Three maximum token counts: of a question with its system message, of a response, and of system
    /// message, question and response together.
    most: [u32; 3],
}

impl OfTurn {
    /// Computes the sums of every turn over `dialogues`.
    pub(crate) fn all(dialogues: &[Dialogue]) -> Vec<OfTurn> {
        let mut turns: Vec<OfTurn> = Vec::new();
        for dialogue in dialogues {
            let (mut asked_before, mut answered_before) = (0.0, 0.0);
            for (at, asked) in dialogue.asked.iter().enumerate() {
                if at == turns.len() {
                    turns.push(OfTurn::default());
                }
                let (user, answer) = (f64::from(asked.user_tokens), f64::from(asked.output_tokens));
                let turn = &mut turns[at];
                turn.records += 1;
                turn.prompt += f64::from(dialogue.system_tokens) + user;
                turn.output += answer;
                turn.asked_before += asked_before;
                turn.answered_before += answered_before;
                let prompt = dialogue.system_tokens.saturating_add(asked.user_tokens);
                let both = prompt.saturating_add(asked.output_tokens);
                for (most, tokens) in turn.most.iter_mut().zip([prompt, asked.output_tokens, both]) {
                    *most = tokens.max(*most);
                }
                (asked_before, answered_before) = (asked_before + user, answered_before + answer);
            }
        }
        turns
    }
}

/// Means over the requests of a data set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Means {
    /// Mean number of tokens in the system message and the question.
    pub prompt: f64,
    /// Mean number of tokens in the previous turns, including responses.
    pub history: f64,
    /// Mean number of requested output tokens.
    pub output: f64,
    /// Mean number of requests per record.
    pub turns: f64,
}

/// A data set as part of a run, with everything that determines the requests.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "Stored", from = "Stored")]
pub struct Corpus {
    /// The order of the records.
    pub order: Order,
    /// Requested output tokens, if they differ from the recorded responses.
    pub output_tokens: Option<u32>,
    /// The records.
    pub source: Arc<Source>,
}

impl Corpus {
    /// The parts that determine the requests.
    fn identity(&self) -> (&str, Order, Option<u32>) {
        (&self.source.texts, self.order, self.output_tokens)
    }

    /// The same data set, reduced to the parts that determine the requests, with only the digest of its texts.
    pub fn bare(&self) -> Corpus {
        let source = Source { texts: self.source.texts.clone(), ..Source::default() };
        Corpus { source: Arc::new(source), ..self.clone() }
    }

    /// The maximum number of questions in a record.
    pub(crate) fn most_turns(&self) -> u32 {
        u32::try_from(self.source.turns.len()).unwrap_or(u32::MAX)
    }

    /// Three maximum token counts: of a question with its system message and of a response, each within the
    /// first `turns` turns, and of system message, question and response together in the first turn.
    pub(crate) fn most_tokens(&self, turns: u32) -> [u32; 3] {
        let most =
            |at: usize| self.source.turns.iter().take(turns as usize).map(|turn| turn.most[at]).max().unwrap_or(0);
        let first = self.source.turns.first().map_or([0; 3], |first| first.most);
        match self.output_tokens {
            Some(output) => [most(0), output, first[0].saturating_add(output)],
            None => [most(0), most(1), first[2]],
        }
    }

    /// Means over the requests of the data set, if conversations have at most `turns` turns.
    pub fn means(&self, turns: u32) -> Means {
        let turns = &self.source.turns[..self.source.turns.len().min(turns as usize)];
        let requests = turns.iter().map(|turn| turn.records).sum::<u64>().max(1) as f64;
        let sum = |of: &dyn Fn(&OfTurn) -> f64| turns.iter().map(of).sum::<f64>() / requests;
        let fixed = self.output_tokens.map(f64::from);
        let before = turns.iter().enumerate().map(|(at, turn)| match fixed {
            Some(tokens) => tokens * at as f64 * turn.records as f64,
            None => turn.answered_before,
        });
        Means {
            prompt: sum(&|turn| turn.prompt),
            history: sum(&|turn| turn.asked_before) + before.sum::<f64>() / requests,
            output: fixed.unwrap_or_else(|| sum(&|turn| turn.output)),
            turns: requests / turns.first().map_or(1, |first| first.records.max(1)) as f64,
        }
    }
}

impl PartialEq for Corpus {
    fn eq(&self, other: &Corpus) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Corpus {}

impl std::hash::Hash for Corpus {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

/// A data set as stored in a results folder: without its texts, which are represented by their digest.
#[derive(Serialize, Deserialize)]
struct Stored {
    texts: String,
    order: Order,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u32>,
    sha256: String,
    reading: String,
    records: u64,
    left_out: BTreeMap<String, LeftOut>,
}

impl From<Corpus> for Stored {
    fn from(Corpus { order, output_tokens, source }: Corpus) -> Stored {
        let Source { texts, sha256, reading, records, left_out, .. } = &*source;
        let (texts, sha256, reading) = (texts.clone(), sha256.clone(), reading.clone());
        Stored { texts, order, output_tokens, sha256, reading, records: *records, left_out: left_out.clone() }
    }
}

impl From<Stored> for Corpus {
    fn from(Stored { texts, order, output_tokens, sha256, reading, records, left_out }: Stored) -> Corpus {
        let source = Source { texts, sha256, reading, records, left_out, ..Source::default() };
        Corpus { order, output_tokens, source: Arc::new(source) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialogue(system_tokens: u32, turns: &[(u32, u32)]) -> Dialogue {
        let asked = turns.iter().map(|(user_tokens, output_tokens)| Exchange {
            user: "".into(),
            answer: None,
            declared: None,
            user_tokens: *user_tokens,
            output_tokens: *output_tokens,
        });
        Dialogue { system: None, system_tokens, asked: asked.collect() }
    }

    #[test]
    fn means_are_those_of_the_requests_that_are_sent() {
        let dialogues = vec![dialogue(10, &[(100, 50), (30, 20), (40, 5)]), dialogue(0, &[(60, 10)])];
        let turns = OfTurn::all(&dialogues);
        let source = Arc::new(Source { dialogues, turns, ..Source::default() });
        let corpus = Corpus { order: Order::File, output_tokens: None, source };
        assert_eq!(corpus.means(1), Means { prompt: 85.0, history: 0.0, output: 30.0, turns: 1.0 });
        // The prompts have 110 and 60 tokens in the first turn, 40 after a history of 150 in the second, and
        // 50 after a history of 200 in the third.
        assert_eq!(corpus.means(9), Means { prompt: 65.0, history: 87.5, output: 21.25, turns: 2.0 });
        assert_eq!((corpus.most_turns(), corpus.most_tokens(9)), (3, [110, 50, 160]));
        let fixed = Corpus { output_tokens: Some(100), ..corpus };
        assert_eq!(fixed.means(2), Means { prompt: 70.0, history: 200.0 / 3.0, output: 100.0, turns: 1.5 });
    }
}
