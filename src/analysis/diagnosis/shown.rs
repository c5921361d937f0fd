//! Whether figures show what a symptom says of them, or may differ by chance.

use crate::analysis::Estimate;
use crate::analysis::curve::Figure;

use super::evidence::{Evidence, Finding};

/// What looking in one place came to.
pub(super) enum Looked {
    /// It is there.
    Seen(Evidence),
    /// The figures say so, but within their intervals, or not in all repeats: a sentence with the figures that says which.
    NotShown(String),
    /// It is not there.
    Absent,
}

/// How a finding begins of what figures say only within their intervals.
pub const NOT_SHOWN: &str = "not shown";

/// Why a finding may be none where a client's figures alone say so.
pub(super) const BY_CHANCE: &str = "it may be chance: the 95 % intervals do not tell";

/// Whether a figure has grown from one load to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Growth {
    /// Beyond what the intervals of both allow for.
    Shown,
    /// By the factor, but the intervals overlap, or there is none to tell by.
    NotShown,
    /// By less than the factor.
    No,
}

/// A value with its 95 % interval, where it has one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ranged {
    /// The value.
    pub(super) value: f64,
    /// Low and high end.
    pub(super) ends: Option<[f64; 2]>,
}

/// From this factor on a rate of single runs has grown: nothing says how far such a rate may lie from that of another run.
const WITHOUT_INTERVAL: f64 = 1.5;

impl Ranged {
    /// Of a figure of a rung.
    pub(super) fn of(figure: &Figure) -> Ranged {
        Ranged { value: figure.value, ends: figure.ends.map(|ends| [ends.low, ends.high]) }
    }

    /// Of a percentile of one run; none where it is not known or lies among failures.
    pub(super) fn of_estimate(estimate: &Estimate) -> Option<Ranged> {
        let ends = estimate.interval().and_then(|interval| Some([interval.low_number()?, interval.high_number()?]));
        Some(Ranged { value: estimate.exact()?, ends })
    }

    /// Whether even its low end lies above a limit.
    pub(super) fn is_above(self, limit: f64) -> bool {
        self.ends.is_some_and(|[low, _]| low > limit)
    }

    /// Whether even its high end lies below a limit.
    pub(super) fn is_below(self, limit: f64) -> bool {
        self.ends.is_some_and(|[_, high]| high < limit)
    }
}

/// Whether a latency has grown by a factor. One without an interval is of too few requests to tell.
pub(super) fn latency_growth(before: Ranged, after: Ranged, factor: f64) -> Growth {
    match (before.ends, after.ends) {
        _ if after.value < factor * before.value => Growth::No,
        (Some([_, high]), Some([low, _])) if low > high => Growth::Shown,
        _ => Growth::NotShown,
    }
}

/// Whether a rate has grown by a factor. A single run has no interval of its rate, so there it must have grown much.
pub(super) fn rate_growth(before: Ranged, after: Ranged, factor: f64) -> Growth {
    match (before.ends, after.ends) {
        (Some(_), Some(_)) => latency_growth(before, after, factor),
        _ if after.value < factor * before.value => Growth::No,
        _ if after.value >= WITHOUT_INTERVAL * before.value => Growth::Shown,
        _ => Growth::NotShown,
    }
}

/// What two growths come to that a symptom takes together.
pub(super) fn both(first: Growth, second: Growth) -> Growth {
    match (first, second) {
        (Growth::No, _) | (_, Growth::No) => Growth::No,
        (Growth::Shown, Growth::Shown) => Growth::Shown,
        _ => Growth::NotShown,
    }
}

/// What comes of looking at several places: of each that can be looked at what is seen there, if it is. Where it is shown nowhere, but
/// may be there, that is said.
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
