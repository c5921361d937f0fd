//! How the searches and ladders of a plan came to stand where they do, gathered from the results folder.

use super::chosen_runs::Chooser;
use crate::analysis::search::{Probe, Purpose};
use crate::expand::{Chooses, PlannedRun, Pool};
use crate::plan::model::search::Objective;
use crate::report::{Trail, TrailNext, TrailStep};
use crate::sweep::choose::{Chosen, Ended, Judge, Said};

/// The trail of a pool that stands so.
pub(super) fn trail(chooser: &Chooser, pool: &Pool, chosen: &Chosen) -> Trail {
    let of = match &pool.chooses {
        Chooses::Optimize(_) => return of_settings(pool, chosen),
        // What further objectives say of the same runs stands in the answer.
        Chooses::Search(search) => search.meets.first().copied().unwrap_or(Objective::Slo),
        Chooses::Ladder { .. } => Objective::Slo,
    };
    let is_search = matches!(pool.chooses, Chooses::Search(_));
    let mut probes: Vec<Probe> = Vec::new();
    let mut steps = Vec::new();
    for members in together(pool, chosen, is_search) {
        let first = &pool.members[members[0]];
        let runs: Vec<&PlannedRun> = members.iter().map(|at| &pool.members[*at].run).collect();
        let purpose = purpose(is_search, &probes, first.load, first.confirms);
        let ids = runs.iter().map(|run| run.id.to_string()).collect();
        let Said { answer, pressure, requests, .. } = chooser.said(&runs, of);
        probes.push(Probe { load: first.load, confirms: first.confirms, own: true, answer, pressure, requests });
        steps.push(chooser.with_rung(&runs, |rung| TrailStep::of(rung, first.load, ids, purpose)));
    }
    let next = chosen.next.map(|at| {
        let member = &pool.members[at];
        let purpose = purpose(is_search, &probes, member.load, member.confirms);
        TrailNext { run: member.run.id.to_string(), load: member.load, purpose: purpose.name(), words: purpose.words() }
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
    Trail {
        sweep: pool.sweep.to_string(),
        cell: pool.name(),
        chooses: if is_search { "search" } else { "ladder" },
        axis: pool.chooses.axis(),
        state: state(chosen),
        standing: chosen.to_string(),
        found,
        end,
        steps,
        next,
        pruned: pruned(pool, chosen),
        cut,
    }
}

/// Whether its end is known, or any of its runs.
fn state(chosen: &Chosen) -> &'static str {
    match (chosen.next, chosen.finished.is_empty()) {
        (None, _) => "done",
        (Some(_), true) => "pending",
        (Some(_), false) => "searching",
    }
}

/// That of looking for the best settings: how it stands says what is left; the runs themselves have no loads to be listed by.
fn of_settings(pool: &Pool, chosen: &Chosen) -> Trail {
    Trail {
        sweep: pool.sweep.to_string(),
        cell: pool.name(),
        chooses: "optimize",
        axis: pool.chooses.axis(),
        state: state(chosen),
        standing: chosen.to_string(),
        found: None,
        end: None,
        steps: Vec::new(),
        next: None,
        pruned: Vec::new(),
        cut: None,
    }
}

/// The finished members that were decided on together, in the order in which they were asked for: of a search each by itself, of a ladder
/// those of a load.
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

/// What a run is for: a ladder only rises.
fn purpose(is_search: bool, before: &[Probe], load: f64, confirms: bool) -> Purpose {
    if is_search { Purpose::of(before, load, confirms) } else { Purpose::Up }
}

/// The loads of a ladder that are left out.
fn pruned(pool: &Pool, chosen: &Chosen) -> Vec<f64> {
    match chosen.end {
        Some(Ended::Cut { load, .. }) => pool.loads().into_iter().filter(|other| *other > load).collect(),
        _ => Vec::new(),
    }
}
