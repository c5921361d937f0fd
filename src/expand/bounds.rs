//! Compares the findings of earlier sweeps with the bounds of `skip_if` and of gates.

use crate::plan::Bound;

use super::known::{Finding, Longer, Says};

/// Describes why a finding provides no load, or too little information for a decision.
pub(super) fn without_load(finding: &Finding) -> String {
    let (title, metric) = (finding.title(), finding.metric);
    match &finding.says {
        Says::Below(load) => {
            format!("{title}: {}, the lightest load, misses the objective", metric.words(load.to_f64()))
        }
        Says::Nothing(why) | Says::Open(why) => format!("{title}: {why}"),
        Says::Load { load, .. } => {
            let value = finding.value().unwrap_or_else(|| metric.words(load.to_f64()));
            format!("{title}: {value}")
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

/// Describes what a search found: `limit: vllm · llama · chat: shown 22.9 qps, observed 24 qps; 25.2 qps misses
/// the objective`.
fn of_search(finding: &Finding) -> String {
    let misses = finding.search.as_ref().and_then(|figures| figures.misses);
    match (finding.value(), misses) {
        (Some(value), Some(misses)) => {
            let misses = finding.metric.words(misses.to_f64());
            format!("{}: {value}; {misses} misses the objective", finding.title())
        }
        (Some(value), None) => format!("{}: {value}", finding.title()),
        (None, _) => without_load(finding),
    }
}

/// Describes why a gate on a finding is undecided and, for a search, how much longer its runs must be.
pub(super) fn undecided(finding: &Finding, bounds: (Option<Bound>, Option<Bound>)) -> String {
    match longer(finding, bounds) {
        Some(longer) => format!("{}; {longer}", without_load(finding)),
        None => without_load(finding),
    }
}

/// Describes how much longer the runs of a search must be to decide a gate; `None` if no search found the load.
pub(super) fn longer(finding: &Finding, (low, high): (Option<Bound>, Option<Bound>)) -> Option<String> {
    let figures = finding.search.as_ref()?;
    // A search that ended without any answer says itself what its runs lack.
    if figures.is_short || (figures.observed.is_none() && figures.misses.is_none()) {
        return None;
    }
    let number = |bound: Option<Bound>| match bound {
        Some(Bound::Number(bound)) => Some(bound),
        _ => None,
    };
    let (low, high) = (number(low), number(high));
    let bounds = || [low, high].into_iter().flatten();
    // A load that met the objective decides a bound at or below it, and a load that missed it one at or above it.
    let decides = |needs: &&Longer| match needs.met {
        true => low.is_some_and(|bound| needs.load >= bound) || high.is_some_and(|bound| needs.load > bound),
        false => bounds().any(|bound| needs.load <= bound),
    };
    let least = figures.needs.iter().filter(decides).min_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let Some(Longer { load, seconds, confirm, .. }) = least else {
        let is_met = figures.observed.is_some_and(|observed| low.is_some_and(|bound| observed >= bound));
        let why = match is_met {
            true => "longer runs would not decide this: too many requests are close to the limit",
            false => "longer runs would not decide this: use a gate on a sweep that runs the bound itself",
        };
        return Some(why.to_owned());
    };
    let (load, seconds, confirm) = (finding.metric.words(load.to_f64()), seconds.ceil(), confirm.ceil());
    Some(format!(
        "{seconds} s more at {load} would decide this; `confirm: {confirm}s` includes them, but measures all long runs \
         again"
    ))
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

/// Who asks whether a finding violates a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    /// A gate, which answers only what is shown.
    Gate,
    /// `skip_if`, which decides what is worth measuring and therefore relies on what a search found.
    SkipIf,
}

/// Whether a finding lies below a bound; `None` if unknown. A search answers a gate with loads that are shown to
/// meet or to miss the objective, never with a load that was only observed to do so.
fn is_below(finding: &Finding, bound: Bound, asks: Asks) -> Option<bool> {
    if let (Some(figures), Bound::Number(bound), Asks::Gate) = (&finding.search, bound, asks) {
        let is_below = figures.misses.is_some_and(|misses| misses <= bound);
        return beyond(is_below, figures.shown.is_some_and(|shown| shown >= bound));
    }
    match (&finding.says, bound) {
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

/// Whether a finding lies above a bound; `None` if unknown. For searches, see [`is_below`].
fn is_above(finding: &Finding, bound: Bound, asks: Asks) -> Option<bool> {
    if let (Some(figures), Bound::Number(bound), Asks::Gate) = (&finding.search, bound, asks) {
        let is_below = figures.misses.is_some_and(|misses| misses <= bound);
        return beyond(figures.shown.is_some_and(|shown| shown > bound), is_below);
    }
    match (&finding.says, bound) {
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
pub(super) fn broken(
    finding: &Finding,
    (low, high): (Option<Bound>, Option<Bound>),
    asks: Asks,
) -> Option<Option<String>> {
    let tests = [
        low.map(|bound| (is_below(finding, bound, asks), "below", bound)),
        high.map(|bound| (is_above(finding, bound, asks), "above", bound)),
    ];
    let tests: Vec<_> = tests.into_iter().flatten().collect();
    let words = |word: &str, bound: Bound| {
        let metric = finding.metric;
        match &finding.says {
            _ if finding.search.is_some() => format!("{}, so {metric} is {word} {bound}", of_search(finding)),
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
