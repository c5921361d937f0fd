//! The mean lengths of the requests of a run.

use crate::rows::{Facts, Measured};

use super::window;

/// Mean tokens of the completed requests of the window. A mean is `None` if there are no such requests,
/// or if neither the server nor a tokenizer counted their tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MeanTokens {
    /// Mean number of prompt tokens: the server's count, or else the intended length.
    pub prompt: Option<f64>,
    /// Mean number of output tokens.
    pub output: Option<f64>,
}

impl MeanTokens {
    /// Computes the means for one run.
    pub fn of(rows: &[Measured], facts: &Facts) -> MeanTokens {
        let (mut n, mut prompt, mut counted, mut output) = (0u64, 0u64, 0u64, 0u64);
        for row in window::members(rows, facts).filter(|row| row.outcome.is_ok()) {
            n += 1;
            prompt += u64::from(row.prompt_tokens().unwrap_or(row.intended_prompt_tokens));
            counted += u64::from(row.output_tokens().is_some());
            output += u64::from(row.output_tokens().unwrap_or(0));
        }
        let mean = |sum: u64, of: u64| (of > 0).then(|| sum as f64 / of as f64);
        MeanTokens { prompt: mean(prompt, n), output: mean(output, counted) }
    }

    /// Returns the mean number of tokens in a request's context halfway through its response; `None` if
    /// it is unknown.
    pub fn context(&self) -> Option<f64> {
        Some(self.prompt? + self.output? / 2.0)
    }
}
