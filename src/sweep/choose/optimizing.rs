//! The search for the best settings of a server, which uses successive halving to decide which run comes
//! next.

use super::chosen::{Chosen, Ended};
use super::judge::{Judge, Tried};
use super::settings::{Became, Setting, SettingRun, Settings};
use crate::analysis::halving::{self, End, Meets, Next, Question, Says, Seen, Stands};
use crate::analysis::slo::Answer;
use crate::expand::{Optimized, PlannedRun, Pool, Trial};
use crate::plan::Aim;
use crate::plan::model::search::Objective;
use crate::sweep::event::RunView;

/// A pool that searches for the best settings of a server.
pub(super) struct Optimizing<'p> {
    pub pool: &'p Pool,
    pub optimized: &'p Optimized,
}

impl Optimizing<'_> {
    /// Returns the state of the pool.
    pub(super) fn stands(&self, judge: &dyn Judge) -> Chosen {
        let question = self.question();
        let mut chosen = Chosen::nothing(self.optimized.aim.unit());
        let mut trials = Trials::default();
        let stands = loop {
            let stands = halving::stands(&question, &trials.seen);
            let Next::Run { configuration, rung, repeat } = stands.next else { break stands };
            let Some(at) = self.find(configuration, rung, repeat) else { break stands };
            let run = &self.pool.members[at].run;
            if !judge.is_finished(run) {
                chosen.next = Some(at);
                break stands;
            }
            chosen.finished.push(at);
            let meets = self.meets(judge, &chosen.finished, configuration);
            // Goodput already takes the limits into account, so the objective is not checked separately.
            let asked = if self.optimized.aim == Aim::Goodput { Meets::NotAsked } else { meets };
            trials.saw(judge.tried(run, self.optimized.aim), (configuration, rung), asked);
        };
        let rungs = question.seconds.len();
        let rung =
            chosen.next.and_then(|at| self.pool.members[at].trial).map_or(rungs, |trial| trial.rung as usize + 1);
        let outcome = match &stands.next {
            Next::Ended(outcome) => Some(outcome.clone()),
            Next::Run { .. } => None,
        };
        let of_run = |(run, at): (&Seen, &usize)| SettingRun {
            member: *at,
            setting: run.configuration,
            rung: run.rung + 1,
            value: match run.says {
                Says::Value { value, .. } => Some(value),
                Says::NotToChoose | Says::Nothing => None,
            },
            became: became(run, &trials.seen, &stands),
        };
        let runs = trials.seen.iter().zip(&chosen.finished).map(of_run).collect();
        chosen.replaced = trials.replaced().into_iter().map(|place| chosen.finished[place]).collect();
        let all = self.settings(judge, &question, &trials, &chosen.finished);
        chosen.settings = Some(Settings { aim: self.optimized.aim, all, runs, rung, rungs, outcome: outcome.clone() });
        chosen.end = outcome.map(Ended::Settings);
        chosen
    }

    /// Returns the current results of all settings.
    fn settings(&self, judge: &dyn Judge, question: &Question, trials: &Trials, finished: &[usize]) -> Vec<Setting> {
        let estimates = halving::estimates(question, &trials.seen);
        let setting = |(at, name): (usize, &String)| {
            let runs = self.runs(finished, at);
            let requests = if self.asks() && !runs.is_empty() { judge.said(&runs, Objective::Slo).requests } else { 0 };
            Setting {
                name: name.clone(),
                runs: runs.len(),
                estimate: estimates[at],
                meets: self.meets(judge, finished, at),
                requests,
                why: trials
                    .seen
                    .iter()
                    .zip(&trials.why)
                    .rev()
                    .find(|(run, _)| run.configuration == at)
                    .and_then(|(_, why)| why.clone()),
            }
        };
        self.optimized.configurations.iter().enumerate().map(setting).collect()
    }

    /// Whether the plan limits latencies in its objective.
    fn asks(&self) -> bool {
        !self.optimized.limits.is_empty()
    }

    /// Returns the finished runs of one setting.
    fn runs(&self, finished: &[usize], configuration: usize) -> Vec<&PlannedRun> {
        let members = finished.iter().map(|at| &self.pool.members[*at]);
        let of = members.filter(|member| member.trial.is_some_and(|trial| trial.configuration == configuration));
        of.map(|member| &member.run).collect()
    }

    /// Determines whether a setting meets the objective, according to all of its runs together. If this is
    /// undecided, the values observed in the last run, which is the longest, decide whether the setting
    /// seems to meet the objective.
    fn meets(&self, judge: &dyn Judge, finished: &[usize], configuration: usize) -> Meets {
        let runs = self.runs(finished, configuration);
        if !self.asks() || runs.is_empty() {
            return Meets::NotAsked;
        }
        let observed = || runs.iter().rev().find_map(|run| judge.said(&[run], Objective::Slo).pressure);
        match judge.said(&runs, Objective::Slo).answer {
            Some(Answer::Holds) => Meets::Shown,
            Some(Answer::Misses) => Meets::Misses,
            Some(Answer::Undecided) if observed().is_some_and(|pressure| pressure <= 1.0) => Meets::Seems,
            Some(Answer::Undecided) | None => Meets::SeemsNot,
        }
    }

    /// Returns the largest possible number of runs: one run for every setting in every rung, plus the maximum
    /// number of repeats.
    pub(super) fn most_runs(&self) -> usize {
        let first = self.pool.members.iter().filter(|member| member.trial.is_some_and(|trial| trial.repeat == 0));
        (first.count() + halving::AGAIN).min(self.pool.members.len())
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

    fn find(&self, configuration: usize, rung: usize, repeat: usize) -> Option<usize> {
        let meant = Trial { configuration, rung: rung as u32, repeat: repeat as u32 };
        self.pool.members.iter().position(|member| member.trial == Some(meant))
    }
}

/// The finished runs of the search, in the order in which they were requested.
#[derive(Default)]
struct Trials {
    seen: Vec<Seen>,
    /// For each run in `seen`: why it is inconclusive, or why its setting cannot be chosen; `None`
    /// otherwise.
    why: Vec<Option<String>>,
    /// Times of the server starts that have been counted.
    starts: Vec<String>,
}

impl Trials {
    /// Returns the positions of inconclusive runs that were replaced by a later, conclusive run with the
    /// same settings and length.
    fn replaced(&self) -> Vec<usize> {
        let is_behind = |place: usize, run: &Seen| {
            let mut others = self.seen[place + 1..].iter();
            others.any(|other| {
                (other.configuration, other.rung) == (run.configuration, run.rung) && other.says != Says::Nothing
            })
        };
        let silent = self.seen.iter().enumerate().filter(|(_, run)| run.says == Says::Nothing);
        silent.filter(|(place, run)| is_behind(*place, run)).map(|(place, _)| place).collect()
    }

    fn saw(&mut self, tried: Tried, (configuration, rung): (usize, usize), meets: Meets) {
        // If a server is used for several runs, its start is counted only once.
        let start = tried.start.filter(|start| !self.starts.contains(&start.at));
        let seconds = start.as_ref().map(|start| start.seconds);
        self.starts.extend(start.map(|start| start.at));
        self.why.push(tried.why);
        self.seen.push(Seen { configuration, rung, says: tried.says, meets, start: seconds });
    }
}

/// Returns what happened to the setting of a run after this run.
fn became(run: &Seen, seen: &[Seen], stands: &Stands) -> Became {
    let is_alive = stands.alive.contains(&run.configuration);
    let has_longer = seen.iter().any(|other| other.configuration == run.configuration && other.rung > run.rung);
    match run.says {
        Says::NotToChoose => return Became::NotToChoose,
        Says::Nothing => return Became::SaysNothing,
        Says::Value { .. } if run.meets == Meets::Misses => return Became::NotToChoose,
        Says::Value { .. } if has_longer || (run.rung < stands.rung && is_alive) => return Became::WentOn,
        Says::Value { .. } => {}
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
        let is_shown = outcome.end == End::Best || (outcome.rivals.is_empty() && outcome.unknown.is_empty());
        if is_shown { Became::Best } else { Became::Undecided }
    } else if is_rival {
        Became::Undecided
    } else {
        Became::LeftOut
    }
}
