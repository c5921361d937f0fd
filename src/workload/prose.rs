//! Writes readable English prose of a given length, from a seeded grammar.
//!
//! Prompts consist of real text rather than repeated words, because tokenizers, prefix caches and
//! speculative decoding all behave differently on repetitive text. A text is appended to one String,
//! without other allocations.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::vocabulary::{Topic, VOCABULARY, Vocabulary};

/// Makes random choices with a specific random number generator, so that a new release of a library does
/// not change texts.
#[derive(Clone)]
pub(super) struct Dice(ChaCha8Rng);

impl Dice {
    /// Creates a source of random choices for part `part` of item `item`, with `key`. Choices for different
    /// items and parts are independent.
    pub(super) fn new(key: &[u8; 32], item: u64, part: u32) -> Dice {
        let mut rng = ChaCha8Rng::from_seed(*key);
        rng.set_stream(item);
        rng.set_word_pos(u128::from(part) << 32);
        Dice(rng)
    }

    /// Returns a random number below `bound`. The bias is at most `bound / 2^32`, which is
    /// negligible for words.
    fn below(&mut self, bound: usize) -> usize {
        ((u64::from(self.0.next_u32()) * bound as u64) >> 32) as usize
    }

    /// Returns a random number from 0 to below 1, from 53 random bits.
    pub(super) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn pick(&mut self, list: &'static [String]) -> &'static str {
        &list[self.below(list.len())]
    }

    /// Returns a random entry of `list` other than the one at `last`, and sets `last` to its index.
    fn other(&mut self, list: &'static [String], last: &mut usize) -> &'static str {
        *last = (*last + 1 + self.below(list.len() - 1)) % list.len();
        &list[*last]
    }

    /// Returns a random topic.
    pub(super) fn topic(&mut self) -> &'static Topic {
        let topics = &VOCABULARY.topics;
        &topics[self.below(topics.len())]
    }
}

/// A part of a sentence.
enum Part {
    /// A fixed text.
    Is(&'static str),
    Actor,
    Verb,
    Thing,
    Place,
    Quality,
    Aim,
    Time,
    Manner,
    Link,
    Span,
}

use Part::{Actor, Aim, Is, Link, Manner, Place, Quality, Span, Thing, Time, Verb};

/// The shapes of sentences. Each begins with a word of at most seven letters (see `cut`).
#[rustfmt::skip]
const SHAPES: &[&[Part]] = &[
    &[Time, Is(", "), Actor, Is(" "), Verb, Is(" "), Thing, Is(" "), Place, Is(".")],
    &[Actor, Is(" "), Verb, Is(" "), Thing, Is(" because "), Thing, Is(" was "), Quality, Is(".")],
    &[Is("when "), Thing, Is(" became "), Quality, Is(", "), Actor, Is(" "), Verb, Is(" "), Thing, Is(" "), Manner, Is(".")],
    &[Is("nobody "), Verb, Is(" "), Thing, Is(" "), Place, Is(", so "), Actor, Is(" "), Verb, Is(" it "), Manner, Is(".")],
    &[Link, Is(" "), Thing, Is(" stayed "), Quality, Is(", and "), Actor, Is(" "), Verb, Is(" "), Thing, Is(".")],
    &[Is("it took "), Span, Is(" to "), Aim, Is(", although "), Thing, Is(" was "), Quality, Is(".")],
    &[Actor, Is(" wanted to "), Aim, Is(" before "), Actor, Is(" "), Verb, Is(" "), Thing, Is(".")],
    &[Is("there was one "), Is("more detail: "), Actor, Is(" "), Verb, Is(" "), Thing, Is(" "), Time, Is(".")],
    &[Is("to "), Aim, Is(", "), Actor, Is(" first "), Verb, Is(" "), Thing, Is(" and then "), Verb, Is(" "), Thing, Is(".")],
    &[Actor, Is(" asked why "), Thing, Is(" "), Place, Is(" looked "), Quality, Is(".")],
    &[Is("after "), Span, Is(", "), Thing, Is(" was "), Quality, Is(" again, and "), Actor, Is(" "), Verb, Is(" "), Thing, Is(".")],
    &[Link, Is(" "), Actor, Is(" said that "), Thing, Is(" would be "), Quality, Is(" "), Time, Is(".")],
    &[Actor, Is(" "), Verb, Is(" "), Thing, Is("; "), Actor, Is(" only "), Verb, Is(" "), Thing, Is(" "), Place, Is(".")],
    &[Is("if "), Actor, Is(" had not "), Is("been there "), Time, Is(", nobody would have "), Is("cared that "), Thing, Is(" was "), Quality, Is(".")],
];

/// Writes the sentences of one text.
struct Writer<'a> {
    out: &'a mut String,
    dice: &'a mut Dice,
    topic: &'static Topic,
    /// The indexes of the last actor, verb, thing and shape, because none of them may occur twice in a row.
    last: [usize; 4],
}

impl Writer<'_> {
    fn sentence(&mut self) {
        let start = self.out.len();
        let last = &mut self.last[3];
        *last = (*last + 1 + self.dice.below(SHAPES.len() - 1)) % SHAPES.len();
        for part in SHAPES[*last] {
            let text = self.text(part);
            self.out.push_str(text);
        }
        self.out[start..=start].make_ascii_uppercase();
    }

    fn text(&mut self, part: &Part) -> &'static str {
        let (dice, topic) = (&mut *self.dice, self.topic);
        let [actor, verb, thing, _] = &mut self.last;
        match part {
            Is(text) => text,
            Actor => dice.other(&topic.actors, actor),
            Verb => dice.other(&topic.verbs, verb),
            Thing => dice.other(&topic.things, thing),
            Place => dice.pick(&topic.places),
            Quality => dice.pick(&topic.qualities),
            Aim => dice.pick(&topic.aims),
            Time => dice.pick(&VOCABULARY.times),
            Manner => dice.pick(&VOCABULARY.manners),
            Link => dice.pick(&VOCABULARY.links),
            Span => dice.pick(&VOCABULARY.spans),
        }
    }

    /// Writes paragraphs of four to seven sentences until at least `length` characters are written.
    fn sentences(&mut self, length: usize) {
        let end = self.out.len() + length;
        loop {
            for _ in 0..4 + self.dice.below(4) {
                self.sentence();
                if self.out.len() >= end {
                    // The space marks the end of the last word for `cut`.
                    self.out.push(' ');
                    return;
                }
                self.out.push(' ');
            }
            self.out.pop();
            self.out.push_str("\n\n");
        }
    }
}

/// A source of endless prose, for callers that truncate it themselves.
pub(super) struct Endless<'a> {
    dice: &'a mut Dice,
    topic: &'static Topic,
    last: [usize; 4],
}

impl<'a> Endless<'a> {
    pub(crate) fn new(dice: &'a mut Dice, topic: &'static Topic) -> Endless<'a> {
        Endless { dice, topic, last: [0; 4] }
    }

    /// Appends at least `length` characters, with a space after the last sentence.
    pub(crate) fn more(&mut self, out: &mut String, length: usize) {
        let mut writer = Writer { out, dice: self.dice, topic: self.topic, last: self.last };
        writer.sentences(length);
        self.last = writer.last;
    }
}

/// How a text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The text ends with a question or a task for the reader.
    Question,
    /// The text is like a system prompt: it begins with its purpose and ends with instructions on how to
    /// answer.
    Rule,
    /// The text has no special ending, as in a response.
    Nothing,
}

const OPENING: &str = "You answer questions about the notes below. ";
const RULE: &str = "Answer in a few plain sentences.";
/// Upper limit of the distance between two places where a text can be truncated, in characters.
const STEP: usize = 16;

/// Appends a text about `topic` to `out`. The text has `budget` characters, or up to seven fewer or four
/// more.
pub(super) fn write(out: &mut String, dice: &mut Dice, topic: &'static Topic, budget: usize, ending: Ending) {
    let end = out.len() + budget;
    let (opening, ending) = ends(dice, topic, budget, ending);
    out.push_str(opening);
    let gap = usize::from(!ending.is_empty());
    let room = end.saturating_sub(out.len() + ending.len() + gap);
    let from = out.len();
    let mut writer = Writer { last: [0; 4], out, dice, topic };
    writer.sentences(room + STEP);
    cut(out, from, room);
    if gap == 1 {
        out.push(' ');
        out.push_str(ending);
    }
}

/// Returns the fixed beginning (with a trailing space) and ending of a text of `budget` characters; either
/// may be empty.
pub(super) fn ends(
    dice: &mut Dice,
    topic: &'static Topic,
    budget: usize,
    ending: Ending,
) -> (&'static str, &'static str) {
    match ending {
        Ending::Question => ("", question(dice, topic, budget)),
        Ending::Rule if budget > 2 * (OPENING.len() + RULE.len()) => (OPENING, RULE),
        Ending::Rule | Ending::Nothing => ("", ""),
    }
}

/// Passes every possible fixed beginning and ending of texts to `take`.
pub(super) fn ends_of_all(take: &mut impl FnMut(&str)) {
    let Vocabulary { short_questions, topics, .. } = &*VOCABULARY;
    let questions = topics.iter().flat_map(|topic| &topic.questions).chain(short_questions);
    questions.for_each(|question| take(question));
    [OPENING, RULE].into_iter().for_each(take);
}

/// Returns a question about the topic if it leaves most of the text for prose; otherwise a short question,
/// or an empty text.
fn question(dice: &mut Dice, topic: &'static Topic, budget: usize) -> &'static str {
    let own = dice.pick(&topic.questions);
    if own.len() * 3 <= budget {
        return own;
    }
    let short = &VOCABULARY.short_questions;
    let fitting = short.iter().take_while(|question| question.len() * 2 <= budget).count();
    if fitting == 0 { "" } else { &short[dice.below(fitting)] }
}

/// Truncates the text written after `from` to about `room` characters, at a word boundary. A truncated
/// sentence ends in dots.
///
/// Words have at most nine letters, and sentences begin with short words, so two boundaries are at most
/// twelve characters apart, including dots. The function aims slightly below `room`, so that the result has
/// at most seven characters too few or four too many. Four characters are one token.
fn cut(out: &mut String, from: usize, room: usize) {
    let aim = (2 * room).saturating_sub(3);
    let bytes = out.as_bytes();
    let first = (from + room).saturating_sub(STEP).max(from);
    let best = (first..bytes.len().min(from + room + STEP))
        .filter(|at| *at > from && bytes[*at].is_ascii_whitespace())
        .map(|at| (at, trimmed(&bytes[from..at])))
        .min_by_key(|(_, (kept, dots))| (2 * (kept + dots.len())).abs_diff(aim));
    match best {
        Some((_, (kept, dots))) if kept + dots.len() <= room + 4 => {
            out.truncate(from + kept);
            out.push_str(dots);
        }
        _ => out.truncate(from),
    }
}

/// Returns how much of `text` is kept, without a comma at its end, and the dots that it needs if it
/// ends in the middle of a sentence.
fn trimmed(text: &[u8]) -> (usize, &'static str) {
    match text {
        [.., b'.'] | [] => (text.len(), ""),
        [rest @ .., b',' | b':' | b';'] => (rest.len(), "..."),
        _ => (text.len(), "..."),
    }
}
