//! Prefix cache hits, compared with the tokens that prompts have in common.

use crate::rows::{Facts, Measured, ReuseCount};

use super::window;

/// A chat template's prefix is the same for all prompts and may be cached. Its length is estimated from
/// the tokens that the server counts beyond our text. Without a tokenizer, our count may be a quarter
/// too high, so only this share of our count is subtracted from the server's count.
const OWN_COUNT_AT_LEAST: f64 = 0.75;
/// Maximum plausible length of a chat template's prefix, in tokens.
const LONGEST_TEMPLATE: f64 = 96.0;

/// Shares of the prompt tokens of a run's window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reuse {
    /// Shared tokens / prompt tokens of the requests that were sent. Both are in the server's tokens if the
    /// server counts them ([`Shared`]); otherwise the ratio is reusable tokens / intended tokens. `None` unless
    /// it is known for all requests.
    pub declared: Option<f64>,
    /// Tokens from the prefix cache / prompt tokens, both as counted by the server, over the requests for
    /// which the server reported both; `None` if there are none.
    pub cached: Option<f64>,
    /// Upper estimate of the tokens of the chat template's constant prefix / prompt tokens.
    pub template: Option<f64>,
}

impl Reuse {
    /// Computes the shares of the window's requests.
    pub fn of(rows: &[Measured], facts: &Facts) -> Reuse {
        Reuse::sum(window::members(rows, facts), |row| row.cached_tokens().zip(row.prompt_tokens()))
    }

    /// Computes the shares over all requests of a run, for servers that do not report cached tokens in their
    /// responses: the cached share is taken from the server's metrics.
    pub(crate) fn beside(rows: &[Measured], cached: f64) -> Reuse {
        let told = Reuse::sum(rows.iter(), |row| Some((0, row.prompt_tokens()?)));
        Reuse { cached: Some(cached), ..told }
    }

    /// Computes the shares of these requests. `told` returns the tokens from the prefix cache and the
    /// prompt tokens, both as counted by the server.
    fn sum<'a>(rows: impl Iterator<Item = &'a Measured>, told: impl Fn(&Measured) -> Option<(u32, u32)>) -> Reuse {
        let (mut reusable, mut intended, mut unknown) = (0u64, 0u64, 0u64);
        let (mut cached, mut beyond) = (0u64, 0.0);
        let mut shared = Shared::default();
        for row in rows {
            if let Some(tokens) = row.reusable_tokens() {
                reusable += u64::from(tokens);
                intended += u64::from(row.intended_prompt_tokens);
            } else if row.sent_ns().is_some() {
                unknown += 1;
            }
            if let Some((hit, all)) = told(row) {
                cached += u64::from(hit);
                beyond += f64::from(all) - OWN_COUNT_AT_LEAST * f64::from(row.intended_prompt_tokens);
                shared.add(row.reusable_tokens().unwrap_or_default(), row.intended_prompt_tokens, all);
            }
        }
        let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let template = (beyond / shared.requests.max(1.0)).clamp(0.0, LONGEST_TEMPLATE);
        let by_own_count = || share(reusable as f64, intended as f64);
        Reuse {
            declared: shared.share().or_else(by_own_count).filter(|_| unknown == 0),
            cached: share(cached as f64, shared.prompts),
            template: share(template * shared.requests, shared.prompts),
        }
    }

    /// Returns why the tokens that prompts have in common are unknown.
    pub(crate) fn why_unknown(facts: &Facts) -> &'static str {
        if !facts.workers.is_empty() {
            return "the shared prefixes of some requests are unknown: another worker may have sent a part of them";
        }
        match facts.reuse_count {
            Some(ReuseCount::Sent) => {
                "the shared prefixes of some requests are unknown: they differ in more text than is compared (64 \
                MiB of hashes)"
            }
            None => "the version that measured this run did not count the shared prefixes of prompts",
        }
    }

    /// Returns how many more tokens were cached than shared prefixes and the template explain, as a share of
    /// the prompt tokens; negative if there were fewer. `None` if one of these numbers is unknown.
    pub(crate) fn excess(&self) -> Option<f64> {
        Some(self.cached? - self.declared? - self.template?)
    }
}

/// Shared prompt tokens, converted from our counts to the server's tokens.
///
/// Our token count of a text may be wrong, by a different factor for the shared part (for example a system
/// prompt in JSON) than for the rest (questions in prose). The two factors are fitted to the server's counts
/// by least squares: the server's prompt tokens are regressed on the shared tokens and the other tokens of
/// each request that shares something. If the factors cannot be separated because all prompts share the same
/// proportion, each prompt gets one factor, which applies to all of its text.
#[derive(Debug, Default)]
struct Shared {
    requests: f64,
    /// Number of requests that share something. `shared`, `in_proportion` and `products` cover only
    /// these requests.
    sharing: f64,
    /// Prompt tokens of all requests, as counted by the server.
    prompts: f64,
    shared: f64,
    /// Shared tokens, converted to the server's tokens with a single factor for each prompt. Used if the two
    /// factors cannot be determined.
    in_proportion: f64,
    /// Sums of products: shared × shared, shared × other, other × other, shared × the server's count, other ×
    /// the server's count.
    products: [f64; 5],
}

/// Minimum number of requests that is needed to determine the factors.
const ENOUGH: f64 = 20.0;
/// Squared cosine between shared and other tokens above which they are too similar to determine the
/// factors.
const ALIKE: f64 = 0.99;
/// Fitted factors outside this range are not used, because no two token counts of the same text differ
/// so much.
const FACTORS: std::ops::RangeInclusive<f64> = 0.1..=10.0;

impl Shared {
    fn add(&mut self, reusable: u32, intended: u32, prompt: u32) {
        let (shared, prompt) = (f64::from(reusable), f64::from(prompt));
        let other = f64::from(intended.saturating_sub(reusable));
        self.requests += 1.0;
        self.prompts += prompt;
        // The first request of a group shares nothing yet, and its other tokens include the tokens that later
        // requests will share.
        if reusable == 0 || intended == 0 {
            return;
        }
        self.sharing += 1.0;
        self.shared += shared;
        self.in_proportion += shared / f64::from(intended) * prompt;
        let products = [shared * shared, shared * other, other * other, shared * prompt, other * prompt];
        self.products.iter_mut().zip(products).for_each(|(sum, product)| *sum += product);
    }

    /// Returns shared tokens / prompt tokens; `None` if the server reported no prompt tokens.
    fn share(&self) -> Option<f64> {
        let shared = self.factor().map_or(self.in_proportion, |factor| factor * self.shared);
        (self.prompts > 0.0).then(|| (shared / self.prompts).min(1.0))
    }

    /// Returns how many tokens the server counts for each token that we count in the shared part; `None` if
    /// this cannot be determined.
    fn factor(&self) -> Option<f64> {
        let [ss, so, oo, sp, op] = self.products;
        let is_told = self.sharing >= ENOUGH && ss > 0.0 && oo > 0.0 && so * so <= ALIKE * ss * oo;
        let determinant = ss * oo - so * so;
        let factors = is_told.then(|| [(sp * oo - op * so) / determinant, (op * ss - sp * so) / determinant])?;
        factors.iter().all(|factor| FACTORS.contains(factor)).then_some(factors[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the share for this many prompts that share `shared` tokens each, counted by a server with
    /// these factors.
    fn share(count: u32, shared: impl Fn(u32) -> u32, other: impl Fn(u32) -> u32, factors: [f64; 2]) -> Option<f64> {
        let mut sum = Shared::default();
        for at in 0..count {
            let (shared, other) = (shared(at), other(at));
            let prompt = factors[0] * f64::from(shared) + factors[1] * f64::from(other);
            sum.add(shared, shared + other, prompt.round() as u32);
        }
        sum.share()
    }

    #[test]
    fn what_is_shared_is_counted_as_the_server_counts_it() {
        // 400 of our tokens are 800 of the server's tokens. Questions of 20 to 119 of our tokens are half as
        // many of the server's tokens.
        let questions = |at: u32| 20 + at * 37 % 100;
        let wanted = 800.0 * 200.0 / (0..200).map(|at| (800.0 + f64::from(questions(at)) / 2.0).round()).sum::<f64>();
        let found = share(200, |_| 400, questions, [2.0, 0.5]).unwrap();
        assert!((found - wanted).abs() < 0.005, "{found}, expected {wanted}");
        // One class shares many tokens and another shares none; their texts have different factors.
        let found = share(200, |at| if at % 2 == 0 { 300 } else { 0 }, |at| 50 + at % 70, [1.5, 1.0]).unwrap();
        let wanted = 450.0 * 100.0 / (450.0 * 100.0 + (0..200).map(|at| 50.0 + f64::from(at % 70)).sum::<f64>());
        assert!((found - wanted).abs() < 0.005, "{found}, expected {wanted}");
        // The first request contains the tokens that all later requests share, but shares none with an
        // earlier one.
        let mut sum = Shared::default();
        sum.add(0, 500, 850);
        (0..60).for_each(|at| sum.add(400, 400 + 20 * (1 + at % 5), 800 + 10 * (1 + at % 5)));
        let wanted = 800.0 * 60.0 / (850.0 + (0..60).map(|at| 800.0 + 10.0 * f64::from(1 + at % 5)).sum::<f64>());
        assert!((sum.share().unwrap() - wanted).abs() < 0.005, "{:?}, expected {wanted}", sum.share());
    }

    #[test]
    fn where_factors_cannot_be_told_there_is_one() {
        // Each prompt shares the same proportion of its tokens.
        assert_eq!(share(100, |at| 100 + at, |at| 100 + at, [2.0, 0.5]), Some(0.5));
        // There are too few requests to determine two factors.
        assert_eq!(share(4, |_| 100, |at| 100 * (at % 2), [1.0, 1.0]).map(|share| share > 0.5), Some(true));
        assert_eq!(share(50, |_| 0, |at| at + 10, [1.0, 1.3]), Some(0.0));
        assert!((share(50, |at| at + 10, |_| 0, [1.3, 1.0]).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(share(0, |_| 0, |_| 0, [1.0, 1.0]), None);
    }
}
