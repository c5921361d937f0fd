//! The server's count of prompt tokens compared with ours.

use crate::rows::{Facts, Measured, Outcome, PromptCount};

use super::window;

/// How much the server's count and our count differ, over the requests of the window for which both are known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Differ {
    /// Mean absolute difference, after subtracting the template's constant, divided by the mean of our
    /// count.
    pub share: f64,
    /// Mean of our count, including the template's constant.
    pub ours: f64,
    /// Mean of the server's count.
    pub server: f64,
    /// Whether our count is an estimate because the model's tokenizer is not known.
    pub is_estimate: bool,
}

impl Differ {
    /// Compares the counts of the window's requests; an error states why this is not possible. In
    /// conversations, only first turns count, because the length of the history is an estimate.
    pub(super) fn of(rows: &[Measured], facts: &Facts) -> Result<Differ, &'static str> {
        let counted = facts.prompt_count.ok_or("needs exact prompt lengths from the model's tokenizer")?;
        let is_estimate = counted == PromptCount::Estimate;
        // If lengths of one class of a mix are estimates, counts are not compared for any class, because
        // the differences cover requests of all classes together.
        if is_estimate && facts.recorded_texts {
            return Err("lengths of a data set are estimates, and no lengths were declared");
        }
        // A tokenizer applies the chat template. If the count is an estimate, only the probe shows how
        // many tokens a server adds to the text.
        if is_estimate && facts.probe_prompt.is_none() {
            return Err("lengths are estimates, and the probe's prompt was not counted: a mock has no tokenizer");
        }
        let constant = facts.probe_prompt.map_or(0.0, |probe| probe.server as f64 - probe.ours as f64);
        let (mut beyond, mut ours, mut server, mut count) = (0.0, 0.0, 0.0, 0u64);
        let members =
            window::members(rows, facts).filter(|row| row.outcome == Outcome::Ok && row.turn().unwrap_or(0) == 0);
        for (row, told) in members.filter_map(|row| Some((row, row.prompt_tokens()?))) {
            let expected = f64::from(row.intended_prompt_tokens) + constant;
            beyond += (f64::from(told) - expected).abs();
            ours += expected;
            server += f64::from(told);
            count += 1;
        }
        if count == 0 {
            return Err("the server does not report the number of prompt tokens");
        }
        let count = count as f64;
        Ok(Differ { share: beyond / ours.max(1.0), ours: ours / count, server: server / count, is_estimate })
    }
}
