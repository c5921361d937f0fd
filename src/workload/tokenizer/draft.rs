//! Creates a text with a given number of tokens, using the table of word costs. Prose is truncated where
//! the sum is right; if no place fits exactly, filler words are added at its end.

use super::error::TokenizerError;
use super::fillers::FILLERS;
use super::word_costs::Costs;

/// Maximum number of words that are removed from the end of the prose to find a place from which filler words
/// can reach the exact number.
const BACK: usize = 12;
/// Maximum number of tokens for which prose is written in one call.
const MOST_AT_ONCE: usize = 1 << 20;
/// The end of a sentence that was truncated.
const DOTS: &str = "...";

/// The parts from which a text is made.
pub(in super::super) struct Parts<'a, 'p> {
    /// The possible beginnings of the text, without a trailing space, the longest first. A shorter one is
    /// used if there is no room for a longer one.
    pub heads: &'a [String],
    /// Appends prose of at least this many characters to the text written so far; words are separated
    /// by single spaces.
    pub prose: &'a mut (dyn FnMut(&mut String, usize) + 'p),
    /// The end of the text; omitted if there is no room.
    pub ending: &'a str,
}

/// A text, and the number of tokens of the whole prompt that contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Fitted {
    /// The text.
    pub text: String,
    /// Number of tokens of the whole prompt as encoded, whether or not this is the requested
    /// number.
    pub tokens: u32,
}

/// A function that returns the number of tokens of the whole prompt with a text inserted.
pub(in super::super) type Whole<'a> = &'a dyn Fn(&str) -> Result<u32, TokenizerError>;

/// A text in progress: prose that grows as needed, and the costs of its words.
pub(super) struct Draft<'c, 'a, 'p> {
    costs: Costs<'c>,
    parts: Parts<'a, 'p>,
    prose: String,
    /// For each word, its end in `prose` and the number of tokens up to that point.
    borders: Vec<(usize, i64)>,
}

impl<'c, 'a, 'p> Draft<'c, 'a, 'p> {
    /// Creates an empty draft.
    pub(super) fn new(costs: Costs<'c>, parts: Parts<'a, 'p>) -> Draft<'c, 'a, 'p> {
        Draft { costs, parts, prose: String::new(), borders: Vec::new() }
    }

    /// Returns a text of `budget` tokens according to the table, or the closest shorter one. `variant`
    /// selects among the possible texts, so that a second attempt gives a different text.
    pub(super) fn text(&mut self, budget: i64, variant: usize) -> String {
        let outers = self.outers();
        for (head, ending) in &outers {
            let room = budget - self.costs.text(head) - self.costs.text(ending);
            if room >= 0
                && let Some(body) = self.body(room, variant)
            {
                return joined([*head, &body, *ending]);
            }
        }
        // No exact combination exists, so the closest smaller one is used.
        let fits = |draft: &mut Self, (head, ending): &(&str, &str)| {
            draft.costs.text(head) + draft.costs.text(ending) <= budget
        };
        let outer = outers.iter().find(|outer| fits(self, outer)).or(outers.last());
        let (head, ending) = outer.copied().unwrap_or_default();
        let room = budget - self.costs.text(head) - self.costs.text(ending);
        let words = self.borders.partition_point(|(_, tokens)| *tokens <= room);
        joined([head, &self.prose[..self.end(words)], ending])
    }

    /// Returns the number of tokens of a text according to the table.
    pub(super) fn cost(&mut self, text: &str) -> i64 {
        self.costs.text(text)
    }

    /// Returns as much prose as fits into `room` tokens according to the table.
    pub(super) fn prose_below(&mut self, room: i64) -> String {
        self.grow(room);
        let words = self.borders.partition_point(|(_, tokens)| *tokens <= room);
        self.prose[..self.end(words)].trim_end_matches([',', ':', ';']).to_owned()
    }

    /// Returns the possible combinations of head and ending around the prose, best first. The
    /// ending is dropped before any part of the head.
    pub(super) fn outers(&self) -> Vec<(&'a str, &'a str)> {
        let (heads, ending) = (self.parts.heads, self.parts.ending);
        let heads: Vec<&str> = if heads.is_empty() { vec![""] } else { heads.iter().map(String::as_str).collect() };
        heads.into_iter().flat_map(|head| [(head, ending), (head, "")]).collect()
    }

    /// Returns prose of exactly `room` tokens according to the table; `None` if there is none.
    fn body(&mut self, room: i64, variant: usize) -> Option<String> {
        self.grow(room);
        let fitting = self.borders.partition_point(|(_, tokens)| *tokens <= room);
        let words = fitting.saturating_sub(variant);
        self.closed(words, room).or_else(|| self.filled(words, room, variant))
    }

    /// Writes and counts enough prose for `room` tokens, plus one word that does not fit.
    fn grow(&mut self, room: i64) {
        loop {
            self.count(room);
            let tokens = self.borders.last().map_or(0, |(_, tokens)| *tokens);
            if tokens > room {
                return;
            }
            let before = self.prose.len();
            // Assumes four characters per token. If tokens are longer, the loop writes more, so that it never
            // writes far too much prose.
            let more = usize::try_from(room - tokens).unwrap_or(0).min(MOST_AT_ONCE) * 4 + 64;
            (self.parts.prose)(&mut self.prose, more);
            if self.prose.len() == before {
                return;
            }
        }
    }

    /// Counts the tokens of the written words, up to the first word that does not fit into `room`.
    fn count(&mut self, room: i64) {
        let (from, mut tokens) = self.borders.last().copied().unwrap_or_default();
        let mut start = if from == 0 { 0 } else { from + 1 };
        while start < self.prose.len() && tokens <= room {
            let end = self.prose[start..].find(' ').map_or(self.prose.len(), |at| start + at);
            tokens += self.costs.word(&self.prose[start..end]);
            self.borders.push((end, tokens));
            start = end + 1;
        }
    }

    /// Returns the end of the first `words` words in the prose, in bytes.
    fn end(&self, words: usize) -> usize {
        words.checked_sub(1).map_or(0, |last| self.borders[last].0)
    }

    fn tokens(&self, words: usize) -> i64 {
        words.checked_sub(1).map_or(0, |last| self.borders[last].1)
    }

    /// Returns prose of exactly `room` tokens that consists of the first `words` words, or of up to three
    /// fewer. Dots follow if this is not the end of a sentence. `None` if no such prose exists.
    fn closed(&mut self, words: usize, room: i64) -> Option<String> {
        for words in (words.saturating_sub(3)..=words).rev() {
            let (start, end) = (self.end(words.saturating_sub(1)), self.end(words));
            let word = self.prose[start..end].trim_start_matches(' ');
            let kept = word.trim_end_matches([',', ':', ';']);
            if word.is_empty() || word.ends_with('.') {
                if self.tokens(words) == room {
                    return Some(self.prose[..end].to_owned());
                }
                continue;
            }
            let last = format!("{kept}{DOTS}");
            if self.tokens(words - 1) + self.costs.word(&last) == room {
                return Some(format!("{}{DOTS}", &self.prose[..end - (word.len() - kept.len())]));
            }
        }
        None
    }

    /// Returns prose of exactly `room` tokens whose last words are fillers; `None` if there is none.
    fn filled(&mut self, words: usize, room: i64, variant: usize) -> Option<String> {
        for words in (words.saturating_sub(BACK)..=words).rev() {
            let mut body = self.prose[..self.end(words)].trim_end_matches([',', ':', ';']).to_owned();
            let need = room - self.tokens(words);
            if self.fill(&mut body, need, words + variant) {
                return Some(body);
            }
        }
        None
    }

    /// Appends fillers with exactly `need` tokens in total. Returns false if there is no such combination.
    /// `turn` selects the first filler.
    fn fill(&mut self, body: &mut String, need: i64, turn: usize) -> bool {
        let from = body.len();
        for last in 0..FILLERS.len() {
            let last = format!("{}{DOTS}", FILLERS[(turn + last) % FILLERS.len()]);
            let mut rest = need - self.costs.word(&last);
            for next in turn.. {
                if rest <= 0 {
                    break;
                }
                let fitting = (0..FILLERS.len()).map(|skip| FILLERS[(next + skip) % FILLERS.len()]);
                let found =
                    fitting.map(|word| (word, self.costs.word(word))).find(|(_, cost)| (1..=rest).contains(cost));
                let Some((word, cost)) = found else { break };
                push(body, word);
                rest -= cost;
            }
            if rest == 0 {
                push(body, &last);
                return true;
            }
            body.truncate(from);
        }
        false
    }
}

/// Joins the non-empty parts with spaces.
pub(super) fn joined(parts: [&str; 3]) -> String {
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

/// Appends a word, after a space if the text is not empty.
fn push(text: &mut String, word: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(word);
}
