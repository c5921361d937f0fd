//! The decisions of the searches and ladders of a plan, gathered from the results folder.

use super::chosen_runs::Chooser;
use crate::analysis::halving::Meets;
use crate::analysis::search::{Probe, Purpose};
use crate::expand::{Chooses, Member, PlannedRun, Pool, Trial};
use crate::plan::model::search::Objective;
use crate::report::{StepGoal, Trail, TrailNext, TrailStep, TrailTrial, note, what_for};
use crate::sweep::choose::{Became, Chosen, Ended, Judge, SettingRun, Settings};

/// Returns the decisions of a pool that is in the state `chosen`.
pub(super) fn trail(chooser: &Chooser, pool: &Pool, chosen: &Chosen) -> Trail {
    if let (Chooses::Optimize(_), Some(settings)) = (&pool.chooses, &chosen.settings) {
        return of_settings(chooser, pool, chosen, settings);
    }
    let is_search = matches!(pool.chooses, Chooses::Search(_));
    let mut goals = Goals::of(pool);
    let mut steps = Vec::new();
    for (at, members) in together(pool, chosen, is_search).into_iter().enumerate() {
        let runs: Vec<&PlannedRun> = members.iter().map(|at| &pool.members[*at].run).collect();
        let first = &pool.members[members[0]];
        let of = chosen.asked_for.get(at).copied();
        let goal = goals.goal(first, of);
        let ids = runs.iter().map(|run| run.id.to_string()).collect();
        let answer = chooser.said(&runs, of.unwrap_or(Objective::Slo)).answer;
        goals.saw(chooser, &runs, first);
        steps.push(chooser.with_rung(&runs, |rung| TrailStep::of(rung, ids, goal, answer)));
    }
    let next = chosen.next.map(|at| {
        let member = &pool.members[at];
        let goal = goals.goal(member, chosen.asked_for.last().copied());
        let of = goal.of.map(Objective::name);
        let words = what_for(goal.purpose.words(), of);
        TrailNext { run: member.run.id.to_string(), load: Some(member.load), purpose: goal.purpose.name(), of, words }
    });
    let (found, end) = match &chosen.end {
        Some(Ended::Search(outcome)) => (outcome.found, Some(outcome.end.name())),
        Some(Ended::WholeLadder) => (None, Some("whole")),
        Some(Ended::Cut { .. }) => (None, Some("cut")),
        Some(Ended::Settings(_)) | None => (None, None),
    };
    let cut = match chosen.end {
        Some(Ended::Cut { why, .. }) => Some(why),
        _ => None,
    };
    let highest = is_search.then_some(chosen.highest);
    Trail {
        sweep: pool.sweep.to_string(),
        cell: pool.name(),
        chooses: if is_search { "search" } else { "ladder" },
        axis: pool.chooses.axis(),
        state: state(chosen),
        standing: chosen.to_string(),
        found,
        shown: highest.and_then(|highest| highest.shown),
        observed: highest.and_then(|highest| highest.observed),
        highest,
        end,
        steps,
        trials: Vec::new(),
        next,
        pruned: pruned(pool, chosen),
        cut,
    }
}

/// Returns the state of a pool: done, pending (no run is finished yet) or searching.
fn state(chosen: &Chosen) -> &'static str {
    match (chosen.next, chosen.finished.is_empty()) {
        (None, _) => "done",
        (Some(_), true) => "pending",
        (Some(_), false) => "searching",
    }
}

/// Returns the decisions of a search for the best settings.
fn of_settings(chooser: &Chooser, pool: &Pool, chosen: &Chosen, settings: &Settings) -> Trail {
    let next = chosen.next.map(|at| {
        let member = &pool.members[at];
        let name = |trial: Trial| {
            let again = if trial.repeat > 0 { ", once more: the previous run does not count" } else { "" };
            format!("{}, rung {}{again}", settings.all[trial.configuration].name, trial.rung + 1)
        };
        let words = member.trial.map(name).unwrap_or_default();
        TrailNext { run: member.run.id.to_string(), load: None, purpose: "trial", of: None, words }
    });
    Trail {
        sweep: pool.sweep.to_string(),
        cell: pool.name(),
        chooses: "optimize",
        axis: pool.chooses.axis(),
        state: state(chosen),
        standing: chosen.to_string(),
        found: None,
        shown: None,
        observed: None,
        highest: None,
        end: None,
        steps: Vec::new(),
        trials: settings.runs.iter().map(|run| trial(chooser, pool, settings, run)).collect(),
        next,
        pruned: Vec::new(),
        cut: None,
    }
}

/// Describes one run of a combination of settings.
fn trial(chooser: &Chooser, pool: &Pool, settings: &Settings, of: &SettingRun) -> TrailTrial {
    let run = &pool.members[of.member].run;
    let setting = &settings.all[of.setting];
    let of_run = || chooser.with_rung(&[run], |rung| note(rung, None));
    let missed = || (of.value.is_some()).then(|| "misses the objective".to_owned());
    let is_named = matches!(of.became, Became::Best | Became::Undecided);
    let not_shown = match setting.meets {
        Meets::Seems => Some("it is not shown to meet the objective"),
        Meets::SeemsNot => Some("it missed the objective as observed, but this is not shown"),
        Meets::Misses => Some("it misses the objective"),
        Meets::NotAsked | Meets::Shown => None,
    };
    TrailTrial {
        run: run.id.to_string(),
        settings: setting.name.clone(),
        rung: of.rung,
        window: run.spec.phases.measure.duration,
        value: of.value,
        unit: settings.aim.unit(),
        became: of.became.name(),
        meets: setting.meets.name(),
        note: match of.became {
            Became::NotToChoose => missed().or_else(of_run),
            Became::SaysNothing => of_run(),
            _ if is_named => not_shown.map(str::to_owned),
            _ => None,
        },
        words: of.became.words(),
    }
}

/// Derives the purpose of each run of a search from what earlier runs show about the objective for which
/// the run is requested.
struct Goals {
    /// For each objective of the search: what the runs so far show about it. Empty for a ladder.
    seen: Vec<(Objective, Vec<Probe>)>,
}

impl Goals {
    /// Returns the state before the first run.
    fn of(pool: &Pool) -> Goals {
        let asked = match &pool.chooses {
            Chooses::Search(search) => &search.meets[..],
            Chooses::Optimize(_) | Chooses::Ladder { .. } => &[],
        };
        Goals { seen: asked.iter().map(|of| (*of, Vec::new())).collect() }
    }

    /// Returns the purpose of a run that was requested for this objective. The loads of a ladder only
    /// increase, so their purpose is always the same.
    fn goal(&self, member: &Member, of: Option<Objective>) -> StepGoal {
        let before = self.seen.iter().find(|(other, _)| Some(*other) == of).map(|(_, probes)| probes);
        let purpose = match before {
            Some(_) if of == Some(Objective::CostPerMillion) => Purpose::Bracketing,
            Some(before) => Purpose::of(before, member.load, member.confirms),
            None => Purpose::Up,
        };
        StepGoal { load: member.load, purpose, of }
    }

    /// Adds what the runs of one load show about each objective.
    fn saw(&mut self, chooser: &Chooser, runs: &[&PlannedRun], member: &Member) {
        for (of, probes) in &mut self.seen {
            let said = chooser.said(runs, *of);
            probes.push(said.probe(&said, (member.load, member.confirms), true));
        }
    }
}

/// Returns the groups of finished members that were decided on together, in the order in which they were
/// requested. For a search, each member is a group; for a ladder, all members of a load are.
fn together(pool: &Pool, chosen: &Chosen, is_search: bool) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = Vec::new();
    for at in &chosen.finished {
        match all.last_mut() {
            Some(last) if !is_search && pool.members[last[0]].load == pool.members[*at].load => last.push(*at),
            _ => all.push(vec![*at]),
        }
    }
    all
}

/// Returns the loads that a ladder skips.
fn pruned(pool: &Pool, chosen: &Chosen) -> Vec<f64> {
    match chosen.end {
        Some(Ended::Cut { load, .. }) => pool.loads().into_iter().filter(|other| *other > load).collect(),
        _ => Vec::new(),
    }
}
