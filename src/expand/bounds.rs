//! Compares the findings of earlier sweeps with the bounds of `skip_if` and of gates.

use crate::plan::Bound;
use crate::units::Decimal;

use super::known::{Finding, Says};

/// Describes why a finding provides no load, or too little information for a decision.
pub(super) fn without_load(finding: &Finding) -> String {
    let (title, metric) = (finding.title(), finding.metric);
    match &finding.says {
        Says::Below(load) => {
            format!("{title}: {}, the lightest load, misses the objective", metric.words(load.to_f64()))
        }
        Says::Nothing(why) | Says::Open(why) => format!("{title}: {why}"),
        Says::Load { load, surely, .. } => {
            let words = |load: Decimal| metric.words(load.to_f64());
            let found = format!("{title}: {}", words(*load));
            match surely {
                Some(surely) if surely == load => found,
                Some(surely) => format!("{found} as observed, but only {} is shown: extend `confirm`", words(*surely)),
                None => format!("{found} as observed, but no load is shown: extend `confirm`"),
            }
        }
        Says::Measured { runs: 1, ends: None, .. } => {
            format!(
                "{title}: {} of a single run has no interval: set `repeats` of `{}`",
                measured(finding),
                finding.sweep
            )
        }
        Says::Measured { .. } => format!("{title}: {}", measured(finding)),
    }
}

/// Formats a measured value as `ttft_p99 is 512 ms (498 ms to 530 ms)`; returns an empty string for other
/// findings.
pub(super) fn measured(finding: &Finding) -> String {
    let Says::Measured { value, ends, .. } = &finding.says else { return String::new() };
    let metric = finding.metric;
    let interval = match ends {
        Some([low, high]) if high.is_infinite() => return format!("{metric} is above {}", metric.words(*low)),
        Some(ends) => format!(" ({})", ends.map(|end| metric.words(end)).join(" to ")),
        None => String::new(),
    };
    format!("{metric} is {}{interval}", metric.words(*value))
}

/// Whether a finding lies below a bound; `None` if unknown.
fn is_below(says: &Says, bound: Bound) -> Option<bool> {
    match (says, bound) {
        (Says::Load { surely: Some(surely), .. }, Bound::Number(bound)) if *surely >= bound => Some(false),
        // If `load` is the heaviest load that was run, the highest load that meets the objective may be above
        // it, so `load` decides nothing for a higher bound.
        (Says::Load { load, is_least, .. }, Bound::Number(bound)) => (*load < bound && !is_least).then_some(true),
        (Says::Below(lightest), Bound::Number(bound)) => (*lightest <= bound).then_some(true),
        (Says::Measured { ends: Some([low, high]), .. }, bound) => {
            beyond(*high < bound.to_f64(), *low >= bound.to_f64())
        }
        _ => None,
    }
}

/// Whether a finding lies above a bound; `None` if unknown.
fn is_above(says: &Says, bound: Bound) -> Option<bool> {
    match (says, bound) {
        (Says::Load { load, is_least: true, .. }, Bound::Number(bound)) => (*load > bound).then_some(true),
        (Says::Load { load, .. }, Bound::Number(bound)) => Some(*load > bound),
        (Says::Below(lightest), Bound::Number(bound)) => (*lightest <= bound).then_some(false),
        (Says::Measured { ends: Some([low, high]), .. }, bound) => {
            beyond(*low > bound.to_f64(), *high <= bound.to_f64())
        }
        _ => None,
    }
}

/// Compares an interval with a bound: true if all of the interval lies beyond the bound, false if none of it
/// does, `None` if the bound lies within the interval.
fn beyond(all: bool, none: bool) -> Option<bool> {
    if all { Some(true) } else { none.then_some(false) }
}

/// Describes how a finding violates the given bounds: `Some(None)` if it violates neither, `None` if this is
/// unknown.
pub(super) fn broken(finding: &Finding, low: Option<Bound>, high: Option<Bound>) -> Option<Option<String>> {
    let tests = [
        low.map(|bound| (is_below(&finding.says, bound), "below", bound)),
        high.map(|bound| (is_above(&finding.says, bound), "above", bound)),
    ];
    let tests: Vec<_> = tests.into_iter().flatten().collect();
    let words = |word: &str, bound: Bound| {
        let metric = finding.metric;
        match &finding.says {
            Says::Load { load, .. } => {
                format!("{}: {metric} is {}, {word} {bound}", finding.title(), metric.words(load.to_f64()))
            }
            Says::Measured { .. } => format!("{}: {}, {word} {bound}", finding.title(), measured(finding)),
            _ => format!("{}, so {metric} is {word} {bound}", without_load(finding)),
        }
    };
    if let Some((_, word, bound)) = tests.iter().find(|(is, ..)| *is == Some(true)) {
        return Some(Some(words(word, *bound)));
    }
    tests.iter().all(|(is, ..)| *is == Some(false)).then_some(None)
}
