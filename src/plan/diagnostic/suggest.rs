//! Suggestions for misspelt names and values.

use crate::units::with_point;

/// Returns the name nearest to `wrong`, if `wrong` is near enough to be a typo.
pub(crate) fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = |text: &str| text.to_lowercase().replace('-', "_");
    let wrong = folded(wrong);
    let allowed = (wrong.chars().count() / 3).max(1);
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&wrong, &folded(name)), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Formats names as `a`, `b` or `c`.
pub(crate) fn choices<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// The remedy for an unknown name: "did you mean `x`?" if there is a close match, otherwise all names.
pub(crate) fn remedy<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(wrong, names.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("write {}", choices(names)),
    }
}

/// Words that people write instead of numbers.
const NUMBERS: [(&str, u32); 16] = [
    ("one", 1),
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("twelve", 12),
    ("sixteen", 16),
    ("twenty", 20),
    ("fifty", 50),
    ("hundred", 100),
    ("thousand", 1000),
];

/// The remedy for a text on an axis of numbers that describes a range, such as `5 to 20`, `1-64` or `1..64`;
/// `None` for any other text.
pub(crate) fn meant_range(text: &str) -> Option<String> {
    let folded = text.trim().to_lowercase();
    let folded = folded.strip_prefix("from ").unwrap_or(&folded);
    let (from, to) = ["...", "..", " to ", "-", "–", ":"].iter().find_map(|between| folded.split_once(between))?;
    let (from, to): (f64, f64) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
    if !(from >= 0.0 && from < to && to.is_finite()) {
        return None;
    }
    let doublings = (to / from).log2();
    let goes_on = match () {
        () if doublings.is_finite() && doublings.fract() == 0.0 && doublings >= 3.0 => "times: 2".to_owned(),
        () if from > 0.0 && (to / from).fract() == 0.0 => format!("step: {from}"),
        () => "step: 1".to_owned(),
    };
    Some(format!("write a range: {{ from: {from}, to: {to}, {goes_on} }}"))
}

/// The remedy for a text where a number is required, such as `"8"`, `1_000`, `4k`, `10/s` or `1,2,4`; `None`
/// if the text does not look like a number.
pub(crate) fn meant_number(text: &str) -> Option<String> {
    let text = text.trim();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if text.len() > 1 && text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some("write it without leading zeros; a comma is not a thousands separator".to_owned());
    }
    if text.parse::<f64>().is_ok() {
        return Some(format!("write it without quotes: {text}"));
    }
    if let Some((_, number)) = NUMBERS.iter().find(|(word, _)| text.eq_ignore_ascii_case(word)) {
        return Some(format!("write it in digits: {number}"));
    }
    let digits: String = text.chars().filter(|c| !matches!(c, '_' | '\'')).collect();
    if is_number(&digits) {
        return Some(format!("write it without separators: {digits}"));
    }
    if let Some(number) = with_point(text).filter(|_| text.starts_with("0,")) {
        return Some(format!("write it with a decimal point: {number}"));
    }
    let parts: Vec<&str> = text.split([',', ' ', ';']).filter(|part| !part.is_empty()).collect();
    if parts.len() > 1 && parts.iter().all(|part| is_number(part)) {
        return Some(format!("write a list: [{}]", parts.join(", ")));
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(end);
    match unit.trim().to_lowercase().as_str() {
        "k" if !number.contains('.') => Some(format!("write it in full: {number}000")),
        "m" if !number.contains('.') => Some(format!("write it in full: {number}e6")),
        "b" => Some(format!("write it in full: {number}e9")),
        "/s" | "rps" | "qps" | "req/s" | "rq/s" | "hz" if is_number(number) => {
            Some(format!("write only the number; it is already per second: {number}"))
        }
        _ => None,
    }
}
