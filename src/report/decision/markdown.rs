//! Escapes untrusted text for Markdown, so that markup, links, mentions and HTML in it have no effect.

use crate::report::format::plain;

/// Escapes everything that Markdown and HTML would interpret, including characters that have a meaning only
/// at the beginning of a line.
pub(crate) fn inert(text: &str) -> String {
    escaped(plain(text).trim())
}

/// Escapes a sentence that sweepline wrote, and that may contain untrusted names. Names in backticks become
/// code, and everything else is escaped.
pub(super) fn prose(text: &str) -> String {
    let text = plain(text);
    let parts: Vec<&str> = text.trim().split('`').collect();
    if parts.len().is_multiple_of(2) {
        return escaped(text.trim());
    }
    let part = |(at, part): (usize, &&str)| if at % 2 == 1 { code(part) } else { escaped(part) };
    parts.iter().enumerate().map(part).collect()
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let number = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    for (at, c) in text.char_indices() {
        let rest = &text[at..];
        let begins = at == 0 && "-+=|:".contains(c);
        // `1.` and `1)` start a list.
        let is_last = rest.chars().nth(1).is_none_or(char::is_whitespace);
        let numbers = at > 0 && at == number && ".)".contains(c) && is_last;
        // Some renderers turn bare addresses and user names into links.
        let linked = rest.starts_with("://") || c == '@' || rest.starts_with('.') && ends_with_www(&text[..at]);
        if begins || numbers || linked || "\\`*_[]<>#~&$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn ends_with_www(text: &str) -> bool {
    text.len() >= 3 && text.as_bytes()[text.len() - 3..].eq_ignore_ascii_case(b"www")
}

/// Formats a name as code, which contains no markup.
pub(crate) fn code(text: &str) -> String {
    let text = plain(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if text.is_empty() || text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Formats a text of one or more lines as a quotation.
pub(super) fn quote(text: &str) -> String {
    let lines = text.trim().lines().map(|line| match inert(line) {
        line if line.is_empty() => ">\n".to_owned(),
        line => format!("> {line}\n"),
    });
    lines.collect()
}

/// Formats a table; a heading that ends with `#` marks a column of numbers.
pub(super) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut out = line(headings.iter().map(|heading| heading.trim_end_matches('#').to_owned()).collect());
    out.push_str(&line(headings.iter().map(|one| if one.ends_with('#') { "--:" } else { "---" }.to_owned()).collect()));
    for row in rows {
        out.push_str(&line(row.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect()));
    }
    out
}

/// Formats sentences as a list; untrusted parts of the sentences must already be escaped.
pub(super) fn list(items: &[String]) -> String {
    items.iter().map(|item| format!("- {item}\n")).collect()
}

/// Adds a full stop at the end, unless the text already ends a sentence.
pub(super) fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_others_is_a_mark() {
        for (text, expected) in [
            ("a | b", "a | b"),
            ("<!-- sweepline:end decision -->", "\\<!-- sweepline:end decision --\\>"),
            ("[x](javascript:alert(1))", "\\[x\\](javascript:alert(1))"),
            ("`<b>", "\\`\\<b\\>"),
            ("- 1. x", "\\- 1. x"),
            ("12. x", "12\\. x"),
            ("0.492 [1]", "0.492 \\[1\\]"),
            (
                "https://evil.example www.evil.example @all &lt;",
                "https\\://evil.example www\\.evil.example \\@all \\&lt;",
            ),
            ("a\u{202e}b\nc", "a\u{fffd}b\u{fffd}c"),
        ] {
            assert_eq!(inert(text), expected);
        }
        assert_eq!(code("a`b``c"), "```a`b``c```");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(prose("`a<b>` is <b> of `c`"), "`a<b>` is \\<b\\> of `c`");
        assert_eq!(prose("`<b>"), "\\`\\<b\\>");
        assert_eq!(quote("one\n\n# two\n"), "> one\n>\n> \\# two\n");
        assert_eq!(
            table(&["a", "b#"], &[vec![code("x|y"), "1".into()]]),
            "| a | b |\n| --- | --: |\n| `x\\|y` | 1 |\n"
        );
    }
}
