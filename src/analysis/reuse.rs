//! What a prefix cache gave back, against what prompts have in common.

use crate::rows::{Facts, Measured, ReuseCount};

use super::window;

/// What a chat template puts before a prompt is the same for all of them and may be cached. How long it is shows in what the
/// server counts beyond our text; without a tokenizer our count may be a quarter too high, so that much is left aside, …
const OWN_COUNT_AT_LEAST: f64 = 0.75;
/// … and templates are no longer than this.
const LONGEST_TEMPLATE: f64 = 96.0;

/// Shares of the prompt tokens of a run's window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reuse {
    /// Reusable tokens / intended prompt tokens of the requests that were sent; null where they are not known of all of them.
    pub declared: Option<f64>,
    /// Tokens from the prefix cache / prompt tokens, both as the server counts them, of the requests of which it told both;
    /// null where it tells of none.
    pub cached: Option<f64>,
    /// Tokens of the chat template's constant prefix / prompt tokens, at most: an estimate from above.
    pub template: Option<f64>,
}

impl Reuse {
    /// Of the window's requests.
    pub fn of(rows: &[Measured], facts: &Facts) -> Reuse {
        let (mut reusable, mut intended, mut unknown) = (0u64, 0u64, 0u64);
        let (mut cached, mut prompts, mut beyond, mut told) = (0u64, 0u64, 0.0, 0u64);
        for row in window::members(rows, facts) {
            if let Some(tokens) = row.reusable_tokens() {
                reusable += u64::from(tokens);
                intended += u64::from(row.intended_prompt_tokens);
            } else if row.sent_ns().is_some() {
                unknown += 1;
            }
            if let Some((hit, all)) = row.cached_tokens().zip(row.prompt_tokens()) {
                cached += u64::from(hit);
                prompts += u64::from(all);
                beyond += f64::from(all) - OWN_COUNT_AT_LEAST * f64::from(row.intended_prompt_tokens);
                told += 1;
            }
        }
        let share = |part: f64, whole: u64| (whole > 0).then(|| part / whole as f64);
        let template = (beyond / told.max(1) as f64).clamp(0.0, LONGEST_TEMPLATE);
        Reuse {
            declared: share(reusable as f64, intended).filter(|_| unknown == 0),
            cached: share(cached as f64, prompts),
            template: share(template * told as f64, prompts),
        }
    }

    /// Why it is not known what prompts have in common.
    pub fn why_unknown(facts: &Facts) -> &'static str {
        match facts.reuse_count {
            Some(ReuseCount::Sent) => {
                "what prompts share is not known of all requests: they differ in more text than is compared (64 MiB of hashes)"
            }
            None => "what prompts really share was not counted by the version that measured this run",
        }
    }

    /// How much more was cached than prompts have in common and the template explains, as a share of the prompt tokens; below
    /// zero where it was less. Null where one of them is not known.
    pub fn excess(&self) -> Option<f64> {
        Some(self.cached? - self.declared? - self.template?)
    }
}
