//! All tests of one declaration: adjusted p-values, detectable differences and outcomes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Better, Found, Outcome, SequenceLook, Test, margin, phrasing};
use crate::analysis::paired::{self, benjamini::benjamini_hochberg, holm::holm, power};
use crate::analysis::replicates::Scale;

/// Number of repeats that is recommended if no deviation is known.
pub const ADVISED: u32 = 5;

/// How the p-values of a family are adjusted for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Adjusted {
    /// Holm's method: the chance of any false finding among all tests is at most 5 %.
    #[default]
    Holm,
    /// The method of Benjamini and Hochberg: on average, at most 5 % of the findings are false. Suitable for
    /// exploration, never for a gate.
    BenjaminiHochberg,
}

impl Adjusted {
    fn adjust(self, p: &[f64]) -> Vec<f64> {
        match self {
            Adjusted::Holm => holm(p),
            Adjusted::BenjaminiHochberg => benjamini_hochberg(p),
        }
    }
}

/// The criteria for the tests of a family.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// The size of the difference that the recommended number of repeats should show; for a ratio, its
    /// excess over 1.
    pub see: f64,
    /// How p-values are adjusted.
    pub adjusted: Adjusted,
    /// How much worse an arm may be: for a ratio, its distance from 1; for a share, the absolute
    /// difference. `None` if there is no margin.
    pub margin: Option<f64>,
    /// Whether the metrics were requested by name. If so, a metric that no arm has is reported as
    /// missing.
    pub named: bool,
}

impl Rules {
    /// Returns rules with Holm's method and without a margin.
    pub fn seeing(see: f64) -> Rules {
        Rules { see, adjusted: Adjusted::Holm, margin: None, named: true }
    }
}

/// Determines the outcomes of the tests of one family.
pub fn settle(tests: &mut [&mut Test], rules: &Rules) {
    let see = rules.see;
    let tested: Vec<f64> = tests.iter().filter_map(|test| test.p).collect();
    let mut adjusted = rules.adjusted.adjust(&tested).into_iter();
    // Neither of the two adjustments is ever stricter than this level, so both detect the differences that
    // are detectable at this level.
    let mut known = Detectable::at(power::LEVEL / tested.len().max(1) as f64);
    for test in tests.iter_mut() {
        test.p_adjusted = test.p.and_then(|_| adjusted.next());
        test.settle(&mut known, see);
        test.words = phrasing::of(test, see);
    }
    if let Some(share) = rules.margin {
        let mut known = Detectable::at(margin::TWO_SIDED);
        margin::settle(tests, share, rules.named, |wanted, measured, of| match measured.filter(|(sd, _)| *sd > 0.0) {
            Some((sd, rounds)) => {
                let needed = known.needed(wanted, sd, rounds, of)?;
                Some(if rounds < paired::FEWEST { needed.max(ADVISED) } else { needed })
            }
            None => Some(ADVISED),
        });
    }
}

/// Detectable differences in units of the measured deviation, by number of rounds. They are the same for
/// all metrics.
struct Detectable {
    level: f64,
    by_rounds: BTreeMap<(usize, Option<u32>), f64>,
}

impl Detectable {
    fn at(level: f64) -> Detectable {
        Detectable { level, by_rounds: BTreeMap::new() }
    }

    /// Returns the level of a test after this many rounds; in a sequence, the level of the look after these
    /// rounds.
    fn level(&self, rounds: usize, of: Option<SequenceLook>) -> f64 {
        of.map_or(self.level, |look| look.nominal(rounds, self.level))
    }

    fn with(&mut self, rounds: usize, of: Option<SequenceLook>) -> f64 {
        let level = self.level(rounds, of);
        let key = (rounds, of.map(|look| look.at_most));
        *self.by_rounds.entry(key).or_insert_with(|| power::detectable_as_measured(rounds, level))
    }

    /// Returns how many rounds are needed to show `wanted` if `rounds` rounds measured the deviation
    /// `sd`. The deviation is increased, because a few rounds may have underestimated it.
    fn needed(&mut self, wanted: f64, sd: f64, rounds: usize, of: Option<SequenceLook>) -> Option<u32> {
        let larger = self.with(rounds, of) / power::detectable(rounds, self.level(rounds, of)) * sd;
        // In a sequence, this is the level of the last look, because earlier looks only add findings.
        let level = of.map_or(self.level, |look| look.nominal(look.at_most as usize, self.level));
        power::pairs_for(wanted / larger, level, paired::FEWEST).map(|pairs| pairs as u32)
    }
}

impl Test {
    fn settle(&mut self, known: &mut Detectable, see: f64) {
        let wanted = (self.scale == Scale::Log).then(|| see.ln_1p());
        let of = self.sequence;
        self.outcome = match self.found.clone() {
            Found::Nothing(_) => Outcome::Unknown,
            Found::Same(_) => Outcome::Constant,
            Found::Few(sd) => {
                let needed =
                    sd.filter(|sd| *sd > 0.0).zip(wanted).and_then(|(sd, wanted)| known.needed(wanted, sd, 2, of));
                self.repeats_needed = Some(needed.unwrap_or(0).max(ADVISED));
                Outcome::Refused
            }
            Found::Tested(t) => {
                let least = known.with(t.n, of) * t.sd;
                self.detectable = Some(if self.scale == Scale::Log { least.exp_m1() } else { least });
                let is_shown = self.p_adjusted.is_some_and(|p| p <= power::LEVEL);
                if !is_shown && wanted.is_some_and(|wanted| least > wanted) {
                    self.repeats_needed = wanted.and_then(|wanted| known.needed(wanted, t.sd, t.n, of));
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
