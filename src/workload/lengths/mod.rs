//! Lengths of prompts and responses that differ from request to request.
//!
//! The lengths of request k depend only on the run's key and k. A block of ChaCha8 gives three numbers
//! between 0 and 1, and the inverse of a distribution function maps each of them to a number of tokens. Every
//! draw uses exactly one of the three numbers, regardless of the distribution. No draw is repeated, and no
//! draw depends on another one.
//!
//! If a distribution is truncated to a range, values outside the range never occur, and the probabilities of
//! the values inside it keep their proportions. Lengths are rounded to the nearest whole token.

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

/// The distributions of the prompt's and the response's length, separate or joint.
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
    /// Creates a sampler of `lengths` with `key`. Runs with the same key have the same lengths.
    pub(crate) fn new(lengths: &Lengths, key: [u8; 32]) -> Sampler {
        Sampler { key, pair: Pair::new(lengths) }
    }

    /// Returns the lengths of turn `turn` of item `item`, both counted from 0. A request outside of
    /// conversations is turn 0 of the item with the request's number.
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

    /// Returns three numbers above 0 and below 1, from a block of 16 words that no other turn uses.
    fn numbers(&self, item: u64, turn: u32) -> [f64; 3] {
        let mut rng = ChaCha8Rng::from_seed(self.key);
        rng.set_stream(item);
        rng.set_word_pos(u128::from(turn) << 4);
        // Adding one half to the 52 random bits ensures that neither 0 nor 1 is ever reached.
        std::array::from_fn(|_| ((rng.next_u64() >> 12) as f64 + 0.5) / (1u64 << 52) as f64)
    }
}

/// Returns the mean and the standard deviation of the prompt's length and of the response's length, computed
/// with closed-form formulas.
pub fn moments(lengths: &Lengths) -> [Moments; 2] {
    Pair::new(lengths).moments()
}

/// Average numbers of tokens of a request. They do not include a conversation's history. They include the
/// system prompt only if the scenario's lengths include it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// Average number of tokens of the user's text.
    pub prompt: f64,
    /// Average number of requested output tokens.
    pub output: f64,
}

/// Returns the average numbers of tokens of a request of `content`.
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
