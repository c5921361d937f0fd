//! The text of responses, and the tokens of texts.

use std::borrow::Cow;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::config::Vocabulary;

const PLAIN: &[&str] = &[
    "the", "river", "turns", "slowly", "under", "old", "bridges", "while", "morning", "light", "falls", "on", "quiet",
    "houses", "and", "people", "walk", "to", "work", "with", "bread", "in", "their", "hands", "each", "window",
    "opens", "a", "little", "later", "than", "before", "some", "birds", "follow", "boats", "toward", "open", "water",
    "where", "wind", "carries", "sound", "of", "bells", "from", "distant", "towers", "children", "count", "stones",
    "along", "wet", "sand", "until", "evening", "brings", "cool", "air", "back", "into", "narrow", "streets", "again",
];

/// Two, three and four bytes per character.
const UTF8: &[&str] =
    &["Grüße", "naïve", "Ωμέγα", "мир", "東京", "日本語", "한국어", "😀", "🚀🌍", "ﬁn", "łódź", "שלום"];

/// Every escape that a reader must decode, in JSON form.
const ESCAPED: &[&str] = &[
    r#"\"quoted\""#,
    r"back\\slash",
    r"caf\u00e9",
    r"\ud83d\ude00",
    r"a\/b",
    r"nul\u0000l",
    r"\u6771\u4eac",
    "plain",
    r"\b\f",
    r#"{\"key\":[1]}"#,
];

/// An endless text that a seed determines, with one word per token, in the form of JSON strings.
pub(super) struct Speech {
    random: ChaCha8Rng,
    words: &'static [&'static str],
    started: bool,
}

impl Speech {
    /// Creates the text that `random` determines.
    pub(super) fn new(words: Vocabulary, random: ChaCha8Rng) -> Speech {
        let words = match words {
            Vocabulary::Plain => PLAIN,
            Vocabulary::Utf8 => UTF8,
            Vocabulary::Escaped => ESCAPED,
        };
        Speech { random, words, started: false }
    }

    /// Appends the next token and returns its word. Every token but the first begins with a space, so that
    /// a text of n tokens has n words.
    pub(super) fn push(&mut self, text: &mut Vec<u8>) -> &'static str {
        if self.started {
            text.push(b' ');
        }
        self.started = true;
        let word = self.words[self.random.random_range(0..self.words.len())];
        text.extend_from_slice(word.as_bytes());
        word
    }
}

/// Returns the number of tokens into which this server splits a text. Each run of letters and digits is one
/// token, and so is every other character except white space. Real tokenizers find a third more tokens in
/// English prose, but what matters here is that client and log can agree on the count without sharing code.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let length = if first.is_alphanumeric() {
            rest.find(|character: char| !character.is_alphanumeric()).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, behind) = rest.split_at(length);
        rest = behind;
        Some(token)
    })
}

/// Returns a word of [`Speech`] as a reader of the JSON sees it.
pub(super) fn plain(word: &'static str) -> Cow<'static, str> {
    if !word.contains('\\') {
        return Cow::Borrowed(word);
    }
    Cow::Owned(serde_json::from_str(&format!("\"{word}\"")).expect("the words are JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::random::random;

    #[test]
    fn words_and_marks_are_tokens() {
        let cut = |text| tokens(text).collect::<Vec<_>>();
        assert!(cut("").is_empty() && cut(" \n").is_empty());
        assert_eq!(cut("  one two\nthree "), ["one", "two", "three"]);
        assert_eq!(cut("Hello, world!"), ["Hello", ",", "world", "!"]);
        assert_eq!(cut("don't"), ["don", "'", "t"]);
        assert_eq!(cut("Grüße 東京"), ["Grüße", "東京"]);
        assert_eq!(cut("🚀🌍 x2"), ["🚀", "🌍", "x2"]);
    }

    #[test]
    fn speech_is_by_seed_and_one_word_per_token() {
        for words in [Vocabulary::Plain, Vocabulary::Utf8, Vocabulary::Escaped] {
            let say = |seed| {
                let mut speech = Speech::new(words, random(seed, b"text", 0));
                let mut text = Vec::new();
                let words: Vec<_> = (0..50).map(|_| plain(speech.push(&mut text))).collect();
                let json = format!("\"{}\"", String::from_utf8(text).unwrap());
                let said = serde_json::from_str::<String>(&json).unwrap();
                assert_eq!(said, words.join(" "));
                said
            };
            assert_eq!(say(1), say(1));
            assert_ne!(say(1), say(2));
            assert_eq!(say(1).split(' ').count(), 50);
        }
    }
}
