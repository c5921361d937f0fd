//! The guardrail of a comparison: an arm that fails more requests than its baseline is worse,
//! regardless of the compared metrics.
//!
//! It is not part of the family of metrics, because an arm must not improve other metrics by failing requests
//! unnoticed. The guardrails of one declaration form a separate family (Holm), because without an adjustment
//! ten cells with a few errors each would raise an alarm four times as often as one cell. Cells in which
//! nothing failed are not part of the family.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::Outcome;
use super::errors::{self, Basis};
use super::phrasing::points;
use crate::analysis::dispersion::FailureCount;
use crate::analysis::paired::{holm::holm, power};

/// Failed requests of an arm, over all rounds together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Failing {
    /// Number of requests in the windows.
    pub requests: u64,
    /// Number of requests that failed, including truncated ones.
    pub failed: u64,
    /// The share of failed requests; null if there are no requests.
    pub share: Option<f64>,
}

impl Failing {
    fn of(runs: &[FailureCount]) -> Failing {
        let requests = runs.iter().map(|run| run.requests).sum();
        let failed = runs.iter().map(|run| run.failed).sum();
        Failing { requests, failed, share: (requests > 0).then(|| failed as f64 / requests as f64) }
    }
}

/// Whether an arm fails more requests than the baseline, and the evidence.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Guardrail {
    /// Number of rounds: repeats that were measured on both arms, including repeats that are invalid
    /// only because of their errors.
    pub rounds: u32,
    /// The baseline's failures.
    pub baseline: Failing,
    /// The arm's failures.
    pub arm: Failing,
    /// The arm's share of failed requests minus the baseline's; null if there are no requests.
    pub difference: Option<f64>,
    /// Lower end of the difference's 95 % interval.
    pub low: Option<f64>,
    /// Upper end of the difference's 95 % interval.
    pub high: Option<f64>,
    /// Two-sided p-value of the overdispersed test.
    pub p: Option<f64>,
    /// The p-value adjusted for the guardrails of the declaration's other cells (Holm's method). It is
    /// not adjusted for metrics.
    pub p_adjusted: Option<f64>,
    /// The variance of the counts divided by the variance for independent failures.
    pub dispersion: Option<f64>,
    /// Source of the dispersion.
    pub(crate) dispersion_from: Option<Basis>,
    /// Outcome: `better`, `worse`, `not_shown` or `unknown`.
    pub outcome: Outcome,
    /// The outcome in words.
    pub words: String,
}

impl Guardrail {
    /// Computes the guardrail from the failures of both arms by repeat, the baseline's first.
    pub fn of([baseline, arm]: [&BTreeMap<u32, FailureCount>; 2]) -> Guardrail {
        let both = baseline.iter().filter_map(|(repeat, from)| Some((*from, *arm.get(repeat)?)));
        let (from, to): (Vec<FailureCount>, Vec<FailureCount>) = both.unzip();
        let test = errors::test(&from, &to);
        let mut guardrail = Guardrail {
            rounds: from.len() as u32,
            baseline: Failing::of(&from),
            arm: Failing::of(&to),
            difference: test.map(|test| test.difference),
            low: test.map(|test| test.low),
            high: test.map(|test| test.high),
            p: test.map(|test| test.p),
            p_adjusted: None,
            dispersion: test.map(|test| test.dispersion),
            dispersion_from: test.map(|test| test.basis),
            outcome: Outcome::Unknown,
            words: String::new(),
        };
        settle(&mut [&mut guardrail]);
        guardrail
    }

    /// Sets the outcome from the adjusted p-value.
    fn conclude(&mut self, p_adjusted: Option<f64>) {
        self.p_adjusted = p_adjusted;
        self.outcome = match (p_adjusted, self.difference) {
            (Some(p), _) if p > power::LEVEL => Outcome::NotShown,
            (Some(_), Some(difference)) if difference > 0.0 => Outcome::Worse,
            (Some(_), Some(_)) => Outcome::Better,
            _ => Outcome::Unknown,
        };
        self.words = self.worded();
    }

    /// Describes the outcome: `198 of 3140 failed, compared with 0 of 2997 of the baseline: higher by
    /// 6.3 points [5.4, 7.3]`.
    fn worded(&self) -> String {
        let (Some(difference), Some(low), Some(high)) = (self.difference, self.low, self.high) else {
            return "n/a: no repeat was measured on both arms".to_owned();
        };
        let (from, to) = (self.baseline, self.arm);
        let counts = format!(
            "{} of {} failed, compared with {} of {} of the baseline",
            to.failed, to.requests, from.failed, from.requests
        );
        let interval = format!("[{}, {}]", points(low), points(high));
        match self.outcome {
            Outcome::Worse => format!("{counts}: higher by {} points {interval}", points(difference)),
            Outcome::Better => format!("{counts}: lower by {} points {interval}", points(-difference)),
            _ => format!("{counts}: no difference shown, {interval} points"),
        }
    }
}

/// Adjusts the guardrails of one declaration for each other and sets their outcomes.
pub fn settle(guardrails: &mut [&mut Guardrail]) {
    let is_tested = |one: &Guardrail| one.baseline.failed + one.arm.failed > 0;
    let p: Vec<f64> = guardrails.iter().filter(|one| is_tested(one)).filter_map(|one| one.p).collect();
    let mut adjusted = holm(&p).into_iter();
    for one in guardrails {
        let p_adjusted = if is_tested(one) { one.p.and_then(|_| adjusted.next()) } else { one.p };
        one.conclude(p_adjusted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guardrail(failed: u64) -> Guardrail {
        let runs = |failed| (0..3).map(|at| (at, FailureCount { requests: 1_000, failed, dispersion: None })).collect();
        Guardrail::of([&runs(3), &runs(failed)])
    }

    #[test]
    fn guardrails_of_many_cells_are_adjusted_for_each_other_and_not_for_cells_without_failures() {
        let alone = guardrail(11);
        assert_eq!((alone.outcome, alone.p), (Outcome::Worse, alone.p_adjusted));
        let mut cells: Vec<Guardrail> = vec![guardrail(11), guardrail(3), guardrail(3), guardrail(4), guardrail(60)];
        let nothing = || Guardrail::of([&BTreeMap::new(), &BTreeMap::new()]);
        cells.push(nothing());
        settle(&mut cells.iter_mut().collect::<Vec<_>>());
        assert!(cells[0].p_adjusted > alone.p);
        assert_eq!(cells[0].p_adjusted, alone.p.map(|p| 4.0 * p));
        assert_eq!((cells[4].outcome, cells[5].outcome), (Outcome::Worse, Outcome::Unknown));
    }
}
