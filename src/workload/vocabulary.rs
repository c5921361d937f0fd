//! The vocabulary of the prose, from `vocabulary.toml`: six topics, and the words that fit all of them.

use std::sync::LazyLock;

use serde::Deserialize;

/// What texts are made of.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Vocabulary {
    /// Questions short enough for a prompt of a few words, shortest first.
    pub(super) short_questions: Vec<String>,
    pub(super) times: Vec<String>,
    pub(super) manners: Vec<String>,
    /// What a sentence begins with to go on from the one before.
    pub(super) links: Vec<String>,
    pub(super) spans: Vec<String>,
    pub(super) topics: Vec<Topic>,
}

/// What one text is about.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Topic {
    /// Who acts.
    pub(crate) actors: Vec<String>,
    /// What was done to a thing.
    pub(crate) verbs: Vec<String>,
    /// What it was done to.
    pub things: Vec<String>,
    /// Where.
    pub places: Vec<String>,
    /// How a thing was.
    pub(crate) qualities: Vec<String>,
    /// What for, after `to`.
    pub(crate) aims: Vec<String>,
    /// What the reader is asked at the end.
    pub questions: Vec<String>,
}

/// The one vocabulary.
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
