//! A tokenizer without files. It consists of the cost of every word that occurs in prompts, as counted by a
//! server that has the model's tokenizer.
//!
//! A lesson contains the words and, for each of them, a text whose token count shows the word's cost. One
//! round of requests before a run yields a table, with which prompts are fitted without further requests.
//! Nearly every tokenizer splits at spaces, so the sum over the words of a prompt is nearly always the
//! prompt's number of tokens. The whole prompt is never encoded here; errors of the table become visible in
//! the server's own count of each request.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::super::prose::{Dice, Endless};
use super::super::tokens::estimate;
use super::super::vocabulary::VOCABULARY;
use super::fillers::FILLERS;
use super::message::Message;

/// The texts before and after a word whose cost is measured.
pub(super) const BEFORE: &str = "note";
pub(super) const AFTER: &str = " note";
/// Number of characters of prose that are written about each topic to collect its words. Twice as
/// many characters would add hardly any words.
const PROSE: usize = 60_000;
/// A sample text in the form of a prompt, to measure the tokens that are added around a prompt.
const SAMPLE: &str = "[ref 482 773 194 205] The notes of that day say it in plain words. Why?";
/// A sample system message, to measure the tokens that are added around a prompt with a system message.
const LEAD: &str = "Answer in plain words.";
/// Words that contain a line break, each with the words before and after the line break. Their costs show
/// the cost of the line break.
const BREAKS: [(&str, &str, &str); 2] =
    [("note.\n\nThe", "note.", "The"), ("note?\nAssistant:", "note?", "Assistant:")];
/// The punctuation marks that may follow a word of prose. Their costs are measured with the word `STEM`.
const MARKS: [&str; 7] = ["", "...", ".", ",", ";", ":", "?"];
const STEM: &str = "note";
/// The name of the assistant in a transcript, which precedes its responses.
const SPEAKER: &str = "Assistant:";

/// A server's counts of sample prompts, which show how many tokens the server adds around texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frames {
    /// Number of prompt tokens if [`Lesson::sample`] is sent as a text or as a chat of one message.
    pub alone: u64,
    /// Number of prompt tokens if [`Lesson::lead`] precedes the sample as a system message; `None` if
    /// system messages are not supported.
    pub led: Option<u64>,
    /// Number of prompt tokens if a turn precedes the sample, with the sample itself as the question and
    /// [`Lesson::lead`] as the response; `None` if this was not counted.
    pub again: Option<u64>,
}

/// The words whose tokens a server must count.
#[derive(Debug, Clone)]
pub struct Lesson {
    words: Vec<String>,
}

/// The cost of each word, in tokens.
#[derive(Debug, Clone)]
pub struct Table(Arc<HashMap<Box<str>, i64>>);

impl Lesson {
    /// Collects all words that may occur in prompts, including the words of `texts`.
    pub fn new(texts: &[&str]) -> Lesson {
        let mut words: BTreeSet<String> = BTreeSet::new();
        let mut take = |text: &str| words.extend(text.split([' ', '\n']).map(str::to_owned));
        texts.iter().chain(&[SAMPLE, LEAD, "User:"]).for_each(|text| take(text));
        BREAKS.iter().for_each(|(_, before, after)| [before, after].into_iter().for_each(|word| take(word)));
        for (at, topic) in VOCABULARY.topics.iter().enumerate() {
            let (mut prose, mut dice) = (String::new(), Dice::new(&[0; 32], at as u64, 0));
            Endless::new(&mut dice, topic).more(&mut prose, PROSE);
            take(&prose);
        }
        super::super::prose::ends_of_all(&mut take);
        FILLERS.iter().copied().for_each(&mut take);
        for number in 0..1_000 {
            let digits = format!("{number:03}");
            take(&format!("{digits} {digits}] {} {}", &digits[..2], &digits[..1]));
        }
        words.remove("");
        // If prose is truncated after a word, dots follow the word.
        let ends = |word: &&String| word.ends_with(['.', '?', ']']) || word.ends_with(|c: char| c.is_ascii_digit());
        let cut = words.iter().filter(|word| !ends(word));
        let cut: Vec<String> = cut.map(|word| format!("{}...", word.trim_end_matches([',', ':', ';']))).collect();
        words.extend(cut);
        words.extend(BREAKS.map(|(whole, ..)| whole.to_owned()));
        words.extend(MARKS.map(|mark| format!("{STEM}{mark}")));
        Lesson { words: words.into_iter().collect() }
    }

    /// Returns the texts to be counted individually, with nothing added around them.
    pub fn texts(&self) -> Vec<String> {
        let words = self.words.iter().map(|word| format!("{} {word}{}", BEFORE, AFTER));
        std::iter::once(format!("{}{}", BEFORE, AFTER)).chain(words).collect()
    }

    /// Returns the sample prompt, which is counted together with everything that a server adds around it.
    pub fn sample(&self) -> &'static str {
        SAMPLE
    }

    /// Returns the system message that is counted before the sample.
    pub fn lead(&self) -> &'static str {
        LEAD
    }

    /// Creates the table from the counts of [`Lesson::texts`].
    pub fn learned(self, counts: &[u64]) -> Table {
        let count = |at: usize| counts.get(at).map_or(0, |count| *count as i64);
        let costs = self.words.into_iter().enumerate().map(|(at, word)| (word.into(), count(at + 1) - count(0)));
        Table(Arc::new(costs.collect()))
    }
}

impl Table {
    /// Returns the number of tokens of a word together with the space before it. If the lesson did not
    /// contain the word, for example because the word contains line breaks, the number is computed from words
    /// that it contained.
    fn word(&self, word: &str) -> i64 {
        if let Some(cost) = self.known(word) {
            return cost;
        }
        let mut lines = word.split('\n').filter(|line| !line.is_empty());
        let Some(first) = lines.next() else { return 0 };
        let (whole, before, after) = BREAKS[usize::from(!word.contains("\n\n"))];
        let between = self.known(whole).unwrap_or(0) - self.line(before) - self.line(after);
        lines.fold(self.line(first), |sum, line| sum + between + self.line(line))
    }

    /// Returns the number of tokens of a word within one line. If the lesson contained the word only with
    /// another punctuation mark, the difference between the marks is added; otherwise the number is
    /// estimated.
    fn line(&self, word: &str) -> i64 {
        if let Some(cost) = self.known(word) {
            return cost;
        }
        // In a transcript, a response directly follows the colon after the speaker's name.
        if let Some(said) = word.strip_prefix(SPEAKER).filter(|said| !said.is_empty()) {
            return self.line(SPEAKER) + self.line(said);
        }
        let stem = word.trim_end_matches(['.', ',', ';', ':', '?']);
        let mark = |mark: &str| self.known(&format!("{STEM}{mark}"));
        let other = MARKS.iter().find_map(|other| Some(self.known(&format!("{stem}{other}"))? - mark(other)?));
        let by_stem = other.and_then(|stem_alone| Some(stem_alone + mark(&word[stem.len()..])?));
        by_stem.unwrap_or_else(|| i64::from(estimate(&format!(" {word}"))))
    }

    fn known(&self, word: &str) -> Option<i64> {
        self.0.get(word).copied()
    }
}

/// A tokenizer that was learned from a server: the costs of words, and of everything that is added around
/// texts.
#[derive(Debug)]
pub(super) struct Learned {
    table: Table,
    /// Number of tokens that are added around a text, or around a chat of one message.
    alone: i64,
    /// Number of tokens that are added around a chat with a system message.
    led: i64,
    /// Number of tokens that are added around an earlier question and its response.
    again: i64,
}

impl Learned {
    /// Creates the tokenizer from the costs in `table` and the server's counts of sample prompts.
    pub(crate) fn new(table: &Table, frames: Frames) -> Learned {
        let cost = |text: &str| text.split(' ').map(|word| table.word(word)).sum::<i64>();
        let alone = frames.alone as i64 - cost(SAMPLE);
        let led = frames.led.map_or(alone, |led| led as i64 - cost(SAMPLE) - cost(LEAD));
        let again = frames.again.map_or(0, |again| again as i64 - alone - 2 * cost(SAMPLE) - cost(LEAD));
        Learned { table: table.clone(), alone, led, again }
    }

    pub(crate) fn word(&self, word: &str) -> i64 {
        self.table.word(word)
    }

    /// Returns the number of tokens of a text with nothing around it.
    pub(crate) fn bare(&self, text: &str) -> u32 {
        counted(self.cost(text))
    }

    /// Returns the number of tokens of a text as a completions API counts it, including those that the
    /// server adds.
    pub(crate) fn text(&self, text: &str) -> u32 {
        counted(self.cost(text) + self.alone)
    }

    /// Returns the number of tokens of a chat, including those that the server adds.
    pub(crate) fn chat(&self, messages: &[Message]) -> u32 {
        let has_lead = messages.first().is_some_and(|message| message.role == "system");
        let answers = messages.iter().filter(|message| message.role == "assistant").count();
        let frame = if has_lead { self.led } else { self.alone } + self.again * answers as i64;
        counted(messages.iter().map(|message| self.cost(message.content)).sum::<i64>() + frame)
    }

    fn cost(&self, text: &str) -> i64 {
        if text.is_empty() { 0 } else { text.split(' ').map(|word| self.word(word)).sum() }
    }
}

/// Converts a sum of costs to a number of tokens; 0 if the sum is negative.
pub(super) fn counted(tokens: i64) -> u32 {
    u32::try_from(tokens).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::model::content::{Content, Reuse};
    use crate::protocol::Framing;
    use crate::units::{NonceSeed, Seed};
    use crate::workload::{Counting, Generator, NonceKey, Tokenizer};

    /// Imitates a server's count: one token for every two letters, every three digits, each punctuation mark,
    /// and each line break.
    fn count(text: &str) -> u64 {
        let (mut tokens, mut letters, mut digits) = (0, 0u64, 0u64);
        for c in text.chars().chain([' ']) {
            letters = if c.is_alphabetic() {
                letters + 1
            } else {
                tokens += letters.div_ceil(2);
                0
            };
            digits = if c.is_ascii_digit() {
                digits + 1
            } else {
                tokens += digits.div_ceil(3);
                0
            };
            tokens += u64::from(!c.is_alphanumeric() && c != ' ');
        }
        tokens
    }

    /// Every word of the generated prompts is in the table: the table's count of a prompt equals the
    /// server's.
    #[test]
    fn prompts_by_the_table_have_what_the_server_counts() {
        let lesson = Lesson::new(&["Say hello."]);
        assert!(lesson.words.len() < 8_000, "{}", lesson.words.len());
        let counts: Vec<u64> = lesson.texts().iter().map(|text| count(text)).collect();
        let frames = Frames { alone: count(SAMPLE) + 7, led: Some(count(SAMPLE) + count(LEAD) + 11), again: None };
        let tokenizer = Arc::new(Tokenizer::learned(&lesson.learned(&counts), frames));
        for k in 0..2_000u64 {
            let reuse = if k % 3 == 0 { Reuse::SharedSystem } else { Reuse::None };
            let system_tokens = if k % 3 == 0 { 90 } else { 0 };
            let content = Content { reuse, system_tokens, prompt_tokens: 40 + k as u32 % 700, ..Content::default() };
            let counting = Counting { tokenizer: Arc::clone(&tokenizer), framing: Framing::Chat };
            let key = Some(NonceKey::new(NonceSeed([k as u8; 16])));
            let prompt = Generator::counted(&content, (Seed(k), 0), key, counting).unwrap().request(k);
            let system = prompt.system.as_deref().map_or(7, |system| count(system) + 11);
            assert_eq!(count(&prompt.user) + system, u64::from(prompt.intended_prompt_tokens), "{prompt:?}");
            assert_eq!(prompt.intended_prompt_tokens, content.prompt_tokens + system_tokens);
        }
    }

    #[test]
    fn a_word_of_no_lesson_is_estimated_line_by_line() {
        let lesson = Lesson::new(&[]);
        let counts: Vec<u64> = lesson.texts().iter().map(|text| count(text)).collect();
        let table = lesson.learned(&counts);
        // A line break costs one token here, so two line breaks cost two.
        assert_eq!(table.word("note.\n\nWhy?"), 3 + 2 + 3);
        assert_eq!(table.word("note?\nAssistant:"), 3 + 1 + 6);
        assert_eq!(table.word("unheard-of"), i64::from(estimate(" unheard-of")));
        assert_eq!(table.word(""), 0);
        // `harbour` occurs in the table only with other punctuation marks. Its seven letters cost four
        // tokens, the colon one.
        assert!(table.known("unheard;").is_none() && table.known("harbour:").is_none());
        assert_eq!(table.word("harbour:"), 4 + 1);
    }
}
