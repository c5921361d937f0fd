//! Lengths of prompts and responses that differ from request to request.
//!
//! The number of tokens of request k is a pure function of the run's key and k: a block of ChaCha8 gives
//! three numbers between 0 and 1, and the inverse of each distribution maps one to a count. Every draw uses
//! exactly one number, whatever the distribution. No draw is repeated, and no draw depends on another one.
//!
//! A distribution truncated to a range is conditional on this range: values outside never occur, and
//! values inside keep their proportions. Counts are rounded to the nearest whole token.

mod bell;
mod law;
mod moments;
mod normal;
#[cfg(test)]
mod tests;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::plan::DataMeans as Means;
use crate::plan::model::content::Content;
use crate::plan::model::lengths::{Joint, Lengths};

use super::prompt::Lengths as Drawn;

pub(super) use law::Table;
use law::{Law, of_range};
pub(crate) use moments::Moments;

/// Draws the lengths of one run's requests.
#[derive(Debug, Clone)]
pub(crate) struct Sampler {
    key: [u8; 32],
    pair: Pair,
}

/// Lengths prepared for drawing.
#[derive(Debug, Clone)]
enum Pair {
    Each { prompt: Law, output: Law },
    Joint(Table<Joint>),
}

impl Pair {
    fn new(lengths: &Lengths) -> Pair {
        match lengths {
            Lengths::Each { prompt, output } => Pair::Each { prompt: Law::new(prompt), output: Law::new(output) },
            Lengths::Joint(rows) => Pair::Joint(Table::new(rows, rows.rows().to_vec())),
        }
    }

    fn moments(&self) -> [Moments; 2] {
        match self {
            Pair::Each { prompt, output } => [prompt.moments(), output.moments()],
            Pair::Joint(table) => [
                Moments::mixed(table.shares().map(|(share, row)| (share, Moments::of_range(row.prompt)))),
                Moments::mixed(table.shares().map(|(share, row)| (share, Moments::of_range(row.output)))),
            ],
        }
    }
}

impl Sampler {
    /// Creates draws from `lengths` with `key`. Runs with the same key have the same lengths.
    pub(crate) fn new(lengths: &Lengths, key: [u8; 32]) -> Sampler {
        Sampler { key, pair: Pair::new(lengths) }
    }

    /// Returns the lengths of turn `turn` of item `item`, both from 0. A request outside of conversations
    /// is turn 0 of the item with the request's number.
    pub(crate) fn draw(&self, item: u64, turn: u32) -> Drawn {
        let [row, prompt, output] = self.numbers(item, turn);
        match &self.pair {
            Pair::Each { prompt: law, output: other } => {
                Drawn { prompt_tokens: law.at(prompt), output_tokens: other.at(output) }
            }
            Pair::Joint(table) => {
                let (joint, _) = table.at(row);
                let (prompt_tokens, output_tokens) = (of_range(joint.prompt, prompt), of_range(joint.output, output));
                Drawn { prompt_tokens, output_tokens }
            }
        }
    }

    /// Returns three numbers above 0 and below 1, from the block of 16 words that belongs to this
    /// turn alone.
    fn numbers(&self, item: u64, turn: u32) -> [f64; 3] {
        let mut rng = ChaCha8Rng::from_seed(self.key);
        rng.set_stream(item);
        rng.set_word_pos(u128::from(turn) << 4);
        // 52 bits plus one half, so neither 0 nor 1 is ever reached.
        std::array::from_fn(|_| ((rng.next_u64() >> 12) as f64 + 0.5) / (1u64 << 52) as f64)
    }
}

/// Returns mean and standard deviation of prompt and response of `lengths`, by closed forms.
pub fn moments(lengths: &Lengths) -> [Moments; 2] {
    Pair::new(lengths).moments()
}

/// Average number of tokens of a request, not counting a conversation's history, nor the system prompt
/// unless that is part of the lengths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// Tokens of the user's text.
    pub prompt: f64,
    /// Requested tokens.
    pub output: f64,
}

/// Returns the averages of a request of `content`.
pub fn expected(content: &Content) -> Expected {
    if let Some(trace) = &content.trace {
        let [prompt, output] = trace.mean_tokens();
        return Expected { prompt, output };
    }
    if let Some(data) = &content.data {
        let Means { prompt, output, .. } = data.means(content.turns);
        return Expected { prompt, output };
    }
    match content.lengths.as_ref().map(moments) {
        Some([prompt, output]) => Expected { prompt: prompt.mean, output: output.mean },
        None => Expected { prompt: f64::from(content.prompt_tokens), output: f64::from(content.output_tokens) },
    }
}
