//! The caveats about the results, one sentence each, with the most serious ones first.

use std::collections::BTreeSet;

use super::super::sources::Sources;
use crate::analysis::curve::{Curve, Rung};
use crate::analysis::saturation::State as Saturation;
use crate::analysis::slo::Answer;
use crate::analysis::verdict::State;
use crate::analysis::window::Counts;
use crate::report::calibration::beside;
use crate::report::format::{counts, digits, plain};
use crate::sweep::calibrate::Known;
use crate::units::text::counted;

/// Windows shorter than this, in seconds, get a caveat, because they cannot show variation over a minute or
/// more. Lint M006 uses the same bound.
const SHORT_WINDOW_S: f64 = 60.0;

/// Returns all caveats about the results, the most serious ones first.
pub(super) fn caveats(sources: &Sources) -> Vec<String> {
    let mut caveats: Vec<String> = sources.notes.iter().map(|note| plain(note)).collect();
    caveats.extend(failed(sources));
    caveats.extend(
        [(State::Invalid, "invalid"), (State::Suspect, "suspect")].map(|of| reasons(sources, of)).into_iter().flatten(),
    );
    caveats.extend(one_run_each(sources));
    caveats.extend(short_window(sources));
    caveats.extend(not_decided(sources));
    caveats.extend(not_calibrated(sources));
    caveats.extend(lints(sources));
    caveats
}

/// Returns a sentence on the failed requests of all runs, if there are any.
fn failed(sources: &Sources) -> Option<String> {
    let sum = |of: fn(&Counts) -> u64| sources.runs.iter().map(|run| of(&run.metrics.counts)).sum::<u64>();
    let (failed, requests) = (sum(|counts| counts.failed), sum(|counts| counts.requests));
    let runs = sources.runs.iter().filter(|run| run.metrics.counts.failed > 0).count();
    (failed > 0).then(|| {
        let share = digits(failed as f64 / requests as f64 * 100.0);
        let count = if failed == 1 { "it counts" } else { "they count" };
        let runs = counted(runs, "run");
        format!("{failed} of {requests} requests failed ({share} %), in {runs}: {count} as slower than every limit. See Runs.")
    })
}

/// Lists the reasons why runs are in a state, each with the number of runs to which the reason applies;
/// `None` if there are no reasons.
fn reasons(sources: &Sources, (state, name): (State, &str)) -> Option<String> {
    let runs = sources.runs.iter().filter(|run| run.verdict.state == state);
    let reasons = runs.flat_map(|run| &run.verdict.reasons).filter(|reason| reason.state == state);
    let reasons: Vec<String> = counts(reasons.map(|reason| reason.name))
        .into_iter()
        .map(|(name, count)| format!("{name} ({count})"))
        .collect();
    (!reasons.is_empty()).then(|| format!("Reasons why runs are {name}: {}. See Verdicts.", reasons.join(", ")))
}

/// Returns the loads with at least one run that does not measure a server start.
fn rungs<'s>(sources: &'s Sources) -> impl Iterator<Item = &'s Rung<'s>> {
    let is_load = |rung: &&Rung| rung.runs.iter().any(|run| run.metrics.start.is_none());
    sources.curves.iter().flat_map(|curve| &curve.rungs).filter(is_load)
}

fn one_run_each(sources: &Sources) -> Option<String> {
    let is_single = rungs(sources).next().is_some() && rungs(sources).all(|rung| rung.runs.len() < 2);
    is_single.then(|| {
        "Each load rests on one run: intervals are within the run, and `repeats` would show the variation between runs."
            .to_owned()
    })
}

fn short_window(sources: &Sources) -> Option<String> {
    let seconds =
        sources.runs.iter().filter(|run| run.metrics.start.is_none()).filter_map(|run| run.metrics.flow.seconds);
    let shortest = seconds.reduce(f64::min).filter(|seconds| *seconds < SHORT_WINDOW_S)?;
    Some(format!(
        "Windows are short: the shortest run was measured for {} s, and variation over a minute or more is not \
         visible.",
        digits(shortest)
    ))
}

/// Counts the loads whose runs do not decide whether the objective is met, or whether the server keeps up;
/// `None` if there are no such loads.
fn not_decided(sources: &Sources) -> Option<String> {
    let all = rungs(sources).count();
    let undecided = rungs(sources).filter(|rung| rung.answer() == Some(Answer::Undecided)).count();
    let not_shown = rungs(sources).filter(|rung| rung.state() == Some(Saturation::NotShown)).count();
    let beyond = |curve: &Curve| {
        let misses = curve.bracket().and_then(|found| found.misses);
        let above = curve.rungs.iter().filter(|rung| misses.is_some_and(|misses| rung.load > misses));
        above.filter(|rung| rung.answer() == Some(Answer::Undecided)).count()
    };
    let beyond = match sources.curves.iter().map(beyond).sum::<usize>() {
        0 => String::new(),
        beyond => format!(", {beyond} of them above one that misses"),
    };
    let parts = [
        (undecided > 0).then(|| {
            format!("whether the objective holds is undecided at {undecided} of {}{beyond}", counted(all, "load"))
        }),
        (not_shown > 0)
            .then(|| format!("whether the server keeps up is not shown at {not_shown} of {}", counted(all, "load"))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let text = parts.join("; ");
    let mut letters = text.chars();
    letters.next().map(|first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

fn not_calibrated(sources: &Sources) -> Option<String> {
    let is_not = |known: &Known| !matches!(known, Known::Here(..));
    let hosts: Vec<String> =
        sources.calibrated.iter().filter(|one| is_not(&one.known)).map(|one| plain(&one.host)).collect();
    if !hosts.is_empty() {
        return Some(format!(
            "The load generator is not calibrated on {}: its share of a latency is unknown. See The generator.",
            hosts.join(", ")
        ));
    }
    let is_beyond = sources.calibrated.iter().any(|one| beside(&one.known, &one.runs).1);
    is_beyond.then(|| "Some runs are beyond the calibrated range of the load generator. See The generator.".to_owned())
}

fn lints(sources: &Sources) -> Vec<String> {
    let of_sweeps = sources.plan.sweeps.values().flat_map(|sweep| &sweep.allow);
    let allowed: BTreeSet<&str> = sources.plan.allow.iter().chain(of_sweeps).map(|allow| allow.code.name()).collect();
    let allowed: Vec<&str> = allowed.into_iter().collect();
    let found = sources.lints.len();
    [
        (found > 0)
            .then(|| format!("The methodology lint has {} about the plan. See Disclosure.", counted(found, "finding"))),
        (!allowed.is_empty())
            .then(|| format!("The plan waives lint findings: {}. See Disclosure.", allowed.join(", "))),
    ]
    .into_iter()
    .flatten()
    .collect()
}
