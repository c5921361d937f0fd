//! Which configuration is run next, and which goes on.

use super::question::{End, Estimate, Next, Outcome, Question, Seen, Stands};
use crate::plan::model::optimize::FACTOR;

/// How much runs of one configuration differ at least, besides what follows from the number of their requests: a share of the value.
const LEAST: f64 = 0.01;
/// Configurations that differ by less than this share are alike: no longer run is made to tell them from each other.
const ALIKE: f64 = 0.03;
/// Standard deviations to the end of an interval of 95 %.
const WIDE: f64 = 1.96;
/// Standard deviations beyond which 10 % lie: what is less likely to be better has no longer run.
const LIKELY: f64 = 1.282;

/// What is known of each configuration; none of one that cannot be chosen, and of one without a run.
pub fn estimates(question: &Question, seen: &[Seen]) -> Vec<Option<Estimate>> {
    let of = |configuration| {
        let runs = || seen.iter().filter(move |run| run.configuration == configuration);
        let values: Vec<(f64, f64)> = runs()
            .map(|run| {
                let value = run.value?;
                let deviation = run.deviation.hypot(LEAST * value);
                Some((value, 1.0 / (deviation * deviation).max(f64::MIN_POSITIVE)))
            })
            .collect::<Option<_>>()?;
        let weights: f64 = values.iter().map(|(_, weight)| weight).sum();
        let value = values.iter().map(|(value, weight)| value * weight).sum::<f64>() / weights;
        let half = WIDE / weights.sqrt();
        let rung = runs().map(|run| run.rung).max()?;
        Some(Estimate { value, low: value - half, high: value + half, rung })
    };
    (0..question.configurations).map(of).collect()
}

/// What to do next, given all runs so far.
pub fn next(question: &Question, seen: &[Seen]) -> Next {
    stands(question, seen).next
}

/// The same, with the configurations that the last rung has, those without a run in it yet among them.
pub fn stands(question: &Question, seen: &[Seen]) -> Stands {
    let mut alive: Vec<usize> = (0..question.configurations).collect();
    let mut unaffordable = Vec::new();
    for rung in 0..question.seconds.len() {
        // Every second rung runs the other way, so that the server that is up is the first that is asked again.
        let mut turns = alive.clone();
        turns.sort_unstable();
        if rung % 2 == 1 {
            turns.reverse();
        }
        let is_there =
            |configuration: &usize| seen.iter().any(|run| run.configuration == *configuration && run.rung == rung);
        if let Some(configuration) = turns.iter().copied().find(|configuration| !is_there(configuration)) {
            return Stands { next: Next::Run { configuration, rung }, rung, alive };
        }
        let so_far: Vec<Seen> = seen.iter().filter(|run| run.rung <= rung).copied().collect();
        let ranked = Ranked::of(question, &so_far, &alive);
        let best = ranked.0.first().map(|best| best.configuration);
        let rivals = ranked.rivals();
        let ended = |end| {
            let outcome = Outcome { best, rivals: rivals.clone(), unaffordable: unaffordable.clone(), end };
            Stands { next: Next::Ended(outcome), rung, alive: alive.clone() }
        };
        let is_last = rung + 1 == question.seconds.len();
        if best.is_none() {
            return ended(End::None);
        } else if !unaffordable.is_empty() && (rivals.is_empty() || is_last) {
            return ended(End::Budget);
        } else if rivals.is_empty() {
            return ended(End::Best);
        } else if is_last || ranked.promising().is_empty() {
            return ended(End::Undecided);
        }
        let going_on = ranked.going_on(keep(question.configurations, rung + 1));
        let affordable = affordable(question, &so_far, rung + 1);
        if affordable < 2 {
            return ended(End::Budget);
        }
        let (taken, left) = going_on.split_at(affordable.min(going_on.len()));
        unaffordable.extend(left);
        alive = taken.to_vec();
    }
    let outcome = Outcome { best: None, rivals: Vec::new(), unaffordable, end: End::None };
    Stands { next: Next::Ended(outcome), rung: question.seconds.len(), alive }
}

/// How many configurations a rung is meant to have.
fn keep(configurations: usize, rung: usize) -> usize {
    configurations.div_ceil((FACTOR as usize).pow(rung as u32)).max(2)
}

/// How many runs of a rung the budget still has time for; the servers of all start anew.
fn affordable(question: &Question, seen: &[Seen], rung: usize) -> usize {
    let starts: Vec<f64> = seen.iter().filter_map(|run| run.start).collect();
    let start = starts.iter().sum::<f64>() / starts.len().max(1) as f64;
    let spent: f64 = seen.iter().map(|run| question.seconds[run.rung]).sum::<f64>() + starts.iter().sum::<f64>();
    ((question.budget - spent).max(0.0) / (question.seconds[rung] + start)) as usize
}

/// A configuration that can be chosen, with what was measured of it as a number of which more is better.
#[derive(Debug, Clone, Copy)]
struct Standing {
    configuration: usize,
    value: f64,
    deviation: f64,
}

impl Standing {
    /// By how much it may be better than another one, at most so many standard deviations above what was measured.
    fn may_exceed(&self, other: &Standing, deviations: f64) -> f64 {
        self.value - other.value + deviations * self.deviation.hypot(other.deviation)
    }
}

/// Configurations that can be chosen, from the best estimate down.
struct Ranked(Vec<Standing>);

impl Ranked {
    fn of(question: &Question, seen: &[Seen], alive: &[usize]) -> Ranked {
        let estimates = estimates(question, seen);
        let sign = if question.is_more_better { 1.0 } else { -1.0 };
        let of = |configuration: &usize| {
            let Estimate { value, low, high, .. } = estimates[*configuration]?;
            let deviation = (high - low) / (2.0 * WIDE);
            Some(Standing { configuration: *configuration, value: sign * value, deviation })
        };
        let mut known: Vec<Standing> = alive.iter().filter_map(of).collect();
        known.sort_by(|a, b| b.value.total_cmp(&a.value).then(a.configuration.cmp(&b.configuration)));
        Ranked(known)
    }

    /// Those that are not shown to be worse than the best.
    fn rivals(&self) -> Vec<usize> {
        self.those(|one, best| one.may_exceed(best, WIDE) > 0.0)
    }

    /// Those that may be better than the best by more than what is alike.
    fn promising(&self) -> Vec<usize> {
        self.those(|one, best| one.may_exceed(best, LIKELY) > ALIKE * best.value.abs())
    }

    fn those(&self, are: impl Fn(&Standing, &Standing) -> bool) -> Vec<usize> {
        let Some((best, others)) = self.0.split_first() else { return Vec::new() };
        others.iter().filter(|one| are(one, best)).map(|one| one.configuration).collect()
    }

    /// Those that go on, where so many are meant to: the best, and of those that may be better these, and whoever cannot be told from the
    /// last of them.
    fn going_on(&self, meant: usize) -> Vec<usize> {
        let Some(last) = self.0.get(meant - 1).or(self.0.last()) else { return Vec::new() };
        let promising = self.promising();
        let ranked = self.0.iter().enumerate();
        let goes_on = ranked.filter(|(place, one)| {
            *place == 0
                || (promising.contains(&one.configuration) && (*place < meant || one.may_exceed(last, LIKELY) > 0.0))
        });
        goes_on.map(|(_, one)| one.configuration).collect()
    }
}
