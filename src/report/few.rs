//! The legend of the mark `*`, which is shown once per output even if several places print tables.

use super::curves::FEW;

/// Keeps only the first legend in the text, and removes further ones together with a blank line before
/// them.
pub(crate) fn few_once(text: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    let mut is_said = false;
    for line in text.split_inclusive('\n') {
        let is_note = line.trim_end() == FEW;
        if is_note && is_said {
            lines.pop_if(|last| last.trim().is_empty());
            continue;
        }
        is_said |= is_note;
        lines.push(line);
    }
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_stands_once() {
        let text = format!("a*\n\n{FEW}\nb*\n\n{FEW}\n\nc\n");
        assert_eq!(few_once(&text), format!("a*\n\n{FEW}\nb*\n\nc\n"));
        assert_eq!(few_once("a\n\nb"), "a\n\nb");
    }
}
