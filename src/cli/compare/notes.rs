//! Notes that help to interpret a comparison: what else differs between the arms, and which runs
//! were excluded.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::comparison::LeftOut;
use crate::report::format::counts;

use super::arms::Arms;
use super::samples::{Absent, Sample};

/// Circumstances that are expected to differ when endpoints are compared.
const OF_ENDPOINTS: [&str; 8] = [
    "engine",
    "server address",
    "server version",
    "served models",
    "server engine",
    "server release",
    "served model",
    "server flags",
];

/// Removes from the arms the runs that cannot be compared, and returns these runs with the reasons.
pub(crate) fn leave_out(arms: &mut Arms, with_invalid: bool) -> Vec<LeftOut> {
    let mut left = Vec::new();
    for (side, name) in arms.names.iter().enumerate() {
        let mut out = |repeat: u32, reason: String| left.push(LeftOut { arm: name.clone(), repeat, reason });
        arms.runs[side].retain(|repeat, sample| match sample {
            Err(absent) => {
                out(*repeat, absent.reason.clone());
                false
            }
            Ok(Sample { invalid: Some(why), .. }) if !with_invalid => {
                out(*repeat, why.clone());
                false
            }
            Ok(_) => true,
        });
    }
    left
}

/// Returns a note on each arm that was given up in some repeats because the server does not sustain the load.
/// Remaining repeats favor the arm.
pub(crate) fn of_given_up(arms: &Arms) -> Vec<String> {
    let note = |side: usize| {
        let (name, runs) = (&arms.names[side], &arms.runs[side]);
        let count = runs.values().filter(|run| run.as_ref().is_err_and(|absent| absent.missed)).count();
        let of = runs.len();
        let bias = if count < of { ": the remaining repeats favor it" } else { "" };
        let text =
            format!("`{name}` does not sustain this load in {count} of {of} repeats, where it was given up{bias}");
        (count > 0).then_some(text)
    };
    [0, 1].into_iter().filter_map(note).collect()
}

/// Returns notes on what else differs between the two arms, and what changed within one arm.
pub(crate) fn of_cell(arms: &Arms, by: Option<&str>) -> Vec<String> {
    let [a, b] = &arms.names;
    let mut notes = Vec::new();
    if !arms.bound.is_empty() {
        notes.push(format!("`{a}` and `{b}` also differ in {}, which the axis also sets", arms.bound.join(", ")));
    }
    let samples = |side: usize| arms.runs[side].values().flatten();
    for (side, arm) in arms.names.iter().enumerate() {
        let suspect: Vec<&str> = samples(side).filter_map(|sample| sample.suspect.as_deref()).collect();
        notes.extend(of_suspect(arm, &suspect, samples(side).count()));
    }
    let names: BTreeSet<&str> =
        samples(0).chain(samples(1)).flat_map(|sample| sample.circumstances.keys()).map(String::as_str).collect();
    let expected = |name: &str| match by {
        Some("endpoint") => OF_ENDPOINTS.contains(&name) || name == "model id",
        Some("model") => ["model id", "precision", "served models", "served model", "context length"].contains(&name),
        _ => false,
    };
    for name in names {
        let [of_a, of_b] = [0, 1].map(|side| values(samples(side), name));
        if of_a.is_empty() || of_b.is_empty() {
            continue;
        }
        for (arm, of) in [(a, &of_a), (b, &of_b)] {
            if of.len() > 1 {
                notes.push(format!("{name} changed between runs of `{arm}`: {}", counted(of)));
            }
        }
        let apart = of_a.keys().next() != of_b.keys().next() && of_a.len() == 1 && of_b.len() == 1;
        if apart && !expected(name) {
            let of = |of: &BTreeMap<&str, usize>| of.keys().next().copied().unwrap_or_default().to_owned();
            notes.push(format!("{name}: `{a}` {}, `{b}` {}", of(&of_a), of(&of_b)));
        }
    }
    let other = |(repeat, sample): (&u32, &Result<Sample, Absent>)| {
        let counterpart = arms.runs[1].get(repeat)?.as_ref().ok()?;
        (sample.as_ref().ok()?.sent != counterpart.sent).then(|| repeat.to_string())
    };
    let other: Vec<String> = arms.runs[0].iter().filter_map(other).collect();
    if !other.is_empty() {
        notes.push(format!("the arms were sent different requests in repeat {}", other.join(", ")));
    }
    notes
}

/// Returns the values of a circumstance, each with its number of runs.
fn values<'s>(samples: impl Iterator<Item = &'s Sample>, name: &str) -> BTreeMap<&'s str, usize> {
    let mut values = BTreeMap::new();
    for sample in samples {
        *values.entry(sample.circumstances.get(name).map_or("not known", String::as_str)).or_insert(0) += 1;
    }
    values
}

fn counted(values: &BTreeMap<&str, usize>) -> String {
    let one = |(value, count): (&&str, &usize)| format!("{value} ({count})");
    values.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Removes from all cells the notes that they have in common, and returns these notes.
pub(crate) fn common(notes: &mut [&mut Vec<String>]) -> Vec<String> {
    let Some(first) = notes.first().map(|first| (**first).clone()) else { return Vec::new() };
    let shared: Vec<String> =
        first.into_iter().filter(|note| notes.iter().all(|of_cell| of_cell.contains(note))).collect();
    notes.iter_mut().for_each(|of_cell| of_cell.retain(|note| !shared.contains(note)));
    shared
}

/// Returns the note on the suspect runs of an arm. A reason that applies to only some of these runs is
/// followed by their number. `verdicts` contains the verdict of each suspect run, as text; `of` is the number
/// of all runs of the arm.
fn of_suspect(arm: &str, verdicts: &[&str], of: usize) -> Option<String> {
    let all = verdicts.len();
    let names = verdicts.iter().flat_map(|verdict| verdict.trim_start_matches("suspect: ").split(", "));
    // Labels follow the reasons and do not make a run suspect.
    let reasons = counts(names.filter(|name| !["saturated", "not_shown"].contains(name)));
    let name = |(name, count): (&str, usize)| if count < all { format!("{name} ({count})") } else { name.to_owned() };
    let reasons = reasons.into_iter().map(name).collect::<Vec<_>>().join(", ");
    let are = if all == 1 { "is" } else { "are" };
    (all > 0).then(|| format!("{all} of {of} runs of `{arm}` {are} suspect: {reasons}"))
}
