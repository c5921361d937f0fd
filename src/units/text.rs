//! Makes untrusted text safe to print to a terminal. Characters that a terminal would interpret or hide are
//! shown as `�`, and secrets are found despite such characters.

use std::fmt::Display;

/// The replacement for a character that would move the cursor, change the text direction or be invisible.
const INSTEAD: char = '\u{fffd}';

/// Whether a terminal draws nothing for a character that nevertheless changes the text: controls, marks
/// that change the text direction, line separators, and everything in Unicode's
/// `Default_Ignorable_Code_Point` (zero-width characters, fillers, variation selectors and tags).
pub fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Makes an untrusted name or sentence safe for a terminal, on one line.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if is_unseen(c) { INSTEAD } else { c }).collect()
}

/// Makes a whole page safe for a terminal: line ends, tabs and colors (`ESC [ … m`) are kept. Untrusted text
/// goes through [`plain`] before it is inserted into a page; this function is only the last safeguard.
pub fn page(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let colour = colour(rest);
        let length = if colour > 0 { colour } else { c.len_utf8() };
        match c {
            _ if colour > 0 => out.push_str(&rest[..colour]),
            '\n' | '\t' => out.push(c),
            c if is_unseen(c) => out.push(INSTEAD),
            c => out.push(c),
        }
        rest = &rest[length..];
    }
    out
}

/// Formats a number with three significant digits, and whole numbers in full up to a billion: `0.123`,
/// `1.23`, `12.3`, `1234`, `1.23e9`.
pub fn digits(value: f64) -> String {
    if value.abs() >= 1e9 {
        return format!("{value:.2e}");
    }
    let decimals = match value.abs() {
        below if below < 1.0 => 3,
        below if below < 9.995 => 2,
        below if below < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// Formats a number with its noun: `1 run`, `3 runs`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, one: &str) -> String {
    format!("{count} {one}{}", if count == N::from(1) { "" } else { "s" })
}

/// Formats two hex digits per byte. This must be fast, because a plan with nothing to do may write
/// thousands of ids.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Whether a text can be the name of an environment variable.
pub fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Quotes a text for a shell.
pub fn quoted(text: &str) -> String {
    let simple = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(simple) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Returns the length in bytes of a color sequence at the start of a text; 0 if there is none.
fn colour(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\u{1b}[") else { return 0 };
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == ';')).unwrap_or(rest.len());
    if rest[end..].starts_with('m') { end + 3 } else { 0 }
}

/// Returns the number of bytes of `rest` that a terminal interprets, after the control character `c`, as part
/// of an ANSI sequence (`ESC [ … letter`).
pub fn sequence(c: char, rest: &str) -> usize {
    let introducer = match c {
        '\u{1b}' if rest.starts_with('[') => 1,
        '\u{9b}' => 0,
        _ => return 0,
    };
    let bytes = &rest.as_bytes()[introducer..];
    let parameters = bytes.iter().take_while(|byte| matches!(byte, 0x20..=0x3f)).count();
    match bytes.get(parameters) {
        Some(0x40..=0x7e) => introducer + parameters + 1,
        _ => 0,
    }
}

/// Returns the length in bytes of the escape at the start of a text, and the character that it stands for. Recognizes
/// JSON's `\u0001`, `\n` and `\/`, YAML's `\x01`, and Rust's `\u{1}`.
pub(super) fn escape(text: &str) -> Option<(usize, char)> {
    let digits = |prefix: &str, count: usize| text.strip_prefix(prefix)?.get(..count);
    let braced = text.strip_prefix("\\u{").and_then(|rest| rest.split_once('}')).map(|(digits, _)| digits);
    let forms = [(digits("\\u", 4), 2), (digits("\\x", 2), 2), (digits("\\U", 8), 2), (braced, 4)];
    let long = forms.into_iter().find_map(|(digits, more)| {
        let digits =
            digits.filter(|digits| digits.len() <= 8 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        Some((digits.len() + more, char::from_u32(u32::from_str_radix(digits, 16).ok()?)?))
    });
    let short = || {
        let c = match text.as_bytes().get(1)? {
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'e' => '\u{1b}',
            b'"' => '"',
            b'\'' => '\'',
            b'\\' => '\\',
            b'/' => '/',
            _ => return None,
        };
        Some((2, c))
    };
    long.or_else(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        assert_eq!(plain("a\u{1b}[2Jb\u{202e}c\u{200d}d\ne"), "a�[2Jb�c�d�e");
        assert_eq!(page("a\n\t\u{1b}[31mb\u{1b}[0m\u{1b}[2J\u{2066}c\r"), "a\n\t\u{1b}[31mb\u{1b}[0m�[2J�c�");
        assert_eq!(page("模型 é 🚀"), "模型 é 🚀");
    }
}
