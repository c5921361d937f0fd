//! All tests of one declaration together: adjusted p-values, what would have been seen, what comes out.

use std::collections::BTreeMap;

use super::{Better, Found, Outcome, Test, words};
use crate::analysis::paired::{self, holm::holm, power};
use crate::analysis::replicates::Scale;

/// Repeats that are advised where no deviation is known yet.
const ADVISED: u32 = 5;

/// Settles the tests of one family: `see` is the size of a difference that repeats are counted for, of a ratio what it is
/// above 1.
pub fn settle(tests: &mut [&mut Test], see: f64) {
    let tested: Vec<f64> = tests.iter().filter_map(|test| test.p).collect();
    let mut adjusted = holm(&tested).into_iter();
    // Holm's method is never stricter than this, so what is detectable here is detectable by it.
    let level = power::LEVEL / tested.len().max(1) as f64;
    let mut known = Detectable { level, by_rounds: BTreeMap::new() };
    for test in tests {
        test.p_adjusted = test.p.and_then(|_| adjusted.next());
        test.settle(&mut known, see);
        test.words = words::of(test, see);
    }
}

/// Detectable differences in measured deviations, by rounds: the same for all metrics.
struct Detectable {
    level: f64,
    by_rounds: BTreeMap<usize, f64>,
}

impl Detectable {
    fn with(&mut self, rounds: usize) -> f64 {
        let level = self.level;
        *self.by_rounds.entry(rounds).or_insert_with(|| power::detectable_as_measured(rounds, level))
    }

    /// How many rounds show `wanted` where `rounds` measured the deviation `sd`, which is taken to be larger by as much as
    /// few rounds may have missed.
    fn needed(&mut self, wanted: f64, sd: f64, rounds: usize) -> Option<u32> {
        let larger = self.with(rounds) / power::detectable(rounds, self.level) * sd;
        power::pairs_for(wanted / larger, self.level, paired::FEWEST).map(|pairs| pairs as u32)
    }
}

impl Test {
    fn settle(&mut self, known: &mut Detectable, see: f64) {
        let wanted = (self.scale == Scale::Log).then(|| see.ln_1p());
        self.outcome = match self.found.clone() {
            Found::Nothing(_) => Outcome::Unknown,
            Found::Same(_) => Outcome::Constant,
            Found::Few(sd) => {
                let needed = sd.filter(|sd| *sd > 0.0).zip(wanted).and_then(|(sd, wanted)| known.needed(wanted, sd, 2));
                self.repeats_needed = Some(needed.unwrap_or(0).max(ADVISED));
                Outcome::Refused
            }
            Found::Tested(t) => {
                let least = known.with(t.n) * t.sd;
                self.detectable = Some(if self.scale == Scale::Log { least.exp_m1() } else { least });
                let is_shown = self.p_adjusted.is_some_and(|p| p <= power::LEVEL);
                if !is_shown && wanted.is_some_and(|wanted| least > wanted) {
                    self.repeats_needed = wanted.and_then(|wanted| known.needed(wanted, t.sd, t.n));
                }
                match (is_shown, self.better) {
                    (false, _) => Outcome::NotShown,
                    (true, Better::Neither) => Outcome::Differs,
                    (true, better) if (t.mean < 0.0) == (better == Better::Lower) => Outcome::Better,
                    (true, _) => Outcome::Worse,
                }
            }
        };
    }
}
