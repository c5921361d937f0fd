//! Parses the text formats of Prometheus (version 0.0.4) and OpenMetrics 1.0. Returns a page's samples one
//! at a time, without copying the page.
//!
//! Based on the specifications, <https://prometheus.io/docs/instrumenting/exposition_formats/> and
//! <https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md>. The common parts of
//! both formats are parsed in the same way. Comments, types and units are skipped, because the table of
//! canonical names defines what a metric is. A line that is in neither format makes the page invalid, as in
//! Prometheus.

use std::borrow::Cow;

/// One sample: a line of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct TextSample<'a> {
    /// The metric name, including `_total`, `_sum`, `_bucket` and the like.
    pub name: Cow<'a, str>,
    /// The labels of the sample.
    pub labels: Labels<'a>,
    /// The value; the format allows infinities and NaN.
    pub value: f64,
    /// The timestamp as written: milliseconds in Prometheus' format, seconds in OpenMetrics; `None` if there
    /// is none.
    pub timestamp: Option<&'a str>,
}

/// The labels of a sample: the text between the braces, which has already been checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Labels<'a>(&'a str);

/// A line that is in neither format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct BadLine {
    /// The number of the line, from 1.
    pub line: usize,
    /// What is wrong with the line.
    pub problem: &'static str,
}

/// Returns the samples of a page, in the page's order. The iterator continues after an invalid line.
pub fn samples(page: &str) -> impl Iterator<Item = Result<TextSample<'_>, BadLine>> {
    let mut is_over = false;
    page.split('\n').enumerate().filter_map(move |(at, line)| {
        let line = line.strip_suffix('\r').unwrap_or(line).trim_matches([' ', '\t']);
        let found = match line {
            "" => return None,
            _ if is_over => Err("unexpected text after `# EOF`"),
            "# EOF" => {
                is_over = true;
                return None;
            }
            comment if comment.starts_with('#') => return None,
            line => sample(line),
        };
        Some(found.map_err(|problem| BadLine { line: at + 1, problem }))
    })
}

/// Whether a page in the OpenMetrics format is complete, that is, whether its last line is `# EOF`.
pub fn has_end(page: &str) -> bool {
    page.trim_end_matches(['\n', '\r']).rsplit('\n').next() == Some("# EOF")
}

fn sample(line: &str) -> Result<TextSample<'_>, &'static str> {
    let end = line.find(|c: char| !is_name_character(c)).unwrap_or(line.len());
    let (bare, rest) = line.split_at(end);
    if bare.starts_with(|c: char| c.is_ascii_digit()) {
        return Err("a name begins with a digit");
    }
    let (quoted, labels, rest) = match rest.trim_start_matches([' ', '\t']).strip_prefix('{') {
        Some(inside) => {
            let (quoted, length) = braces(inside)?;
            (quoted, &inside[..length], &inside[length + 1..])
        }
        None if rest.starts_with([' ', '\t']) => (None, "", rest),
        None if bare.is_empty() => return Err("the name is missing"),
        None if rest.is_empty() => return Err("the value is missing"),
        None => return Err("invalid character in a name"),
    };
    let name = match (bare, quoted) {
        ("", Some(name)) => unescaped(name),
        ("", None) => return Err("the name is missing"),
        (bare, None) => Cow::Borrowed(bare),
        (_, Some(_)) => return Err("it has two names"),
    };
    let (value, timestamp) = numbers(rest)?;
    Ok(TextSample { name, labels: Labels(labels), value, timestamp })
}

/// Parses the value and the timestamp, and skips an exemplar after them.
fn numbers(rest: &str) -> Result<(f64, Option<&str>), &'static str> {
    let (numbers, exemplar) = rest.split_once('#').map_or((rest, None), |(numbers, rest)| (numbers, Some(rest)));
    if exemplar.is_some_and(|exemplar| !exemplar.trim_start().starts_with('{')) {
        return Err("an exemplar has no labels");
    }
    let mut words = numbers.split([' ', '\t']).filter(|word| !word.is_empty());
    let value = words.next().ok_or("the value is missing")?.parse().map_err(|_| "the value is not a number")?;
    let timestamp = words.next();
    if timestamp.is_some_and(|timestamp| timestamp.parse::<f64>().is_err()) {
        return Err("the timestamp is not a number");
    }
    if words.next().is_some() {
        return Err("unexpected text after the timestamp");
    }
    Ok((value, timestamp))
}

/// Checks the text after an opening brace. Returns the quoted metric name inside the braces, if there is
/// one (Prometheus 3), and the position of the closing brace.
fn braces(inside: &str) -> Result<(Option<&str>, usize), &'static str> {
    let mut rest = inside.trim_start_matches([' ', '\t']);
    let mut name = None;
    let mut is_first = true;
    loop {
        if let Some(behind) = rest.strip_prefix('}') {
            return Ok((name, inside.len() - behind.len() - 1));
        }
        let (pair, behind) = pair(rest)?;
        match pair {
            (only, None) if is_first => name = Some(only),
            (_, None) => return Err("a label has no value"),
            _ => {}
        }
        is_first = false;
        rest = match behind.strip_prefix(',') {
            Some(behind) => behind.trim_start_matches([' ', '\t']),
            None if behind.starts_with('}') => behind,
            None if behind.is_empty() => return Err("the labels do not end"),
            None => return Err("labels are not separated by commas"),
        };
    }
}

/// The name and the value of a label. The value is `None` for a quoted metric name.
type Pair<'a> = (&'a str, Option<&'a str>);

fn pair(text: &str) -> Result<(Pair<'_>, &str), &'static str> {
    let is_quoted = text.starts_with('"');
    let (name, behind) = match is_quoted {
        true => quoted(text)?,
        false => text.split_at(text.find(|c: char| !is_name_character(c) || c == ':').unwrap_or(text.len())),
    };
    let behind = behind.trim_start_matches([' ', '\t']);
    let Some(behind) = behind.strip_prefix('=') else {
        return if is_quoted { Ok(((name, None), behind)) } else { Err("a label has no value") };
    };
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) && !is_quoted {
        return Err("a label has no name");
    }
    let (value, behind) = quoted(behind.trim_start_matches([' ', '\t']))?;
    Ok(((name, Some(value)), behind.trim_start_matches([' ', '\t'])))
}

/// Splits off the quoted string at the beginning of `text`. Returns its contents, with escapes
/// unresolved, and the text after the closing quote.
fn quoted(text: &str) -> Result<(&str, &str), &'static str> {
    let inside = text.strip_prefix('"').ok_or("a label's value is not in quotes")?;
    let mut is_escaped = false;
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Ok((&inside[..at], &inside[at + 1..])),
            _ => {}
        }
    }
    Err("a label's value does not end")
}

/// Resolves `\\`, `\"` and `\n` in a value. A backslash before any other character is kept, as in
/// Prometheus.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, character == '\\') {
            (_, false) => plain.push(character),
            (_, true) => match characters.next() {
                Some('n') => plain.push('\n'),
                Some(escaped @ ('\\' | '"')) => plain.push(escaped),
                Some(other) => plain.extend(['\\', other]),
                None => plain.push('\\'),
            },
        }
    }
    Cow::Owned(plain)
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | ':')
}

impl<'a> Labels<'a> {
    /// Returns the name and value of each label, in the page's order.
    pub fn iter(self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            loop {
                rest = rest.trim_start_matches([' ', '\t', ',']);
                let ((name, value), behind) = pair(rest).ok()?;
                rest = behind;
                // A metric's name in quotes is not a label.
                if let Some(value) = value {
                    return Some((unescaped(name), unescaped(value)));
                }
            }
        })
    }

    /// Returns the value of a label; `None` if the sample does not have it.
    pub fn get(self, name: &str) -> Option<Cow<'a, str>> {
        self.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// Returns the labels as written on the page, without the braces.
    pub fn as_written(self) -> &'a str {
        self.0
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
