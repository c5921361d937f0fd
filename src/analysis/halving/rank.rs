//! Estimates of configurations, and their comparison.

use super::question::{Estimate, Meets, Question, Says, Seen};

/// Minimum variation between runs of one configuration, in addition to the variation due to the number
/// of requests, as a share of the value.
const LEAST: f64 = 0.01;
/// Configurations that differ by less than this share are treated as equally good, so the search does not
/// make longer runs to distinguish them.
const ALIKE: f64 = 0.03;
/// Number of standard deviations from the mean to either end of a 95 % interval.
const WIDE: f64 = 1.96;
/// Number of standard deviations above the mean beyond which 10 % of a normal distribution lie. A
/// configuration that is better with a probability below 10 % does not get a longer run.
const LIKELY: f64 = 1.282;

/// The combined evidence of runs on a configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Known {
    /// The estimate, and whether the configuration meets the objective.
    Value(Estimate, Meets),
    /// The configuration cannot be chosen.
    NotToChoose,
    /// There is no evidence.
    Nothing,
}

impl Known {
    /// Combines the evidence of the runs `seen` on a configuration.
    pub(super) fn of(seen: &[Seen], configuration: usize) -> Known {
        let runs = || seen.iter().filter(move |run| run.configuration == configuration);
        let meets = runs().next_back().map_or(Meets::NotAsked, |run| run.meets);
        if meets == Meets::Misses || runs().any(|run| run.says == Says::NotToChoose) {
            return Known::NotToChoose;
        }
        let weighed = |run: &Seen| match run.says {
            Says::Value { value, deviation } => {
                let deviation = deviation.hypot(LEAST * value);
                Some((value, 1.0 / (deviation * deviation).max(f64::MIN_POSITIVE), run.rung))
            }
            Says::NotToChoose | Says::Nothing => None,
        };
        let values: Vec<(f64, f64, usize)> = runs().filter_map(weighed).collect();
        let Some(rung) = values.iter().map(|(_, _, rung)| *rung).max() else { return Known::Nothing };
        let weights: f64 = values.iter().map(|(_, weight, _)| weight).sum();
        let value = values.iter().map(|(value, weight, _)| value * weight).sum::<f64>() / weights;
        let half = WIDE / weights.sqrt();
        Known::Value(Estimate { value, low: value - half, high: value + half, rung }, meets)
    }
}

/// Returns the estimate of each configuration; `None` if the configuration cannot be chosen, or if none
/// of its runs provides evidence.
pub fn estimates(question: &Question, seen: &[Seen]) -> Vec<Option<Estimate>> {
    let of = |configuration| match Known::of(seen, configuration) {
        Known::Value(estimate, _) => Some(estimate),
        Known::NotToChoose | Known::Nothing => None,
    };
    (0..question.configurations).map(of).collect()
}

/// A configuration that can be chosen. Its measurement is converted so that higher is better.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing {
    /// The configuration.
    pub(super) configuration: usize,
    /// Whether the configuration meets the objective.
    pub(super) meets: Meets,
    value: f64,
    deviation: f64,
}

impl Standing {
    /// Returns how much better the configuration may be than another one, at this many standard
    /// deviations above the measured difference.
    fn may_exceed(&self, other: &Standing, deviations: f64) -> f64 {
        self.value - other.value + deviations * self.deviation.hypot(other.deviation)
    }

    /// Returns whether the configuration is not shown to be worse than the best one.
    pub(super) fn is_rival(&self, best: Option<&Standing>) -> bool {
        best.is_none_or(|best| self.may_exceed(best, WIDE) > 0.0)
    }

    /// Returns whether the configuration may exceed the best one by more than the tolerance `ALIKE`.
    fn is_promising(&self, best: Option<&Standing>) -> bool {
        best.is_none_or(|best| self.may_exceed(best, LIKELY) > ALIKE * best.value.abs())
    }
}

/// Configurations that can be chosen, in descending order of their estimates.
pub(super) struct Ranked(pub(super) Vec<Standing>);

impl Ranked {
    /// Ranks the configurations in `among` that have an estimate.
    pub(super) fn of(question: &Question, seen: &[Seen], among: &[usize]) -> Ranked {
        let sign = if question.is_more_better { 1.0 } else { -1.0 };
        let of = |configuration: &usize| {
            let Known::Value(Estimate { value, low, high, .. }, meets) = Known::of(seen, *configuration) else {
                return None;
            };
            let deviation = (high - low) / (2.0 * WIDE);
            Some(Standing { configuration: *configuration, meets, value: sign * value, deviation })
        };
        let mut known: Vec<Standing> = among.iter().filter_map(of).collect();
        known.sort_by(|a, b| b.value.total_cmp(&a.value).then(a.configuration.cmp(&b.configuration)));
        Ranked(known)
    }

    /// Returns the best configuration that was shown or observed to meet the objective.
    pub(super) fn best(&self) -> Option<&Standing> {
        self.0.iter().find(|one| one.meets != Meets::SeemsNot)
    }

    /// Returns all configurations other than the best one.
    fn others(&self) -> impl Iterator<Item = &Standing> {
        let best = self.best().map(|best| best.configuration);
        self.0.iter().filter(move |one| Some(one.configuration) != best)
    }

    /// Returns the configurations that are not shown to be worse than the best one.
    pub(super) fn rivals(&self) -> Vec<usize> {
        self.others().filter(|one| one.is_rival(self.best())).map(|one| one.configuration).collect()
    }

    /// Returns whether any configuration may exceed the best one by more than the tolerance `ALIKE`.
    pub(super) fn are_promising(&self) -> bool {
        self.others().any(|one| one.is_promising(self.best()))
    }

    /// Returns the configurations that advance if the plan lets `meant` configurations advance: the
    /// best one, others that may be better, and all that are indistinguishable from the last of these.
    pub(super) fn going_on(&self, meant: usize) -> Vec<usize> {
        let Some(last) = self.0.get(meant - 1).or(self.0.last()) else { return Vec::new() };
        let best = self.best().map(|best| best.configuration);
        let goes_on = |(place, one): &(usize, &Standing)| {
            Some(one.configuration) != best
                && one.is_promising(self.best())
                && (*place < meant || one.may_exceed(last, LIKELY) > 0.0)
        };
        let others = self.0.iter().enumerate().filter(goes_on).map(|(_, one)| one.configuration);
        best.into_iter().chain(others).collect()
    }
}
