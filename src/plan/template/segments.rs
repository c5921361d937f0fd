//! Splits a template into literal text and expressions.

use std::ops::Range;

use crate::plan::diagnostic::error::Code;

/// Maximum length of an expression, so that readers of the plan can understand it.
const MOST_EXPRESSION: usize = 1_000;

/// Maximum number of expressions in a text. A text with more should be generated elsewhere and pasted
/// in.
const MOST_EXPRESSIONS: usize = 100;

/// An error in a template.
#[derive(Debug, PartialEq)]
pub(super) struct Mistake {
    /// The error code.
    pub code: Code,
    /// The error message.
    pub message: String,
    /// The remedy.
    pub remedy: String,
    /// The place, in bytes of the template.
    pub at: Range<usize>,
}

impl Mistake {
    /// Creates an error about a template.
    pub(crate) fn new(at: Range<usize>, message: impl Into<String>, remedy: impl Into<String>) -> Mistake {
        Mistake { code: Code::Template, message: message.into(), remedy: remedy.into(), at }
    }

    /// The error with its place moved, for a text in which the template begins at `by`.
    pub(crate) fn moved(self, by: usize) -> Mistake {
        Mistake { at: self.at.start + by..self.at.end + by, ..self }
    }
}

/// A part of a template, as a range of its bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    /// Text that stays unchanged.
    Text(Range<usize>),
    /// The text between `{{` and `}}`.
    Expression(Range<usize>),
}

/// Whether a text contains an expression, or a statement, which is rejected.
pub(super) fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

/// The parts of a template.
pub(super) fn parts(template: &str) -> Result<Vec<Part>, Mistake> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(found) = template[at..].find("{{").into_iter().chain(template[at..].find("{%")).min() {
        let open = at + found;
        if template[open..].starts_with("{%") {
            let remedy = "choose with {{ a if b else c }}; for literal braces write {{ '{%' }}";
            return Err(Mistake::new(open..open + 2, "templates have no statements, only {{ expressions }}", remedy));
        }
        let inner = open + 2..end_of(template, open + 2)?;
        if parts.iter().filter(|part| matches!(part, Part::Expression(_))).count() == MOST_EXPRESSIONS {
            let message = format!("a value has at most {MOST_EXPRESSIONS} expressions");
            return Err(Mistake::new(open..inner.end, message, "split it into several variables"));
        }
        if inner.len() > MOST_EXPRESSION {
            let message = format!("an expression has at most {MOST_EXPRESSION} characters");
            return Err(Mistake::new(open..inner.end + 2, message, "move parts of it to separate variables"));
        }
        if template[inner.clone()].starts_with('-') || template[inner.clone()].ends_with('-') {
            let remedy = "put spaces inside the braces: {{ n }}, or {{ -n }} for a negative number";
            return Err(Mistake::new(open..inner.end + 2, "`-` next to the braces does not trim here", remedy));
        }
        parts.push(Part::Text(at..open));
        at = inner.end + 2;
        parts.push(Part::Expression(inner));
    }
    parts.push(Part::Text(at..template.len()));
    parts.retain(|part| !matches!(part, Part::Text(range) if range.is_empty()));
    Ok(parts)
}

/// The position of the `}}` that ends an expression that begins at `start`. Quoted texts and the ends
/// of tables are ignored.
fn end_of(template: &str, start: usize) -> Result<usize, Mistake> {
    let mut quote = None;
    let mut depth = 0usize;
    let mut characters = template[start..].char_indices();
    while let Some((at, character)) = characters.next() {
        match (quote, character) {
            (Some(_), '\\') => drop(characters.next()),
            (Some(open), other) if open == other => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, '{') => depth += 1,
            (None, '}') if depth > 0 => depth -= 1,
            (None, '}') if template[start + at..].starts_with("}}") => return Ok(start + at),
            _ => {}
        }
    }
    let remedy = "close it with }}; for literal braces write {{ '{{' }}";
    Err(Mistake::new(start - 2..start, "`{{` is not closed", remedy))
}

/// The place of a name as a whole word in an expression, outside of quotes.
pub(super) fn word(expression: &str, name: &str) -> Option<Range<usize>> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let outside = without_texts(expression);
    let found = outside.match_indices(name).find(|(at, _)| {
        let before = outside[..*at].chars().next_back();
        let after = outside[at + name.len()..].chars().next();
        !before.is_some_and(|c| is_name(c) || c == '.') && !after.is_some_and(is_name)
    });
    found.map(|(at, _)| at..at + name.len())
}

/// The expression with every quoted text, including the quotes, replaced by blanks of the same length.
pub(super) fn without_texts(expression: &str) -> String {
    let mut quote = None;
    let mut escaped = false;
    let mut blank = String::with_capacity(expression.len());
    for character in expression.chars() {
        let inside = quote.is_some() || matches!(character, '"' | '\'');
        match (quote, character) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), other) if open == other => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            _ => {}
        }
        match inside {
            true => blank.extend(std::iter::repeat_n(' ', character.len_utf8())),
            false => blank.push(character),
        }
    }
    blank
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(template: &str) -> Vec<&str> {
        let range = |part: &Part| match part {
            Part::Text(range) | Part::Expression(range) => range.clone(),
        };
        parts(template).map_or_else(|_| Vec::new(), |parts| parts.iter().map(|part| &template[range(part)]).collect())
    }

    #[test]
    fn templates_are_cut_at_their_braces() {
        assert_eq!(cut("a {{ n }}s{{m}}"), ["a ", " n ", "s", "m"]);
        assert_eq!(cut("{{ '}}' ~ \"\\\"}}\" }}"), [" '}}' ~ \"\\\"}}\" "]);
        assert_eq!(cut("{{ {'a': {'b': 1}} }}"), [" {'a': {'b': 1}} "]);
        assert_eq!(cut("{{ '{{' }}"), [" '{{' "]);
        for wrong in ["{{ n", "{{ 'n }}", "{% if a %}", "{{ n }} {{", "{{-n}}", "{{ n -}}"] {
            assert!(parts(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn words_are_found_outside_of_texts() {
        assert_eq!(word("'n' ~ mn ~ a.n ~ n", "n"), Some(17..18));
        assert_eq!(word("'é' ~ n", "n"), Some(7..8));
        assert_eq!(word("nn", "n"), None);
        assert_eq!(without_texts("a ~ 'b\\'c' ~ d"), "a ~        ~ d");
    }
}
