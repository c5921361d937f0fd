//! The best settings of a server: which run comes next is what halving asks for.

use super::chosen::{Chosen, Ended};
use super::judge::Judge;
use super::settings::{Became, Setting, SettingRun, Settings};
use crate::analysis::halving::{self, End, Next, Question, Seen, Stands};
use crate::expand::{Optimized, Pool};
use crate::plan::Aim;
use crate::sweep::event::RunView;

/// A pool of which the best settings are looked for.
pub(super) struct Optimizing<'p> {
    pub pool: &'p Pool,
    pub optimized: &'p Optimized,
}

impl Optimizing<'_> {
    /// How it stands.
    pub(super) fn stands(&self, judge: &dyn Judge) -> Chosen {
        let question = self.question();
        let mut chosen = Chosen::nothing(self.optimized.aim.unit());
        let (mut seen, mut starts) = (Vec::<Seen>::new(), Vec::new());
        let stands = loop {
            let stands = halving::stands(&question, &seen);
            let Next::Run { configuration, rung } = stands.next else { break stands };
            let Some(at) = self.find(configuration, rung) else { break stands };
            let run = &self.pool.members[at].run;
            if !judge.is_finished(run) {
                chosen.next = Some(at);
                break stands;
            }
            chosen.finished.push(at);
            let tried = judge.tried(run, self.optimized.aim);
            // A server that stays up for several runs started once.
            let start = tried.start.filter(|start| !starts.contains(&start.at));
            let seconds = start.as_ref().map(|start| start.seconds);
            starts.extend(start.map(|start| start.at));
            seen.push(Seen { configuration, rung, value: tried.value, deviation: tried.deviation, start: seconds });
        };
        let estimates = halving::estimates(&question, &seen);
        let setting = |(at, name): (usize, &String)| {
            let runs = seen.iter().filter(|run| run.configuration == at).count();
            Setting { name: name.clone(), runs, estimate: estimates.get(at).copied().flatten() }
        };
        let all: Vec<Setting> = self.optimized.configurations.iter().enumerate().map(setting).collect();
        let of_run = |(run, at): (&Seen, &usize)| SettingRun {
            member: *at,
            setting: run.configuration,
            rung: run.rung + 1,
            value: run.value,
            became: became(run, &stands),
        };
        let runs = seen.iter().zip(&chosen.finished).map(of_run).collect();
        let ended = match stands.next {
            Next::Ended(outcome) => Some(outcome),
            Next::Run { .. } => None,
        };
        let rungs = question.seconds.len();
        let rung =
            chosen.next.and_then(|at| self.pool.members[at].trial).map_or(rungs, |trial| trial.rung as usize + 1);
        chosen.settings = Some(Settings { aim: self.optimized.aim, all, runs, rung, rungs, outcome: ended.clone() });
        chosen.end = ended.map(Ended::Settings);
        chosen
    }

    /// How many runs it takes at most: every setting in every rung.
    pub(super) fn most_runs(&self) -> usize {
        self.pool.members.len()
    }

    fn question(&self) -> Question {
        let seconds = |rung| {
            let of_rung =
                self.pool.members.iter().filter(|member| member.trial.is_some_and(|trial| trial.rung == rung));
            let longest = of_rung.map(|member| RunView::new(0, &member.run).expected_ns()).max();
            longest.unwrap_or_default() as f64 / 1e9
        };
        Question {
            configurations: self.optimized.configurations.len(),
            seconds: (0..self.optimized.rungs).map(seconds).collect(),
            budget: self.optimized.budget.secs(),
            is_more_better: self.optimized.aim != Aim::CostPerMillion,
        }
    }

    fn find(&self, configuration: usize, rung: usize) -> Option<usize> {
        let is_meant =
            |trial: &crate::expand::Trial| trial.configuration == configuration && trial.rung as usize == rung;
        self.pool.members.iter().position(|member| member.trial.as_ref().is_some_and(is_meant))
    }
}

/// What became of the settings of a run behind it.
fn became(run: &Seen, stands: &Stands) -> Became {
    let is_alive = stands.alive.contains(&run.configuration);
    if run.value.is_none() {
        return Became::NotToChoose;
    } else if run.rung < stands.rung && is_alive {
        return Became::WentOn;
    }
    let outcome = match &stands.next {
        Next::Ended(outcome) => outcome,
        Next::Run { .. } if run.rung < stands.rung => return Became::LeftOut,
        Next::Run { .. } => return Became::Open,
    };
    let is_rival = outcome.rivals.contains(&run.configuration);
    if outcome.unaffordable.contains(&run.configuration) {
        Became::NoTime
    } else if !is_alive {
        Became::LeftOut
    } else if outcome.best == Some(run.configuration) {
        let is_shown = outcome.end == End::Best || outcome.rivals.is_empty();
        if is_shown { Became::Best } else { Became::Undecided }
    } else if is_rival {
        Became::Undecided
    } else {
        Became::LeftOut
    }
}
