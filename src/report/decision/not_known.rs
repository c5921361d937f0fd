//! Renders what remains unknown: excluded runs, undecided results, results from few runs, and missing
//! results.

use super::evidence::Evidence;
use super::markdown::{code, inert, list, prose, sentence};
use super::standing::{Outcome, Standing};
use crate::analysis::curve::Rung;
use crate::analysis::verdict::State;
use crate::report::capacity::{cheapest, doubts, failed};
use crate::report::curves::left_out;
use crate::report::format::counts;
use crate::units::text::counted;

/// Maximum number of listed sentences of one kind.
const MOST: usize = 12;

pub(super) fn text(evidence: &Evidence, accepted: usize, standings: &[Standing]) -> String {
    let mut items = Vec::new();
    items.extend(of_runs(evidence));
    items.extend(first(left_out(evidence.curves).iter().map(|line| format!("Invalid, excluded: {line}"))));
    items.extend(suspects(evidence));
    items.extend(first(failed(evidence.configurations).iter().map(|line| format!("Errors: {line}"))));
    let undecided = |at: &usize| standings[*at].outcome == Outcome::Undecided;
    for at in (0..evidence.curves.len()).filter(undecided) {
        let words = sentence(&inert(&standings[at].words));
        items.push(format!("Undecided: {}: {words}", code(&evidence.name(at))));
    }
    items.extend(few_repeats(evidence));
    items.extend(limit(evidence, accepted));
    let name = |at: usize| evidence.name(at);
    for best in cheapest(evidence.configurations, None) {
        let doubts = doubts(evidence.configurations, &best, None, &name);
        items.extend(
            doubts.iter().map(|doubt| sentence(&inert(&format!("It is not certain which is cheapest: {doubt}")))),
        );
    }
    items.extend(evidence.mixed.iter().map(|note| sentence(&prose(note))));
    items.extend(first(evidence.lints.iter().map(|lint| format!("Methodology lint: {lint}"))));
    let mut out = "## Not known\n\n".to_owned();
    match items.is_empty() {
        true => out.push_str(
            "Every run of the plan is valid and counted, and the methodology lint has no findings about the plan.\n",
        ),
        false => out.push_str(&list(&items)),
    }
    out
}

/// Returns the first [`MOST`] sentences, followed by a sentence with the number of the remaining sentences,
/// if there are any.
fn first(all: impl ExactSizeIterator<Item = String>) -> Vec<String> {
    let more = all.len().saturating_sub(MOST);
    let shown = all.take(MOST).map(|text| sentence(&prose(&text)));
    shown.chain((more > 0).then(|| format!("And {more} more of this kind."))).collect()
}

fn of_runs(evidence: &Evidence) -> Vec<String> {
    let all = evidence.runs.len() + evidence.without.len();
    let of = |(state, count): (&str, usize)| format!("{count} of {} of the plan: {state}.", counted(all, "run"));
    counts(evidence.without.iter().copied()).into_iter().map(of).collect()
}

fn suspects(evidence: &Evidence) -> Vec<String> {
    let are_suspect = || evidence.runs.iter().filter(|run| run.verdict.state == State::Suspect);
    let suspect = are_suspect().count();
    if suspect == 0 {
        return Vec::new();
    }
    let reasons = are_suspect().flat_map(|run| &run.verdict.reasons);
    let reasons = counts(reasons.filter(|one| one.state == State::Suspect).map(|one| one.name));
    let reasons: Vec<String> = reasons.into_iter().map(|(name, count)| format!("{} ({count})", code(name))).collect();
    vec![format!("Suspect and counted: {}: {}.", counted(suspect, "run"), reasons.join(", "))]
}

fn few_repeats(evidence: &Evidence) -> Option<String> {
    let rungs = || evidence.curves.iter().flat_map(|curve| &curve.rungs).filter(|rung| !rung.runs.is_empty());
    let single = rungs().filter(|rung: &&Rung| rung.runs.len() == 1).count();
    let all = rungs().count();
    match single {
        0 => None,
        _ if single == all => Some("Each load rests on one run: the variation between runs is unknown.".to_owned()),
        _ => Some(format!("{single} of {all} loads rest on one run: the variation between runs is unknown there.")),
    }
}

/// Returns a sentence if no load of the accepted configuration is shown to miss the objective, so that the
/// limit of the configuration is unknown.
fn limit(evidence: &Evidence, accepted: usize) -> Option<String> {
    let curve = &evidence.curves[accepted];
    let found = curve.bracket()?;
    let axis = curve.axis.name().replace('_', " ");
    if let Some(search) = curve.search {
        let open = search.observed.is_some() && search.shown != search.observed;
        let figures = search.words(|load| format!("{axis} {load}"));
        return open.then(|| format!("The limit of the accepted configuration is not shown: {figures}."));
    }
    let holds = found.holds.filter(|_| found.misses.is_none())?;
    let untold: Vec<String> = found.untold_above().iter().map(f64::to_string).collect();
    let limit = "the limit of the accepted configuration";
    Some(match untold.is_empty() {
        true => format!("No load misses the objective: {limit} lies above {axis} {holds}."),
        false => format!(
            "No load is shown to miss the objective: {limit} may lie anywhere above {axis} {holds}; {axis} {} \
            was inconclusive.",
            untold.join(", ")
        ),
    })
}
