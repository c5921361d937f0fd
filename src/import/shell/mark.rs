//! Marks in a word for what has no value here: a variable that nothing set, the output of a command, a secret.

/// Opens the mark of something that has no value here.
const OPEN: char = '\u{e000}';

/// Closes it.
const CLOSE: char = '\u{e001}';

/// Takes away characters that would look like our marks.
pub(super) fn without_marks(text: &str) -> String {
    text.replace([OPEN, CLOSE], " ")
}

/// The names that a word needed and that have no value here.
pub(crate) fn marks(word: &str) -> Vec<&str> {
    word.split(OPEN).skip(1).filter_map(|rest| rest.split(CLOSE).next()).collect()
}

/// What of a word stands beside its marks.
pub(crate) fn without_mark_names(word: &str) -> Vec<&str> {
    word.split(OPEN)
        .enumerate()
        .map(|(at, piece)| if at == 0 { piece } else { piece.split_once(CLOSE).map_or("", |(_, rest)| rest) })
        .collect()
}

/// A word with `$NAME` where it has a mark.
pub(crate) fn shown(word: &str) -> String {
    word.replace(OPEN, "$").replace(CLOSE, "")
}

/// Writes a mark.
pub(super) fn mark(name: &str, done: &mut String) {
    done.push(OPEN);
    // The mark must survive the splitting into words.
    done.extend(name.chars().filter(|c| !c.is_whitespace() && !matches!(c, '\'' | '"' | '\\' | '#')));
    done.push(CLOSE);
}
