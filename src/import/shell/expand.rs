//! Replaces variables, arrays, `${NAME:-default}`, `$(( … ))` and `$(seq …)` in a statement, so that `shlex`
//! can split the resulting text. Values from outside the script (arguments, other commands) are unknown here
//! and are replaced by a mark, as are secrets.

use super::mark::mark;
use super::variable::{Variable, Variables};
use crate::units::secrecy::names_secret;

/// The maximum length of a statement, in bytes.
const LONGEST: usize = 64 << 10;
/// Maximum number of elements in a list, which is far more than any real benchmark has.
const MOST_ELEMENTS: usize = 10_000;

/// Replaces the variables of a statement; `None` if the result is too long.
pub(super) fn expand(raw: &str, variables: &Variables) -> Option<String> {
    let mut done = String::with_capacity(raw.len());
    let mut quote = None;
    let mut at = 0;
    while let Some(c) = raw[at..].chars().next() {
        let rest = &raw[at + c.len_utf8()..];
        at += c.len_utf8();
        match (c, quote) {
            ('\\', None | Some('"')) => {
                done.push(c);
                if let Some(next) = rest.chars().next() {
                    done.push(next);
                    at += next.len_utf8();
                }
            }
            ('\'' | '"', None) => {
                quote = Some(c);
                done.push(c);
            }
            (c, Some(open)) if c == open => {
                quote = None;
                done.push(c);
            }
            ('$', None) if rest.starts_with('\'') => at += escapes(rest, &mut done),
            // A shell may translate the text in `$"…"`. Here, it is read as an ordinary quoted text.
            ('$', None) if rest.starts_with('"') => {}
            ('$', None | Some('"')) => at += substitute(rest, quote.is_some(), variables, &mut done),
            ('`', None | Some('"')) => {
                let end = rest.find('`').unwrap_or(rest.len());
                mark(&program_of(&rest[..end]), &mut done);
                at += (end + 1).min(rest.len());
            }
            _ => done.push(c),
        }
        if done.len() > LONGEST {
            return None;
        }
    }
    Some(done)
}

/// Writes the text of `$'…'` in plain quotes. `rest` begins with the quote; returns the number of bytes read.
fn escapes(rest: &str, done: &mut String) -> usize {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    let mut end = rest.len();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => {
                end = at + 1;
                break;
            }
            '\\' => match chars.next().map(|(_, c)| c) {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some('r') => text.push('\r'),
                Some(c @ ('\\' | '\'' | '"' | '?')) => text.push(c),
                Some(c) => text.extend(['\\', c]),
                None => {}
            },
            c => text.push(c),
        }
    }
    done.push('\'');
    done.push_str(&text.replace('\'', "'\\''"));
    done.push('\'');
    end
}

/// Writes the value of an expansion, whose text follows the `$`; returns the number of bytes read.
fn substitute(rest: &str, quoted: bool, variables: &Variables, done: &mut String) -> usize {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if let Some(inner) = rest.strip_prefix("((") {
        let Some(end) = inner.find("))") else { return unclosed(rest, done) };
        match super::arithmetic::value(&inner[..end], variables) {
            Some(value) => done.push_str(&value.to_string()),
            // The text may contain a key.
            None if names_secret(&inner[..end]) => mark("((…))", done),
            None => mark(&format!("(({}))", &inner[..end]), done),
        }
        return end + 4;
    }
    for (open, close) in [('(', ')'), ('{', '}')] {
        if let Some(inner) = rest.strip_prefix(open) {
            let Some(end) = closing(inner, open, close) else { return unclosed(rest, done) };
            if open == '(' {
                sequence(&inner[..end], variables, done);
            } else {
                parameter(&inner[..end], quoted, variables, done);
            }
            return end + 2;
        }
    }
    let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
    if length == 0 {
        // This parser treats `1` in `$1` as a name. In `$@`, `$?` and similar expansions, a single other
        // character follows the `$`.
        return unknown(rest, rest.chars().next().filter(char::is_ascii_punctuation).map_or(0, char::len_utf8), done);
    }
    put(&rest[..length], None, quoted, variables, done);
    length
}

fn unknown(rest: &str, length: usize, done: &mut String) -> usize {
    mark(&rest[..length], done);
    length
}

fn unclosed(rest: &str, done: &mut String) -> usize {
    mark("…", done);
    rest.len()
}

/// Returns the name of the mark that replaces the output of a command. It contains only the program, because
/// the arguments may contain a key.
fn program_of(command: &str) -> String {
    let program = command.split_whitespace().next().unwrap_or_default();
    let is_plain = program.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'));
    if is_plain && program.len() < command.trim().len() { format!("({program}…)") } else { "(…)".to_owned() }
}

/// Returns the position of the closing bracket; `None` if the bracket is not closed.
fn closing(inner: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in inner.char_indices() {
        match c {
            c if c == close && depth == 0 => return Some(at),
            c if c == close => depth -= 1,
            c if c == open => depth += 1,
            _ => {}
        }
    }
    None
}

/// Expands calls of `seq` such as `$(seq 1 4)` and `$(seq 1 $N)`; the output of any other command is unknown
/// here.
fn sequence(inner: &str, variables: &Variables, done: &mut String) {
    let value = |word: &'_ str| match word.trim_matches('"').strip_prefix('$').map(|name| name.trim_matches(['{', '}']))
    {
        Some(name) => match variables.get(name) {
            Some(Variable::Text(text)) if !names_secret(name) => text.clone(),
            _ => word.to_owned(),
        },
        None => word.to_owned(),
    };
    let words: Vec<String> = inner.split_whitespace().map(value).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let numbers: Option<Vec<i64>> = words.iter().skip(1).map(|word| word.parse().ok()).collect();
    let (first, step, last) = match (words.first(), numbers.as_deref()) {
        (Some(&"seq"), Some(&[last])) => (1, 1, last),
        (Some(&"seq"), Some(&[first, last])) => (first, 1, last),
        (Some(&"seq"), Some(&[first, step, last])) if step > 0 => (first, step, last),
        _ => return mark(&program_of(inner), done),
    };
    let values = range(first, last, step);
    done.push_str(&values.iter().map(i64::to_string).collect::<Vec<_>>().join(" "));
}

/// Returns the numbers of a range, at most [`MOST_ELEMENTS`].
pub(super) fn range(first: i64, last: i64, step: i64) -> Vec<i64> {
    let mut values = Vec::new();
    let mut value = first;
    while value <= last && values.len() < MOST_ELEMENTS {
        values.push(value);
        let Some(next) = value.checked_add(step) else { break };
        value = next;
    }
    values
}

/// Expands the content of `${…}`.
fn parameter(inner: &str, quoted: bool, variables: &Variables, done: &mut String) {
    let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inner.len());
    let (name, rest) = inner.split_at(end);
    let default = [":-", "-", ":=", "="].iter().find_map(|sign| rest.strip_prefix(sign));
    match rest {
        "" | "[@]" | "[*]" => put(name, None, quoted, variables, done),
        _ if default.is_some() => put(name, default, quoted, variables, done),
        _ if rest.starts_with(['%', '#']) && !name.is_empty() => {
            let cut = match variables.get(name) {
                Some(Variable::Text(text)) => without_part(text, rest),
                _ => None,
            };
            let own = cut.map(|text| Variables::from([(name.to_owned(), Variable::Text(text))]));
            put(name, None, quoted, &own.unwrap_or_default(), done);
        }
        // The text after the name may be a key: `${KEY:?…}`.
        _ => mark(if name.is_empty() { inner } else { name }, done),
    }
}

/// Applies `%`, `%%`, `#` or `##` to a text, if the pattern is plain text, optionally followed by a `*`
/// (for `%`) or preceded by one (for `#`).
fn without_part(text: &str, operator: &str) -> Option<String> {
    let sign = &operator[..1];
    let is_longest = operator[1..].starts_with(sign);
    let pattern = &operator[1 + usize::from(is_longest)..];
    let is_end = sign == "%";
    let fixed = if is_end { pattern.strip_suffix('*') } else { pattern.strip_prefix('*') };
    let word = fixed.unwrap_or(pattern);
    if word.is_empty() || word.contains(['*', '?', '[', '$', '\\', '\'', '"']) {
        return None;
    }
    let kept = match (is_end, fixed.is_some()) {
        (true, false) => text.strip_suffix(word),
        (false, false) => text.strip_prefix(word),
        // The shortest part to remove from the end begins at the last occurrence of `word`, the longest at
        // the first.
        (true, true) => if is_longest { text.find(word) } else { text.rfind(word) }.map(|at| &text[..at]),
        (false, true) => if is_longest { text.rfind(word) } else { text.find(word) }.map(|at| &text[at + word.len()..]),
    };
    Some(kept.unwrap_or(text).to_owned())
}

/// Writes the value of a variable so that the splitter does not interpret quotes in it.
fn put(name: &str, default: Option<&str>, quoted: bool, variables: &Variables, done: &mut String) {
    let value = match (variables.get(name), default) {
        _ if names_secret(name) => return mark(name, done),
        (Some(Variable::Branched), _) => return mark(name, done),
        (Some(value), _) => value.clone(),
        // A default may contain other variables, which may in turn have defaults.
        (None, Some(default)) => {
            let default = default.trim_matches(['"', '\'']);
            Variable::Text(expand(default, variables).unwrap_or_default())
        }
        (None, None) => return mark(name, done),
    };
    let between = if quoted { "\" \"" } else { " " };
    let values = match &value {
        Variable::Text(text) => std::slice::from_ref(text),
        Variable::List(values) => values.as_slice(),
        Variable::Branched => &[],
    };
    for (number, value) in values.iter().enumerate() {
        if number > 0 {
            done.push_str(between);
        }
        for c in value.chars() {
            let special =
                if quoted { matches!(c, '"' | '\\' | '$' | '`') } else { matches!(c, '"' | '\'' | '\\' | '#') };
            if special {
                done.push('\\');
            }
            done.push(c);
        }
        if done.len() > LONGEST {
            return;
        }
    }
}
