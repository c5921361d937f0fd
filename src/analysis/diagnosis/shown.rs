//! Determines whether the figures show a symptom, or only suggest one that may be due to chance.

use crate::analysis::Estimate;
use crate::analysis::curve::Figure;

use super::evidence::{Evidence, Finding};

/// The result of checking one place.
pub(super) enum Looked {
    /// The symptom is present.
    Seen(Evidence),
    /// The figures suggest the symptom, but only within their intervals or not in all repeats. Contains a
    /// sentence with the figures and the reason.
    NotShown(String),
    /// The symptom is absent.
    Absent,
}

impl Looked {
    /// Returns the stronger of two results for the same place; the first of two equally strong ones.
    pub(super) fn or(self, other: Looked) -> Looked {
        match (&self, &other) {
            (Looked::Absent, _) | (Looked::NotShown(_), Looked::Seen(_)) => other,
            _ => self,
        }
    }
}

/// Prefix of a finding that is only suggested by figures within their intervals.
pub const NOT_SHOWN: &str = "not shown";

/// Reason why a finding based only on the client's figures may be wrong.
pub(super) const BY_CHANCE: &str = "it may be chance: the 95 % intervals overlap or are unknown";

/// Whether a figure has grown from one load to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Growth {
    /// The figure has grown beyond the intervals of both values.
    Shown,
    /// The figure has grown by the factor, but the intervals overlap or are missing.
    NotShown,
    /// The figure has grown by less than the factor.
    No,
}

/// A value with its 95 % interval, if it has one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ranged {
    /// The value.
    pub(super) value: f64,
    /// Lower and upper end of the interval; `None` if there is no interval.
    pub(super) ends: Option<[f64; 2]>,
}

/// Minimum growth factor of a rate that is based on single runs, whose variation between runs is
/// unknown.
const WITHOUT_INTERVAL: f64 = 1.5;

impl Ranged {
    /// Converts a figure of a rung.
    pub(super) fn of(figure: &Figure) -> Ranged {
        Ranged { value: figure.value, ends: figure.ends.map(|ends| [ends.low, ends.high]) }
    }

    /// Converts a percentile of one run; `None` if it is unknown or lies among failures.
    pub(super) fn of_estimate(estimate: &Estimate) -> Option<Ranged> {
        let ends = estimate.interval().and_then(|interval| Some([interval.low_number()?, interval.high_number()?]));
        Some(Ranged { value: estimate.exact()?, ends })
    }

    /// Returns whether even the lower end of the interval is above a limit; false without an interval.
    pub(super) fn is_above(self, limit: f64) -> bool {
        self.ends.is_some_and(|[low, _]| low > limit)
    }

    /// Returns whether even the upper end of the interval is below a limit; false without an interval.
    pub(super) fn is_below(self, limit: f64) -> bool {
        self.ends.is_some_and(|[_, high]| high < limit)
    }
}

/// Returns whether a latency has grown by a factor. A latency without an interval has too few requests
/// for a decision.
pub(super) fn latency_growth(before: Ranged, after: Ranged, factor: f64) -> Growth {
    match (before.ends, after.ends) {
        _ if after.value < factor * before.value => Growth::No,
        (Some([_, high]), Some([low, _])) if low > high => Growth::Shown,
        _ => Growth::NotShown,
    }
}

/// Returns whether a rate has grown by a factor. The rate of a single run has no interval, so it must
/// have grown considerably.
pub(super) fn rate_growth(before: Ranged, after: Ranged, factor: f64) -> Growth {
    match (before.ends, after.ends) {
        (Some(_), Some(_)) => latency_growth(before, after, factor),
        _ if after.value < factor * before.value => Growth::No,
        _ if after.value >= WITHOUT_INTERVAL * before.value => Growth::Shown,
        _ => Growth::NotShown,
    }
}

/// Combines the growth of two figures, for a symptom that requires both figures to have grown.
pub(super) fn both(first: Growth, second: Growth) -> Growth {
    match (first, second) {
        (Growth::No, _) | (_, Growth::No) => Growth::No,
        (Growth::Shown, Growth::Shown) => Growth::Shown,
        _ => Growth::NotShown,
    }
}

/// Combines the results of several places and lists every place where the symptom is present. If the symptom is
/// shown nowhere but may be present, the finding reports that.
pub(super) fn found(
    looked: impl Iterator<Item = Option<Looked>>,
    missing: &str,
    absent: impl FnOnce() -> String,
) -> Finding {
    let (mut seen, mut not_shown, mut places) = (Vec::new(), Vec::new(), 0);
    for one in looked.flatten() {
        places += 1;
        match one {
            Looked::Seen(evidence) => seen.push(evidence),
            Looked::NotShown(text) => not_shown.push(text),
            Looked::Absent => {}
        }
    }
    match (places, not_shown.split_first()) {
        (0, _) => Finding::NotChecked(missing.to_owned()),
        _ if !seen.is_empty() => Finding::Seen(seen),
        (_, None) => Finding::NotSeen(absent()),
        (_, Some((first, more))) => {
            let more = if more.is_empty() { String::new() } else { format!("; and {} more", more.len()) };
            Finding::NotSeen(format!("{NOT_SHOWN}: {first}{more}"))
        }
    }
}
