//! Reads the vocabulary of the prose from `vocabulary.toml`: six topics, and the words that fit all of
//! them.

use std::sync::LazyLock;

use serde::Deserialize;

/// The words and phrases from which texts are generated.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Vocabulary {
    /// Questions short enough for a prompt of a few words, shortest first.
    pub(super) short_questions: Vec<String>,
    pub(super) times: Vec<String>,
    pub(super) manners: Vec<String>,
    /// The beginnings of sentences that continue from the previous one.
    pub(super) links: Vec<String>,
    pub(super) spans: Vec<String>,
    pub(super) topics: Vec<Topic>,
}

/// The words and phrases of one topic.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Topic {
    /// People who do something.
    pub(crate) actors: Vec<String>,
    /// Verbs whose object is a thing.
    pub(crate) verbs: Vec<String>,
    /// Things to which something is done.
    pub things: Vec<String>,
    /// Places where something happens.
    pub places: Vec<String>,
    /// States of a thing.
    pub(crate) qualities: Vec<String>,
    /// Purposes, which follow `to`.
    pub(crate) aims: Vec<String>,
    /// Questions to the reader at the end of a text.
    pub questions: Vec<String>,
}

/// The vocabulary, which is parsed when it is first used.
pub(super) static VOCABULARY: LazyLock<Vocabulary> =
    LazyLock::new(|| toml::from_str(include_str!("vocabulary.toml")).expect("a test reads vocabulary.toml"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_short_enough_to_cut_between() {
        let Vocabulary { times, manners, links, spans, topics, .. } = &*VOCABULARY;
        let of_topics = topics.iter().flat_map(|t| [&t.actors, &t.verbs, &t.things, &t.places, &t.qualities, &t.aims]);
        let letters = |word: &str| word.trim_end_matches([',', '.', ':']).len();
        for phrase in of_topics.chain([times, manners, links, spans]).flatten() {
            assert!(phrase.is_ascii() && phrase.split(' ').all(|word| (1..=9).contains(&letters(word))), "{phrase}");
        }
        for start in times.iter().chain(links).chain(topics.iter().flat_map(|topic| &topic.actors)) {
            assert!(start.split(' ').next().is_some_and(|word| letters(word) <= 7), "{start}");
        }
    }
}
