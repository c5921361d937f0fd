//! Lengths of prompts and answers that differ from request to request.
//!
//! How many tokens request k has is a pure function of the run's key and k: a block of ChaCha8 gives three numbers between
//! 0 and 1, and the inverse of each distribution turns one into a count. Every draw costs one number whatever the
//! distribution, nothing is drawn again, and no draw depends on another one.
//!
//! A distribution that is cut to a range is conditioned on it: a value outside never comes, those inside keep their
//! proportions. Counts are rounded to the nearest whole token.

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

/// Lengths ready to be drawn from.
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
    /// Draws from `lengths` under `key`: runs with the same key have the same lengths.
    pub(crate) fn new(lengths: &Lengths, key: [u8; 32]) -> Sampler {
        Sampler { key, pair: Pair::new(lengths) }
    }

    /// The lengths of turn `turn` of item `item`, both from 0; a request that is no part of a conversation is turn 0 of the
    /// item with its number.
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

    /// Three numbers above 0 and below 1, from the block of 16 words that belongs to this turn alone.
    fn numbers(&self, item: u64, turn: u32) -> [f64; 3] {
        let mut rng = ChaCha8Rng::from_seed(self.key);
        rng.set_stream(item);
        rng.set_word_pos(u128::from(turn) << 4);
        // 52 bits and a half: neither end is ever met.
        std::array::from_fn(|_| ((rng.next_u64() >> 12) as f64 + 0.5) / (1u64 << 52) as f64)
    }
}

/// Mean and standard deviation of prompt and answer of `lengths`, by closed forms.
pub fn moments(lengths: &Lengths) -> [Moments; 2] {
    Pair::new(lengths).moments()
}

/// Tokens of a request on average, a conversation's history left out, and the system prompt where the scenario brings it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// Tokens of the user's text.
    pub prompt: f64,
    /// Tokens asked for.
    pub output: f64,
}

/// What a request of `content` has on average.
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
