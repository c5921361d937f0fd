//! Splits a script's text into statements at line ends, `;`, `&` and `|`, without comments and with
//! continued lines joined. Quotes and `$` stay unchanged; `shlex` removes them later.

use crate::import::error::ImportError;

/// The separator between a statement and the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// A separator that does not affect whether the statement runs: a line end, `;`, `&`.
    Any,
    /// `&&`.
    Success,
    /// `||`.
    Failure,
    /// `|`.
    Pipe,
    /// `)` of a pattern of `case`, after which the statements of that branch begin.
    Pattern,
}

/// One statement.
#[derive(Debug, PartialEq)]
pub(super) struct Statement {
    /// The line in which the statement begins, from 1.
    pub line: usize,
    /// The text of the statement.
    pub raw: String,
    /// The separator before the statement.
    pub after: After,
    /// Whether a `&` after the statement leaves it running in the background.
    pub is_behind: bool,
}

/// The state of the lexer.
struct Lexer<'a> {
    name: &'a str,
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
    raw: String,
    /// The line in which the statement began.
    began: usize,
    /// The open quote, and the line in which it begins.
    quote: Option<(char, usize)>,
    /// The open brackets: for each, the closing bracket that is expected, and the line of the opening
    /// bracket.
    open: Vec<(char, usize)>,
    /// The number of open subshells.
    subshells: usize,
    /// The separator before the statement.
    after: After,
    found: Vec<Statement>,
}

/// Represents the quote of `$'…'`, in which a backslash begins an escape sequence.
const ANSI: char = '\u{1}';
/// Maximum number of open brackets, which is more than any real script has.
const DEEPEST: usize = 32;

/// Returns the statements of a script.
pub(super) fn statements(name: &str, text: &str) -> Result<Vec<Statement>, ImportError> {
    let rest = text.chars().peekable();
    let (raw, open, found) = Default::default();
    let (quote, subshells, after) = (None, 0, After::Any);
    let mut lexer = Lexer { name, rest, line: 1, raw, began: 1, quote, open, subshells, after, found };
    while let Some(c) = lexer.rest.next() {
        lexer.take(c)?;
    }
    if let Some((bracket, line)) = lexer.quote.or(lexer.open.last().copied()) {
        let what = format!("the {}", if bracket == ')' || bracket == '}' { "bracket" } else { "quote" });
        return Err(ImportError::Unclosed { name: name.to_owned(), line, what });
    }
    lexer.end(After::Any);
    Ok(lexer.found)
}

impl Lexer<'_> {
    fn take(&mut self, c: char) -> Result<(), ImportError> {
        match (self.quote, c) {
            (quote, '\\') if quote.is_none_or(|(quote, _)| quote == '"' || quote == ANSI) => self.escaped(),
            (Some((quote, _)), c) => {
                if c == quote || (quote == ANSI && c == '\'') {
                    self.quote = None;
                }
                self.push(c);
            }
            (None, '\'' | '"' | '`') => {
                let is_ansi = c == '\'' && self.raw.ends_with('$') && !self.raw.ends_with("\\$");
                self.push(c);
                self.quote = Some((if is_ansi { ANSI } else { c }, self.line));
            }
            (None, '#') if self.raw.is_empty() || self.raw.ends_with(char::is_whitespace) => {
                while self.rest.next_if(|c| *c != '\n').is_some() {}
            }
            (None, '(' | '{' | ')' | '}') => return self.bracket(c),
            (None, '\n' | ';' | '&' | '|') if self.open.is_empty() => self.separator(c),
            (None, c) => self.push(c),
        }
        Ok(())
    }

    fn push(&mut self, c: char) {
        if self.raw.trim().is_empty() {
            self.began = self.line;
        }
        if c == '\n' {
            self.line += 1;
        }
        self.raw.push(c);
    }

    /// Reads the text after a backslash: a line end joins the lines, anything else stays escaped.
    fn escaped(&mut self) {
        // Scripts written on Windows end their lines in \r\n.
        let returned = self.rest.next_if_eq(&'\r').is_some();
        match self.rest.next() {
            Some('\n') => self.line += 1,
            Some(c) => {
                self.push('\\');
                if returned {
                    self.push('\r');
                }
                self.push(c);
            }
            None => {}
        }
    }

    fn bracket(&mut self, c: char) -> Result<(), ImportError> {
        let substitution = self.raw.ends_with(['$', '=']) || !self.open.is_empty();
        let arithmetic = c == '(' && self.rest.peek() == Some(&'(');
        match c {
            '(' if substitution || arithmetic => self.open.push((')', self.line)),
            '{' if substitution => self.open.push(('}', self.line)),
            // The commands in a subshell count as commands of the script.
            '(' if self.raw.trim().is_empty() => {
                self.subshells += 1;
                return Ok(());
            }
            ')' | '}' if self.open.last().is_some_and(|(waited, _)| *waited == c) => drop(self.open.pop()),
            ')' if self.open.is_empty() => {
                if self.subshells == 0 && !self.raw.trim().is_empty() && !self.raw.contains('(') {
                    self.push(c);
                    self.end(After::Pattern);
                }
                self.subshells = self.subshells.saturating_sub(1);
                return Ok(());
            }
            _ => {}
        }
        if self.open.len() > DEEPEST {
            return Err(ImportError::TooMany {
                place: format!("{}:{}", self.name, self.line),
                what: "nested brackets",
                most: DEEPEST,
                remedy: "import only the commands",
            });
        }
        self.push(c);
        Ok(())
    }

    fn separator(&mut self, c: char) {
        // `2>&1` and `&>` redirect output and do not separate statements.
        let redirects = c == '&' && (self.raw.ends_with('>') || self.rest.peek() == Some(&'>'));
        let words = || self.raw.split_whitespace();
        let in_test = words().any(|word| word == "[[") && words().all(|word| word != "]]");
        if redirects || (in_test && c != '\n' && c != ';') {
            return self.push(c);
        }
        let is_double = ['&', '|'].contains(&c) && self.rest.next_if_eq(&c).is_some();
        let is_behind = c == '&' && !is_double && !self.raw.trim().is_empty();
        self.end(match (c, is_double) {
            ('&', true) => After::Success,
            ('|', true) => After::Failure,
            ('|', false) => After::Pipe,
            _ => After::Any,
        });
        for statement in self.found.iter_mut().rev().take(if is_behind { usize::MAX } else { 0 }) {
            statement.is_behind = true;
            // The `&` applies to all parts of a pipe such as `a | b &`.
            if statement.after != After::Pipe {
                break;
            }
        }
        if c == '\n' {
            self.line += 1;
        }
    }

    /// Ends the statement. An empty statement continues on the next line, so a line may end after an
    /// operator.
    fn end(&mut self, next: After) {
        let raw = std::mem::take(&mut self.raw);
        if raw.trim().is_empty() {
            return;
        }
        let after = std::mem::replace(&mut self.after, next);
        self.found.push(Statement { line: self.began, raw: raw.trim().to_owned(), after, is_behind: false });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<(usize, String)> {
        statements("x.sh", text).unwrap().into_iter().map(|one| (one.line, one.raw)).collect()
    }

    #[test]
    fn statements_end_where_a_shell_ends_them() {
        let text =
            "#!/bin/sh\na --b \\\n  c # d\n\ne 'f\ng' && h \"i;j\" | k; l 2>&1 &\nM=(1 2\n 3) # n\n(o)\np $((1;2))\r\n";
        let found = lines(text);
        let expected = [
            (2, "a --b   c"),
            (5, "e 'f\ng'"),
            (6, "h \"i;j\""),
            (6, "k"),
            (6, "l 2>&1"),
            (7, "M=(1 2\n 3)"),
            (9, "o"),
            (10, "p $((1;2))"),
        ];
        assert_eq!(found, expected.map(|(line, raw)| (line, raw.to_owned())));
    }

    #[test]
    fn a_statement_knows_what_stands_before_it() {
        let found = statements("x.sh", "[[ a && b ]] && c ||\nd | e & f; case x in\n y) g;;\n(z) h\nesac").unwrap();
        let found: Vec<(&str, After, bool)> =
            found.iter().map(|one| (one.raw.as_str(), one.after, one.is_behind)).collect();
        let expected = [
            ("[[ a && b ]]", After::Any, false),
            ("c", After::Success, false),
            ("d", After::Failure, true),
            ("e", After::Pipe, true),
            ("f", After::Any, false),
            ("case x in", After::Any, false),
            ("y)", After::Any, false),
            ("g", After::Pattern, false),
            ("z h", After::Any, false),
            ("esac", After::Any, false),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_left_open_is_named_with_its_line() {
        for (text, line) in [("a\nb 'c\nd", 2), ("a $(b\nc", 1), ("\n\nx=\"", 3)] {
            let error = statements("x.sh", text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("x.sh:{line}: the ")), "{error}");
        }
    }
}
