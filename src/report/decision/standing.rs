//! The standing of a configuration under the objective: whether the objective is met, is missed, is
//! undecided, or was not judged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::analysis::curve::{Bracket, Curve, Rung};
use crate::analysis::slo::Answer as Judgement;
use crate::report::configuration::{Answer, Configuration};
use crate::report::curves::highest;
use crate::report::not_held::why_not_held;

/// The outcome of a configuration under the objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// A load meets the objective.
    Holds,
    /// The configuration misses the objective.
    Misses,
    /// The measurements do not decide whether the objective is met.
    Undecided,
    /// The plan has no objective.
    NotJudged,
}

/// The standing of a configuration.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Standing {
    /// The outcome under the objective.
    pub(crate) outcome: Outcome,
    /// The load for which figures are shown: the load that the decision named, or else the highest load that
    /// meets the objective, or else the lightest measured load (the heaviest, if the plan has no objective).
    /// `None` if no runs count.
    pub(crate) load: Option<f64>,
    /// The reason for the outcome, in one sentence.
    pub(crate) words: String,
}

/// Returns the standing of a curve, as a whole or at one of its loads. `configuration` is `None` if the
/// plan has no objective.
pub(crate) fn standing(curve: &Curve, configuration: Option<&Configuration>, load: Option<f64>) -> Standing {
    let measured = |rung: &&Rung| !rung.runs.is_empty();
    let Some(configuration) = configuration else {
        let heaviest = || curve.rungs.iter().rfind(measured).map(|rung| rung.load);
        let words = "the plan has no objective".to_owned();
        return Standing { outcome: Outcome::NotJudged, load: load.or_else(heaviest), words };
    };
    if let Some(rung) = load.and_then(|load| curve.rung(load)) {
        return at_load(curve, rung);
    }
    let lightest = curve.rungs.iter().find(measured).map(|rung| rung.load);
    let axis = curve.axis.name().replace('_', " ");
    let found = curve.bracket();
    let words = || highest(curve, &axis).unwrap_or_default();
    match (&configuration.answer, &found) {
        (Answer::Holds { instance, .. }, _) => {
            Standing { outcome: Outcome::Holds, load: Some(instance.holds), words: words() }
        }
        (Answer::Closed(found), _) if found.holds.is_some() => {
            Standing { outcome: Outcome::Holds, load: found.holds, words: words() }
        }
        (Answer::Closed(found), _) => {
            Standing { outcome: without_one_that_holds(found), load: lightest, words: words() }
        }
        (Answer::Rejected(why), found) => {
            let outcome = found.as_ref().map_or(Outcome::Undecided, without_one_that_holds);
            Standing { outcome, load: lightest, words: why.clone() }
        }
    }
}

/// Returns the outcome of a curve for which no load is accepted as meeting the objective. If a load met it
/// but was rejected, the outcome is undecided.
fn without_one_that_holds(found: &Bracket) -> Outcome {
    let is_open = found.holds.is_some() || !found.undecided.is_empty() || !found.unknown.is_empty();
    let has_missed = found.misses.is_some() || !found.too_dear.is_empty();
    if has_missed && !is_open { Outcome::Misses } else { Outcome::Undecided }
}

fn at_load(curve: &Curve, rung: &Rung) -> Standing {
    let axis = curve.axis.name().replace('_', " ");
    let load = rung.load;
    let why = || match why_not_held(rung, true).join("; ") {
        why if why.is_empty() => "none of its runs count".to_owned(),
        why => why,
    };
    let below = curve.bracket().and_then(|found| found.misses).filter(|misses| *misses < load);
    let (outcome, words) = match (rung.judged().and_then(|judged| judged.answer()), below) {
        (Some(Judgement::Holds), None) => (Outcome::Holds, format!("{axis} {load} holds")),
        (Some(Judgement::Holds), Some(misses)) => {
            let words = format!(
                "{axis} {load} holds, but the lighter {axis} {misses} misses, so the heavier load is not counted"
            );
            (Outcome::Undecided, words)
        }
        (Some(Judgement::Misses), _) => (Outcome::Misses, format!("{axis} {load}: {}", why())),
        (Some(Judgement::Undecided) | None, _) => (Outcome::Undecided, format!("{axis} {load}: {}", why())),
    };
    Standing { outcome, load: Some(load), words }
}

impl Outcome {
    /// Returns the outcome as it is shown in tables: `holds`, `misses`, `undecided` or `not judged`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Outcome::Holds => "holds",
            Outcome::Misses => "misses",
            Outcome::Undecided => "undecided",
            Outcome::NotJudged => "not judged",
        }
    }

    /// Returns the outcome as a clause in the past tense.
    pub(super) fn then(self) -> &'static str {
        match self {
            Outcome::Holds => "it met the objective",
            Outcome::Misses => "it missed the objective",
            Outcome::Undecided => "it was undecided whether it met the objective",
            Outcome::NotJudged => "the plan had no objective",
        }
    }
}
