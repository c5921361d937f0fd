//! Marks in a word for parts without a known value: an unset variable, the output of a command, a
//! secret.

/// The character that begins the mark of a part without a known value.
const OPEN: char = '\u{e000}';

/// The character that ends a mark.
const CLOSE: char = '\u{e001}';

/// Removes characters that look like marks.
pub(super) fn without_marks(text: &str) -> String {
    text.replace([OPEN, CLOSE], " ")
}

/// Returns the names in a word that have no known value.
pub(crate) fn marks(word: &str) -> Vec<&str> {
    word.split(OPEN).skip(1).filter_map(|rest| rest.split(CLOSE).next()).collect()
}

/// Returns the parts of a word outside its marks.
pub(crate) fn without_mark_names(word: &str) -> Vec<&str> {
    word.split(OPEN)
        .enumerate()
        .map(|(at, piece)| if at == 0 { piece } else { piece.split_once(CLOSE).map_or("", |(_, rest)| rest) })
        .collect()
}

/// Returns a word with `$NAME` instead of its marks.
pub(crate) fn shown(word: &str) -> String {
    word.replace(OPEN, "$").replace(CLOSE, "")
}

/// Writes a mark.
pub(super) fn mark(name: &str, done: &mut String) {
    done.push(OPEN);
    // The mark must stay intact when the text is split into words.
    done.extend(name.chars().filter(|c| !c.is_whitespace() && !matches!(c, '\'' | '"' | '\\' | '#')));
    done.push(CLOSE);
}
