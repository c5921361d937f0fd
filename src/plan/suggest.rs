//! What was probably meant.

/// The name nearest to `wrong`, if it is near enough to be a slip of the fingers.
pub(super) fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
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

/// `a`, `b` or `c`.
pub(super) fn choices<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// "did you mean `x`?" where something is near, else all that there is.
pub(super) fn remedy<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(wrong, names.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("write {}", choices(names)),
    }
}

/// What to type for a text that stands where a number must: `"8"`, `1_000`, `4k`, `10/s`, `1,2,4`, `1-64`.
pub(super) fn meant_number(text: &str) -> Option<String> {
    let text = text.trim();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if text.len() > 1 && text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some("write it without leading zeros; a comma is no separator of thousands".to_owned());
    }
    if text.parse::<f64>().is_ok() {
        return Some(format!("write it without quotes: {text}"));
    }
    let digits: String = text.chars().filter(|c| !matches!(c, '_' | '\'')).collect();
    if is_number(&digits) {
        return Some(format!("write it without separators: {digits}"));
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
            Some(format!("write the number alone; it is per second already: {number}"))
        }
        _ => None,
    }
}
