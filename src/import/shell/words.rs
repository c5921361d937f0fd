//! Processes parts of commands as a shell does before it runs them: `{1..8}`, redirections, here-documents,
//! `eval`.

use super::expand::range;
use super::lex::Statement;
use crate::units::text::is_variable;

/// Returns the statements without the lines of here-documents (`<<END … END`), which are the input of a
/// program.
pub(super) fn without_documents(statements: Vec<Statement>) -> Vec<Statement> {
    let mut end: Option<String> = None;
    let mut is_kept = |statement: &Statement| {
        if let Some(word) = &end {
            if statement.raw == *word {
                end = None;
            }
            return false;
        }
        let opened = statement.raw.split("<<").nth(1).filter(|rest| !rest.starts_with(['<', '=']));
        let word = opened.and_then(|rest| rest.trim_start_matches('-').split_whitespace().next());
        end = word.map(|word| word.trim_matches(['"', '\'', '\\']).to_owned()).filter(|word| is_variable(word));
        true
    };
    statements.into_iter().filter(|statement| is_kept(statement)).collect()
}

/// Expands `{1..8}` and `{1,2,4}` to their values.
pub(super) fn braces(word: &str) -> Vec<String> {
    let Some(inner) = word.strip_prefix('{').and_then(|word| word.strip_suffix('}')) else {
        return vec![word.to_owned()];
    };
    let parts: Vec<&str> = inner.split("..").collect();
    let numbers: Option<Vec<i64>> = parts.iter().map(|part| part.parse().ok()).collect();
    match numbers.as_deref() {
        Some(&[first, last]) => range(first, last, 1).iter().map(i64::to_string).collect(),
        Some(&[first, last, step]) if step > 0 => range(first, last, step).iter().map(i64::to_string).collect(),
        _ if inner.contains(',') => inner.split(',').map(str::to_owned).collect(),
        _ => vec![word.to_owned()],
    }
}

/// Returns words without `> file`, `2>&1` and similar redirections.
pub(super) fn without_redirections(words: Vec<String>) -> Vec<String> {
    let mut kept = Vec::with_capacity(words.len());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let sign = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
        match sign.strip_prefix(">>").or_else(|| sign.strip_prefix(['>', '<'])) {
            // The next word is the file of the redirection.
            Some("") => drop(words.next()),
            Some(_) => {}
            None => kept.push(word),
        }
    }
    kept
}

/// Returns the command that `eval` composes; other commands are returned unchanged.
pub(super) fn evaluated(words: Vec<String>) -> Vec<String> {
    match words.split_first() {
        Some((eval, rest)) if eval == "eval" && !rest.is_empty() => shlex::split(&rest.join(" ")).unwrap_or(words),
        _ => words,
    }
}
