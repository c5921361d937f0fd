//! Formats the uncertainty of a figure: its 95 % interval or, for two repeats, both values. Student's
//! interval of two values is so wide that it looks like an error, whereas the two values show everything that
//! is known.

use crate::analysis::curve::Figure;

use super::format::{counts, digits};

/// Formats the uncertainty for a table cell: `293–960`, or `293 and 960` for two repeats; `None` if there is
/// no interval.
pub(crate) fn in_cell(figure: &Figure) -> Option<String> {
    match (figure.pair, figure.ends) {
        (Some([low, high]), _) => Some(format!("{} and {}", digits(low), digits(high))),
        (None, ends) => ends.map(|ends| format!("{}–{}", digits(ends.low), digits(ends.high))),
    }
}

/// Formats the uncertainty for a sentence: `95 % 293 to 960`, or `2 repeats: 293 and 960`; `None` if there is
/// no interval.
pub(crate) fn in_sentence(figure: &Figure) -> Option<String> {
    match (figure.pair, figure.ends) {
        (Some([low, high]), _) => Some(format!("2 repeats: {} and {}", digits(low), digits(high))),
        (None, ends) => ends.map(|ends| format!("95 % {} to {}", digits(ends.low), digits(ends.high))),
    }
}

/// Describes the meaning of the bars in a chart, in one sentence for each kind of bar.
pub(crate) fn bars(figures: &[Figure]) -> Vec<String> {
    let of_one = figures.iter().filter(|figure| figure.pair.is_none());
    let kinds: Vec<&str> =
        counts(of_one.filter_map(|figure| figure.ends).map(|ends| ends.kind.name())).into_keys().collect();
    let has_pairs = figures.iter().any(|figure| figure.pair.is_some());
    let mut said = Vec::new();
    if !kinds.is_empty() {
        said.push(format!("Bars are 95 % intervals ({}).", kinds.join("; ")));
    }
    if has_pairs {
        said.push(
            "If a load has two repeats, the bar joins their two values: two are too few for an interval.".to_owned(),
        );
    }
    if said.is_empty() {
        said.push("There is no interval.".to_owned());
    }
    said
}

/// Text for two repeats in a table column that otherwise states what an interval is based on.
pub(crate) const TWO_REPEATS: &str = "the values of 2 repeats";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::replicates::{Ends, IntervalKind};

    #[test]
    fn two_repeats_are_shown_as_what_they_are() {
        let ends = Ends { low: 0.284, high: 991_040.0, kind: IntervalKind::LogTOverRuns };
        let two = Figure { value: 531.0, ends: Some(ends), pair: Some([293.0, 960.0]), few_samples: false };
        assert_eq!(in_cell(&two).as_deref(), Some("293 and 960"));
        assert_eq!(in_sentence(&two).as_deref(), Some("2 repeats: 293 and 960"));
        assert_eq!(two.span(), Some([293.0, 960.0]));
        assert_eq!(bars(&[two]).len(), 1);
        let more = Figure { pair: None, ..two };
        assert_eq!(in_cell(&more).as_deref(), Some("0.284–991040"));
        assert_eq!(bars(&[two, more]).len(), 2);
        assert_eq!(bars(&[Figure { ends: None, ..more }]), ["There is no interval."]);
    }
}
