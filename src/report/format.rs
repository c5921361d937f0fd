//! Formatting of numbers and tables.

use indexmap::IndexMap;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::analysis::{Estimate, Value};
pub use crate::units::text::{digits, plain};

use super::screen;

/// The beginning of an id, in the form in which tables show it.
pub fn short_id(id: &str) -> &str {
    &id[..id.len().min(8)]
}

/// A value, with `> ` (for a rate `< `) if it lies among failures.
pub fn value(value: Value) -> String {
    value.short()
}

/// An estimate, with `*` if there are few samples; if there is no estimate, the reason is on a second
/// line.
pub fn estimate(estimate: Estimate) -> String {
    match estimate.value() {
        Some(known) => format!("{}{}", value(known), if estimate.few_samples() { "*" } else { "" }),
        None => estimate.to_string().replacen(' ', "\n", 1),
    }
}

/// The first `most` characters of a foreign text, on one line and safe for a terminal.
pub fn cut(text: &str, most: usize) -> String {
    let text = plain(text.trim());
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Width of a text in terminal columns; a wide character takes two.
pub(crate) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// Formats whole seconds as `1h02m`, `2m10s` or `9s`.
pub(crate) fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Wraps `text` after `first` to the screen, with later lines indented by `indent`.
pub fn fill(first: &str, indent: usize, text: &str) -> String {
    fill_to(screen::columns(), first, indent, text)
}

/// Like [`fill`], with lines of at most `columns` columns.
pub(super) fn fill_to(columns: usize, first: &str, indent: usize, text: &str) -> String {
    let mut out = first.to_owned();
    let (mut column, mut fresh) = (width(first), true);
    let longest = columns.saturating_sub(indent).max(1);
    // Only words that are longer than a line are broken.
    let whole = |word: &str| if width(word) <= columns { columns } else { longest };
    let pieces = |word| pieces(word, whole(word)).enumerate().map(|(at, piece)| (at > 0, piece));
    for (goes_on, word) in text.split_whitespace().flat_map(pieces) {
        let width = width(word);
        if column > 0 && (goes_on || column + usize::from(!fresh) + width > columns) {
            let indent = indent.min(columns.saturating_sub(width));
            let line = out.rfind('\n').map_or(0, |end| end + 1);
            match out[line..].trim().is_empty() {
                true => out.truncate(line),
                false => {
                    out.truncate(out.trim_end_matches(' ').len());
                    out.push('\n');
                }
            }
            out.push_str(&" ".repeat(indent));
            (column, fresh) = (indent, true);
        }
        if !std::mem::take(&mut fresh) {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out.push('\n');
    out
}

/// Wraps a text to the screen, if there is one. Longer lines are broken between words and continue with
/// the indentation of their beginning.
pub(crate) fn fitted(text: &str) -> String {
    let most = if screen::is_limited() { screen::columns() } else { usize::MAX };
    let fit = |line: &str| match width(&without_paint(line)) > most {
        true => {
            let indent = line.chars().take_while(|c| *c == ' ').count().min(most / 2);
            fill_to(most, &" ".repeat(indent), indent + 2, line)
        }
        false => format!("{line}\n"),
    };
    text.lines().map(fit).collect()
}

/// Strips the ANSI sequences from a text.
fn without_paint(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}

/// Splits a word into pieces of at most `most` columns. A path is split between its components if these
/// are short enough.
fn pieces(word: &str, most: usize) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let mut taken = 0;
        let over = |(_, c): &(usize, char)| {
            taken += c.width().unwrap_or(0);
            taken > most
        };
        let end = rest.char_indices().find(over).map_or(rest.len(), |(at, _)| at);
        let between = if end < rest.len() { rest[..end].rfind(['.', '/']).map(|at| at + 1) } else { None };
        let (piece, after) = rest.split_at(between.unwrap_or(end));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Counts occurrences, in the order of first occurrence.
pub(crate) fn counts<T: std::hash::Hash + Eq>(all: impl Iterator<Item = T>) -> IndexMap<T, usize> {
    let mut counts = IndexMap::new();
    for one in all {
        *counts.entry(one).or_insert(0) += 1;
    }
    counts
}

/// Placeholder for a failure without a message.
pub(crate) const NO_MESSAGE: &str = "(no message)";

/// The message of failures, to be shown after their outcome: `: busy`, or `, first: busy` if there are
/// several, or `: (no message)`.
pub fn said(message: Option<&str>, several: bool) -> String {
    match message {
        None => format!(": {NO_MESSAGE}"),
        Some(message) if several => format!(", first: {message}"),
        Some(message) => format!(": {message}"),
    }
}

/// Escapes characters that Markdown and HTML would interpret, except in code. An unmatched backtick does
/// not open code, so it and everything after it are treated as text.
pub fn escaped(text: &str) -> String {
    let text = plain(text);
    let ticks = text.matches('`').count();
    let (mut out, mut seen) = (String::with_capacity(text.len()), 0);
    for c in text.chars() {
        let is_tick = c == '`';
        seen += usize::from(is_tick);
        // The last of an odd number of backticks has no partner.
        let is_alone = is_tick && seen == ticks && ticks % 2 == 1;
        let is_code = seen % 2 == 1 && seen < ticks;
        let is_special = if is_code { c == '|' } else { is_alone || "\\*_[]<>|#".contains(c) };
        out.extend(is_special.then_some('\\'));
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_is_too_long_for_a_line() {
        let text = fill("", 2, &format!("a {} {}", "ß".repeat(250), "b".repeat(98)));
        let lengths: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
        assert_eq!(lengths, [100, 100, 56, 100]);
        assert_eq!(text.matches('ß').count(), 250);
        let wide = fill("模型: ", 6, &"模".repeat(120));
        let widths: Vec<usize> = wide.lines().map(width).collect();
        assert_eq!(widths, [100, 100, 58]);
    }

    #[test]
    fn marks_of_others_are_escaped_unless_they_are_code() {
        assert_eq!(escaped("a `b_c` <i> d_e"), "a `b_c` \\<i\\> d\\_e");
        assert_eq!(escaped("a `b|c` `d`"), "a `b\\|c` `d`");
        // An unmatched backtick does not open code, so it does not hide markup.
        assert_eq!(escaped("a ` <img src=x> [l](u)"), "a \\` \\<img src=x\\> \\[l\\](u)");
        assert_eq!(escaped("`a_b` and ` <b>"), "`a_b` and \\` \\<b\\>");
        assert_eq!(escaped("`"), "\\`");
    }

    #[test]
    fn a_word_that_a_line_takes_is_not_broken() {
        let fitted = |columns, first, word: usize| fill_to(columns, first, 4, &"x".repeat(word));
        assert_eq!(fitted(10, "", 10), format!("{}\n", "x".repeat(10)));
        assert_eq!(fitted(10, "of: ", 10), format!("of:\n{}\n", "x".repeat(10)));
        assert_eq!(fitted(10, "    ", 8), format!("  {}\n", "x".repeat(8)));
        assert_eq!(fitted(10, "of: ", 13), format!("of: {}\n    {}\n", "x".repeat(6), "x".repeat(6)) + "    x\n");
        assert_eq!(fill_to(10, "\n", 0, "ab cd"), "\nab cd\n");
        assert_eq!(fill_to(10, "", 0, "one.two.third"), "one.two.\nthird\n");
        assert_eq!(fill_to(12, "", 0, "a.second.third b"), "a.second.\nthird b\n");
    }

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, 0.0123, 1.0, 9.999, 12.34, 99.96, 1234.5, 999_999_999.0, 9.2234e12].map(digits);
        assert_eq!(texts, ["0.000", "0.012", "1.00", "10.0", "12.3", "100", "1234", "999999999", "9.22e12"]);
        assert_eq!(value(Value::AtLeast(600_000.0)), "> 600000");
        assert_eq!(plain("a\u{1b}[2Jb"), "a\u{fffd}[2Jb");
    }
}
