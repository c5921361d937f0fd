//! All tests of one declaration: adjusted p-values, detectable differences and outcomes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::quantity::Effect;
use super::{CellAnswer, Family, Found, Outcome, Pooled, SequenceLook, Test, claim, margin, phrasing, pooled};
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

/// What is compared in one declaration.
#[derive(Debug, Clone)]
pub struct Declaration {
    /// The axis that is compared; `time` for a comparison with earlier results.
    pub by: String,
    /// The value of the axis with which all other values are compared.
    pub baseline: String,
    /// Notes on how to read the numbers of all cells.
    pub notes: Vec<String>,
}

impl Family {
    /// Determines the outcomes of all tests of a declaration, and what they claim. The guardrails of the
    /// cells are settled before.
    pub fn settled(declaration: Declaration, mut cells: Vec<CellAnswer>, rules: &Rules) -> Family {
        let pooled = settle_cells(&mut cells, rules);
        let made = cells.iter().flat_map(|cell| &cell.tests).filter(|test| test.p.is_some()).count();
        let Declaration { by, baseline, notes } = declaration;
        let claims = claim::claims(&cells, &pooled);
        let tests = (made + pooled.len()) as u32;
        Family { by, baseline, tests, margin: rules.margin, notes, cells, pooled, claims }
    }
}

/// Determines the outcomes of the tests of one family that has no effects over cells.
pub fn settle(tests: &mut [&mut Test], rules: &Rules) {
    settle_all(tests, &mut [], rules);
}

/// Determines the outcomes of the tests of all cells, and returns the effects over the cells. These effects
/// belong to the same family.
fn settle_cells(cells: &mut [CellAnswer], rules: &Rules) -> Vec<Pooled> {
    let mut pooled = pooled::over(cells);
    let mut tests: Vec<&mut Test> = cells.iter_mut().flat_map(|cell| &mut cell.tests).collect();
    settle_all(&mut tests, &mut pooled, rules);
    pooled::follow_from_cells(&mut pooled, cells);
    pooled
}

fn settle_all(tests: &mut [&mut Test], pooled: &mut [Pooled], rules: &Rules) {
    let see = rules.see;
    let of_cells = tests.iter().filter_map(|test| test.p);
    let tested: Vec<f64> = of_cells.chain(pooled.iter().map(|one| one.p)).collect();
    let mut adjusted = rules.adjusted.adjust(&tested).into_iter();
    // Neither of the two adjustments is ever stricter than this level, so both detect the differences that
    // are detectable at this level.
    let mut known = Detectable::at(power::LEVEL / tested.len().max(1) as f64);
    for test in tests.iter_mut() {
        test.in_family = rules.named || test.may_exist;
        test.p_adjusted = test.p.and_then(|_| adjusted.next());
        test.settle(&mut known, see);
        test.words = phrasing::of(test, see);
    }
    pooled.iter_mut().for_each(|one| one.settle(adjusted.next()));
    if let Some(share) = rules.margin {
        let mut known = Detectable::at(margin::TWO_SIDED);
        let effects: Vec<Effect> = pooled.iter().map(Pooled::effect).collect();
        let margins =
            margin::settle(tests, &effects, share, |wanted, measured, of| match measured.filter(|(sd, _)| *sd > 0.0) {
                Some((sd, rounds)) => {
                    let needed = known.needed(wanted, sd, rounds, of)?;
                    Some(if rounds < paired::FEWEST { needed.max(ADVISED) } else { needed })
                }
                None => Some(ADVISED),
            });
        for (one, margin) in pooled.iter_mut().zip(margins) {
            one.margin = Some(margin);
        }
        // A difference above the margin is a difference, although its own test may be the stricter one.
        for test in tests.iter_mut().filter(|test| test.is_beyond_margin() && test.outcome == Outcome::NotShown) {
            test.outcome = Outcome::Worse;
            test.words = phrasing::of(test, see);
        }
        pooled.iter_mut().filter(|one| one.is_beyond_margin()).for_each(Pooled::be_worse);
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
        let wanted = (self.quantity.scale == Scale::Log).then(|| see.ln_1p());
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
                self.detectable = Some(if self.quantity.scale == Scale::Log { least.exp_m1() } else { least });
                let is_shown = self.p_adjusted.is_some_and(|p| p <= power::LEVEL);
                if !is_shown && wanted.is_some_and(|wanted| least > wanted) {
                    self.repeats_needed = wanted.and_then(|wanted| known.needed(wanted, t.sd, t.n, of));
                }
                Outcome::of(is_shown, self.better, t.mean)
            }
        };
    }
}
