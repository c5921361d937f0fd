//! What is known of configurations, and how they compare.

use super::question::{Estimate, Meets, Question, Says, Seen};

/// How much runs of one configuration differ at least, besides what follows from the number of their requests: a share of the value.
const LEAST: f64 = 0.01;
/// Configurations that differ by less than this share are alike: no longer run is made to tell them from each other.
const ALIKE: f64 = 0.03;
/// Standard deviations to the end of an interval of 95 %.
const WIDE: f64 = 1.96;
/// Standard deviations beyond which 10 % lie: what is less likely to be better has no longer run.
const LIKELY: f64 = 1.282;

/// What runs say of a configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Known {
    /// This, and whether it meets the objective.
    Value(Estimate, Meets),
    /// That it cannot be chosen.
    NotToChoose,
    /// Nothing.
    Nothing,
}

impl Known {
    /// What these runs say of a configuration.
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

/// What is known of each configuration; none of one that cannot be chosen, and of one without a run that says something.
pub fn estimates(question: &Question, seen: &[Seen]) -> Vec<Option<Estimate>> {
    let of = |configuration| match Known::of(seen, configuration) {
        Known::Value(estimate, _) => Some(estimate),
        Known::NotToChoose | Known::Nothing => None,
    };
    (0..question.configurations).map(of).collect()
}

/// A configuration that can be chosen, with what was measured of it as a number of which more is better.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing {
    /// Which one.
    pub(super) configuration: usize,
    /// Whether it meets the objective.
    pub(super) meets: Meets,
    value: f64,
    deviation: f64,
}

impl Standing {
    /// By how much it may be better than another one, at most so many standard deviations above what was measured.
    fn may_exceed(&self, other: &Standing, deviations: f64) -> f64 {
        self.value - other.value + deviations * self.deviation.hypot(other.deviation)
    }

    /// Whether it is not shown to be worse than the best.
    pub(super) fn is_rival(&self, best: Option<&Standing>) -> bool {
        best.is_none_or(|best| self.may_exceed(best, WIDE) > 0.0)
    }

    /// Whether it may be better than the best by more than what is alike.
    fn is_promising(&self, best: Option<&Standing>) -> bool {
        best.is_none_or(|best| self.may_exceed(best, LIKELY) > ALIKE * best.value.abs())
    }
}

/// Configurations that can be chosen, from the best estimate down.
pub(super) struct Ranked(pub(super) Vec<Standing>);

impl Ranked {
    /// Those of `among` of which something is known.
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

    /// The best of those that met the objective, shown or as observed.
    pub(super) fn best(&self) -> Option<&Standing> {
        self.0.iter().find(|one| one.meets != Meets::SeemsNot)
    }

    /// All others.
    fn others(&self) -> impl Iterator<Item = &Standing> {
        let best = self.best().map(|best| best.configuration);
        self.0.iter().filter(move |one| Some(one.configuration) != best)
    }

    /// Those that are not shown to be worse than the best.
    pub(super) fn rivals(&self) -> Vec<usize> {
        self.others().filter(|one| one.is_rival(self.best())).map(|one| one.configuration).collect()
    }

    /// Whether some may be better than the best by more than what is alike.
    pub(super) fn are_promising(&self) -> bool {
        self.others().any(|one| one.is_promising(self.best()))
    }

    /// Those that go on, where so many are meant to: the best, and of those that may be better these, and whoever cannot be told from the
    /// last of them.
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
