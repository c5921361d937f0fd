//! Decides which configuration runs next and which ones advance.

use super::question::{End, Next, Outcome, Question, Says, Seen, Stands};
use super::rank::{Known, Ranked, Standing};
use crate::plan::model::optimize::FACTOR;

/// Maximum number of runs without evidence that are repeated.
pub const AGAIN: usize = 4;

/// Returns what to do next, given all runs so far.
pub fn next(question: &Question, seen: &[Seen]) -> Next {
    stands(question, seen).next
}

/// Returns the next step together with the configurations of the last rung, including those without a
/// run in it yet. `seen` is in the order in which the runs were requested, because each decision
/// depends only on earlier runs.
pub fn stands(question: &Question, seen: &[Seen]) -> Stands {
    let alive = (0..question.configurations).collect();
    let mut halving = Halving { question, seen, at: 0, again: 0, alive, unaffordable: Vec::new() };
    for rung in 0..question.seconds.len() {
        let mut turns = halving.alive.clone();
        while !turns.is_empty() {
            if let Some(next) = halving.asks(turns, rung) {
                return Stands { next, rung, alive: halving.alive };
            }
            turns = halving.come_back(rung);
        }
        match halving.goes_on(rung) {
            Ok(alive) => halving.alive = alive,
            Err(outcome) => return Stands { next: Next::Ended(outcome), rung, alive: halving.alive },
        }
    }
    let Halving { unaffordable, .. } = halving;
    let outcome = Outcome { best: None, rivals: Vec::new(), unaffordable, unknown: Vec::new(), end: End::None };
    Stands { next: Next::Ended(outcome), rung: question.seconds.len(), alive: Vec::new() }
}

/// Returns how many configurations a rung should have.
fn keep(configurations: usize, rung: usize) -> usize {
    configurations.div_ceil((FACTOR as usize).pow(rung as u32)).max(2)
}

/// The decisions, replayed from the runs.
struct Halving<'q> {
    question: &'q Question,
    seen: &'q [Seen],
    /// Number of runs processed.
    at: usize,
    /// Number of processed runs that were repeats of runs without evidence.
    again: usize,
    /// The configurations of the rung.
    alive: Vec<usize>,
    /// Configurations that were indistinguishable from those in `alive`, but for which the budget left
    /// no time.
    unaffordable: Vec<usize>,
}

impl<'q> Halving<'q> {
    /// Returns the runs processed so far.
    fn so_far(&self) -> &'q [Seen] {
        &self.seen[..self.at]
    }

    /// Returns the next run and advances past it, if it is a run of this configuration in this rung.
    fn take(&mut self, configuration: usize, rung: usize) -> Option<&'q Seen> {
        let run = self.seen.get(self.at).filter(|run| run.configuration == configuration && run.rung == rung)?;
        self.at += 1;
        Some(run)
    }

    /// Returns the next run that these configurations need in a rung; `None` if all runs exist. A run
    /// without evidence is repeated.
    fn asks(&mut self, mut turns: Vec<usize>, rung: usize) -> Option<Next> {
        // Every second rung runs in reverse order, so that the server that is already running goes
        // first.
        turns.sort_unstable();
        if rung % 2 == 1 {
            turns.reverse();
        }
        for (place, configuration) in turns.iter().copied().enumerate() {
            let Some(run) = self.take(configuration, rung) else {
                return Some(Next::Run { configuration, rung, repeat: 0 });
            };
            if run.says == Says::Nothing && self.is_made_again(rung, turns.len() - place - 1) {
                self.again += 1;
                if self.take(configuration, rung).is_none() {
                    return Some(Next::Run { configuration, rung, repeat: 1 });
                }
            }
        }
        None
    }

    /// Returns whether a run without evidence is repeated: the maximum number of such repeats is not reached,
    /// and time remains for the `others` runs that the rung still needs. The repeat needs no server start,
    /// because the server is still running.
    fn is_made_again(&self, rung: usize, others: usize) -> bool {
        let (seconds, (start, left)) = (self.question.seconds[rung], self.time());
        self.again < AGAIN && seconds + others as f64 * (seconds + start) <= left
    }

    /// Returns how long a server takes to start on average, and how much of the budget is left, in seconds.
    fn time(&self) -> (f64, f64) {
        let starts: Vec<f64> = self.so_far().iter().filter_map(|run| run.start).collect();
        let all = starts.iter().sum::<f64>();
        let spent: f64 = self.so_far().iter().map(|run| self.question.seconds[run.rung]).sum::<f64>() + all;
        (all / starts.len().max(1) as f64, (self.question.budget - spent).max(0.0))
    }

    /// Returns how many runs of a rung still fit in the budget if all servers have to start again.
    fn affordable(&self, rung: usize) -> usize {
        let (start, left) = self.time();
        (left / (self.question.seconds[rung] + start)) as usize
    }

    fn known(&self, configuration: usize) -> Known {
        Known::of(self.so_far(), configuration)
    }

    /// Removes configurations that cannot be chosen, and brings back configurations that were excluded in
    /// favor of the removed ones and are not worse than the rest. Returns the configurations that were
    /// brought back, which still need a run in this rung.
    fn come_back(&mut self, rung: usize) -> Vec<usize> {
        let before = self.alive.len();
        let mut alive = std::mem::take(&mut self.alive);
        alive.retain(|one| self.known(*one) != Known::NotToChoose);
        self.alive = alive;
        if self.alive.len() == before {
            return Vec::new();
        }
        let is_out = |one: &usize| !self.alive.contains(one) && !self.unaffordable.contains(one);
        let out: Vec<usize> = (0..self.question.configurations).filter(is_out).collect();
        let all = Ranked::of(self.question, self.so_far(), &[&self.alive[..], &out].concat());
        let is_back = |one: &&Standing| out.contains(&one.configuration) && one.is_rival(all.best());
        let mut back: Vec<usize> = all.0.iter().filter(is_back).map(|one| one.configuration).collect();
        let affordable = self.affordable(rung).min(back.len());
        self.unaffordable.extend(back.split_off(affordable));
        self.alive.extend(&back);
        back
    }

    /// Returns the configurations that advance from a rung, or the outcome.
    fn goes_on(&mut self, rung: usize) -> Result<Vec<usize>, Outcome> {
        let ranked = Ranked::of(self.question, self.so_far(), &self.alive);
        let rivals = ranked.rivals();
        let is_settled = ranked.best().is_some_and(|best| best.meets.is_settled());
        let is_last = rung + 1 == self.question.seconds.len();
        let is_alike = !ranked.are_promising() && (is_settled || !rivals.is_empty());
        if is_last || ranked.0.is_empty() || is_alike || (rivals.is_empty() && is_settled) {
            return Err(self.ended(&ranked, is_last));
        }
        let mut taken = ranked.going_on(keep(self.question.configurations, rung + 1));
        let affordable = self.affordable(rung + 1);
        if affordable < taken.len().min(2) {
            let mut outcome = self.ended(&ranked, is_last);
            if !outcome.rivals.is_empty() && outcome.best.is_some() {
                outcome.end = End::Budget;
            }
            return Err(outcome);
        }
        self.unaffordable.extend(taken.split_off(affordable.min(taken.len())));
        Ok(taken)
    }

    /// Returns the outcome if the search ends now; `ranked` contains the configurations that can be chosen.
    fn ended(&self, ranked: &Ranked, is_last: bool) -> Outcome {
        let best = ranked.best().map(|best| best.configuration);
        let (rivals, unaffordable) = (ranked.rivals(), self.unaffordable.clone());
        let is_unknown = |one: &usize| self.known(*one) == Known::Nothing;
        let unknown: Vec<usize> = (0..self.question.configurations).filter(is_unknown).collect();
        let end = if best.is_none() {
            End::None
        } else if !unaffordable.is_empty() && (rivals.is_empty() || is_last) {
            End::Budget
        } else if rivals.is_empty() && unknown.is_empty() {
            End::Best
        } else {
            End::Undecided
        };
        Outcome { best, rivals, unaffordable, unknown, end }
    }
}
